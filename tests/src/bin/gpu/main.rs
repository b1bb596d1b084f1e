//! The tests that need a GPU. `dtc-gpu-tests [PART OF A NAME]` runs them and prints their count. `--sanitizer` runs a
//! few small ones for compute-sanitizer, `--contention` measures packs beside other work, and `--interfaces` measures
//! the cost of the C interfaces.
//!
//! It is a program and not a cargo test, because machines with a GPU often have no Rust.
#![expect(unsafe_code, reason = "the calls on device memory are on raw addresses")]

mod accumulate;
mod batches;
mod buffers;
mod c_interface;
mod c_memory;
mod c_tabled;
mod captures;
mod conforming;
mod contention;
mod contexts;
mod copies;
mod cudarc;
mod devices;
mod faces;
mod first_call;
mod forks;
mod fragments;
mod harness;
mod hostile;
mod interfaces;
mod launches;
mod lifetimes;
#[path = "../../../../matching/tests/gpu/mod.rs"]
mod matching;
mod memory;
mod occupancy;
mod places;
mod policies;
mod raw;
mod requests;
mod sanitizer;
mod several_kinds;
mod shapes;
mod spinning;
mod stores;
mod tabled;
mod tabled_batches;
mod tier;
mod transfers;
mod types;
mod yaksa_interface;

use dtc_runtime::Policy;
use harness::{Fault, Tests};
use std::process::ExitCode;
use tier::OnTier;

fn main() -> ExitCode {
    // As on a machine that is new: what is compiled by the driver is compiled in every run.
    // SAFETY: this process has no other thread yet.
    unsafe { std::env::set_var("CUDA_CACHE_DISABLE", "1") };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == stores::CHILD) {
        return stores::child();
    }
    let part = arguments.iter().find(|argument| !argument.starts_with("--")).cloned().unwrap_or_default();
    let given = |option: &str| arguments.iter().any(|argument| argument == option);
    let measurement = if given("--contention") {
        Some(contention::measure())
    } else {
        given("--interfaces").then(interfaces::measure)
    };
    if let Some(measured) = measurement {
        return match measured {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let tiers =
        OnTier::new("generic", Policy::Off).and_then(|generic| Ok([generic, OnTier::new("compiled", Policy::Always)?]));
    let tiers = match tiers {
        Ok(tiers) => tiers,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(4);
        }
    };
    let mut tests = Tests::default();
    if given("--sanitizer") {
        tiers.iter().for_each(|on| sanitizer::add(&mut tests, on));
        matching::add_small(&mut tests, &tiers[1]);
    } else {
        tiers.iter().for_each(|on| add_of_tier(&mut tests, on));
        add_others(&mut tests, &tiers);
    }
    if given("--list") {
        tests.names().for_each(|name| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let problem = || match tiers[1].gpu.problem() {
        None => Ok(()),
        Some(problem) => Err(Fault::from(format!("a kernel was not compiled: {problem}"))),
    };
    tests.run(&part, &problem)
}

/// Adds the tests that run on each tier.
fn add_of_tier(tests: &mut Tests, on: &OnTier) {
    conforming::add(tests, on);
    shapes::add(tests, on);
    fragments::add(tests, on);
    launches::add(tests, on);
    requests::add(tests, on);
    captures::add(tests, on);
    batches::add(tests, on);
    occupancy::add(tests, on);
    spinning::add(tests, on);
    places::add(tests, on);
    lifetimes::add(tests, on);
    accumulate::add(tests, on);
    copies::add(tests, on);
    tabled::add(tests, on);
    tabled_batches::add(tests, on);
    cudarc::add(tests, on);
    transfers::add(tests, on);
    several_kinds::add(tests, on);
    devices::add(tests, on);
    contexts::add(tests, on);
    c_interface::add(tests, on);
    c_memory::add(tests, on);
    c_tabled::add(tests, on);
    forks::add(tests, on);
}

/// Adds the tests of policies, stores, forks and other parts that choose a tier themselves.
fn add_others(tests: &mut Tests, tiers: &[OnTier; 2]) {
    let [generic, compiled] = tiers;
    hostile::add(tests, generic);
    yaksa_interface::add(tests, generic);
    policies::add(tests, compiled);
    matching::add(tests, compiled);
    stores::add(tests);
    first_call::add(tests);
}
