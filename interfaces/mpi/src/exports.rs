//! The functions that a program finds instead of those of its MPI.
//!
//! Each goes on to an entry of a table, with its arguments as they came. An entry is found by the first call: it is a wrapper for the
//! ABI of the MPI, or the MPI's own function if the library leaves all calls to the MPI. An argument is at most a machine word wide, in every ABI,
//! and reaches the wrapper or the MPI in the same register or stack slot, of which an integer is the lower half (System V ABI of
//! x86-64, 3.2.3; AAPCS64, 6.8.2). So the table needs no types.

use crate::abi::{Abi, MPI_SUCCESS, Mpich, OpenMpi, Standard};
use crate::calls::{CALLS, Call, Function, Table, for_each_call, keep};
use crate::collectives::direct;
use crate::exported::Exported;
use crate::life::say_settings;
use crate::memory::{find_awareness, find_defects, has_gpu};
use crate::pmpi::{self, Pmpi};
use crate::report::{reports, say};
use crate::report_calls::Classifier;
use crate::words::{function_of, with_words};
use crate::wrappers::wrappers;
use crate::{
    about, find, plan, print, reasons, redirect, report_calls, report_types, self_test, settings, start, substitutes,
};
use dtc_mpi_table::said::LEAVES_ALL;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};

#[cfg(not(all(target_pointer_width = "64", target_endian = "little", target_os = "linux")))]
compile_error!("expected 64-bit Linux, little-endian");

/// What the exported functions call; null until a call is found.
static ENTRIES: [AtomicPtr<c_void>; CALLS] = [const { AtomicPtr::new(null_mut()) }; CALLS];

/// The ABI whose wrappers stand in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bound {
    /// None: calls go to the MPI.
    None,
    /// That of MPICH.
    Mpich,
    /// That of Open MPI.
    OpenMpi,
    /// The standard's.
    Standard,
}

static BOUND: AtomicU8 = AtomicU8::new(Bound::None as u8);

/// The code of calls that the MPI lacks.
static UNSUPPORTED: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn fail() -> c_int {
    UNSUPPORTED.load(Ordering::Relaxed)
}

/// When the library begins.
fn begin<A: Abi>() -> bool {
    say_settings::<A>();
    find_awareness();
    find_defects();
    let works = plan::start::<A>() && self_test::passes::<A>();
    // Processes that exchange directly have all begun before the first call that may be one: in MPI_Init, or in that call.
    if works && has_gpu() {
        direct::start::<A>();
    }
    if works {
        about::tell::<A>();
    }
    works
}

/// Finds what the wrappers use, and puts substitutes where the MPI lacks a call; false if something is missing that is needed.
fn bind<A: Abi>(functions: &mut Table) -> bool {
    UNSUPPORTED.store(A::CONSTANTS.err_unsupported_operation, Ordering::Relaxed);
    let found = Pmpi::<A>::find().and_then(|found| {
        A::find_handles()?;
        pmpi::keep(found);
        Ok(())
    });
    if let Err(missing) = found {
        say(LEAVES_ALL, &format!("the MPI lacks {missing}"));
        return false;
    }
    substitutes::substitute::<A>(functions);
    keep(functions);
    start::on_begin(begin::<A>);
    true
}

/// The ABI of the MPI.
fn detect() -> Bound {
    let get = find::function(c"PMPI_Abi_get_version");
    if !get.is_null() {
        let (mut major, mut minor) = (-1, -1);
        // SAFETY: MPI_Abi_get_version has this type, and may be called before MPI_Init. (MPI 5.0, 11.4.1 and 20)
        let get: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = unsafe { std::mem::transmute(get) };
        // SAFETY: both are writable.
        if unsafe { get(&mut major, &mut minor) } == MPI_SUCCESS && major >= 1 {
            return Bound::Standard;
        }
    }
    if !find::object(c"ompi_mpi_comm_world").is_null() {
        return Bound::OpenMpi;
    }
    // The family of MPICH, whose members have its ABI.
    let version = find::library_version();
    if ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|name| version.contains(name)) {
        return Bound::Mpich;
    }
    say(LEAVES_ALL, "the ABI of the MPI is unknown");
    Bound::None
}

/// For the report, once.
fn say_off() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if reports() && !SAID.swap(true, Ordering::Relaxed) {
        print("off: every call goes to the MPI (DTC_MPI=off)");
    }
}

/// What the exported functions call, for an ABI.
fn table_of<A: Abi>(functions: &mut Table, off: bool) -> (bool, Table) {
    // What the MPI lacks has substitutes also if the rest goes to it.
    let bound = bind::<A>(functions) && !off;
    let mut table = if bound { wrappers::<A>() } else { *functions };
    for (place, function) in table.0.iter_mut().zip(functions.0) {
        if function.is_null() {
            *place = fail as *const () as Function;
        }
    }
    if reports() {
        if bound {
            let classifier = Classifier { reason: reasons::reason_of::<A>, count: report_types::count::<A> };
            report_calls::count(&mut table, classifier);
        } else if off {
            report_calls::count_unserved(&mut table, A::NAME);
        }
    }
    (bound, table)
}

/// Fills the table. Threads that come here at once write the same.
#[cold]
#[inline(never)]
fn find_all() {
    let mut functions = Table::of_mpi();
    let off = settings::is_set("DTC_MPI", "off");
    let abi = detect();
    if off {
        say_off();
    }
    let (bound, table) = match abi {
        Bound::None => {
            let mut table = functions;
            for place in table.0.iter_mut().filter(|place| place.is_null()) {
                *place = fail as *const () as Function;
            }
            (false, table)
        }
        Bound::Mpich => table_of::<Mpich>(&mut functions, off),
        Bound::OpenMpi => table_of::<OpenMpi>(&mut functions, off),
        Bound::Standard => table_of::<Standard>(&mut functions, off),
    };
    BOUND.store(if bound { abi } else { Bound::None } as u8, Ordering::Release);
    for (entry, function) in ENTRIES.iter().zip(table.0) {
        entry.store(function, Ordering::Release);
    }
    if bound && abi == Bound::OpenMpi {
        redirect::redirect(&EXPORTED);
    }
}

/// The ABI whose wrappers are called.
pub fn bound() -> Bound {
    if ENTRIES[0].load(Ordering::Acquire).is_null() {
        find_all();
    }
    match BOUND.load(Ordering::Acquire) {
        1 => Bound::Mpich,
        2 => Bound::OpenMpi,
        3 => Bound::Standard,
        _ => Bound::None,
    }
}

/// Defines an exported function of these words, which goes on to its entry; the first call of the process finds the entries.
macro_rules! define {
    (($($word:ident)*) $name:ident) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, missing_docs, reason = "the name of MPI")]
        pub unsafe extern "C" fn $name($($word: usize),*) -> c_int {
            type Entry = function_of!($($word)*);
            #[cold]
            unsafe extern "C" fn first($($word: usize),*) -> c_int {
                find_all();
                // SAFETY: the program's arguments.
                unsafe { $name($($word),*) }
            }
            let found = ENTRIES[Call::$name as usize].load(Ordering::Acquire);
            // SAFETY: the call's function, or its wrapper, which takes as many words.
            let entry: Entry = if found.is_null() { first } else { unsafe { std::mem::transmute::<Function, Entry>(found) } };
            // SAFETY: the program's arguments.
            unsafe { entry($($word),*) }
        }
    };
}

macro_rules! export {
    ($($name:ident $arity:tt $wrapper:ident $count:ty, $arguments:ident;)*) => {
        $(with_words!($arity define! $name);)*

        /// The exported functions.
        pub static EXPORTED: [Exported; CALLS] = [$(Exported($name as *const ()),)*];
    };
}

for_each_call!(export);
