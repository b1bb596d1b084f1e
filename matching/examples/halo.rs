//! Two blocks exchange the layers at their faces, on streams of one GPU or of two, and the host waits for nothing in between.
//!
//! Each block has a stream that sends and one that receives. To send a layer is to pack it into the receive buffer of the other block and
//! to post its message. To receive one is to post a receive, to let the stream wait until a matching service has matched it, and to unpack
//! what landed. The service of a block runs on its GPU.
//!
//!     cargo run --release -p dtc-matching --example halo
#![expect(unsafe_code, reason = "enqueues packs and unpacks of device memory")]

use dtc_matching::port::Kind;
use dtc_matching::{Envelope, Outcome, Pattern, Queues, Semantics, Service, ServiceOptions};
use dtc_runtime::cuda::{Device, DeviceBuffer, Event, Stream};
use dtc_runtime::datatype::{Order, Predefined, TypeBuilder};
use dtc_runtime::{Committed, Engine, Gpu, Range};
use std::error::Error;
use std::time::Duration;

/// Doubles along an edge, with a layer of ghosts at either end.
const EDGE: usize = 34;
/// Bytes of a layer without its edges.
const LAYER_BYTES: usize = (EDGE - 2) * (EDGE - 2) * 8;
/// Faces: the lower and the upper one of each axis.
const FACES: usize = 6;
/// How long a stream waits for a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of the two blocks, and what serves it.
struct Block {
    memory: DeviceBuffer,
    /// Where the other block's layers land, by their tags.
    receive_buffer: DeviceBuffer,
    service: Service,
    sends: Stream,
    receives: Stream,
    /// Posts the messages of the other block, on this block's GPU.
    arrivals: Stream,
}

/// The layer of a face: the outermost one inside, or the ghosts beyond it.
fn layer(engine: &Engine, face: usize, ghosts: bool) -> Result<Committed, Box<dyn Error>> {
    let (axis, upper) = (face / 2, face % 2 == 1);
    let mut sizes = [EDGE as i64 - 2; 3];
    let mut starts = [1; 3];
    sizes[axis] = 1;
    starts[axis] = match (upper, ghosts) {
        (false, false) => 1,
        (false, true) => 0,
        (true, false) => EDGE as i64 - 2,
        (true, true) => EDGE as i64 - 1,
    };
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let layer = types.subarray(&[EDGE as i64; 3], &sizes, &starts, Order::C, double)?;
    Ok(engine.commit(&types.finish(layer)?))
}

/// The value of an element in an exchange; ghosts are -1.
fn value(block: usize, exchange: usize, at: [usize; 3]) -> f64 {
    if at.iter().any(|&place| place == 0 || place == EDGE - 1) {
        return -1.0;
    }
    ((block * 1000 + exchange) * EDGE * EDGE * EDGE + (at[0] * EDGE + at[1]) * EDGE + at[2]) as f64
}

fn elements() -> impl Iterator<Item = [usize; 3]> {
    (0..EDGE * EDGE * EDGE).map(|at| [at / EDGE / EDGE, at / EDGE % EDGE, at % EDGE])
}

/// What an element of a block is after an exchange: ghosts of faces have the layer at the opposite face of the other block.
fn expected(block: usize, exchange: usize, at: [usize; 3]) -> f64 {
    let is_ghost = |place: &usize| *place == 0 || *place == EDGE - 1;
    if at.iter().filter(|place| is_ghost(place)).count() != 1 {
        return value(block, exchange, at);
    }
    let beyond = |place: usize| {
        if place == 0 {
            EDGE - 2
        } else if place == EDGE - 1 {
            1
        } else {
            place
        }
    };
    value(1 - block, exchange, at.map(beyond))
}

/// Exchanges layers some times, and compares every element.
pub fn exchange(engine: &Engine, gpus: [&Gpu; 2], times: usize) -> Result<(), Box<dyn Error>> {
    let layers: Vec<[Committed; 2]> = (0..FACES)
        .map(|face| Ok([layer(engine, face, false)?, layer(engine, face, true)?]))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let mut blocks = Vec::new();
    for gpu in gpus {
        // Code is loaded before a service runs: it would wait for the service to end.
        for both in &layers {
            both[0].prepare(gpu)?;
            both[1].prepare(gpu)?;
        }
        let device = gpu.device();
        let queues = Queues { communicators: 1, partitions: 1, capacity: 64 };
        let options = ServiceOptions { handles: FACES as u32, ..ServiceOptions::new(queues) };
        blocks.push(Block {
            memory: DeviceBuffer::new(device, EDGE * EDGE * EDGE * 8)?,
            receive_buffer: DeviceBuffer::new(device, FACES * LAYER_BYTES)?,
            service: Service::new(gpu, Semantics::MPI, options)?,
            sends: Stream::new(device)?,
            receives: Stream::new(device)?,
            arrivals: Stream::new(device)?,
        });
    }
    let events = blocks
        .iter()
        .map(|block| Ok(Event::new(block.memory.device())?))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    for block in &mut blocks {
        block.service.start()?;
    }
    for time in 0..times {
        for (number, block) in blocks.iter_mut().enumerate() {
            let bytes: Vec<u8> = elements().flat_map(|at| value(number, time, at).to_ne_bytes()).collect();
            block.memory.write(0, &bytes)?;
            block.receive_buffer.fill(0xee)?;
        }
        for (number, block) in blocks.iter().enumerate() {
            // Half of the receives accept a layer from anyone.
            for face in 0..FACES {
                let source = (face % 2 == 0).then_some(1 - number as u32);
                let receive = Pattern::new(source, Some(face as u32 ^ 1), 0)?;
                block.service.post(&block.receives, &[(receive, face as u32)])?;
            }
        }
        for (number, block) in blocks.iter().enumerate() {
            let other = &blocks[1 - number];
            for (face, [inside, _]) in layers.iter().enumerate() {
                let lands = other.receive_buffer.address() + (face * LAYER_BYTES) as u64;
                let elements = inside.at(block.memory.address() as *const u8, Range::elements(1));
                // SAFETY: the block has the layer and the other receive buffer a place for it, which nothing reads before the message.
                unsafe { elements.pack(lands as *mut u8).enqueue(&block.sends)? };
            }
            events[number].record(&block.sends)?;
            other.arrivals.wait_event(&events[number])?;
            // The last face first: tags say where the layers belong.
            for face in (0..FACES as u32).rev() {
                other.service.arrive(&other.arrivals, &[(Envelope::new(number as u32, face, 0)?, face)])?;
            }
        }
        // Waits come last: streams may share a queue of the hardware, and a wait would hold up what is behind it there.
        for block in &blocks {
            for (face, [_, ghosts]) in layers.iter().enumerate() {
                block.service.wait(&block.receives, Kind::Receives, face as u32, PATIENCE)?;
                let landed = block.receive_buffer.address() + ((face ^ 1) * LAYER_BYTES) as u64;
                let elements = ghosts.at(block.memory.address() as *mut u8, Range::elements(1));
                // SAFETY: the block has the ghosts and the receive buffer the layer, both on this stream's GPU. The layer was packed
                // before its message was posted, so it is there when the wait is over, and is not packed again before the
                // streams were waited for.
                unsafe { elements.unpack(landed as *const u8).enqueue(&block.receives)? };
            }
        }
        for (number, block) in blocks.iter().enumerate() {
            block.receives.synchronize()?;
            let outcomes = block.service.outcomes(Kind::Receives, 0..FACES as u32)?;
            if !(0..).zip(&outcomes).all(|(face, outcome)| *outcome == Outcome::Matched(face ^ 1)) {
                return Err(
                    format!("block {number}: expected every receive to have its layer, found {outcomes:?}").into()
                );
            }
            let mut bytes = vec![0; EDGE * EDGE * EDGE * 8];
            block.memory.read(0, &mut bytes)?;
            for (at, bytes) in elements().zip(bytes.as_chunks::<8>().0) {
                let (expected, found) = (expected(number, time, at), f64::from_ne_bytes(*bytes));
                if found != expected {
                    return Err(
                        format!("block {number}, exchange {time}, {at:?}: expected {expected}, found {found}").into()
                    );
                }
            }
        }
    }
    for block in &mut blocks {
        block.service.stop()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new();
    let gpu = match engine.gpu(0) {
        Ok(gpu) => gpu,
        Err(error) if error.is_absence() => {
            println!("There is no GPU here: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    exchange(&engine, [&gpu, &gpu], 20)?;
    println!("20 exchanges between two streams of one GPU: every byte is right");
    if Device::count()? > 1 {
        let other = engine.gpu(1)?;
        exchange(&engine, [&gpu, &other], 20)?;
        println!("20 exchanges between two GPUs: every byte is right");
    }
    Ok(())
}
