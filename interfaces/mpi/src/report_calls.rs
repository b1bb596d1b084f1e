//! Counts each call, by its name, for a process whose `DTC_MPI_REPORT` asks: the table of [`exports`](crate::exports) then leads here first.
//! Otherwise nothing is counted, and a call costs nothing more.

use crate::calls::{Arguments, CALLS, Call, Function, NAMES, SHAPES, Table, for_each_call};
use crate::print;
use crate::report::{done_here, now, seconds};
use once_cell::race::OnceBox;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering, Ordering::Relaxed};

/// Why dtc did not do a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "REASONS says what they are")]
pub enum Reason {
    Predefined,
    Whole,
    Undecoded,
    LongPieces,
    FewBytes,
    FewUses,
    ManyBytes,
    Mixed,
    Nothing,
    Other,
}

/// In the order of [`Reason`], as the report says them.
const REASONS: [&str; 10] = [
    "predefined datatype",
    "contiguous",
    "not decoded, or long double",
    "long pieces",
    "few bytes",
    "few uses",
    "too many bytes",
    "elements of several sizes",
    "nothing to move",
    "first use, no memory, or MPI_BOTTOM",
];

/// A call that was not handled: its arguments as the program gave them.
pub struct Judged {
    /// What stands in its arguments.
    pub arguments: Arguments,
    /// The address that the datatype is applied to.
    pub memory: usize,
    /// How many elements there are.
    pub elements: i64,
    /// The value of the handle.
    pub datatype: usize,
    /// The process that they go to or come from.
    pub rank: c_int,
}

/// Tells why a call was not handled, for the ABI that is bound; none if all calls go to the MPI.
static JUDGE: OnceBox<fn(&Judged) -> Reason> = OnceBox::new();

/// Calls of one kind: those of which dtc did a part, and those that went on to the MPI.
struct Counted {
    handled: AtomicI64,
    passed: AtomicI64,
    handled_nanoseconds: AtomicI64,
    passed_nanoseconds: AtomicI64,
    reasons: [AtomicI64; REASONS.len()],
}

static COUNTED: [Counted; CALLS] = [const {
    Counted {
        handled: AtomicI64::new(0),
        passed: AtomicI64::new(0),
        handled_nanoseconds: AtomicI64::new(0),
        passed_nanoseconds: AtomicI64::new(0),
        reasons: [const { AtomicI64::new(0) }; REASONS.len()],
    }
}; CALLS];

/// Where the counted calls go on.
static ENTRIES: [AtomicPtr<c_void>; CALLS] = [const { AtomicPtr::new(null_mut()) }; CALLS];

/// Why a call was not handled; calls with several datatypes, or none, are counted without a reason.
fn reason_of(call: usize, words: &[usize]) -> Option<Reason> {
    let judge = JUDGE.get()?;
    let (arguments, _, wide) = SHAPES[call];
    let first = match arguments {
        Arguments::Other => return None,
        Arguments::Unpack => 3,
        Arguments::Send | Arguments::Receive | Arguments::Pack => 0,
    };
    let word = |at: usize| words.get(first + at).copied().unwrap_or(0);
    let elements = if wide { word(1) as i64 } else { i64::from(word(1) as c_int) };
    let rank = if matches!(arguments, Arguments::Send | Arguments::Receive) { word(3) as c_int } else { 0 };
    Some(judge(&Judged { arguments, memory: word(0), elements, datatype: word(2), rank }))
}

/// Does a call, and counts it.
fn around(call: usize, words: &[usize], work: impl FnOnce(Function) -> c_int) -> c_int {
    let (begun, done) = (now(), done_here());
    let result = work(ENTRIES[call].load(Ordering::Acquire));
    let time = now() - begun;
    let counted = &COUNTED[call];
    // Whether this thread did something in it.
    if done_here() != done {
        counted.handled.fetch_add(1, Relaxed);
        counted.handled_nanoseconds.fetch_add(time, Relaxed);
        return result;
    }
    counted.passed.fetch_add(1, Relaxed);
    counted.passed_nanoseconds.fetch_add(time, Relaxed);
    if let Some(reason) = reason_of(call, words) {
        counted.reasons[reason as usize].fetch_add(1, Relaxed);
    }
    result
}

/// Defines functions that count a call of so many words.
macro_rules! counting {
    ($($name:ident ($($word:ident),*);)*) => {$(
        unsafe extern "C" fn $name<const CALL: usize>($($word: usize),*) -> c_int {
            around(CALL, &[$($word),*], |entry| {
                // SAFETY: the call's function, or its wrapper, which takes as many words.
                let entry: unsafe extern "C" fn($(counting!(@word $word)),*) -> c_int = unsafe { std::mem::transmute(entry) };
                // SAFETY: the program's arguments.
                unsafe { entry($($word),*) }
            })
        }
    )*};
    (@word $word:ident) => { usize };
}

counting! {
    counting_0();
    counting_1(a);
    counting_2(a, b);
    counting_3(a, b, c);
    counting_4(a, b, c, d);
    counting_5(a, b, c, d, e);
    counting_6(a, b, c, d, e, f);
    counting_7(a, b, c, d, e, f, g);
    counting_9(a, b, c, d, e, f, g, h, i);
    counting_10(a, b, c, d, e, f, g, h, i, j);
    counting_11(a, b, c, d, e, f, g, h, i, j, k);
    counting_12(a, b, c, d, e, f, g, h, i, j, k, l);
}

macro_rules! count {
    ($($name:ident $arity:tt $wrapper:ident $count:ty, $arguments:ident;)*) => {
        /// A function for each call that counts it.
        const COUNTING: [fn() -> Function; CALLS] = [$(|| count!(@function $name $arity) as *const () as Function,)*];
    };
    (@function $name:ident 0) => { counting_0::<{ Call::$name as usize }> };
    (@function $name:ident 1) => { counting_1::<{ Call::$name as usize }> };
    (@function $name:ident 2) => { counting_2::<{ Call::$name as usize }> };
    (@function $name:ident 3) => { counting_3::<{ Call::$name as usize }> };
    (@function $name:ident 4) => { counting_4::<{ Call::$name as usize }> };
    (@function $name:ident 5) => { counting_5::<{ Call::$name as usize }> };
    (@function $name:ident 6) => { counting_6::<{ Call::$name as usize }> };
    (@function $name:ident 7) => { counting_7::<{ Call::$name as usize }> };
    (@function $name:ident 9) => { counting_9::<{ Call::$name as usize }> };
    (@function $name:ident 10) => { counting_10::<{ Call::$name as usize }> };
    (@function $name:ident 11) => { counting_11::<{ Call::$name as usize }> };
    (@function $name:ident 12) => { counting_12::<{ Call::$name as usize }> };
}

for_each_call!(count);

/// Has the entries of a table counted before they are called.
fn put(table: &mut Table) {
    for ((place, entry), counting) in table.0.iter_mut().zip(&ENTRIES).zip(COUNTING) {
        entry.store(*place, Ordering::Release);
        *place = counting();
    }
}

/// Has the entries of a table counted before they are called. `judge` tells the reason of one that was not handled.
pub fn count(table: &mut Table, judge: fn(&Judged) -> Reason) {
    let _ = JUDGE.set(Box::new(judge));
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
        let said = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let name = name.to_string_lossy();
        let of_dtc = seconds(counted.handled_nanoseconds.load(Relaxed));
        let of_mpi = seconds(counted.passed_nanoseconds.load(Relaxed));
        print(&format!("{abi}: call {name}: {handled} with dtc in {of_dtc}, {passed} passed on in {of_mpi}{said}"));
    }
}
