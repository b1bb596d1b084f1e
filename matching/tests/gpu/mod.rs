//! Matching on a GPU: in calls, by a service, and by the C interface.

mod c;
mod calls;
#[path = "../drawn/mod.rs"]
mod drawn;
mod service;

use crate::harness::Tests;
use crate::tier::OnTier;

/// Every test, on a tier with a compiler.
pub fn add(tests: &mut Tests, on: &OnTier) {
    calls::add(tests, on);
    service::add(tests, on);
    c::add(tests, on);
}

/// Those that a sanitizer runs, which takes a hundred times as long.
pub fn add_small(tests: &mut Tests, on: &OnTier) {
    calls::add_small(tests, on);
    service::add_small(tests, on);
}
