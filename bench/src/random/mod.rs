//! `--random`: drawn types on the CPU, dtc beside the hand-written loops and the MPIs.

mod distribution;
mod notation;
mod report;
mod run;

pub use distribution::{Distribution, PERCENTILES};
pub use notation::abridged;
pub use report::print;
pub use run::{ROUNDS, Random, run, write};
