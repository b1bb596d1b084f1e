//! The conformance run: one datatype on one engine, every byte compared with the oracle.

mod buffers;
mod draws;
mod engine;
mod expectation;
mod fault;
mod gpu;
mod oracle;
mod protected;
mod subject;

pub use engine::{DescribedSubject, EngineSubject, engines};
pub use expectation::Expectation;
pub use fault::Fault;
pub use gpu::GpuSubject;
pub use oracle::{Mistake, OracleSubject};
pub use subject::{Place, Subject, pack_sparse, unpack_sparse};

use dtc_compiler::datatype::Datatype;
use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Bound on the memory and the time of a run.
const LARGEST_SPAN: i64 = 1 << 21;

/// Runs every check of a subject for a datatype: counts 0, 1 and more; whole, in fragments and in shuffled pieces; at
/// several alignments; with guards around every buffer and closed pages in every gap. Returns the first fault.
pub fn run(subject: &dyn Subject, datatype: &Datatype, seed: u64) -> Result<(), Fault> {
    check(subject, datatype, seed, true)
}

/// Like [`run`] without closed pages, for subjects that copy their buffers.
pub fn run_on_copies(subject: &dyn Subject, datatype: &Datatype, seed: u64) -> Result<(), Fault> {
    check(subject, datatype, seed, false)
}

fn check(subject: &dyn Subject, datatype: &Datatype, seed: u64, closes_pages: bool) -> Result<(), Fault> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let more = rng.random_range(2..6);
    for count in [1, more, 0] {
        let size = datatype.facts().size.saturating_mul(count);
        if count > 1 && size > 1 << 22 {
            continue;
        }
        let expectation = Expectation::new(datatype, count);
        let named = |fault: Fault| format!("{}, count {count}: {fault}", subject.name());
        // The calls on slices need displacement 0 inside the slice.
        let span = expectation.high.max(0).checked_sub(expectation.low.min(0));
        if span.is_some_and(|span| span < LARGEST_SPAN) {
            buffers::check(subject, &expectation, &mut rng).map_err(named)?;
        }
        if closes_pages && expectation.high.checked_sub(expectation.low).is_some_and(|span| span < 1 << 36) {
            protected::check(subject, &expectation, &mut rng).map_err(named)?;
        }
    }
    Ok(())
}
