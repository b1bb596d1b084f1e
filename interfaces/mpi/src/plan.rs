//! What the library knows of a datatype that it has decoded, and how long. When it decodes one, [`rent`](crate::rent) says.
//!
//! A plan is an attribute of its datatype: values of handles are used again after `MPI_Type_free`, attributes go with the datatype.
//! `MPI_Type_free` takes the attribute away before the MPI has the call. The MPI keeps a datatype until its last message has ended, and then
//! runs the callbacks of attributes in whichever thread makes progress; MPICH 4.0 gives its lock up for that in the middle of progress,
//! which ends the process if another thread makes progress too.
//!
//! So a plan can be taken away while another thread reads it: `MPI_Type_get_contents` gives one handle to several owners. Memory of plans is
//! used for plans alone, and a reference that was taken counts if no plan was destroyed meanwhile ([`recall`](crate::recall)).

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::envelope::is_named;
use crate::limits::limits;
use crate::pmpi::{Pmpi, pmpi};
use crate::report::reports;
use crate::staging::ENGINE;
use crate::types::Type;
use dtc::{DTC_KIND_COMPLEX, DTC_KIND_MIXED, DTC_OK, dtc_engine, dtc_info, dtc_type};
use dtc_host::lock::{Lock, Locked};
use dtc_mpi_table::{Facts, Pieces, Sizes, Use};
use once_cell::race::OnceBox;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};

/// What is known of a datatype.
#[derive(Clone, Default)]
pub struct DecodedType {
    /// The value of the handle that the plan hangs on; 0 for a duplicate.
    pub datatype: usize,
    /// The committed type; none if dtc cannot decode the datatype, or shall not move it.
    pub r#type: Option<Type>,
    /// Whether the MPI moves elements by itself: they have no bytes, or lie in one piece without gaps.
    pub whole: bool,
    /// Packed bytes of one element.
    pub size: i64,
    /// Packed bytes of the calls that dtc does, by [`Use`].
    served: [Sizes; Use::ALL.len()],
    /// Whether all basic elements have one size, a power of two up to 8.
    pub uniform: bool,
    /// The lowest displacement of a byte.
    pub true_lb: i64,
}

impl DecodedType {
    /// The type, if dtc may pack the datatype.
    pub fn derived(&self) -> Option<&Type> {
        self.r#type.as_ref().filter(|_| !self.whole)
    }

    /// Whether elements may lie at an address: any but null, from which absolute addresses count (`MPI_BOTTOM`). Those of a page there
    /// lead nowhere, so that the call is an error, which the MPI reports.
    pub fn is_at(&self, memory: *const c_void) -> bool {
        const PAGE: i64 = 4096;
        !memory.is_null() || self.true_lb >= PAGE
    }

    /// Packed bytes of the calls that dtc does, by [`Use`].
    pub fn all_served(&self) -> &[Sizes; Use::ALL.len()] {
        &self.served
    }

    /// Packed bytes of the calls that dtc does.
    #[inline]
    pub fn served(&self, of: Use) -> Sizes {
        self.served[of as usize]
    }
}

/// Memory of a plan, which is never freed.
pub struct Plan {
    /// That of the attribute, one of each thread that remembers the plan, and one for each operation under way. 0 in memory that has no plan.
    references: AtomicI64,
    /// Whether `MPI_Type_free` has begun to take the attribute away.
    forgotten: AtomicBool,
    known: UnsafeCell<DecodedType>,
}

// SAFETY: what is known changes only while there are no references, by the thread that makes or buries the plan.
unsafe impl Sync for Plan {}
// SAFETY: as above.
unsafe impl Send for Plan {}

/// A reference to a plan.
pub struct PlanRef(&'static Plan);

impl Deref for PlanRef {
    type Target = DecodedType;

    fn deref(&self) -> &DecodedType {
        // SAFETY: nobody changes it while there is this reference.
        unsafe { &*self.0.known.get() }
    }
}

impl Clone for PlanRef {
    fn clone(&self) -> PlanRef {
        self.0.references.fetch_add(1, Ordering::Relaxed);
        PlanRef(self.0)
    }
}

impl Drop for PlanRef {
    fn drop(&mut self) {
        if self.0.references.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if reports() {
            reported().remove(self.0);
        }
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        plans().dying.push(self.0);
        bury();
    }
}

/// Counts the plans that have lost their attribute, from 1.
pub static GENERATION: AtomicU64 = AtomicU64::new(1);

/// Plans that exist, but for that of bytes: as long as there are none, no datatype has an attribute to look for.
pub static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Whether a thread decodes a datatype, or releases types that others have given up.
static DECODING: AtomicBool = AtomicBool::new(false);

/// The keys of the attributes that hold plans, and the types of parts of datatypes for the decoder.
static PLAN_KEY: AtomicI32 = AtomicI32::new(0);
static TYPE_KEY: AtomicI32 = AtomicI32::new(0);

/// Plans without references: those whose types are still to be released, and memory for new ones.
#[derive(Default)]
struct Plans {
    dying: Vec<&'static Plan>,
    unused: Vec<&'static Plan>,
}

fn plans() -> Locked<'static, Plans> {
    static PLANS: OnceBox<Lock<Plans>> = OnceBox::new();
    PLANS.get_or_init(|| Box::new(Lock::new(Plans::default()))).lock()
}

/// For the report: the plans that are alive, how many types there have been, and how many of those that are gone had a kernel.
#[derive(Default)]
struct Reported {
    alive: Vec<&'static Plan>,
    decoded: i64,
    compiled: i64,
}

fn reported() -> Locked<'static, Reported> {
    static REPORTED: OnceBox<Lock<Reported>> = OnceBox::new();
    REPORTED.get_or_init(|| Box::new(Lock::new(Reported::default()))).lock()
}

fn is_compiled(plan: &Plan) -> bool {
    // SAFETY: a plan that is reported has references, or is dropped by this thread.
    let known = unsafe { &*plan.known.get() };
    known.r#type.as_ref().and_then(query).is_some_and(|info| info.compiled != 0)
}

impl Reported {
    fn remove(&mut self, plan: &'static Plan) {
        if let Some(at) = self.alive.iter().position(|alive| std::ptr::eq(*alive, plan)) {
            self.alive.swap_remove(at);
            self.compiled += i64::from(is_compiled(plan));
        }
    }
}

/// The datatypes that dtc decoded, and how many of them it compiled a kernel for.
pub fn count() -> (i64, i64) {
    let reported = reported();
    let compiled = reported.alive.iter().filter(|plan| is_compiled(plan)).count();
    (reported.decoded, reported.compiled + compiled as i64)
}

/// Releases the types of plans that have no references, unless a thread decodes: it may have read one from a datatype and not have retained
/// it yet. That thread comes here when it ends.
fn bury() {
    while !plans().dying.is_empty() && !DECODING.swap(true, Ordering::SeqCst) {
        let dying = std::mem::take(&mut plans().dying);
        for plan in &dying {
            // SAFETY: without references, and in no list but this thread's.
            unsafe { *plan.known.get() = DecodedType::default() };
        }
        plans().unused.extend(dying);
        DECODING.store(false, Ordering::SeqCst);
    }
}

impl PlanRef {
    /// A plan of what is known.
    fn new(known: DecodedType) -> PlanRef {
        let unused = plans().unused.pop();
        let plan = unused.unwrap_or_else(|| {
            let known = UnsafeCell::new(DecodedType::default());
            Box::leak(Box::new(Plan { references: AtomicI64::new(0), forgotten: AtomicBool::new(false), known }))
        });
        // SAFETY: without references, and in no list.
        unsafe { *plan.known.get() = known };
        plan.forgotten.store(false, Ordering::Relaxed);
        ALIVE.fetch_add(1, Ordering::Relaxed);
        plan.references.store(1, Ordering::Release);
        PlanRef(plan)
    }

    /// A reference to a plan that may be gone, or its memory another plan's; none if it has no references.
    ///
    /// # Safety
    ///
    /// `attribute` was given by `into_attribute`.
    pub unsafe fn try_retain(attribute: *mut c_void) -> Option<PlanRef> {
        // SAFETY: memory of plans is never freed.
        let plan: &'static Plan = unsafe { &*attribute.cast::<Plan>() };
        let mut references = plan.references.load(Ordering::Relaxed);
        while references > 0 {
            let more = references + 1;
            match plan.references.compare_exchange(references, more, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(PlanRef(plan)),
                Err(now) => references = now,
            }
        }
        None
    }

    /// The value of an attribute, which holds this reference.
    fn into_attribute(self) -> *mut c_void {
        let plan = std::ptr::from_ref(self.0);
        std::mem::forget(self);
        plan.cast_mut().cast()
    }

    /// Takes a reference from an attribute.
    ///
    /// # Safety
    ///
    /// The attribute held one, which nobody else takes.
    unsafe fn of_attribute(attribute: *mut c_void) -> PlanRef {
        // SAFETY: memory of plans is never freed.
        PlanRef(unsafe { &*attribute.cast::<Plan>() })
    }

    /// Begins to take the attribute away; whether nobody has before.
    fn forget(&self) -> bool {
        !self.0.forgotten.swap(true, Ordering::AcqRel)
    }
}

thread_local! {
    /// The plan whose attribute this thread takes away in `MPI_Type_free`.
    static FORGOTTEN: Cell<*const c_void> = const { Cell::new(null()) };
}

/// A duplicate has a plan of its own, of the same type.
unsafe extern "C" fn copy_plan<A: Abi>(
    datatype: A::Handle,
    _key: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: values of this key are plans.
    let plan = unsafe { PlanRef::try_retain(value) }.filter(|plan| plan.datatype == datatype.word());
    let made =
        plan.map_or(null_mut(), |plan| PlanRef::new(DecodedType { datatype: 0, ..(*plan).clone() }).into_attribute());
    // SAFETY: the MPI gives room for both.
    unsafe {
        copy.cast::<*mut c_void>().write_unaligned(made);
        flag.write((!made.is_null()).into());
    }
    MPI_SUCCESS
}

unsafe extern "C" fn delete_plan<A: Abi>(
    _datatype: A::Handle,
    _key: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    if !std::ptr::eq(FORGOTTEN.get(), value) {
        GENERATION.fetch_add(1, Ordering::Release);
        // SAFETY: the attribute is deleted, and its reference taken here.
        drop(unsafe { PlanRef::of_attribute(value) });
    }
    MPI_SUCCESS
}

/// The decoder finds the types of parts of a datatype in attributes of theirs, which own no reference: the plan does.
unsafe extern "C" fn copy_no_type<A: Abi>(
    _datatype: A::Handle,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the MPI gives room for it.
    unsafe { flag.write(0) };
    MPI_SUCCESS
}

unsafe extern "C" fn delete_no_type<A: Abi>(
    _datatype: A::Handle,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    MPI_SUCCESS
}

static BYTES: OnceBox<PlanRef> = OnceBox::new();

/// The plan of bytes, for elements that are moved as raw spans; none before the library has begun.
pub fn bytes() -> Option<&'static PlanRef> {
    BYTES.get()
}

fn make_bytes(engine: *mut dtc_engine) -> Option<PlanRef> {
    let mut made: *mut dtc_type = null_mut();
    // SAFETY: the engine lives, the text ends, and `made` is writable.
    let named = unsafe { dtc::dtc_type_named(engine, c"MPI_BYTE".as_ptr(), &mut made) };
    // SAFETY: null, or a new reference.
    let made = unsafe { Type::own(made) }.filter(|_| named == DTC_OK)?;
    // SAFETY: a live type.
    if unsafe { dtc::dtc_type_commit(made.get(), 0) } != DTC_OK {
        return None;
    }
    let plan =
        PlanRef::new(DecodedType { r#type: Some(made), whole: true, size: 1, uniform: true, ..DecodedType::default() });
    ALIVE.fetch_sub(1, Ordering::Relaxed);
    Some(plan)
}

/// Prepares what datatypes are decoded with; false if that fails.
pub fn start<A: Abi>() -> bool {
    let mut engine = null_mut();
    // SAFETY: the defaults, and `engine` is writable.
    if unsafe { dtc::dtc_init(null(), &mut engine) } != DTC_OK {
        return false;
    }
    let pmpi = pmpi::<A>();
    let key = |copy, delete, place: &AtomicI32| {
        let mut key = 0;
        // SAFETY: functions of this library, which stay.
        let made = unsafe { (pmpi.type_create_keyval)(copy, delete, &mut key, null_mut()) } == MPI_SUCCESS;
        place.store(key, Ordering::Release);
        made
    };
    let Some(bytes) = make_bytes(engine) else {
        // SAFETY: made above, and used by nothing.
        unsafe { dtc::dtc_finalize(engine) };
        return false;
    };
    let _ = BYTES.set(Box::new(bytes));
    ENGINE.store(engine, Ordering::Release);
    key(copy_no_type::<A>, delete_no_type::<A>, &TYPE_KEY) && key(copy_plan::<A>, delete_plan::<A>, &PLAN_KEY)
}

/// Ends the engine. Types outlive it: datatypes of the program, and what other threads remember.
pub fn end() {
    let engine = ENGINE.swap(null_mut(), Ordering::AcqRel);
    if !engine.is_null() {
        // SAFETY: made by `start`; calls go to the MPI from now on.
        unsafe { dtc::dtc_finalize(engine) };
    }
}

/// What libdtc says of a type.
pub fn query(r#type: &Type) -> Option<dtc_info> {
    let mut info = dtc_info::default();
    // SAFETY: a committed type, and `info` has its size.
    (unsafe { dtc::dtc_type_query(r#type.get(), &mut info) } == DTC_OK).then_some(info)
}

/// Whether some basic element may have padding inside, as `long double` has: none else is aligned to 16 bytes. MPICH 5 and Open MPI 5 leave
/// padding where it is, and programs may compare bytes.
fn is_padded(info: &dtc_info) -> bool {
    info.alignment > 8
}

/// Whether basic elements are of one size that divides 8. A complex number is two of them.
fn is_uniform(info: &dtc_info) -> bool {
    let size = if info.kind == DTC_KIND_COMPLEX { info.kind_size / 2 } else { info.kind_size };
    size > 0 && 8 % size == 0
}

/// The contiguous pieces of a type that has some.
fn pieces_of(r#type: &Type, info: &dtc_info) -> Pieces {
    let mut described = 0;
    // The description of few pieces says nothing, and is written to be measured.
    let asked = info.blocks >= Pieces::FEW && info.blocks < i64::MAX;
    // SAFETY: a live type, and `described` is writable.
    let told = asked && unsafe { dtc::dtc_flatten_size(r#type.get(), &mut described) } == DTC_OK;
    Pieces::of(&Facts {
        packed: info.packed_size,
        extent: info.extent,
        true_extent: info.true_extent,
        blocks: info.blocks,
        shortest_block: info.shortest_block,
        longest_block: info.longest_block,
        described: if told { described } else { 0 },
        mixed: info.kind == DTC_KIND_MIXED,
    })
}

/// Decodes a datatype, for what needs no kernel; none if dtc cannot.
fn decode_uncommitted<A: Abi>(datatype: A::Handle) -> Option<Type> {
    let engine = ENGINE.load(Ordering::Acquire);
    let mut made = null_mut();
    // SAFETY: the engine lives while calls are handled, and the key was made by `start`.
    let decoded = unsafe { A::decode(engine, TYPE_KEY.load(Ordering::Acquire), datatype, &mut made) };
    // SAFETY: null, or a new reference.
    unsafe { Type::own(made) }.filter(|_| decoded == DTC_OK)
}

/// What dtc makes of a datatype, for the report: its notation, none if dtc cannot decode it, or the notation has more than `most`
/// entries. Waits for a thread that decodes.
pub fn notation_of<A: Abi>(datatype: A::Handle, most: u64) -> Option<String> {
    while DECODING.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    let decoded = decode_uncommitted::<A>(datatype);
    // SAFETY: a live type.
    let notation = decoded.and_then(|decoded| unsafe { dtc::notation(decoded.get(), most) });
    DECODING.store(false, Ordering::SeqCst);
    bury();
    notation
}

/// Decodes a datatype; none if dtc cannot, or shall not move it.
fn decode<A: Abi>(datatype: A::Handle) -> Option<(Type, dtc_info)> {
    let r#type = decode_uncommitted::<A>(datatype)?;
    // SAFETY: a live type.
    let committed = unsafe { dtc::dtc_type_commit(r#type.get(), 0) } == DTC_OK;
    let info = query(&r#type).filter(|info| committed && !is_padded(info))?;
    Some((r#type, info))
}

/// Decodes a datatype for a test of the library's own; none if dtc cannot.
pub fn decode_unplanned<A: Abi>(datatype: A::Handle) -> Option<Type> {
    decode::<A>(datatype).map(|(r#type, _)| r#type)
}

fn known_of<A: Abi>(datatype: A::Handle) -> DecodedType {
    let (r#type, info) = match decode::<A>(datatype) {
        Some((r#type, info)) => (Some(r#type), info),
        None => (None, dtc_info::default()),
    };
    let contiguous = info.contiguous != 0 && info.extent == info.packed_size;
    let limits = limits();
    let pieces = r#type.as_ref().map(|r#type| pieces_of(r#type, &info));
    let served = |of| pieces.map_or(Sizes::NONE, |pieces| limits.sizes(of, &pieces));
    DecodedType {
        datatype: datatype.word(),
        whole: info.blocks == 0 || (limits.leaves_whole && contiguous),
        size: info.packed_size,
        served: Use::ALL.map(served),
        uniform: is_uniform(&info),
        true_lb: info.true_lb,
        r#type,
    }
}

/// The value of an attribute of a datatype.
fn attribute<A: Abi>(pmpi: &Pmpi<A>, datatype: A::Handle, key: &AtomicI32) -> Option<*mut c_void> {
    let (mut value, mut found): (*mut c_void, c_int) = (null_mut(), 0);
    // SAFETY: a datatype of the program; the MPI writes an address.
    unsafe { (pmpi.type_get_attr)(datatype, key.load(Ordering::Acquire), (&raw mut value).cast(), &mut found) };
    (found != 0).then_some(value)
}

/// Takes an attribute away, if there is one: Open MPI calls the error handler for one that there is not.
fn take_attribute<A: Abi>(datatype: A::Handle, key: &AtomicI32) {
    let pmpi = pmpi::<A>();
    if attribute(pmpi, datatype, key).is_some() {
        // SAFETY: a datatype of the program that has the attribute.
        unsafe { (pmpi.type_delete_attr)(datatype, key.load(Ordering::Acquire)) };
    }
}

/// Decodes a datatype that the MPI accepts, and leaves the plan with it. One thread does so at a time; others leave it to a later
/// call, since the one that comes second would destroy the plan of the first.
pub fn make<A: Abi>(datatype: A::Handle) {
    let pmpi = pmpi::<A>();
    if datatype == A::handles().datatype_null || DECODING.swap(true, Ordering::Acquire) {
        return;
    }
    if attribute(pmpi, datatype, &PLAN_KEY).is_none() && !is_named::<A>(datatype) {
        let plan = PlanRef::new(known_of::<A>(datatype));
        if reports() {
            let mut reported = reported();
            reported.decoded += i64::from(plan.r#type.is_some());
            reported.alive.push(plan.0);
        }
        // SAFETY: a datatype of the program. The type before the plan, with which another owner of the handle may take both away.
        unsafe {
            if let Some(r#type) = &plan.r#type {
                (pmpi.type_set_attr)(datatype, TYPE_KEY.load(Ordering::Acquire), r#type.get().cast());
            }
            let value = plan.into_attribute();
            if (pmpi.type_set_attr)(datatype, PLAN_KEY.load(Ordering::Acquire), value) != MPI_SUCCESS {
                take_attribute::<A>(datatype, &TYPE_KEY);
                drop(PlanRef::of_attribute(value));
            }
        }
    }
    DECODING.store(false, Ordering::SeqCst);
    bury();
}

/// The value of the plan that hangs on a datatype; it may be gone already.
pub fn hanging<A: Abi>(datatype: A::Handle) -> Option<*mut c_void> {
    attribute(pmpi::<A>(), datatype, &PLAN_KEY)
}

/// Takes the plan of a datatype away, before the program frees the handle; the generation from then on, unless another thread does so. Other
/// owners of the same handle have it decoded again.
pub fn forget<A: Abi>(datatype: A::Handle, plan: PlanRef) -> Option<u64> {
    if !plan.forget() {
        return None;
    }
    let value: *const Plan = plan.0;
    FORGOTTEN.set(value.cast());
    // First what owns no reference: a thread that decodes reads the type before the plan is gone, or not at all.
    take_attribute::<A>(datatype, &TYPE_KEY);
    // SAFETY: a datatype of the program, with this attribute.
    unsafe { (pmpi::<A>().type_delete_attr)(datatype, PLAN_KEY.load(Ordering::Acquire)) };
    FORGOTTEN.set(null());
    let generation = GENERATION.fetch_add(1, Ordering::Release) + 1;
    // SAFETY: the reference of the attribute, which is gone.
    drop(unsafe { PlanRef::of_attribute(value.cast_mut().cast()) });
    Some(generation)
}

impl PlanRef {
    /// Whether both are references to one plan.
    pub fn is(&self, other: &PlanRef) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
