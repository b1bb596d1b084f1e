//! What the library says, to standard error, when `DTC_MPI_REPORT` is set.

use crate::{print, settings};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Bytes of an `MPI_Pack`.
    Packed,
    /// Bytes of an `MPI_Unpack`.
    Unpacked,
    /// Bytes that were packed and sent.
    Sent,
    /// Bytes that were received and unpacked.
    Received,
    /// Bytes that were packed into memory of other processes.
    Directly,
}

/// In the order of [`Counted`], as the report says it.
const COUNTED: [&str; 5] = ["MPI_Pack", "MPI_Unpack", "sent", "received", "packed into memory of other processes"];

/// The first of those that are rare: they are told of only where there are some.
const RARE: usize = 4;

struct CallsAndBytes {
    calls: AtomicI64,
    bytes: AtomicI64,
}

static COUNTS: [CallsAndBytes; COUNTED.len()] =
    [const { CallsAndBytes { calls: AtomicI64::new(0), bytes: AtomicI64::new(0) } }; COUNTED.len()];

thread_local! {
    /// How often this thread did something.
    static DONE: Cell<i64> = const { Cell::new(0) };
}

/// Whether `DTC_MPI_REPORT` asks.
pub fn reports() -> bool {
    const UNKNOWN: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    let known = KNOWN.load(Relaxed);
    if known != UNKNOWN {
        return known == 1;
    }
    let variable = "DTC_MPI_REPORT";
    let asked = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let reports = asked && !settings::is_set(variable, "0") && !settings::is_set(variable, "off");
    KNOWN.store(reports.into(), Relaxed);
    reports
}

/// Nanoseconds of a clock that never goes back.
pub fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Says something of this process and why, if the report is asked for.
pub fn say(what: &str, why: &str) {
    if reports() {
        print(&format!("{what}: {why}"));
    }
}

/// Counts a part of a call that this thread has done.
pub fn record_work() {
    DONE.set(DONE.get() + 1);
}

/// How often this thread did something: it grows with each part of a call that dtc does. Only if the report is asked for.
pub fn work_done() -> i64 {
    DONE.get()
}

/// Counts what was done, if the report is asked for.
pub fn count(what: Counted, bytes: i64) {
    if !reports() {
        return;
    }
    record_work();
    let count = &COUNTS[what as usize];
    count.calls.fetch_add(1, Relaxed);
    count.bytes.fetch_add(bytes, Relaxed);
}

/// At the end: what was done, with how many datatypes that dtc decoded, and how many of these have kernels compiled for them.
pub fn report(abi: &str, decoded: i64, compiled: i64) {
    if !reports() {
        return;
    }
    for (at, (name, count)) in COUNTED.iter().zip(&COUNTS).enumerate() {
        let (calls, bytes) = (count.calls.load(Relaxed), count.bytes.load(Relaxed));
        if at < RARE || calls > 0 {
            print(&format!("{abi}: {name}: {calls} calls with dtc, {bytes} bytes"));
        }
    }
    print(&format!("{abi}: {decoded} datatypes decoded, kernels compiled for {compiled} on the host"));
}

/// Seconds, as the report says them.
pub(crate) fn seconds(nanoseconds: i64) -> String {
    format!("{:.6} s", nanoseconds as f64 * 1e-9)
}
