//! Copies from pages of one order to pages of another, with a table on both sides, beside a pack and an unpack.

use super::by_hand::blocks;
use super::call::Call;
use super::cases;
use super::contenders::{Contender, medians};
use super::figure::{COPY, Figure, HAND, TABLED};
use super::subject::{Subject, copied};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::check::{GUARD, POISON, host_has};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::device::fill;
use dtc_measure::failure::Failure;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Endpoint, IndexTable};

/// Two calls by the kernels of `dtc`.
const TWO_CALLS: &str = "dtc, packed and unpacked";

/// Checks every byte of the copy, and measures it.
pub fn measure(arena: &mut Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let Some([source, target]) = cases::permuted() else { return Ok(Vec::new()) };
    let (from, to) = (Subject::new(arena, source, 1)?, Subject::new(arena, target, 1)?);
    from.tabled.prepare_copy(&to.tabled, &arena.gpu).map_err(|error| from.failed(&error))?;
    let bytes = from.case.packed_bytes();
    let [memory, packed, written] =
        [from.layout.true_ub() as u64, bytes, to.layout.true_ub() as u64 + GUARD].map(|bytes| bytes as usize);
    host_has((memory + packed + written) as u64)?;
    let device = arena.gpu.device();
    let on_device = |bytes| DeviceBuffer::new(device, bytes);
    let (read, between, target) = (on_device(memory)?, on_device(packed)?, on_device(written)?);
    let image = expected(arena, [&from, &to], &read, [memory, packed, written])?;
    let [read, packed, end] = [&read, &between, &target].map(Endpoint::from);
    let pack = Call { direction: Direction::Pack, memory: read, packed, bytes };
    let unpack = Call { direction: Direction::Unpack, memory: end, packed, bytes };
    let blocks = blocks(device.info().multiprocessors, Direction::Pack, false);
    let mut contenders: Vec<Contender<'_>> = vec![
        Contender { name: COPY.to_owned(), enqueue: Box::new(|stream| Ok(pack.copy(stream)?)) },
        Contender { name: TABLED.to_owned(), enqueue: Box::new(|stream| copied([&from, &to], [read, end], stream)) },
    ];
    let two_calls = |stream: &Stream| from.tabled(&pack, stream).and_then(|()| to.tabled(&unpack, stream));
    contenders.push(Contender { name: TWO_CALLS.to_owned(), enqueue: Box::new(two_calls) });
    if let (Some(one), Some(other)) = (&from.by_hand, &to.by_hand) {
        let tables = [from.table.address(), to.table.address()];
        let enqueue = move |stream: &Stream| {
            one.enqueue(stream, blocks, &pack, tables[0])?;
            Ok(other.enqueue(stream, blocks, &unpack, tables[1])?)
        };
        contenders.push(Contender { name: HAND.to_owned(), enqueue: Box::new(enqueue) });
    }
    for contender in contenders.iter().filter(|contender| contender.name != COPY) {
        fill(&arena.clock.stream, &target, 0..written as u64, POISON)?;
        (contender.enqueue)(&arena.clock.stream)?;
        arena.clock.stream.synchronize()?;
        if let Some((at, _, _)) = arena.pattern.difference(&target, &image)? {
            return Err(Failure::Data(format!("a copy by {}: byte {at} is wrong", contender.name)));
        }
    }
    let times = medians(arena, &contenders, rounds)?;
    let figure = |(contender, us): (Contender<'_>, f64)| {
        let case = "F to pages in the order of heads".to_owned();
        Figure { case, peer: contender.name, what: "copy", bytes, us }
    };
    Ok(contenders.into_iter().zip(times).map(figure).collect())
}

/// Fills what is read, and returns what the target must hold, by the processor.
fn expected(
    arena: &Arena,
    [from, to]: [&Subject; 2],
    read: &DeviceBuffer,
    [memory, packed, written]: [usize; 3],
) -> Result<Vec<u8>, Failure> {
    let (mut source, mut between, mut image) = (vec![0; memory], vec![0; packed], vec![POISON; written]);
    arena.pattern.fill(&mut source, 0);
    arena.pattern.enqueue_fill(&arena.clock.stream, read, memory as u64, 0)?;
    let [one, other] = [from, to].map(|subject| [IndexTable::from(&subject.entries)]);
    from.tabled.pack(&source, &one, .., &mut between).map_err(|error| from.failed(&error))?;
    to.tabled.unpack(&between, .., &other, &mut image).map_err(|error| to.failed(&error))?;
    arena.clock.stream.synchronize()?;
    Ok(image)
}
