//! Which reductions have a function.

use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_microkernels::Level;
use dtc_microkernels::accumulate::select_accumulate;

#[test]
fn every_reduction_has_a_function() {
    for reduction in Reduction::all().filter(|reduction| reduction.operation() != Operation::Replace) {
        for level in Level::ALL {
            let extended = matches!(reduction.element(), Element::F80 | Element::LongDoubleInt);
            let expected = !extended || cfg!(target_arch = "x86_64");
            assert_eq!(select_accumulate(level, reduction).is_some(), expected, "{reduction}");
        }
    }
}
