//! The built-in type: a 2-D FFT transposes its matrix by an all-to-all, and the datatype of the receive side scatters each row that
//! comes into a column of complex numbers. It is one of DDTBench (Schneider, Gerstenberger, Hoefler, EuroMPI 2012).

use dtc_compiler::TextError;
use dtc_compiler::datatype::json;
use dtc_compiler::plan::Direction;
use dtc_measure::description::Named;
use dtc_measure::device::copy_rows;
use dtc_measure::failure::Failure;
use dtc_runtime::TransferError;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use std::fmt;

/// The name of the type, and of its file among the examples.
const NAME: &str = "fft2d_scatter";

/// What it is.
pub const ABOUT: &str = "a 2-D FFT's transpose (DDTBench)";

/// A matrix of 1024 x 1024 complex numbers on 4 processes.
const ON_CPU: &str = include_str!("fft2d_scatter.json");

/// Processes that the matrix is distributed over.
const PROCESSES: usize = 4;

/// Columns of the matrix in the memory of a GPU, which are its rows too. Smaller ones would be over before a launch is.
pub const COLUMNS_ON_GPU: usize = 4096;

/// Bytes of a complex number.
const COMPLEX: usize = 16;

/// Rows that one process has, in the memory of a GPU.
const ROWS_ON_GPU: usize = COLUMNS_ON_GPU / PROCESSES;

/// The type, as large as it is on a CPU or on a GPU.
pub fn named(on_gpu: bool) -> Result<Named, Failure> {
    let invalid = |error: &dyn fmt::Display| Failure::Description(format!("the built-in type: {error}"));
    let mut description = json::read(ON_CPU).map_err(|error| invalid(&error))?;
    if on_gpu {
        let rows = ROWS_ON_GPU;
        let grown =
            format!("contiguous {rows} (resized 0 {COMPLEX} (vector {rows} 1 {COLUMNS_ON_GPU} (contiguous 2 double)))");
        description.datatype = grown.parse().map_err(|error: TextError| invalid(&error))?;
        description.buffer_bytes = Some((rows * COLUMNS_ON_GPU * COMPLEX) as u64);
        // It says the numbers of the small one.
        description.source = None;
    }
    Ok(Named { name: NAME.to_owned(), description })
}

/// Enqueues what moves the type by the driver's copies of rows: one for each column.
pub fn columns(
    direction: Direction,
    stream: &Stream,
    memory: &DeviceBuffer,
    packed: &DeviceBuffer,
) -> Result<(), TransferError> {
    let column = ROWS_ON_GPU * COMPLEX;
    for index in 0..COLUMNS_ON_GPU {
        let in_memory = (memory, (index * COMPLEX) as u64, COLUMNS_ON_GPU * COMPLEX);
        let in_packed = (packed, (index * column) as u64, COMPLEX);
        let (to, from) = match direction {
            Direction::Pack => (in_packed, in_memory),
            Direction::Unpack => (in_memory, in_packed),
        };
        copy_rows(stream, to, from, [COMPLEX, ROWS_ON_GPU])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_more_of_the_same_type() {
        let (small, large) = (named(false).unwrap().description, named(true).unwrap().description);
        assert_eq!((small.count, large.count), (4, 4));
        let facts = large.datatype.facts();
        assert_eq!(facts.size as usize, ROWS_ON_GPU * ROWS_ON_GPU * COMPLEX);
        assert_eq!(facts.extent() as usize, ROWS_ON_GPU * COMPLEX);
        assert_eq!(large.buffer_bytes, Some(64 << 20));
    }
}
