//! Counts the calls with each datatype, by its description, for a process whose `DTC_MPI_REPORT` asks.

use crate::abi::{Abi, Handle};
use crate::calls::{CALLS, NAMES};
use crate::plan;
use crate::print;
use crate::report_calls::Reason;
use crate::start::is_ready;
use dtc_host::lock::{Lock, Locked};
use dtc_mpi_table::said::PASSED_ON;
use once_cell::race::OnceBox;
use std::collections::{BTreeMap, HashMap};

/// Most datatypes that are told of: those with most calls.
const MAX_REPORTED: usize = 40;

/// Most datatypes that are counted.
const MOST_COUNTED: usize = 10_000;

/// Most nodes and entries of lists of a description, and most of its characters that are told.
const MOST_ENTRIES: u64 = 4096;
const MOST_CHARACTERS: usize = 160;

/// A datatype by its description, and how often each call was done with it, or why it was not.
#[derive(Default)]
struct TypeCounts {
    calls: BTreeMap<(usize, Option<Reason>), u64>,
}

impl TypeCounts {
    fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// `3 MPI_Send with dtc, 5 MPI_Recv passed on (few bytes)`.
    fn description(&self) -> String {
        let one = |(&(call, reason), count): (&(usize, Option<Reason>), &u64)| {
            let name = NAMES.get(call).map_or("", |name| name.to_str().unwrap_or(""));
            match reason {
                None => format!("{count} {name} with dtc"),
                Some(reason) => format!("{count} {name} {PASSED_ON}{})", reason.description()),
            }
        };
        self.calls.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Default)]
struct Types {
    /// The description of each datatype that the program has not freed.
    described: HashMap<usize, String>,
    counted: HashMap<String, TypeCounts>,
}

fn types() -> Locked<'static, Types> {
    static TYPES: OnceBox<Lock<Types>> = OnceBox::new();
    TYPES.get_or_init(|| Box::new(Lock::new(Types::default()))).lock()
}

/// A datatype in dtc's notation, as far as a line has room.
fn describe<A: Abi>(datatype: A::Handle) -> String {
    let notation = if is_ready::<A>() { plan::notation_of::<A>(datatype, MOST_ENTRIES) } else { None };
    let Some(notation) = notation else { return "that dtc cannot decode, or of thousands of entries".to_owned() };
    let line: Vec<&str> = notation.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Counts a call with a datatype, which dtc did, or not for a reason. Predefined datatypes are not counted.
pub fn count<A: Abi>(call: usize, datatype: usize, reason: Option<Reason>) {
    let is_null = datatype == A::handles().datatype_null.word();
    if is_null || call >= CALLS || matches!(reason, Some(Reason::Predefined | Reason::Nothing)) {
        return;
    }
    let known = types().described.get(&datatype).cloned();
    // Not while the lock is held: the MPI is asked.
    let description = known.unwrap_or_else(|| describe::<A>(A::Handle::of(datatype)));
    let mut types = types();
    types.described.insert(datatype, description.clone());
    if types.counted.len() >= MOST_COUNTED && !types.counted.contains_key(&description) {
        return;
    }
    *types.counted.entry(description).or_default().calls.entry((call, reason)).or_default() += 1;
}

/// Before the program frees a datatype: the next one may have its handle.
pub fn forget(datatype: usize) {
    types().described.remove(&datatype);
}

/// Prints what was counted, for the process of this rank.
pub fn report(abi: &str, rank: i32) {
    let types = types();
    let mut counted: Vec<(&String, &TypeCounts)> = types.counted.iter().collect();
    counted.sort_by(|one, other| other.1.total().cmp(&one.1.total()).then_with(|| one.0.cmp(other.0)));
    for (description, counted) in counted.iter().take(MAX_REPORTED) {
        print(&format!("{abi}: rank {rank}, datatype {description}: {}", counted.description()));
    }
    if counted.len() > MAX_REPORTED {
        print(&format!("{abi}: rank {rank}, {} more datatypes", counted.len() - MAX_REPORTED));
    }
}
