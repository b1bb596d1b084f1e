//! Lists that are new at every call: each is made, committed and packed once, as codes do that send other blocks each time.
#![expect(unsafe_code, reason = "packs memory of a device")]

use super::latency::Figure;
use dtc_compiler::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder};
use dtc_compiler::plan::Direction;
use dtc_measure::failure::Failure;
use dtc_measure::samples::{SEED, fill, word};
use dtc_measure::timing::median;
use dtc_runtime::cuda::DeviceBuffer;
use dtc_runtime::store::Config;
use dtc_runtime::{Committed, Engine, Range};
use std::time::Instant;

/// Bytes of a block, and blocks of a list.
const SHAPES: [(usize, usize); 6] = [(656, 64), (656, 1024), (656, 8192), (656, 65_536), (4096, 1024), (4096, 8192)];

/// Blocks of the memory for each of a list.
const POOL: usize = 4;

/// Random blocks of the memory.
fn places((bytes, blocks): (usize, usize), seed: u64) -> Vec<i64> {
    let block = |index: u64| (word(seed, index) % (POOL * blocks) as u64) as i64 * bytes as i64;
    (0..blocks as u64).map(block).collect()
}

fn list(bytes: usize, places: &[i64]) -> Result<Datatype, DatatypeError> {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let list = types.hindexed_block(bytes as i64, places, byte)?;
    types.finish(list)
}

/// Measures all shapes on the first GPU.
pub fn measure(rounds: usize) -> Result<Vec<Figure>, Failure> {
    let engine = Engine::builder().store(Config::none()).build();
    let gpu = engine.gpu(0)?;
    let mut figures = Vec::new();
    for shape in SHAPES {
        let (bytes, blocks) = shape;
        let (size, pool) = (bytes * blocks, POOL * bytes * blocks);
        let mut source = vec![0u8; pool];
        fill(&mut source, SEED);
        let (mut memory, mut packed) = (DeviceBuffer::new(gpu.device(), pool)?, DeviceBuffer::new(gpu.device(), size)?);
        memory.write(0, &source)?;
        let pack = |committed: &Committed, packed: &DeviceBuffer| {
            // SAFETY: the list is in `memory`, and its blocks fill `packed`. The call returns when they are there.
            unsafe { committed.at(&memory, Range::elements(1)).pack(packed).run() }
                .map_err(|error| Failure::Data(format!("{blocks} blocks of {bytes} bytes: {error}")))
        };
        let described = |error: DatatypeError| Failure::Description(error.to_string());
        let (mut new, mut again) = (Vec::new(), Vec::new());
        for round in 0..rounds as u64 {
            let places = places(shape, SEED + round);
            packed.fill(0xa5)?;
            let start = Instant::now();
            let committed = engine.commit(&list(bytes, &places).map_err(described)?);
            pack(&committed, &packed)?;
            new.push(start.elapsed().as_secs_f64() * 1e6);
            let mut found = vec![0u8; size];
            packed.read(0, &mut found)?;
            let blocks = found.chunks(bytes).zip(&places);
            if blocks.into_iter().any(|(block, &place)| block != &source[place as usize..][..bytes]) {
                return Err(Failure::data("a new list", "the blocks of the list", "others"));
            }
            // The same handle, until compiled kernels serve it.
            for _ in 0..20 {
                pack(&committed, &packed)?;
                engine.compile_pending(std::time::Duration::from_secs(10));
            }
            let start = Instant::now();
            pack(&committed, &packed)?;
            again.push(start.elapsed().as_secs_f64() * 1e6);
        }
        let case = format!("{blocks} blocks of {bytes} bytes");
        for (what, times) in [("new list: made, committed, packed", &new), ("the same, packed again", &again)] {
            figures.push(Figure::on_host(what, &case, Direction::Pack, size as u64, median(times)));
        }
    }
    Ok(figures)
}
