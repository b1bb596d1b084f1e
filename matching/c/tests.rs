//! Matchers: what is refused, whether or not there is a GPU. What they match is tested on a GPU, by `dtc-gpu-tests`.

#[path = "../../interfaces/c/tests/common/mod.rs"]
mod common;

use common::{Engine, fails};
use dtc::*;
use std::ptr::{null, null_mut};

fn config() -> dtc_matcher_config {
    // SAFETY: all fields are integers.
    let mut config: dtc_matcher_config = unsafe { std::mem::zeroed() };
    config.size = size_of::<dtc_matcher_config>() as i64;
    config
}

#[test]
fn configurations_out_of_range_are_refused() {
    let engine = Engine::new();
    let mut matcher = null_mut();
    let unknown = dtc_matcher_config { flags: 16, ..config() };
    let reserved = dtc_matcher_config { reserved: 1, ..config() };
    let negative = dtc_matcher_config { capacity: -1, ..config() };
    let late = dtc_matcher_config { idle_microseconds: -1, ..config() };
    let short = dtc_matcher_config { size: 8, ..config() };
    for (config, place) in [
        (unknown, "dtc_matcher_config.flags"),
        (reserved, "dtc_matcher_config.reserved"),
        (negative, "dtc_matcher_config.capacity"),
        (late, "dtc_matcher_config.idle_microseconds"),
        (short, "dtc_matcher_config.size"),
    ] {
        // SAFETY: a live engine, a configuration and a place.
        let status = unsafe { dtc_matcher_create(engine.0, 0, &config, &mut matcher) };
        fails(status, DTC_ERROR_ARGUMENT, place);
    }
    // SAFETY: a live engine and a place; null for the configuration.
    fails(unsafe { dtc_matcher_create(engine.0, -1, null(), &mut matcher) }, DTC_ERROR_ARGUMENT, "device");
    // SAFETY: null where the contract allows it.
    fails(unsafe { dtc_matcher_create(engine.0, 0, null(), null_mut()) }, DTC_ERROR_ARGUMENT, "matcher");
    // SAFETY: null for the engine, and a place.
    fails(unsafe { dtc_matcher_create(null(), 0, null(), &mut matcher) }, DTC_ERROR_HANDLE, "dtc_engine");
    // SAFETY: a live engine and a place for the handle. Device 1000 does not exist.
    fails(unsafe { dtc_matcher_create(engine.0, 1000, null(), &mut matcher) }, DTC_ERROR_DEVICE, "");
    assert!(matcher.is_null());
}

#[test]
fn other_handles_are_refused() {
    let engine = Engine::new();
    let other = engine.0.cast::<dtc_matcher>();
    for matcher in [null_mut(), other] {
        let place = "dtc_matcher";
        // SAFETY: null or a live handle, and null where the contract allows it.
        unsafe {
            fails(dtc_matcher_start(matcher), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_stop(matcher, null_mut()), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_free(matcher), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_get_port(matcher, null_mut()), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_post(matcher, 0, null(), 0, null_mut()), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_wait(matcher, 0, 0, 0, null_mut()), DTC_ERROR_HANDLE, place);
            fails(dtc_matcher_outcomes(matcher, 0, 0, 0, null_mut()), DTC_ERROR_HANDLE, place);
        }
    }
}
