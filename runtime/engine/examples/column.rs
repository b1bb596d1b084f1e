//! A column of a matrix, packed and unpacked on the CPU, whole and in part.
//!
//! ```text
//! cargo run --release --example column
//! ```

use dtc_runtime::datatype::{Predefined, TypeBuilder};
use dtc_runtime::{Engine, Memory, Range};

const ROWS: usize = 1000;
const COLUMNS: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let column = types.vector(ROWS as i64, 1, COLUMNS as i64, double)?;
    let column = Engine::new().commit(&types.finish(column)?);

    let matrix: Vec<f64> = (0..ROWS * COLUMNS).map(|at| at as f64).collect();
    let mut packed = vec![0.0; ROWS];
    column.pack(Memory::at(&matrix, 2), Range::elements(1), &mut packed)?;
    assert!(packed.iter().enumerate().all(|(row, &value)| value == (row * COLUMNS + 2) as f64));

    // Its last ten rows alone.
    let mut tail = [0.0; 10];
    let bytes = (ROWS as u64 - 10) * 8..ROWS as u64 * 8;
    column.pack(Memory::at(&matrix, 2), Range::elements(1).bytes(bytes), &mut tail)?;
    assert_eq!(tail, packed[ROWS - 10..]);

    let mut other = vec![0.0; ROWS * COLUMNS];
    column.unpack(&packed, Range::elements(1), &mut other)?;
    assert_eq!(other[COLUMNS], packed[1]);
    println!("{}", column.plan());
    Ok(())
}
