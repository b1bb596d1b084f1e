//! Matchers of the C interface.

use crate::c_interface::ok;
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc::*;
use dtc_runtime::cuda::Stream;
use std::ptr::{null, null_mut};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    tests.add("matching service: C", move || posted_and_matched(&on));
}

fn entry(source: i32, tag: i32, handle: i32) -> dtc_matcher_entry {
    dtc_matcher_entry { source, tag, communicator: 0, handle }
}

fn posted_and_matched(on: &OnTier) -> Outcome {
    let mut engine = null_mut();
    // SAFETY: null for the settings, and a place.
    ok(unsafe { dtc_init(null(), &mut engine) })?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    // SAFETY: all fields are integers.
    let mut config: dtc_matcher_config = unsafe { std::mem::zeroed() };
    config.size = size_of::<dtc_matcher_config>() as i64;
    config.handles = 100;
    let mut matcher = null_mut();
    // SAFETY: an engine, a configuration and a place.
    ok(unsafe { dtc_matcher_create(engine, 0, &config, &mut matcher) })?;
    let post = |kind, entries: &[dtc_matcher_entry]| {
        // SAFETY: a matcher of this thread, as many entries, and a stream of its device.
        unsafe { dtc_matcher_post(matcher, kind, entries.as_ptr(), entries.len() as i64, stream.raw()) }
    };
    let messages = [entry(3, 7, 10), entry(3, 7, 11), entry(4, 8, 12)];
    let receives = [entry(DTC_MATCHER_ANY, 7, 20), entry(4, DTC_MATCHER_ANY, 21), entry(9, 9, 22)];
    expect(post(DTC_MATCHER_MESSAGES, &messages) == DTC_ERROR_ARGUMENT, || "posted before the start".to_owned())?;
    // SAFETY: a matcher of this thread.
    ok(unsafe { dtc_matcher_start(matcher) })?;
    for (kind, wrong) in [
        (2, entry(1, 1, 1)),
        (DTC_MATCHER_MESSAGES, entry(DTC_MATCHER_ANY, 1, 1)),
        (DTC_MATCHER_RECEIVES, entry(-2, 1, 1)),
        (DTC_MATCHER_RECEIVES, entry(1, 1, 100)),
        (DTC_MATCHER_RECEIVES, entry(1, 1, -1)),
        (DTC_MATCHER_MESSAGES, dtc_matcher_entry { communicator: 1, ..entry(1, 1, 1) }),
    ] {
        let status = post(kind, &[wrong]);
        expect(status == DTC_ERROR_ARGUMENT, || format!("status {status} for kind {kind}, handle {}", wrong.handle))?;
    }
    ok(post(DTC_MATCHER_RECEIVES, &receives))?;
    ok(post(DTC_MATCHER_MESSAGES, &messages))?;
    // SAFETY: a matcher of this thread, and a stream of its device.
    ok(unsafe { dtc_matcher_wait(matcher, DTC_MATCHER_RECEIVES, 21, 5_000_000, stream.raw()) })?;
    stream.synchronize().map_err(text)?;
    let outcomes = |kind, first, length: i64| {
        let mut found = vec![-9; length as usize];
        // SAFETY: a matcher of this thread, and room for as many numbers.
        ok(unsafe { dtc_matcher_outcomes(matcher, kind, first, length, found.as_mut_ptr()) })?;
        Ok::<Vec<i64>, String>(found)
    };
    let (mut idle, mut port) = (-1, dtc_matcher_port { memory: 0, numbers: [0; 6] });
    // SAFETY: a matcher of this thread, and places for the results.
    unsafe {
        ok(dtc_matcher_get_port(matcher, &mut port))?;
        ok(dtc_matcher_stop(matcher, &mut idle))?;
    }
    expect(idle == 0 && port.memory != 0 && port.numbers == [1, 1, 1024, 100, 0, 0], || format!("{:?}", port.numbers))?;
    let found = (outcomes(DTC_MATCHER_RECEIVES, 20, 3)?, outcomes(DTC_MATCHER_MESSAGES, 10, 3)?);
    let expected = (vec![10, 12, DTC_MATCHER_PENDING], vec![20, DTC_MATCHER_PENDING, 21]);
    expect(found == expected, || format!("expected {expected:?}, found {found:?}"))?;
    // SAFETY: the matcher and the engine are live, and nothing uses them after this.
    unsafe {
        ok(dtc_matcher_free(matcher))?;
        Ok(ok(dtc_finalize(engine))?)
    }
}
