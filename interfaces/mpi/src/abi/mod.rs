//! What MPIs differ in: types of handles and statuses, and the values of constants.
//!
//! Everything above is generic over [`Abi`]; one implementation is bound in a process, when the first call finds its MPI. The sources of the values
//! are the `mpi.h` of MPICH 4.0.2 and 5.0.2, that of Open MPI 4.1.4 and 5.0.11, and MPI 5.0, appendix A; a test holds them against
//! `abi/constants.def` and `tests/programs/handles.def`, which another holds against the `mpi.h` of an MPI.

mod mpich;
mod open_mpi;
mod standard;

pub use mpich::Mpich;
pub use open_mpi::OpenMpi;
pub use standard::Standard;

use dtc::{dtc_engine, dtc_type};
use std::ffi::{c_int, c_void};

/// The value of a handle: an `int` or an address.
pub trait Handle: Copy + Eq + 'static {
    /// The value as a machine word.
    fn word(self) -> usize;
    /// The handle of a machine word, of which an `int` is the lower half.
    fn of(word: usize) -> Self;
}

impl Handle for c_int {
    fn word(self) -> usize {
        self as u32 as usize
    }

    fn of(word: usize) -> c_int {
        word as u32 as c_int
    }
}

impl Handle for usize {
    fn word(self) -> usize {
        self
    }

    fn of(word: usize) -> usize {
        word
    }
}

/// Numbers that are the same in all MPIs, by MPI 5.0, appendix A, and those before it.
pub const MPI_SUCCESS: c_int = 0;
/// See [`MPI_SUCCESS`].
pub const MPI_UNDEFINED: c_int = -32766;

/// Values of constants that MPIs differ in.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the constants of MPI without MPI_ and in lower case")]
pub struct Constants {
    pub err_count: c_int,
    pub err_comm: c_int,
    pub err_truncate: c_int,
    pub err_other: c_int,
    pub err_in_status: c_int,
    pub err_pending: c_int,
    pub err_no_mem: c_int,
    pub err_unsupported_operation: c_int,
    pub thread_single: c_int,
    pub thread_funneled: c_int,
    pub thread_serialized: c_int,
    pub thread_multiple: c_int,
    pub proc_null: c_int,
    pub any_source: c_int,
    pub graph: c_int,
    pub cart: c_int,
    pub dist_graph: c_int,
    pub order_fortran: c_int,
    pub combiner_named: c_int,
    pub combiner_contiguous: c_int,
    pub combiner_vector: c_int,
    pub combiner_hvector: c_int,
    pub combiner_struct: c_int,
    pub combiner_subarray: c_int,
    pub combiner_f90_real: c_int,
    pub combiner_f90_complex: c_int,
    pub combiner_f90_integer: c_int,
    /// `MPI_COMBINER_VALUE_INDEX`, or what no combiner is.
    pub combiner_value_index: c_int,
}

/// Values of predefined handles.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the handles of MPI without MPI_ and in lower case")]
pub struct Handles<H> {
    pub comm_null: H,
    pub comm_world: H,
    pub comm_self: H,
    pub datatype_null: H,
    pub byte: H,
    pub packed: H,
    pub short: H,
    pub int: H,
    pub double: H,
    pub errors_return: H,
    pub message_null: H,
    pub message_no_proc: H,
    pub request_null: H,
}

/// An ABI of MPI.
pub trait Abi: Copy + 'static {
    /// As the report says it.
    const NAME: &'static str;
    /// A handle of any kind.
    type Handle: Handle;
    /// `MPI_Status`.
    type Status: Copy + 'static;
    /// The values of constants.
    const CONSTANTS: Constants;
    /// Whether handles are addresses of symbols, errors of the MPI's own are to be minded, and so on: the quirks of Open MPI 4.1 and 5.0.
    const IS_OPEN_MPI: bool = false;
    /// Whether subroutines of Fortran that begin messages call functions of C.
    const FORTRAN_CALLS_C: bool = false;
    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`.
    const STATUS_IGNORE: *mut Self::Status;
    /// `MPI_IN_PLACE`.
    const IN_PLACE: *const c_void;

    /// The predefined handles, once the MPI was found.
    fn handles() -> &'static Handles<Self::Handle>;
    /// Finds the predefined handles; the name of one that the MPI lacks.
    fn find_handles() -> Result<(), &'static str>;
    /// An empty status.
    fn new_status() -> Self::Status;
    /// The member `MPI_ERROR` of a status.
    ///
    /// # Safety
    ///
    /// `status` leads to a status.
    unsafe fn error_of(status: *mut Self::Status) -> *mut c_int;
    /// Makes the type of a datatype, by `dtc_mpi.h`; a status of libdtc.
    ///
    /// # Safety
    ///
    /// The engine lives, the key is one of datatypes, and `made` is writable.
    unsafe fn decode(engine: *mut dtc_engine, key: c_int, datatype: Self::Handle, made: *mut *mut dtc_type) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The lines of a table, `NAME(first, second, ...)`, without their types.
    fn table(text: &str, name: &str) -> Vec<Vec<String>> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')'));
        lines.map(|line| line.split(',').map(|word| word.trim().to_owned()).collect()).collect()
    }

    /// The members of a structure of numbers, as it is printed for debugging.
    fn members(printed: &str) -> HashMap<String, i64> {
        let (_, inner) = printed.split_once('{').expect("a structure");
        let pairs = inner.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once(':'));
        pairs
            .map(|(name, number)| (format!("MPI_{}", name.trim().to_uppercase()), number.trim().parse().expect(number)))
            .collect()
    }

    #[test]
    fn constants_and_handles_are_those_of_the_tables() {
        let constants = table(include_str!("../../abi/constants.def"), "CONSTANT");
        let all = [Mpich::CONSTANTS, OpenMpi::CONSTANTS, Standard::CONSTANTS];
        for (abi, found) in all.iter().enumerate() {
            let found = members(&format!("{found:?}"));
            let known = |line: &&Vec<String>| found.contains_key(&line[0]);
            let lines: Vec<_> = constants.iter().filter(known).collect();
            // All but the combiner of value and index, which is no constant of every MPI.
            assert_eq!(lines.len(), found.len() - 1);
            for line in lines {
                assert_eq!(found[&line[0]], line[1 + abi].parse::<i64>().expect("a number"), "{}", line[0]);
            }
        }
        let number = |text: &str| i64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number");
        let handles = table(include_str!("../../tests/programs/handles.def"), "HANDLE");
        let all = [format!("{:?}", Mpich::handles()), format!("{:?}", Standard::handles())];
        for (abi, found) in all.iter().enumerate() {
            let found = members(found);
            assert_eq!(handles.len(), found.len());
            for line in &handles {
                assert_eq!(found[&line[1]], number(&line[2 + abi]), "{}", line[1]);
            }
        }
        // Those of the decoder.
        for (header, null) in [
            (include_str!("../../abi/mpich/mpi.h"), i64::from(Mpich::handles().datatype_null)),
            (include_str!("../../abi/standard/mpi.h"), Standard::handles().datatype_null as i64),
        ] {
            assert!(header.contains(&format!("#define DTC_MPI_DATATYPE_NULL {null:#010x}\n")), "{null:#x}");
        }
    }
}
