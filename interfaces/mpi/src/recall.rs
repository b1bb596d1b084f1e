//! What is known of a datatype, and by which thread.
//!
//! Each thread remembers a few handles, with a reference to the plan of each, until any plan loses its attribute. A call may use a plan
//! without a reference of its own until this thread looks the next datatype up: what looks several up takes references.

use crate::abi::{Abi, Handle};
use crate::envelope::is_named;
use crate::plan::{self, ALIVE, GENERATION, PlanRef};
use dtc_mpi_table::{Pieces, Sizes, Use};
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

/// Handles that a thread remembers. A power of two.
const REMEMBERED: usize = 64;

/// What a datatype is to this library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Knowledge {
    /// Nobody decodes it.
    Predefined,
    /// It has a plan, also if dtc cannot pack it.
    Decoded,
    /// It has none yet.
    NotDecoded,
}

/// A handle that a thread remembers. What it says of one that is not decoded may be out of date: the program may have freed the datatype in
/// another thread, and made another.
pub struct Remembered {
    datatype: usize,
    /// What it is.
    pub is: Knowledge,
    /// Of one that is decoded.
    pub plan: Option<PlanRef>,
    /// Of one that is not: its uses.
    pub rent: Rent,
}

/// What the uses of a datatype have cost that is not decoded ([`rent`](crate::rent)).
#[derive(Clone, Copy, Debug)]
pub struct Rent {
    /// Packed bytes of one element; 0 before the first use.
    pub size: i64,
    /// Packed bytes of all uses.
    pub bytes: i64,
    /// Nanoseconds that decoding costs; 0 as long as nobody has estimated them.
    pub price: i64,
    /// Packed bytes of the calls that dtc would do, by use, as far as they are known without decoding.
    pub served: [Sizes; Use::ALL.len()],
    /// The pieces, as far as they are known so.
    pub pieces: Option<Pieces>,
    /// What the last use lost, by the table, in picoseconds for each byte: programs repeat their calls. With the use and the bytes of the call.
    pub lost: (Use, i64, i64),
    /// Calls that were left to the MPI by what is known here.
    left: u32,
}

impl Rent {
    /// Calls that are left to the MPI before the MPI is asked anew: another thread may have freed the datatype and made one with its handle.
    const LEFT: u32 = 256;

    /// Of a datatype that was not used.
    const NONE: Rent = Rent {
        size: 0,
        bytes: 0,
        price: 0,
        served: [Sizes::ALL; Use::ALL.len()],
        pieces: None,
        lost: Rent::UNKNOWN,
        left: 0,
    };

    /// Of no use.
    pub const UNKNOWN: (Use, i64, i64) = (Use::Pack, -1, 0);

    /// Counts a call that is left to the MPI; false if what is known here is too old for that.
    #[inline]
    pub fn leave(&mut self) -> bool {
        self.left = self.left.saturating_add(1);
        self.left < Rent::LEFT
    }

    /// Whether the MPI is to be asked.
    pub fn is_stale(&self) -> bool {
        self.size == 0 || self.left >= Rent::LEFT
    }

    /// Begins anew with what the MPI says, and with what uses have cost.
    pub fn renew(&mut self, size: i64, served: [Sizes; Use::ALL.len()]) {
        *self = Rent { size, served, bytes: self.bytes, ..Rent::NONE };
    }
}

impl Remembered {
    /// The value of the handle.
    pub fn datatype(&self) -> usize {
        self.datatype
    }

    const NOTHING: Remembered = Remembered { datatype: 0, is: Knowledge::Predefined, plan: None, rent: Rent::NONE };
}

/// What a thread remembers.
struct Recalled {
    /// The generation in which all of it was found; zero before the first.
    generation: u64,
    slots: [Remembered; REMEMBERED],
    /// Handles that were not looked up, and the packed bytes of their uses.
    unseen: [(usize, i64); REMEMBERED],
}

/// Packed bytes of the uses of a datatype before it is looked up, which takes as long as two small messages: programs make one for each message.
/// And those that a use counts as at least.
const UNSEEN: i64 = 4096;
const UNSEEN_USE: i64 = UNSEEN / 8;

thread_local! {
    static RECALLED: UnsafeCell<Recalled> =
        const { UnsafeCell::new(Recalled { generation: 0, slots: [Remembered::NOTHING; REMEMBERED], unseen: [(0, 0); REMEMBERED] }) };
}

/// Calls `with` with what this thread remembers; none in a thread that ends.
#[inline]
fn recalled<T>(with: impl FnOnce(&mut Recalled) -> T) -> Option<T> {
    // SAFETY: of this thread, and nothing that is called here comes back here: types that plans release call nothing of this library.
    RECALLED.try_with(|recalled| with(unsafe { &mut *recalled.get() })).ok()
}

/// The place of a handle: the upper 6 bits of a product with 2^64 over the golden ratio.
fn place_of(datatype: usize) -> usize {
    ((datatype as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % REMEMBERED
}

impl Recalled {
    fn slot(&mut self, datatype: usize) -> &mut Remembered {
        &mut self.slots[place_of(datatype)]
    }

    /// Begins a generation: plans that are gone lose the references of this thread.
    fn begin(&mut self, generation: u64) {
        for slot in &mut self.slots {
            *slot = Remembered::NOTHING;
        }
        self.generation = generation;
    }

    /// Begins a generation if plans have lost their attributes; what it is.
    fn renew(&mut self) -> u64 {
        let now = GENERATION.load(Ordering::Acquire);
        if self.generation != now {
            self.begin(now);
        }
        now
    }

    /// The plan that hangs on a datatype.
    fn hanging<A: Abi>(&mut self, datatype: A::Handle) -> Option<PlanRef> {
        loop {
            let now = self.renew();
            if ALIVE.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let value = plan::hanging::<A>(datatype)?;
            // SAFETY: values of this key are plans.
            let plan = unsafe { PlanRef::try_retain(value) };
            // Whether it is still the datatype's: no plan was destroyed since the MPI was asked.
            if plan.is_some() && GENERATION.load(Ordering::Acquire) == now {
                return plan;
            }
        }
    }

    /// Looks a datatype up, and remembers it.
    #[cold]
    #[inline(never)]
    fn look_up<A: Abi>(&mut self, datatype: A::Handle) -> &mut Remembered {
        let plan = self.hanging::<A>(datatype);
        let is = match plan {
            Some(_) => Knowledge::Decoded,
            None if is_named::<A>(datatype) => Knowledge::Predefined,
            None => Knowledge::NotDecoded,
        };
        let slot = self.slot(datatype.word());
        *slot = Remembered { datatype: datatype.word(), is, plan, rent: Rent::NONE };
        slot
    }

    /// What this thread remembers of a datatype, if that is up to date.
    #[inline]
    fn known(&mut self, datatype: usize) -> Option<&mut Remembered> {
        let current = self.generation == GENERATION.load(Ordering::Acquire);
        Some(self.slot(datatype)).filter(|slot| current && slot.datatype == datatype)
    }
}

/// Calls `with` with what this thread remembers of a datatype, if it does so; none if it has to be looked up.
#[inline]
pub fn if_known<A: Abi, T>(datatype: A::Handle, with: impl FnOnce(&mut Remembered) -> T) -> Option<T> {
    recalled(|recalled| recalled.known(datatype.word()).map(with)).flatten()
}

/// Calls `with` with what is known of a datatype that is not `MPI_DATATYPE_NULL`; none in a thread that ends.
pub fn recall<A: Abi, T>(datatype: A::Handle, with: impl FnOnce(&mut Remembered) -> T) -> Option<T> {
    recalled(|recalled| {
        if recalled.known(datatype.word()).is_none() {
            recalled.look_up::<A>(datatype);
        }
        with(recalled.slot(datatype.word()))
    })
}

/// The same, looked up anew.
pub fn recall_anew<A: Abi, T>(datatype: A::Handle, with: impl FnOnce(&mut Remembered) -> T) -> Option<T> {
    recalled(|recalled| with(recalled.look_up::<A>(datatype)))
}

/// Whether a datatype that this thread does not remember has hardly been used, so that looking it up does not pay. Counts the use, which has
/// `bytes` packed bytes.
pub fn is_hardly_used<A: Abi>(datatype: A::Handle, bytes: i64) -> bool {
    let counted = recalled(|recalled| {
        let unseen = &mut recalled.unseen[place_of(datatype.word())];
        // Two that are not freed would take this place from each other, and never be looked up.
        let (displaces, before) = (unseen.0 != 0, unseen.1);
        if unseen.0 != datatype.word() {
            *unseen = (datatype.word(), bytes.max(UNSEEN_USE));
            return !displaces;
        }
        unseen.1 = before.saturating_add(bytes.max(UNSEEN_USE));
        before < UNSEEN
    });
    counted.unwrap_or(false)
}

/// Before the program frees a handle: takes its plan away, and forgets its uses, since the next datatype with this handle has none.
pub fn forget<A: Abi>(datatype: A::Handle) {
    recalled(|recalled| {
        recalled.unseen[place_of(datatype.word())] = (0, 0);
        let slot = recalled.slot(datatype.word());
        if slot.datatype == datatype.word() && slot.is == Knowledge::NotDecoded {
            *slot = Remembered::NOTHING;
        }
        if ALIVE.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(plan) = recalled.hanging::<A>(datatype) else { return };
        // What this thread remembers goes too: the types of a program that goes on to others do not stay.
        if let Some(generation) = plan::forget::<A>(datatype, plan) {
            recalled.begin(generation);
        }
    });
}
