//! Exchanges between processes on one machine whose GPUs reach each other: each packs straight into memory of the other's GPU, by one launch,
//! and unpacks what the others have packed. It is a protocol of this library, and used only between processes that are known to have it
//! ([`registry`]), in blocking collectives in which every pair has datatypes of its own: only both ends see their pieces.
//!
//! Each process tells those that send to it where it wants their blocks, opens the memory of those that it sends to, and says whether it can
//! take part: it can if all of its blocks lie on one GPU for each direction, and it can reach all that it packs into. If one cannot, all leave
//! the call to the other strategies. Then each packs, tells those it has packed for, waits for those that pack for it, and unpacks. All that
//! is told goes through memory that the processes share ([`segment`]).

use super::arguments::{processes_of, rank_of};
use super::exchange::Directions;
use super::flow::{Flow, FlowBlock, space_of};
use super::neighbors;
use crate::abi::{Abi, MPI_SUCCESS, MPI_UNDEFINED};
use crate::memory::{fail, offset, place_of};
use crate::moves::{self, Packing, batch_call};
use crate::pmpi::pmpi;
use crate::receive_buffer::{self, ReceiveBuffer};
use crate::report::{Counted, count};
use crate::segment::{self, NAME, Segment, Step, Target};
use crate::start::has_begun;
use crate::{registry, settings};
use dtc::{DTC_MEMORY_DEVICE, dtc_batch_call};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// What is known of a communicator: an attribute.
struct Direct<A: Abi> {
    /// None if its processes do not exchange directly.
    segment: Option<Segment>,
    /// A communicator of the same processes without messages, if there is a segment.
    progress: A::Handle,
    rank: c_int,
    size: c_int,
    /// How many exchanges its processes have begun.
    exchanges: AtomicI64,
}

/// The key of the attribute; 0 if no process exchanges directly.
static KEY: AtomicI32 = AtomicI32::new(0);

/// Not for duplicates.
unsafe extern "C" fn copy_direct<A: Abi>(
    _communicator: A::Handle,
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

/// In `MPI_Finalize`, the MPI frees the progress communicator itself.
unsafe extern "C" fn delete_direct<A: Abi>(
    _communicator: A::Handle,
    _key: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    // SAFETY: values of this key are such boxes, and this one goes with its attribute.
    let mut direct = unsafe { Box::from_raw(value.cast::<Direct<A>>()) };
    if direct.segment.is_some() && has_begun() {
        // SAFETY: made with the segment.
        unsafe { (pmpi::<A>().comm_free)(&mut direct.progress) };
    }
    MPI_SUCCESS
}

/// Whether all processes of a communicator have this library, and run on this machine.
fn all_registered<A: Abi>(communicator: A::Handle, size: c_int) -> bool {
    if size == 1 {
        return true;
    }
    if !registry::exchanges_directly() {
        return false;
    }
    let pmpi = pmpi::<A>();
    let ranks: Vec<c_int> = (0..size).collect();
    let mut worlds = vec![MPI_UNDEFINED; ranks.len()];
    let (mut group, mut world) = (A::handles().comm_null, A::handles().comm_null);
    // SAFETY: communicators of the MPI, groups that are freed, and room for as many ranks.
    unsafe {
        if (pmpi.comm_group)(communicator, &mut group) != MPI_SUCCESS {
            return false;
        }
        let mut told = false;
        if (pmpi.comm_group)(A::handles().comm_world, &mut world) == MPI_SUCCESS {
            let translate = pmpi.group_translate_ranks;
            told = translate(group, size, ranks.as_ptr(), world, worlds.as_mut_ptr()) == MPI_SUCCESS;
            (pmpi.group_free)(&mut world);
        }
        (pmpi.group_free)(&mut group);
        told && worlds.iter().all(|rank| *rank != MPI_UNDEFINED && registry::is_registered(*rank))
    }
}

/// How many processes of a communicator say so, as all of them find; none if the MPI does not tell.
fn count_all<A: Abi>(communicator: A::Handle, size: c_int, own: bool) -> Option<c_int> {
    let says = u8::from(own);
    let mut all = vec![0u8; usize::try_from(size).ok()?];
    let byte = A::handles().byte;
    let (from, into): (*const c_void, *mut c_void) = ((&raw const says).cast(), all.as_mut_ptr().cast());
    // SAFETY: a byte of each process.
    let told = unsafe { (pmpi::<A>().allgather)(from, 1, byte, into, 1, byte, communicator) } == MPI_SUCCESS;
    told.then(|| all.iter().map(|says| c_int::from(*says)).sum())
}

/// Memory that all processes of a communicator share, none within if they do not; none if the MPI fails.
fn segment_between<A: Abi>(communicator: A::Handle, rank: c_int, size: c_int) -> Option<Option<Segment>> {
    let (own, count) = (usize::try_from(rank).ok()?, usize::try_from(size).ok()?);
    let mut name: [c_char; NAME] = [0; NAME];
    let (mut segment, mut path) = (None, CString::default());
    if rank == 0
        && let Some((made, made_path)) = Segment::make(own, count)
    {
        for (place, byte) in name.iter_mut().zip(made_path.as_bytes()) {
            *place = *byte as c_char;
        }
        (segment, path) = (Some(made), made_path);
    }
    let byte = A::handles().byte;
    // SAFETY: as many bytes in each process.
    let told = unsafe { (pmpi::<A>().bcast)(name.as_mut_ptr().cast(), NAME as c_int, byte, 0, communicator) };
    let known = told == MPI_SUCCESS;
    if known && rank != 0 {
        // SAFETY: the last byte is 0: a name is shorter.
        segment = Segment::open(own, count, unsafe { CStr::from_ptr(name.as_ptr()) });
    }
    let have = if known { count_all::<A>(communicator, size, segment.is_some()) } else { None };
    segment::hide(&path);
    Some(if have? == size { segment } else { None })
}

/// At the first such call of a communicator, by all of its processes: those whose processes do not use CUDA keep to the host.
#[cold]
fn make<A: Abi>(communicator: A::Handle) -> Option<*mut Direct<A>> {
    let pmpi = pmpi::<A>();
    let (rank, size) = (rank_of::<A>(communicator)?, processes_of::<A>(communicator)?);
    let progress = A::handles().comm_null;
    let mut direct = Direct::<A> { segment: None, progress, rank, size, exchanges: AtomicI64::new(0) };
    // Nothing that a process finds here by itself differs in another one.
    if all_registered::<A>(communicator, size) {
        let users = count_all::<A>(communicator, size, place_of(null_mut()).uses_cuda())?;
        if users > 0 {
            direct.segment = segment_between::<A>(communicator, rank, size)?;
        }
        if direct.segment.is_some() {
            // SAFETY: a communicator of the program, and `progress` is writable.
            let split = unsafe { (pmpi.comm_split)(communicator, 0, rank, &mut direct.progress) };
            if split != MPI_SUCCESS {
                return None;
            }
        }
    }
    let value = Box::into_raw(Box::new(direct));
    // SAFETY: a communicator of the program; the attribute owns the box.
    if unsafe { (pmpi.comm_set_attr)(communicator, KEY.load(Ordering::Acquire), value.cast()) } != MPI_SUCCESS {
        // SAFETY: made above, and kept nowhere.
        drop(unsafe { Box::from_raw(value) });
        return None;
    }
    Some(value)
}

/// The attribute of a communicator, if it has one; none if the MPI fails.
fn attribute<A: Abi>(communicator: A::Handle) -> Option<Option<*mut Direct<A>>> {
    let (mut value, mut found): (*mut Direct<A>, c_int) = (null_mut(), 0);
    let key = KEY.load(Ordering::Acquire);
    // SAFETY: a communicator of the program; the MPI writes an address.
    let told = unsafe { (pmpi::<A>().comm_get_attr)(communicator, key, (&raw mut value).cast(), &mut found) };
    (told == MPI_SUCCESS).then_some((found != 0).then_some(value))
}

/// What is known of a communicator whose processes exchange directly.
fn of<A: Abi>(communicator: A::Handle) -> Option<&'static Direct<A>> {
    if KEY.load(Ordering::Acquire) == 0 {
        return None;
    }
    let direct = match attribute::<A>(communicator)? {
        Some(direct) => direct,
        None => make::<A>(communicator)?,
    };
    // SAFETY: it lives as long as the communicator, which the program does not free during its call.
    let direct = unsafe { &*direct };
    direct.segment.is_some().then_some(direct)
}

/// Before the MPI frees a communicator, which it may keep until its last message ends ([`plan`](crate::plan)).
///
/// # Safety
///
/// `communicator` is null or leads to a communicator.
pub unsafe fn forget<A: Abi>(communicator: *const A::Handle) {
    // SAFETY: as the caller says.
    let Some(communicator) = (unsafe { communicator.as_ref() }).copied() else { return };
    if KEY.load(Ordering::Acquire) == 0 || communicator == A::handles().comm_null || !has_begun() {
        return;
    }
    if let Some(Some(_)) = attribute::<A>(communicator) {
        // SAFETY: a communicator of the program, which has the attribute.
        unsafe { (pmpi::<A>().comm_delete_attr)(communicator, KEY.load(Ordering::Acquire)) };
    }
}

/// As the report says it.
pub fn way() -> &'static str {
    if settings::is_set("DTC_MPI_DIRECT", "off") {
        "through the MPI (DTC_MPI_DIRECT=off)"
    } else {
        "from process to process, where all have this library"
    }
}

/// Enters this process among those that exchange directly.
pub fn start<A: Abi>() {
    let world = A::handles().comm_world;
    let (Some(rank), Some(size)) = (rank_of::<A>(world), processes_of::<A>(world)) else { return };
    if settings::is_set("DTC_MPI_DIRECT", "off") {
        return;
    }
    let mut key = 0;
    // SAFETY: functions of this library, which stay.
    let made = unsafe { (pmpi::<A>().comm_create_keyval)(copy_direct::<A>, delete_direct::<A>, &mut key, null_mut()) };
    if made == MPI_SUCCESS {
        KEY.store(key, Ordering::Release);
        registry::register(rank, size);
    }
}

/// At the end.
pub fn end() {
    receive_buffer::close_imports();
    registry::unregister();
}

/// An exchange under way.
struct DirectCall<'a, A: Abi> {
    direct: &'a Direct<A>,
    segment: &'a Segment,
    number: i64,
    out: Flow,
    input: Flow,
    receive_buffer: Option<ReceiveBuffer>,
    packs: Vec<dtc_batch_call>,
}

impl<A: Abi> DirectCall<'_, A> {
    fn wait(&self, peer: c_int, step: Step) -> bool {
        // Lets the MPI go on with messages that others wait for, as it does where it finds none. Those of a process with itself would not do:
        // MPICH looks at them alone.
        let progress = || {
            let mut flag = 0;
            let any = A::CONSTANTS.any_source;
            // SAFETY: a communicator without messages, and `flag` is writable.
            unsafe { (pmpi::<A>().iprobe)(any, 0, self.direct.progress, &mut flag, A::STATUS_IGNORE) };
        };
        self.segment.wait(peer as usize, step, self.number, progress)
    }

    /// Tells each process that sends to this one where its blocks shall lie.
    fn offer(&self, ready: bool) {
        let (number, name) = self.receive_buffer.as_ref().map_or((0, [0; _]), ReceiveBuffer::name);
        self.segment.set_target(Target { process: std::process::id().into(), number, name });
        if ready {
            for group in self.input.groups() {
                self.segment.set_space(group[0].peer as usize, space_of(group));
            }
        }
        self.segment.tell(Step::Offered, self.number, ready);
    }

    /// Where this process packs its blocks for another one, which has offered; none if it cannot reach that.
    fn target(&self, peer: c_int) -> Option<*mut c_void> {
        let device = self.out.device?;
        let memory = if peer == self.direct.rank {
            self.receive_buffer.as_ref().filter(|receive_buffer| receive_buffer.device() == device)?.memory()
        } else {
            let target = self.segment.target_of(peer as usize);
            receive_buffer::import(target.process, target.number, &target.name, device)
        };
        let place = self.segment.space_of(peer as usize).place;
        (!memory.is_null()).then(|| offset(memory, place))
    }

    /// Plans what this process does with its blocks; none if it cannot reach where they shall lie.
    fn plan_packs(&self) -> Option<Vec<dtc_batch_call>> {
        let mut packs = Vec::new();
        for group in self.out.groups() {
            let peer = group[0].peer;
            if !self.wait(peer, Step::Offered) {
                return None;
            }
            let (wanted, own) = (self.segment.space_of(peer as usize), space_of(group));
            // An error of the program, which the MPI reports.
            if (own.bytes, own.taken) != (wanted.bytes, wanted.taken) {
                return None;
            }
            if own.bytes == 0 {
                continue;
            }
            let mut packed = self.target(peer)?;
            for block in group {
                if let Some(moved) = &block.moved {
                    packs.push(batch_call(Packing::Pack, moved, packed, moved.bytes)?);
                }
                packed = offset(packed, block.taken());
            }
        }
        Some(packs)
    }

    /// Whether all processes take part, as all of them find.
    fn vote(&self, able: bool) -> bool {
        self.segment.tell(Step::Voted, self.number, able);
        // All are waited for, whatever the first say.
        (0..self.direct.size).fold(able, |all, peer| self.wait(peer, Step::Voted) && all)
    }

    /// Unpacks what the others have packed, when they have; false if something fails.
    fn unpack(&self) -> bool {
        let mut well = true;
        let mut unpacks = Vec::new();
        let unpack = |block: &FlowBlock| {
            let (moved, receive_buffer) = (block.moved.as_ref()?, self.receive_buffer.as_ref()?);
            batch_call(Packing::Unpack, moved, offset(receive_buffer.memory(), block.place), moved.bytes)
        };
        for group in self.input.groups().filter(|group| space_of(group).bytes > 0) {
            well = self.wait(group[0].peer, Step::PackedForOthers) && well;
            unpacks.extend(group.iter().filter_map(unpack));
        }
        let device = self.input.device.unwrap_or(0);
        // SAFETY: the program's elements, and a receive buffer for their bytes.
        well && unsafe { moves::launch(device, Packing::Unpack, &unpacks, DTC_MEMORY_DEVICE) }
    }

    /// Does an exchange in which all processes take part; the code that the call returns.
    fn run(&self) -> c_int {
        let device = self.out.device.unwrap_or(0);
        // SAFETY: the program's elements, and receive buffers of other processes for their bytes.
        let packed = unsafe { moves::launch(device, Packing::Pack, &self.packs, DTC_MEMORY_DEVICE) };
        self.segment.tell(Step::PackedForOthers, self.number, packed);
        if packed {
            count(Counted::Sent, self.out.bytes);
            count(Counted::Directly, self.out.bytes);
        }
        if !self.unpack() || !packed {
            return fail::<A>(A::CONSTANTS.err_other);
        }
        count(Counted::Received, self.input.bytes);
        MPI_SUCCESS
    }
}

/// Plans both directions of a call; none if this process cannot take part, as far as it can tell by itself.
fn plan<A: Abi>(directions: &Directions<A>, neighbors: bool) -> Option<(Flow, Flow, Option<ReceiveBuffer>)> {
    let Directions { out, input, communicator, .. } = directions;
    let (to, from) = neighbors::find::<A>(*communicator, neighbors, out.length, input.length)?;
    let out = Flow::plan(out, &to, *communicator)?;
    let input = Flow::plan(input, &from, *communicator)?;
    let receive_buffer = match input.device.filter(|_| input.taken > 0) {
        Some(device) => Some(receive_buffer::take(device, input.taken)?),
        None => None,
    };
    Some((out, input, receive_buffer))
}

/// Does an exchange directly, and returns the code of the call; none if the other strategies shall do it, which all processes of the communicator
/// find alike.
pub fn exchange<A: Abi>(directions: &Directions<A>, neighbors: bool) -> Option<c_int> {
    if directions.in_place {
        return None;
    }
    let direct = of::<A>(directions.communicator)?;
    let segment = direct.segment.as_ref()?;
    let number = direct.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
    let planned = plan(directions, neighbors);
    let able = planned.is_some();
    let (out, input, receive_buffer) = planned.unwrap_or_default();
    let mut call = DirectCall { direct, segment, number, out, input, receive_buffer, packs: Vec::new() };
    call.offer(able);
    let packs = if able { call.plan_packs() } else { None };
    let able = packs.is_some();
    call.packs = packs.unwrap_or_default();
    call.vote(able).then(|| call.run())
}
