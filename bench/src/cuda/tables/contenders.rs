//! Those who move the bytes of a call.

use super::call::Call;
use super::figure::{COPY, DRIVER, GENERIC, HAND, HOSTED, LISTED, TABLED};
use super::shapes::Shaped;
use super::subject::Subject;
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::failure::Failure;
use dtc_measure::timing::median;
use dtc_runtime::Multiprocessors;
use dtc_runtime::cuda::Stream;

/// One who moves the bytes of a call.
pub struct Contender<'a> {
    /// Who.
    pub name: String,
    /// Enqueues the call.
    pub enqueue: Box<Enqueue<'a>>,
}

/// Enqueues a call on a stream.
pub type Enqueue<'a> = dyn Fn(&Stream) -> Result<(), Failure> + 'a;

/// The driver's copy of as many bytes, whose bytes are not those of the type; then the others.
pub fn contenders<'a>(subject: &'a Subject, call: Call, blocks: u32, shapes: &'a [Shaped]) -> Vec<Contender<'a>> {
    let mut all = vec![
        Contender { name: COPY.to_owned(), enqueue: Box::new(move |stream| Ok(call.copy(stream)?)) },
        Contender { name: LISTED.to_owned(), enqueue: Box::new(move |stream| subject.listed(&call, stream)) },
        Contender { name: TABLED.to_owned(), enqueue: Box::new(move |stream| subject.tabled(&call, stream)) },
        Contender {
            name: HOSTED.to_owned(),
            enqueue: Box::new(move |stream| subject.hosted(&call, Multiprocessors::All, stream)),
        },
        Contender { name: GENERIC.to_owned(), enqueue: Box::new(move |stream| subject.generic(&call, stream)) },
    ];
    // Blocks with gaps are moved by the kernel all the same.
    if subject.layout.fixed_layouts().iter().all(|fixed| fixed.contiguous().is_some()) {
        let enqueue = move |stream: &Stream| subject.hosted(&call, Multiprocessors::None, stream);
        all.push(Contender { name: DRIVER.to_owned(), enqueue: Box::new(enqueue) });
    }
    if let Some(kernel) = &subject.by_hand {
        let table = subject.table.address();
        let enqueue = move |stream: &Stream| Ok(kernel.enqueue(stream, blocks, &call, table)?);
        all.push(Contender { name: HAND.to_owned(), enqueue: Box::new(enqueue) });
    }
    for shaped in shapes {
        let enqueue = move |stream: &Stream| Ok(shaped.enqueue(stream, &call)?);
        all.push(Contender { name: shaped.name(), enqueue: Box::new(enqueue) });
    }
    all
}

/// The median microseconds of each with the cache emptied, measured in turns.
pub fn medians(arena: &Arena, contenders: &[Contender<'_>], rounds: usize) -> Result<Vec<f64>, Failure> {
    let mut samples = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            samples.push(arena.clock.time(false, || (contender.enqueue)(&arena.clock.stream))?);
        }
    }
    Ok(samples.iter().map(|samples| median(samples)).collect())
}
