//! Cost of the C interfaces relative to the calls of Rust: blocking packs within a device, in host time. Prints a
//! table; every byte is checked.

use crate::buffers::poisoned_buffer;
use crate::c_interface::{self, on_device};
use crate::faces::{Data, Form, address, expect_bytes};
use crate::harness::text;
use crate::tier::OnTier;
use crate::yaksa_interface::{self, Info};
use dtc_runtime::cuda::{DeviceBuffer, MemoryKind};
use dtc_runtime::{Committed, Endpoint, Policy, Range};
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Rounds for each figure.
const ROUNDS: usize = 400;

/// Packs of each call before the first round, half of them before the background compilation.
const WARM: usize = 40;

/// Time limit of the background compilation.
const COMPILING: Duration = Duration::from_secs(3);

/// One type for every interface, with its buffers.
struct Case {
    name: String,
    committed: Committed,
    c: c_interface::Type,
    yaksa: yaksa_interface::Type,
    data: Data,
    packed: DeviceBuffer,
    device: Option<MemoryKind>,
    info: [Info; 2],
}

/// The timed calls, in the order of the columns. Every second call is told the kinds of memory; the others detect them.
const CALLS: [&str; 6] = ["pack", "told", "dtc_pack", "told", "yaksa_ipack", "told"];

impl Case {
    /// Makes one of the calls and waits.
    fn call(&self, number: usize) -> Result<(), String> {
        let (source, length, packed) = (self.data.source(), self.data.packed.len(), address(&self.packed));
        let (from, to) = (source.cast::<u8>(), packed.cast::<u8>());
        let known = on_device();
        // SAFETY: both buffers hold all elements.
        let moved = unsafe {
            match number {
                0 => self.committed.at(from, Range::elements(1).bytes(..length as u64)).pack(to).run().map_err(text)?,
                1 => {
                    let [from, to] =
                        [from.cast_mut(), to].map(|address| Endpoint::from(address).with_kind(self.device));
                    let elements = self.committed.at(from, Range::elements(1).bytes(..length as u64));
                    elements.pack(to).run().map_err(text)?
                }
                2 | 3 => {
                    let transfer = if number == 3 { &raw const known } else { std::ptr::null() };
                    self.c.pack(source, (0, length), packed, transfer)?;
                    length
                }
                _ => {
                    let packed: *mut c_void = packed;
                    self.yaksa.pack(source, length, packed, &self.info[number - 4])?;
                    length
                }
            }
        };
        if moved == length { Ok(()) } else { Err(format!("{moved} of {length} bytes were packed")) }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures, and prints the table.
pub fn measure() -> Result<(), String> {
    let on = OnTier::new("background", Policy::Background).map_err(text)?;
    let c = c_interface::Engine::new(dtc::DTC_POLICY_BACKGROUND)?;
    let device = Some(MemoryKind::Device(on.gpu.device().info().ordinal));
    let mut cases = Vec::new();
    for bytes in [1024i64, 64 << 10, 4 << 20] {
        for (name, form) in [
            ("rows of 64 in 512 bytes", Form::Rows { count: bytes / 64, ints: 16, stride: 512 }),
            ("records of 21 in 32 bytes", Form::Records { count: bytes / 21 }),
        ] {
            let data = Data::new(&on, &form, 91)?;
            cases.push(Case {
                name: format!("{name}, {bytes} bytes"),
                committed: on.engine.commit(&form.datatype().map_err(text)?),
                c: c.build(&form)?,
                yaksa: yaksa_interface::Type::build(&form)?,
                packed: poisoned_buffer(&on.gpu, data.packed.len())?,
                data,
                device,
                info: [Info::none(), Info::on_device()?],
            });
        }
    }
    let warm = || -> Result<(), String> {
        for case in &cases {
            for number in (0..CALLS.len()).cycle().take(CALLS.len() * WARM / 2) {
                case.call(number)?;
            }
        }
        Ok(())
    };
    warm()?;
    std::thread::sleep(COMPILING);
    warm()?;
    println!(
        "{}; blocking packs within the device on the host's clock, medians of {ROUNDS} rounds, in us; each figure once where the \
         call asks where the bytes lie and once where it is told; behind the interfaces what they take longer than Rust",
        on.gpu.device().info().name
    );
    println!(
        "{:36} {:>9} {:>9} | {:>9} {:>7} {:>9} {:>7} | {:>11} {:>7} {:>9} {:>7}",
        "", CALLS[0], CALLS[1], CALLS[2], "more", CALLS[3], "more", CALLS[4], "more", CALLS[5], "more"
    );
    for case in &mut cases {
        let mut times = vec![Vec::with_capacity(ROUNDS); CALLS.len()];
        let mut more = vec![Vec::with_capacity(ROUNDS); CALLS.len()];
        for round in 0..ROUNDS {
            let mut now = [0.0; CALLS.len()];
            // The first call rotates between rounds.
            for column in 0..CALLS.len() {
                let number = (round + column) % CALLS.len();
                let start = Instant::now();
                case.call(number)?;
                now[number] = start.elapsed().as_nanos() as f64 / 1e3;
            }
            for (number, time) in now.into_iter().enumerate() {
                times[number].push(time);
                more[number].push(time - now[number % 2]);
            }
        }
        for number in 0..CALLS.len() {
            case.packed.fill(crate::buffers::POISON).map_err(text)?;
            case.call(number)?;
            expect_bytes(&format!("{}: call {number}", case.name), &case.packed, &case.data.packed)?;
        }
        let [times, more] = [times, more].map(|all| all.into_iter().map(median).collect::<Vec<f64>>());
        println!(
            "{:36} {:9.2} {:9.2} | {:9.2} {:7.2} {:9.2} {:7.2} | {:11.2} {:7.2} {:9.2} {:7.2}",
            case.name, times[0], times[1], times[2], more[2], times[3], more[3], times[4], more[4], times[5], more[5]
        );
    }
    Ok(())
}
