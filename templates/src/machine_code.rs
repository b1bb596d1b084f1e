//! Machine code of the kernels that are compiled with dtc itself, and not while it runs.

use std::fmt;

/// The generic kernels, by ascending architecture.
///
/// ```
/// let code = dtc_templates::MachineCode::serving(dtc_templates::GENERIC_MACHINE_CODE, 90).unwrap();
/// assert_eq!(code.unpack().unwrap()[..4], *b"\x7fELF");
/// ```
pub const GENERIC_MACHINE_CODE: &[MachineCode] = &[
    MachineCode { architecture: 70, file: include_bytes!("../machine_code/generic_sm_70.lz4") },
    MachineCode { architecture: 75, file: include_bytes!("../machine_code/generic_sm_75.lz4") },
    MachineCode { architecture: 80, file: include_bytes!("../machine_code/generic_sm_80.lz4") },
    MachineCode { architecture: 90, file: include_bytes!("../machine_code/generic_sm_90.lz4") },
    MachineCode { architecture: 100, file: include_bytes!("../machine_code/generic_sm_100.lz4") },
    MachineCode { architecture: 120, file: include_bytes!("../machine_code/generic_sm_120.lz4") },
];

/// The kernel that does nothing, for the same architectures.
///
/// ```
/// let architectures = |code: &[dtc_templates::MachineCode]| code.iter().map(|code| code.architecture()).collect::<Vec<_>>();
/// assert_eq!(architectures(dtc_templates::NOTHING_MACHINE_CODE), architectures(dtc_templates::GENERIC_MACHINE_CODE));
/// ```
pub const NOTHING_MACHINE_CODE: &[MachineCode] = &[
    MachineCode { architecture: 70, file: include_bytes!("../machine_code/nothing_sm_70.lz4") },
    MachineCode { architecture: 75, file: include_bytes!("../machine_code/nothing_sm_75.lz4") },
    MachineCode { architecture: 80, file: include_bytes!("../machine_code/nothing_sm_80.lz4") },
    MachineCode { architecture: 90, file: include_bytes!("../machine_code/nothing_sm_90.lz4") },
    MachineCode { architecture: 100, file: include_bytes!("../machine_code/nothing_sm_100.lz4") },
    MachineCode { architecture: 120, file: include_bytes!("../machine_code/nothing_sm_120.lz4") },
];

/// A cubin of one architecture, compressed. The file begins with a line that tells the hash of the text that was compiled; an
/// LZ4 block follows, behind the size of the cubin.
#[derive(Clone, Copy)]
pub struct MachineCode {
    architecture: u32,
    file: &'static [u8],
}

impl fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineCode").field("architecture", &self.architecture).finish_non_exhaustive()
    }
}

impl MachineCode {
    /// The newest code that a device of an architecture runs: of the same major number, and of no newer minor one.
    ///
    /// ```
    /// use dtc_templates::{GENERIC_MACHINE_CODE, MachineCode};
    /// let of = |device| MachineCode::serving(GENERIC_MACHINE_CODE, device).map(|code| code.architecture());
    /// assert_eq!([of(72), of(89), of(90), of(121)], [Some(70), Some(80), Some(90), Some(120)]);
    /// assert_eq!([of(61), of(110)], [None, None]);
    /// ```
    pub fn serving(all: &'static [MachineCode], device: u32) -> Option<&'static MachineCode> {
        all.iter().rev().find(|code| code.architecture <= device && code.architecture / 10 == device / 10)
    }

    /// Ten times the compute capability that the code is for: 90 is sm_90.
    ///
    /// ```
    /// assert_eq!(dtc_templates::GENERIC_MACHINE_CODE[0].architecture(), 70);
    /// ```
    pub fn architecture(&self) -> u32 {
        self.architecture
    }

    /// The cubin; `None` only by a defect of dtc.
    ///
    /// ```
    /// assert!(dtc_templates::NOTHING_MACHINE_CODE.iter().all(|code| code.unpack().is_some()));
    /// ```
    pub fn unpack(&self) -> Option<Vec<u8>> {
        let end = self.file.iter().position(|byte| *byte == b'\n')?;
        lz4_flex::block::decompress_size_prepended(&self.file[end + 1..]).ok()
    }
}
