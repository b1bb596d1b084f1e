//! One direction of such a call. All blocks that are sent are packed into one piece of staging memory, and those received are unpacked from
//! another. Those on one GPU are moved by one launch.

use super::arguments::{BlockArguments, Numbers};
use super::block::{Block, Elements};
use crate::abi::Abi;
use crate::limits::{LARGEST_MESSAGE, limits};
use crate::memory::{
    Direction, Form, Moved, Place, Span, fail, form_of, is_contiguous, offset, place_of, sends_packed, size_of,
    span_of, take_for_device, takes_devices,
};
use crate::moves::{self, Packing, batch_call};
use crate::recall::{Knowledge, recall};
use crate::receive_type::{ReceiveType, gap};
use crate::rent::{Purpose, Refused, plan_now, plan_of_use};
use crate::report::{Counted, count};
use crate::staging::{self, BlockRef};
use dtc::{DTC_MEMORY_DEVICE, dtc_batch_call};
use dtc_mpi_table::Use;

/// Places in staging memory, for elements that the MPI takes for those of the program's datatype.
const ALIGNMENT: i64 = 64;

/// A direction that goes through staging memory.
pub struct Side<A: Abi> {
    blocks: Vec<Block<A>>,
    staging: BlockRef,
    /// Packed bytes.
    bytes: i64,
    /// Whether some of the elements lie on a GPU, and whether they are received over.
    on_device: bool,
    filled: bool,
    counts: Numbers,
    places: Numbers,
    datatypes: Vec<A::Handle>,
}

/// What a direction is staged for.
#[derive(Clone, Copy)]
pub struct Wanted<A: Abi> {
    /// What is done with its elements.
    pub direction: Direction,
    /// The GPU of the first of its elements on one, and of those of the other direction.
    pub device: Option<i32>,
    /// See there.
    pub other: Option<i32>,
    /// Of the call.
    pub communicator: A::Handle,
    /// How many uses of each datatype it counts as.
    pub uses: i64,
}

/// A direction that goes through staging memory, none if the MPI moves it, or why it cannot.
pub type SideStaging<A> = Result<Option<Side<A>>, Refused>;

/// Whether elements of a predefined datatype lie without gaps, and how many bytes one has. Those of pairs do not.
fn dense_size<A: Abi>(datatype: A::Handle) -> Option<i64> {
    let size = size_of::<A>(datatype)?;
    (crate::memory::extent_of::<A>(datatype)? == (0, size)).then_some(size)
}

/// The elements of a block that the processor reaches, or none if the MPI shall move the direction.
fn elements_on_host<A: Abi>(
    given: &BlockArguments<A>,
    at: usize,
    wanted: &Wanted<A>,
    whole: i64,
) -> Result<Option<Elements>, Refused> {
    let (elements, datatype, memory) = (given.elements(at), given.datatype(at), given.memory_of(at));
    if elements < 0 || datatype == A::handles().datatype_null {
        return Ok(None);
    }
    if elements == 0 {
        return Ok(Some(Elements::Nothing));
    }
    let fits = |bytes: &i64| *bytes <= LARGEST_MESSAGE;
    let purpose = Purpose { of: Use::Exchange, least: 0, whole, uses: wanted.uses };
    let Some(plan) = plan_of_use::<A>(elements, datatype, purpose, wanted.communicator)? else {
        let predefined = recall::<A, _>(datatype, |known| known.is == Knowledge::Predefined) == Some(true);
        let size = if predefined { dense_size::<A>(datatype) } else { None };
        let bytes = size.and_then(|size| elements.checked_mul(size)).filter(fits);
        return Ok(bytes.map(|bytes| Elements::Copied(memory, bytes as usize)));
    };
    if plan.r#type.is_none() || (wanted.direction.sends() && !sends_packed(&plan)) {
        return Ok(None);
    }
    let bytes = elements.checked_mul(plan.size).filter(fits);
    Ok(bytes.map(|bytes| Elements::Moved(Moved { plan, memory, elements, bytes })))
}

/// Packed bytes of a direction, if dtc moves as many.
fn bytes_of<A: Abi>(given: &BlockArguments<A>) -> Option<i64> {
    let mut bytes: i64 = 0;
    for at in 0..given.length {
        let (elements, datatype) = (given.elements(at), given.datatype(at));
        if elements <= 0 || datatype == A::handles().datatype_null {
            continue;
        }
        bytes = bytes.saturating_add(size_of::<A>(datatype).and_then(|size| elements.checked_mul(size))?);
    }
    Some(bytes).filter(|bytes| *bytes >= limits().smallest(Use::Exchange))
}

/// Stages a direction, unless the MPI shall move it. In place, all of it is the MPI's but what lies on a GPU.
///
/// # Errors
///
/// The MPI does not accept a datatype, or must not be given the elements.
pub fn stage<A: Abi>(given: &BlockArguments<A>, wanted: &Wanted<A>) -> SideStaging<A> {
    if !given.is_usable() {
        return Ok(None);
    }
    if let Some(device) = wanted.device {
        return stage_on_device(given, wanted, device);
    }
    let Some(whole) = bytes_of(given).filter(|_| wanted.direction != Direction::Both) else { return Ok(None) };
    let mut blocks = Vec::with_capacity(given.length);
    let (mut taken, mut bytes): (i64, i64) = (0, 0);
    let mut movable = true;
    let host = Place { kind: dtc::DTC_MEMORY_HOST, device: 0 };
    // Each block is a use of its datatype, also where another one is left to the MPI.
    for at in 0..given.length {
        let elements = elements_on_host(given, at, wanted, whole)?;
        let Some(elements) = elements.filter(|_| movable) else {
            movable = false;
            continue;
        };
        let block = Block::new(elements, taken, host);
        bytes += block.bytes();
        taken += block.bytes() + gap::<A>() as i64;
        movable = taken <= LARGEST_MESSAGE;
        blocks.push(block);
    }
    // Blocks that the MPI moves as fast are copied once more.
    let gains = |moved: &&Moved| !moved.plan.whole && moved.plan.served(Use::Exchange).hold(bytes);
    let gained: i64 = blocks.iter().filter_map(Block::moved).filter(gains).map(|moved| moved.bytes).sum();
    if !movable || gained == 0 || limits().share.saturating_mul(gained) < bytes {
        return Ok(None);
    }
    let Some(staging) = staging::take(staging::HOST, 0, taken) else { return Ok(None) };
    let mut side = Side::new(given, blocks, staging, bytes);
    let all = (0..given.length).all(|at| side.give(given, at, wanted.direction, None));
    Ok(all.then_some(side))
}

/// A block of a direction on a GPU, the form that it goes in, and how its elements lie.
type Planned<A> = (Block<A>, Form, Span);

/// Plans a block of such a direction; none if the MPI shall move the direction.
fn plan_on_device<A: Abi>(
    given: &BlockArguments<A>,
    wanted: &Wanted<A>,
    at: usize,
    taken: i64,
) -> Result<Option<Planned<A>>, Refused> {
    let (elements, datatype, memory) = (given.elements(at), given.datatype(at), given.memory_of(at));
    let nothing = |span| Ok(Some((Block::new(Elements::Nothing, taken, Place::MIXED), Form::Packed, span)));
    if elements == 0 {
        return nothing(Span::default());
    }
    if elements < 0 || datatype == A::handles().datatype_null {
        return Ok(None);
    }
    let plan = plan_now::<A>(datatype, wanted.communicator)?;
    let Some(span) = span_of::<A>(elements, datatype) else { return Ok(None) };
    if span.bytes == 0 {
        return nothing(span);
    }
    let lies = place_of(offset(memory, span.low));
    let known = plan.as_deref();
    // A CUDA-aware MPI is given all blocks in staging memory, or none.
    let form = match form_of(known, &span, wanted.direction) {
        Form::Passed if is_contiguous(known, &span) && span.bytes <= i64::from(i32::MAX) => Form::Packed,
        form => form,
    };
    if form == Form::Passed {
        return Ok(None);
    }
    let moved = Moved::of(form, plan.as_ref(), &span, memory, elements);
    Ok(moved.map(|moved| (Block::new(Elements::Moved(moved), taken, lies), form, span)))
}

/// Stages such a direction; leaves it to a CUDA-aware MPI if it may take it as it is.
#[cold]
fn stage_on_device<A: Abi>(given: &BlockArguments<A>, wanted: &Wanted<A>, device: i32) -> SideStaging<A> {
    let refuse = || if takes_devices() { Ok(None) } else { Err(Refused(fail::<A>(A::CONSTANTS.err_other))) };
    // MPI_Alltoallw of Open MPI 5.0 ends by a signal where a process sends to itself from memory of a GPU to the host, or back.
    let on_host = A::IS_OPEN_MPI && takes_devices() && wanted.other.is_none() && wanted.direction != Direction::Both;
    let mut gains = !takes_devices() || on_host;
    let (mut blocks, mut how) = (Vec::with_capacity(given.length), Vec::with_capacity(given.length));
    let (mut taken, mut bytes, mut filled): (i64, i64, bool) = (0, 0, false);
    for at in 0..given.length {
        let Some((block, form, span)) = plan_on_device(given, wanted, at, taken)? else { return refuse() };
        if let Some(moved) = block.moved() {
            let end = block.place + moved.bytes + gap::<A>() as i64;
            let narrow = |number: i64| i32::try_from(number).is_ok();
            let displaced = block.place.wrapping_sub(span.low);
            let fits = narrow(block.place + moved.bytes) && narrow(displaced);
            if !given.wide_places && !fits {
                return refuse();
            }
            taken = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            bytes += span.bytes;
            gains = gains || (block.lies.is_device() && !moved.is_of_bytes());
            let over = wanted.direction == Direction::Both || form == Form::Raw;
            filled = filled || (wanted.direction.receives() && over);
        }
        blocks.push(block);
        how.push((form, span));
    }
    if !gains {
        return refuse();
    }
    let room = taken.max(1);
    let staging = if on_host { staging::take(staging::PINNED, device, room) } else { take_for_device(device, room) };
    let Some(staging) = staging else { return refuse() };
    let mut side = Side { on_device: true, filled, ..Side::new(given, blocks, staging, bytes) };
    let raw = |at: usize| how.get(at).filter(|(form, _)| *form == Form::Raw).map(|(_, span)| span.low);
    let all = (0..given.length).all(|at| side.give(given, at, wanted.direction, raw(at)));
    if all { Ok(Some(side)) } else { refuse() }
}

impl<A: Abi> Side<A> {
    fn new(given: &BlockArguments<A>, blocks: Vec<Block<A>>, staging: BlockRef, bytes: i64) -> Side<A> {
        let length = given.length;
        Side {
            blocks,
            staging,
            bytes,
            on_device: false,
            filled: false,
            counts: Numbers::new(given.wide_counts, length),
            places: Numbers::new(given.wide_places, length),
            datatypes: Vec::with_capacity(length),
        }
    }

    /// Gives the MPI the next block: packed bytes, or elements of the program's datatype whose lowest byte is displaced by `raw`. False if there is
    /// no memory.
    fn give(&mut self, given: &BlockArguments<A>, at: usize, direction: Direction, raw: Option<i64>) -> bool {
        let Some(place) = self.blocks.get(at).map(|block| block.place) else { return false };
        if let Some(low) = raw {
            self.datatypes.push(given.datatype(at));
            self.counts.push(given.elements(at));
            self.places.push(place.wrapping_sub(low));
            return true;
        }
        let bytes = self.blocks[at].bytes();
        let (mut count, mut datatype) = (bytes, A::handles().packed);
        if gap::<A>() > 0 && direction.receives() && bytes > 1 && self.staging.kind() != DTC_MEMORY_DEVICE {
            let same = |block: &Block<A>| block.gap && block.bytes() == bytes;
            let again = at > 0 && self.blocks.get(at - 1).is_some_and(same);
            if again {
                datatype = self.datatypes[at - 1];
            } else {
                let Some(receive_type) = ReceiveType::take(bytes) else { return false };
                datatype = receive_type.handle();
                self.blocks[at].receive_type = Some(receive_type);
            }
            self.blocks[at].gap = true;
            count = 1;
        }
        self.datatypes.push(datatype);
        self.counts.push(count);
        self.places.push(place);
        true
    }

    /// What the MPI is given in place of the program's arguments.
    pub fn given(&self, of_program: &BlockArguments<A>) -> BlockArguments<A> {
        BlockArguments {
            memory: self.staging.memory(),
            counts: self.counts.as_ptr(),
            places: self.places.as_ptr(),
            datatypes: self.datatypes.as_ptr(),
            ..*of_program
        }
    }

    /// Once the MPI has the datatypes.
    pub fn posted(&mut self) {
        for block in &mut self.blocks {
            block.receive_type = None;
        }
    }

    /// Whether its failures are errors: the MPI must not be given the elements.
    pub fn is_bound(&self) -> bool {
        self.on_device && !takes_devices()
    }

    /// Moves the blocks of a GPU by one launch; false if that fails.
    fn launch(&self, device: i32, packing: Packing) -> bool {
        let launched: Vec<&Block<A>> =
            self.blocks.iter().filter(|block| block.is_launched(&self.staging, device)).collect();
        if let [block] = launched[..] {
            return block.run(&self.staging, packing);
        }
        let call = |block: &&Block<A>| {
            let moved = block.moved()?;
            batch_call(packing, moved, block.packed(&self.staging), moved.bytes)
        };
        let calls: Vec<dtc_batch_call> = launched.iter().filter_map(call).collect();
        // SAFETY: the program's elements, and staging memory for their bytes.
        calls.len() == launched.len() && unsafe { moves::launch(device, packing, &calls, self.staging.kind()) }
    }

    /// Moves all blocks; false if that fails.
    fn run(&self, packing: Packing) -> bool {
        // A bit for each GPU whose blocks have been moved.
        let mut launched: u32 = 0;
        for block in &self.blocks {
            let device = block.lies.device;
            let alone = !self.on_device || !(0..32).contains(&device) || !block.is_launched(&self.staging, device);
            let moved = if alone {
                block.run(&self.staging, packing)
            } else if launched >> device & 1 == 0 {
                launched |= 1 << device;
                self.launch(device, packing)
            } else {
                true
            };
            if !moved {
                return false;
            }
        }
        true
    }

    /// Packs all blocks that are sent; false if that fails.
    pub fn pack(&self) -> bool {
        let packed = self.run(Packing::Pack);
        if packed {
            count(Counted::Sent, self.bytes);
        }
        packed
    }

    /// The last byte of each block with a gap, and the place where it is received.
    fn last_bytes(&self) -> impl Iterator<Item = (*mut u8, *mut u8)> {
        self.blocks.iter().filter(|block| block.gap).map(|block| {
            let last: *mut u8 = offset(block.packed(&self.staging), block.bytes() - 1).cast();
            (last, last.wrapping_add(gap::<A>()))
        })
    }

    /// Puts what the elements are where others are received over them; false if that fails.
    pub fn fill(&self) -> bool {
        if !self.filled {
            return true;
        }
        if !self.run(Packing::Pack) {
            return false;
        }
        for (last, received) in self.last_bytes() {
            // SAFETY: staging memory of the host has room for the gap.
            unsafe { *received = *last };
        }
        true
    }

    /// Unpacks all blocks that were received; false if that fails.
    pub fn unpack(&self) -> bool {
        for (last, received) in self.last_bytes() {
            // SAFETY: staging memory of the host has room for the gap.
            unsafe { *last = *received };
        }
        let unpacked = self.run(Packing::Unpack);
        if unpacked {
            count(Counted::Received, self.bytes);
        }
        unpacked
    }
}
