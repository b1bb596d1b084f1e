//! Types with index tables, beside the same types with the tables written into them, kernels by hand, and the driver's copy.

mod buffers;
mod by_hand;
mod call;
mod cases;
mod contenders;
mod copies;
mod figure;
mod print;
mod shapes;
mod small;
mod subject;

pub use print::print;

use buffers::{Buffers, PackedIn};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::failure::Failure;
use figure::Figure;
use subject::Subject;

/// Lengths of the runs of entries: every place on its own, and eight in a row.
const RUNS: [u64; 2] = [1, 8];

/// Measures and checks all cases whose name has a text.
pub fn measure(
    arena: &mut Arena,
    rounds: usize,
    only: &str,
    tell: impl Fn(&str),
    mut record: impl FnMut(&Figure) -> Result<(), Failure>,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for run in RUNS {
        for case in cases::cases().into_iter().filter(|case| case.name.contains(only)) {
            tell(&format!("{}, runs of {run}", case.name));
            let subject = Subject::new(arena, case, run)?;
            let mut buffers = Buffers::new(arena, &subject)?;
            for direction in [Direction::Pack, Direction::Unpack] {
                buffers.expect(arena, &subject, direction)?;
                for packed_in in [PackedIn::Device, PackedIn::Pinned] {
                    let found = buffers.contend(arena, &subject, (direction, packed_in), rounds)?;
                    found.iter().try_for_each(&mut record)?;
                    figures.extend(found);
                }
            }
        }
    }
    if only.is_empty() {
        tell("copies");
        let copies = copies::measure(arena, rounds)?;
        let small = small::measure(arena, rounds)?;
        copies.iter().chain(&small).try_for_each(&mut record)?;
        figures.extend(copies.into_iter().chain(small));
    }
    Ok(figures)
}
