//! Packs a column of a matrix in the memory of a GPU, and unpacks it into another column: `cargo run -p dtc-cudarc --example column`.

use cudarc::driver::CudaContext;
use dtc_compiler::datatype::{Predefined, TypeBuilder};
use dtc_runtime::{Engine, Range};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new();
    // cudarc panics where the driver is missing; dtc says how to get it.
    engine.gpu(0)?;
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let column = types.vector(3, 1, 4, double)?;
    let column = engine.commit(&types.finish(column)?);

    let stream = CudaContext::new(0)?.new_stream()?;
    let matrix: Vec<f64> = (0..12).map(f64::from).collect();
    let mut matrix = stream.clone_htod(&matrix)?;
    let mut packed = stream.alloc_zeros::<f64>(3)?;
    dtc_cudarc::pack(&column, &stream, &matrix, 1, Range::elements(1), &mut packed)?;
    dtc_cudarc::unpack(&column, &stream, &packed, Range::elements(1), &mut matrix, 2)?;

    for row in stream.clone_dtoh(&matrix)?.chunks(4) {
        println!("{row:?}");
    }
    Ok(())
}
