//! Counts each call, by its name, for a process whose `DTC_MPI_REPORT` asks: the table of [`exports`](crate::exports) then leads here first.
//! Otherwise nothing is counted, and a call costs nothing more.

use crate::calls::{CALLS, Call, ElementArguments, Function, NAMES, SHAPES, Table, for_each_call};
use crate::print;
use crate::report::{now, seconds, work_done};
use crate::words::{pass, taken, with_words};
use dtc_mpi_table::Use;
use once_cell::race::OnceBox;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering, Ordering::Relaxed};

/// Why dtc did not do a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "REASONS says what they are")]
pub enum Reason {
    Predefined,
    Whole,
    Undecoded,
    FastPieces,
    FewBytes,
    FastSize,
    FewUses,
    ManyBytes,
    Mixed,
    Nothing,
    Other,
}

/// In the order of [`Reason`], as the report says them.
const REASONS: [&str; 11] = [
    "predefined datatype",
    "contiguous",
    "not decoded, or long double",
    "pieces that the MPI moves as fast",
    "few bytes",
    "sizes that the MPI moves as fast",
    "few uses",
    "too many bytes",
    "elements of several sizes",
    "nothing to move",
    "first use, or no memory",
];

impl Reason {
    /// As the report says it.
    pub fn description(self) -> &'static str {
        REASONS[self as usize]
    }
}

/// Elements of a call as the program gave them.
pub struct CountedCall {
    /// What is done with them.
    pub of: Use,
    /// Whether they are sent.
    pub sends: bool,
    /// How many there are.
    pub elements: i64,
    /// The value of the handle.
    pub datatype: usize,
    /// The process that they go to or come from, if the call names one.
    pub rank: Option<c_int>,
}

/// What the ABI that is bound knows of calls.
pub struct Classifier {
    /// Why dtc did not do one.
    pub reason: fn(&CountedCall) -> Reason,
    /// Counts a call with a datatype, by the value of its handle.
    pub count: fn(usize, usize, Option<Reason>),
}

/// None if all calls go to the MPI.
static CLASSIFIER: OnceBox<Classifier> = OnceBox::new();

/// Calls of one kind: those of which dtc did a part, and those that went on to the MPI.
struct CallCounts {
    handled: AtomicI64,
    passed: AtomicI64,
    handled_nanoseconds: AtomicI64,
    passed_nanoseconds: AtomicI64,
    reasons: [AtomicI64; REASONS.len()],
}

static COUNTED: [CallCounts; CALLS] = [const {
    CallCounts {
        handled: AtomicI64::new(0),
        passed: AtomicI64::new(0),
        handled_nanoseconds: AtomicI64::new(0),
        passed_nanoseconds: AtomicI64::new(0),
        reasons: [const { AtomicI64::new(0) }; REASONS.len()],
    }
}; CALLS];

/// Where the counted calls go on.
static ENTRIES: [AtomicPtr<c_void>; CALLS] = [const { AtomicPtr::new(null_mut()) }; CALLS];

/// The elements of a call: two of an exchange, none of calls with several datatypes or none.
fn counted_calls(call: usize, words: &[usize]) -> [Option<CountedCall>; 2] {
    let (arguments, _, wide) = SHAPES[call];
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let one = |ElementArguments { first, rank, of, sends, .. }| {
        let elements = if wide { word(first + 1) as i64 } else { i64::from(word(first + 1) as c_int) };
        CountedCall { of, sends, elements, datatype: word(first + 2), rank: rank.map(|at| word(at) as c_int) }
    };
    arguments.elements().map(|elements| elements.map(one))
}

/// Does a call, and counts it.
fn around(call: usize, words: &[usize], work: impl FnOnce(Function) -> c_int) -> c_int {
    let (begun, done) = (now(), work_done());
    let result = work(ENTRIES[call].load(Ordering::Acquire));
    let time = now() - begun;
    let counted = &COUNTED[call];
    // Whether this thread did something in it.
    let handled = work_done() != done;
    let (calls, nanoseconds) = match handled {
        true => (&counted.handled, &counted.handled_nanoseconds),
        false => (&counted.passed, &counted.passed_nanoseconds),
    };
    calls.fetch_add(1, Relaxed);
    nanoseconds.fetch_add(time, Relaxed);
    let Some(classifier) = CLASSIFIER.get() else { return result };
    let counted_call = counted_calls(call, words);
    let both = counted_call[1].is_some();
    for counted_call in counted_call.iter().flatten() {
        let reason = (classifier.reason)(counted_call);
        if !handled {
            counted.reasons[reason as usize].fetch_add(1, Relaxed);
        }
        // One half of an exchange may have been left to the MPI; there is no reason for one that was not.
        let done = handled && (!both || reason == Reason::Other);
        (classifier.count)(call, counted_call.datatype, (!done).then_some(reason));
    }
    result
}

macro_rules! count {
    ($($name:ident $arity:tt $wrapper:ident $count:ty, $arguments:ident;)*) => {
        /// A function for each call that counts it.
        const COUNTING: [fn() -> Function; CALLS] = [$(count!(@function $name $arity),)*];
    };
    (@function $name:ident $arity:tt) => {
        || {
            with_words!($arity taken! [] words {
                let words: &[usize] = words;
                // SAFETY: the call's function, or its wrapper, with the program's arguments.
                around(Call::$name as usize, words, |entry| unsafe { pass(entry, words) })
            });
            taken as *const () as Function
        }
    };
}

for_each_call!(count);

/// Has the entries of a table counted before they are called.
fn put(table: &mut Table) {
    for ((place, entry), counting) in table.0.iter_mut().zip(&ENTRIES).zip(COUNTING) {
        entry.store(*place, Ordering::Release);
        *place = counting();
    }
}

/// The same, with the reasons of those that are not handled, and by datatype.
pub fn count(table: &mut Table, classifier: Classifier) {
    let _ = CLASSIFIER.set(Box::new(classifier));
    put(table);
}

/// The name of the ABI, for the report of a process whose calls all go to the MPI.
static UNSERVED: OnceBox<&str> = OnceBox::new();

unsafe extern "C" fn finalize_unserved() -> c_int {
    if let Some(abi) = UNSERVED.get() {
        report(abi);
    }
    let entry = ENTRIES[Call::MPI_Finalize as usize].load(Ordering::Acquire);
    // SAFETY: the MPI's function, which has no arguments.
    unsafe { std::mem::transmute::<Function, unsafe extern "C" fn() -> c_int>(entry)() }
}

/// The same of a process whose calls all go to the MPI, without reasons; `MPI_Finalize` prints what was counted.
pub fn count_unserved(table: &mut Table, abi: &'static str) {
    let _ = UNSERVED.set(Box::new(abi));
    put(table);
    *table.place(Call::MPI_Finalize) = finalize_unserved as *const () as Function;
}

/// Prints what was counted.
pub fn report(abi: &str) {
    for (name, counted) in NAMES.iter().zip(&COUNTED) {
        let (handled, passed) = (counted.handled.load(Relaxed), counted.passed.load(Relaxed));
        if handled == 0 && passed == 0 {
            continue;
        }
        let reason = |(reason, count): (&&str, &AtomicI64)| {
            let count = count.load(Relaxed);
            (count > 0).then(|| format!("{count} {reason}"))
        };
        let reasons: Vec<String> = REASONS.iter().zip(&counted.reasons).filter_map(reason).collect();
        let description = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let name = name.to_string_lossy();
        let of_dtc = seconds(counted.handled_nanoseconds.load(Relaxed));
        let of_mpi = seconds(counted.passed_nanoseconds.load(Relaxed));
        print(&format!(
            "{abi}: call {name}: {handled} with dtc in {of_dtc}, {passed} passed on in {of_mpi}{description}"
        ));
    }
}
