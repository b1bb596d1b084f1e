//! What a small call costs on the clock of the host: with its table on the device, in host memory, and in the type.
#![expect(unsafe_code, reason = "moves memory of a device")]

use super::contenders::Enqueue;
use super::figure::{Figure, HOSTED, LISTED, TABLED};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::device::Nothing;
use dtc_measure::failure::Failure;
use dtc_measure::timing::median;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Committed, CommittedTabled, Engine, Gpu, IndexTable, Range};
use std::fmt::Display;
use std::time::Instant;

/// Calls that are enqueued before the stream is waited for.
const ROW: usize = 100;

/// Measures calls of each kind in turns.
pub fn measure(arena: &Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let (small, nothing) = (Small::new(&arena.specialised, &arena.gpu)?, Nothing::new(&arena.gpu)?);
    let calls: [(&str, &Enqueue<'_>); 4] = [
        ("empty kernel", &|stream| Ok(nothing.enqueue(stream)?)),
        (LISTED, &|stream| small.listed(stream)),
        (TABLED, &|stream| small.on_device(stream)),
        (HOSTED, &|stream| small.on_host(stream)),
    ];
    let mut samples = [const { Vec::new() }; 4];
    for _ in 0..20 * rounds {
        for ((_, call), samples) in calls.iter().zip(&mut samples) {
            let stream = &arena.clock.stream;
            stream.synchronize()?;
            let start = Instant::now();
            (0..ROW).try_for_each(|_| call(stream))?;
            samples.push(start.elapsed().as_secs_f64() * 1e6 / ROW as f64);
        }
    }
    arena.clock.stream.synchronize()?;
    let figure = |((peer, _), samples): (&(&str, _), &Vec<f64>)| {
        let (case, peer) = ("16 blocks of 4 KiB".to_owned(), (*peer).to_owned());
        Figure { case, peer, what: "enqueued, on the clock of the host", bytes: BLOCKS * 4096, us: median(samples) }
    };
    Ok(calls.iter().zip(&samples).map(figure).collect())
}

/// A type with a table of [`BLOCKS`] blocks, and the buffers of its calls.
struct Small {
    tabled: CommittedTabled,
    listed: Committed,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    table: DeviceBuffer,
}

/// Blocks of the small type, of 4 KiB.
const BLOCKS: u64 = 16;

impl Small {
    /// Makes it ready on a device.
    fn new(engine: &Engine, gpu: &Gpu) -> Result<Small, Failure> {
        let described = |error: &dyn Display| Failure::Description(error.to_string());
        let tabled = "table 0 4096 1024 4096 (contiguous 4096 byte)".parse().map_err(|error| described(&error))?;
        let listed = "hindexed_block 1 [16384, 0, 4096, 36864, 8192, 40960, 49152, 57344, 45056, 12288, 20480, 61440, 28672, 53248, \
                      32768, 24576] (contiguous 4096 byte)"
            .parse()
            .map_err(|error| described(&error))?;
        let (tabled, listed) = (engine.commit_tabled(&tabled), engine.commit(&listed));
        tabled.prepare(gpu).map_err(|error| described(&error))?;
        listed.prepare(gpu)?;
        let bytes = (BLOCKS * 4096) as usize;
        let [memory, packed] = [DeviceBuffer::new(gpu.device(), bytes)?, DeviceBuffer::new(gpu.device(), bytes)?];
        let mut table = DeviceBuffer::new(gpu.device(), 4 * BLOCKS as usize)?;
        table.write(0, &ENTRIES.map(i32::to_ne_bytes).concat())?;
        Ok(Small { tabled, listed, memory, packed, table })
    }

    /// With the table on the device.
    fn on_device(&self, stream: &Stream) -> Result<(), Failure> {
        self.enqueue(IndexTable::at(&self.table, false, BLOCKS), stream)
    }

    /// With the table in host memory.
    fn on_host(&self, stream: &Stream) -> Result<(), Failure> {
        self.enqueue(IndexTable::from(&ENTRIES), stream)
    }

    /// With the table in the type.
    fn listed(&self, stream: &Stream) -> Result<(), Failure> {
        let transfer = self.listed.at(&self.memory, Range::elements(1)).pack(&self.packed);
        // SAFETY: the 16 blocks are in `memory`, and `packed` has room for them; both live until the stream was waited for.
        unsafe { transfer.enqueue(stream)? };
        Ok(())
    }

    fn enqueue(&self, table: IndexTable<'_>, stream: &Stream) -> Result<(), Failure> {
        let tables = [table];
        let transfer = self.tabled.at(&self.memory, &tables).pack(&self.packed);
        // SAFETY: as for `listed`; all entries are below 16.
        unsafe { transfer.enqueue(stream) }.map(drop).map_err(|error| Failure::Data(error.to_string()))
    }
}

/// The blocks of the small type in the order of its table.
const ENTRIES: [i32; BLOCKS as usize] = [4, 0, 1, 9, 2, 10, 12, 14, 11, 3, 5, 15, 7, 13, 8, 6];
