//! The halo of a box on a GPU: 26 pieces, for 26 neighbours, packed and unpacked in one launch each.
//!
//! ```text
//! cargo run --release --example halo
//! ```
//!
//! Every rank of a stencil code owns a box of doubles, and sends the layers at its faces, edges and corners to the
//! neighbours there. Here the box is its own neighbour on every side, as with periodic boundaries of one rank: what it sends
//! arrives in the ghost layers of the opposite side.

#![expect(unsafe_code, reason = "the runtime takes addresses for data on a device")]

use dtc_compiler::datatype::{DatatypeError, Order, Predefined, TypeBuilder};
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Committed, Engine, Range};
use std::error::Error;

/// Doubles along an edge of the box, without ghosts, and layers that neighbours need.
const EDGE: i64 = 64;
const WIDTH: i64 = 1;

/// Doubles along an edge of what is stored.
const STORED: i64 = EDGE + 2 * WIDTH;

/// The box of doubles from `start` on, along x, y and z.
fn piece(engine: &Engine, start: [i64; 3], size: [i64; 3]) -> Result<Committed, DatatypeError> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let [[x, y, z], [x_size, y_size, z_size]] = [start, size];
    let piece = types.subarray(&[STORED; 3], &[z_size, y_size, x_size], &[z, y, x], Order::C, double)?;
    Ok(engine.commit(&types.finish(piece)?))
}

/// Along one axis, for a neighbour below, beside or above: where what it needs begins, where its layers arrive, and how
/// many doubles there are.
fn along(side: i64) -> (i64, i64, i64) {
    match side {
        -1 => (WIDTH, EDGE + WIDTH, WIDTH),
        0 => (WIDTH, WIDTH, EDGE),
        _ => (EDGE, 0, WIDTH),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new();
    let gpu = match engine.gpu(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("no GPU to run on: {error}");
            return Ok(());
        }
    };
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for number in (0..27).filter(|&number| number != 13) {
        let sides = [number % 3, number / 3 % 3, number / 9].map(|side| along(side - 1));
        sent.push(piece(&engine, sides.map(|side| side.0), sides.map(|side| side.2))?);
        received.push(piece(&engine, sides.map(|side| side.1), sides.map(|side| side.2))?);
    }

    // Values that tell where they were.
    let at = |x: i64, y: i64, z: i64| ((z * STORED + y) * STORED + x) as usize;
    let mut host = vec![-1.0; (STORED * STORED * STORED) as usize];
    let inside = WIDTH..EDGE + WIDTH;
    for z in inside.clone() {
        for y in inside.clone() {
            for x in inside.clone() {
                host[at(x, y, z)] = at(x, y, z) as f64;
            }
        }
    }
    let mut bytes: Vec<u8> = host.iter().flat_map(|value: &f64| value.to_ne_bytes()).collect();
    let mut grid = DeviceBuffer::new(gpu.device(), bytes.len())?;
    grid.write(0, &bytes)?;
    let messages: Result<Vec<DeviceBuffer>, _> =
        sent.iter().map(|piece| DeviceBuffer::new(gpu.device(), piece.layout().size() as usize)).collect();
    let messages = messages?;

    let stream = Stream::new(gpu.device())?;
    let one = Range::elements(1);
    let packs: Vec<_> = sent.iter().zip(&messages).map(|(piece, message)| piece.at(&grid, one).pack(message)).collect();
    let unpacks: Vec<_> =
        received.iter().zip(&messages).map(|(piece, message)| piece.at(&grid, one).unpack(message)).collect();
    // SAFETY: grid and messages are on the GPU, as long as the types say, and live until the stream was waited for. The
    // ghost layers of the pieces are disjoint.
    let moved = unsafe { engine.enqueue_batch(&stream, &packs)? + engine.enqueue_batch(&stream, &unpacks)? };
    stream.synchronize()?;

    grid.read(0, &mut bytes)?;
    let value = |at: usize| f64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
    let wrap = |place: i64| (place - WIDTH).rem_euclid(EDGE) + WIDTH;
    for z in 0..STORED {
        for y in 0..STORED {
            for x in 0..STORED {
                assert_eq!(value(at(x, y, z)), at(wrap(x), wrap(y), wrap(z)) as f64, "at {x}, {y}, {z}");
            }
        }
    }
    println!("{moved} bytes moved in two launches; every ghost is right");
    Ok(())
}
