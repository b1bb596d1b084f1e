//! When a datatype is decoded: once its uses have cost the MPI what decoding costs, so that one that is used once, or for a few bytes, costs next
//! to nothing, and one that is used often is decoded early enough. (The rule of ski rental: at most twice the cost of the better choice, had
//! the uses been known. Karlin, Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988.)
//!
//! What a use costs is estimated from its bytes and from what the MPI loses on such pieces, by its table ([`limits`](crate::limits)). The pieces of vectors,
//! subarrays and structures are known without decoding; of others, the loss is one that half of the calls exceed.

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::envelope::{Envelope, envelope_of, is_named};
use crate::kept;
use crate::limits::{LARGEST_MESSAGE, limits};
use crate::memory::{extent_of, size_of, true_extent_of};
use crate::plan::{self, PlanRef};
use crate::pmpi::pmpi;
use crate::recall::{Knowledge, Remembered, Rent, if_known, is_hardly_used, recall, recall_anew};
use crate::start::is_ready;
use dtc_mpi_table::{Arrangement, Pieces, Sizes, Use};
use std::ffi::c_int;
use std::ptr::null;

/// Nanoseconds that decoding and the first use take: at least (`bench/results/2026-11-28-mpi-packs.md`), for an entry of a list
/// (`bench/results/2026-11-26-mpi-first-uses.md`), and for a member of a structure.
const PRICE_BASE: i64 = 3500;
const PRICE_OF_ENTRY: i64 = 70;
const PRICE_OF_MEMBER: i64 = 700;

/// How many times as much the uses of a datatype must have cost whose elements may be contiguous: most are, and are left to the MPI. Others
/// transpose.
const PRICE_OF_DENSE: i64 = 8;

/// Packed bytes of the uses of a datatype from which on its description is looked at. Fewer cost no MPI as much as decoding does, but of
/// pieces of 4 and 8 bytes; a look costs as much as 1,000 of them.
const LOOKED_AT: i64 = 4096;

/// Packed bytes of a first use from which on the description is looked at: those of 3,000 pieces of 4 bytes, which pay for decoding at once. A smaller use
/// is left to the MPI: programs make a datatype for each message.
const LOOKED_AT_ONCE: i64 = 12_000;

/// Uses that a persistent request counts as, which decides for all of them when it is made. Programs make one to start it in each iteration. An estimate.
pub const USES_OF_PERSISTENT: i64 = 100;

/// Of a datatype that is never decoded.
pub const PRICELESS: i64 = i64::MAX;

/// The error of a datatype that the MPI does not accept, which it has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub c_int);

/// Whether elements have as many bytes as they reach over.
fn may_be_contiguous<A: Abi>(datatype: A::Handle, size: i64) -> bool {
    let extent = extent_of::<A>(datatype).map(|bounds| bounds.1);
    extent == Some(size) && true_extent_of::<A>(datatype).map(|bounds| bounds.1) == Some(size)
}

/// Packed bytes over those that elements reach over.
fn share_of<A: Abi>(datatype: A::Handle, size: i64) -> f64 {
    let extent = extent_of::<A>(datatype).map_or(0, |bounds| bounds.1);
    let true_extent = true_extent_of::<A>(datatype).map_or(0, |bounds| bounds.1);
    size as f64 / extent.max(true_extent).max(1) as f64
}

/// Most integers of a description that is read without decoding: a subarray of ten dimensions has 32.
const MOST_INTEGERS: usize = 32;

/// Elements in a contiguous piece of a subarray, by the integers of its description (MPI 4.1, 5.1.3): the innermost dimension that is not
/// taken whole ends it. `i64::MAX` if all are.
fn piece_of_subarray(integers: &[c_int], order_fortran: c_int) -> Option<i64> {
    let dimensions = usize::try_from(*integers.first()?).ok()?;
    let sizes = integers.get(1..=dimensions)?;
    let parts = integers.get(dimensions + 1..=2 * dimensions)?;
    let fortran = *integers.get(3 * dimensions + 1)? == order_fortran;
    let mut piece = 1i64;
    for at in 0..dimensions {
        let at = if fortran { at } else { dimensions - 1 - at };
        piece = piece.saturating_mul(parts[at].into());
        if parts[at] != sizes[at] {
            return Some(piece);
        }
    }
    Some(i64::MAX)
}

/// Most members of a structure whose description is read without decoding.
const MOST_MEMBERS: usize = 16;

/// The pieces of a contiguous datatype, a vector, a subarray or a structure of predefined elements, and their bytes, of a structure at least; none if
/// that is unknown.
fn pieces_of<A: Abi>(datatype: A::Handle, envelope: &Envelope, size: i64) -> Option<Pieces> {
    let constants = A::CONSTANTS;
    let is = |combiner| envelope.combiner == combiner;
    let (contiguous, structure) = (is(constants.combiner_contiguous), is(constants.combiner_struct));
    let (vector, subarray) =
        (is(constants.combiner_vector) || is(constants.combiner_hvector), is(constants.combiner_subarray));
    let Envelope { integers, addresses, counts, types, .. } = *envelope;
    let most = if structure { MOST_MEMBERS as i64 } else { 1 };
    let fits = integers <= MOST_INTEGERS as i64 && addresses <= most && counts == 0 && (1..=most).contains(&types);
    if !(contiguous || vector || subarray || structure) || !fits {
        return None;
    }
    let (mut numbers, mut places) = ([0; MOST_INTEGERS], [0; MOST_MEMBERS]);
    let mut children = [A::handles().datatype_null; MOST_MEMBERS];
    let (numbers_at, places_at, children_at) = (numbers.as_mut_ptr(), places.as_mut_ptr(), children.as_mut_ptr());
    let pmpi = pmpi::<A>();
    // SAFETY: a datatype of the program, and there is room for what its envelope says.
    let told = unsafe {
        let (integers, addresses, types) = (integers as c_int, addresses as c_int, types as c_int);
        (pmpi.type_get_contents)(datatype, integers, addresses, types, numbers_at, places_at, children_at)
    };
    if told != MPI_SUCCESS {
        return None;
    }
    let mut predefined = true;
    for child in &mut children[..types as usize] {
        if !is_named::<A>(*child) {
            predefined = false;
            // SAFETY: a handle that the MPI has given this function.
            unsafe { (pmpi.type_free)(child) };
        }
    }
    if !predefined {
        return None;
    }
    let share = share_of::<A>(datatype, size);
    if structure {
        return Some(Pieces { arrangement: Arrangement::Records, bytes: size / types, share, loop_bytes: i64::MAX });
    }
    let elements = match (contiguous, subarray) {
        (true, _) => i64::MAX,
        (_, true) => piece_of_subarray(&numbers, constants.order_fortran)?,
        _ => numbers[1].into(),
    };
    let bytes = size_of::<A>(children[0])?.saturating_mul(elements);
    // Nests of a subarray are taken for one loop.
    let loop_bytes = if size < bytes.saturating_mul(Pieces::FEW) { size } else { i64::MAX };
    Some(Pieces { arrangement: Arrangement::Regular, bytes, share, loop_bytes })
}

/// Estimates what decoding costs, in nanoseconds, and what dtc would do, as far as the pieces are known.
fn estimate<A: Abi>(datatype: A::Handle, rent: &mut Rent) {
    let (limits, envelope) = (limits(), envelope_of::<A>(datatype));
    rent.lost = Rent::UNKNOWN;
    rent.pieces = pieces_of::<A>(datatype, &envelope, rent.size);
    if let Some(pieces) = &rent.pieces {
        rent.served = Use::ALL.map(|of| limits.sizes(of, pieces));
    }
    if rent.served.iter().all(|sizes| *sizes == Sizes::NONE) {
        rent.price = PRICELESS;
        return;
    }
    let entries = envelope.integers.max(envelope.addresses).max(envelope.counts);
    let price = PRICE_BASE + PRICE_OF_ENTRY * entries + PRICE_OF_MEMBER * envelope.types;
    rent.price = if may_be_contiguous::<A>(datatype, rent.size) { PRICE_OF_DENSE * price } else { price };
}

/// Counts a use of a datatype that is not decoded; whether its uses have cost what decoding costs, as far as that is estimated.
fn has_paid(rent: &mut Rent, bytes: i64, purpose: Purpose) -> bool {
    let Purpose { of, whole, uses, .. } = purpose;
    rent.bytes = rent.bytes.saturating_add(bytes.min(LARGEST_MESSAGE) * uses);
    if rent.price == 0 || rent.price == PRICELESS {
        return false;
    }
    let whole = bytes.max(whole);
    if (rent.lost.0, rent.lost.1) != (of, whole) {
        rent.lost = (of, whole, limits().lost(of, rent.pieces.as_ref(), whole));
    }
    rent.bytes.saturating_mul(rent.lost.2) / 1000 >= rent.price
}

/// Whether the MPI does one more call with a datatype that is not decoded, whose use is counted then.
fn is_use_left(rent: &mut Rent, of: Use, bytes: i64) -> bool {
    let before = rent.bytes;
    let due = has_paid(rent, bytes, Purpose { of, least: 0, whole: 0, uses: 1 })
        || (rent.price == 0 && rent.bytes >= LOOKED_AT);
    if due || !limits().leaves_whole {
        rent.bytes = before;
        return false;
    }
    rent.leave()
}

/// Whether the MPI does a call with this number of elements, as far as this thread remembers the datatype. If it always does, that is kept for all threads.
#[inline]
pub fn is_left(known: &mut Remembered, elements: i64, of: Use) -> bool {
    const NOTHING: [Sizes; Use::ALL.len()] = [Sizes::NONE; Use::ALL.len()];
    let (size, served) = match (known.is, &known.plan) {
        (Knowledge::Predefined, _) => (0, &NOTHING),
        (Knowledge::Decoded, Some(plan)) if plan.derived().is_none() => (0, &NOTHING),
        (Knowledge::Decoded, Some(plan)) => (plan.size, plan.all_served()),
        (Knowledge::Decoded, None) => return false,
        (Knowledge::NotDecoded, _) if known.rent.size == 0 => return false,
        (Knowledge::NotDecoded, _) => (known.rent.size, &known.rent.served),
    };
    let bytes = elements.checked_mul(size).filter(|bytes| served[of as usize].hold(*bytes));
    if bytes.is_none() {
        kept::keep(known.datatype(), size, served);
    }
    match (known.is, bytes) {
        (Knowledge::NotDecoded, Some(bytes)) => is_use_left(&mut known.rent, of, bytes),
        (Knowledge::NotDecoded, None) => known.rent.leave(),
        (_, bytes) => bytes.is_none(),
    }
}

/// The same as [`is_left`] of a datatype that this thread does not remember: one question to the MPI, where looking it up takes several.
pub fn is_left_by_size<A: Abi>(datatype: A::Handle, elements: i64, of: Use) -> bool {
    let Some(size) = size_of::<A>(datatype) else { return false };
    let (limits, Some(bytes)) = (limits(), elements.checked_mul(size)) else { return false };
    if limits.leaves_whole && bytes < LOOKED_AT_ONCE && is_hardly_used::<A>(datatype, bytes) {
        return true;
    }
    let left = !limits.any()[of as usize].hold(bytes);
    if left {
        kept::keep(datatype.word(), size, limits.any());
    }
    left
}

/// Decodes a datatype, if the MPI accepts it, which it says by a send to no process. None if dtc cannot decode it, or if another thread is
/// decoding one.
#[cold]
fn buy<A: Abi>(datatype: A::Handle, communicator: A::Handle) -> Result<Option<PlanRef>, Refused> {
    if !is_ready::<A>() {
        return Ok(None);
    }
    // SAFETY: no element is sent, and nobody receives it. (MPI 4.1, 3.10)
    let accepted = unsafe { (pmpi::<A>().send)(null(), 0, datatype, A::CONSTANTS.proc_null, 0, communicator) };
    if accepted != MPI_SUCCESS {
        return Err(Refused(accepted));
    }
    plan::make::<A>(datatype);
    kept::forget(datatype.word());
    Ok(recall_anew::<A, _>(datatype, |known| known.plan.clone()).flatten())
}

/// The plan of a datatype of elements that the MPI cannot be given: decoded now if it is not. None if it is
/// predefined, or cannot be decoded.
///
/// # Errors
///
/// The MPI does not accept the datatype.
pub fn plan_now<A: Abi>(datatype: A::Handle, communicator: A::Handle) -> Result<Option<PlanRef>, Refused> {
    if datatype == A::handles().datatype_null {
        return Ok(None);
    }
    match recall::<A, _>(datatype, |known| (known.is, known.plan.clone())) {
        Some((Knowledge::NotDecoded, _)) => buy::<A>(datatype, communicator),
        Some((_, plan)) => Ok(plan),
        None => Ok(None),
    }
}

/// What elements are used for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose {
    /// The call.
    pub of: Use,
    /// Fewest packed bytes of a use that is counted.
    pub least: i64,
    /// Packed bytes of the call, if it has more elements than these.
    pub whole: i64,
    /// How many uses it counts as.
    pub uses: i64,
}

impl Purpose {
    /// A call with no other elements, which is counted if it is as large as one that dtc does.
    pub fn alone(of: Use) -> Purpose {
        Purpose { of, least: limits().smallest(of), whole: 0, uses: 1 }
    }
}

/// The plan of a datatype for a use of `elements` of them that the processor reaches. None if it is predefined, or as long as it is not
/// decoded.
///
/// # Errors
///
/// The MPI does not accept the datatype.
#[inline]
pub fn plan_of_use<A: Abi>(
    elements: i64,
    datatype: A::Handle,
    purpose: Purpose,
    communicator: A::Handle,
) -> Result<Option<PlanRef>, Refused> {
    let known = |known: &mut Remembered| (known.is != Knowledge::NotDecoded).then(|| known.plan.clone());
    match if_known::<A, _>(datatype, known).flatten() {
        Some(plan) => Ok(plan),
        None => plan_for_rent::<A>(elements, datatype, purpose, communicator),
    }
}

#[inline(never)]
fn plan_for_rent<A: Abi>(
    elements: i64,
    datatype: A::Handle,
    purpose: Purpose,
    communicator: A::Handle,
) -> Result<Option<PlanRef>, Refused> {
    if datatype == A::handles().datatype_null {
        return Ok(None);
    }
    let limits = limits();
    // What there is already, or whether to decode.
    let looked = recall::<A, _>(datatype, |known| {
        if known.is != Knowledge::NotDecoded {
            return Err(known.plan.clone());
        }
        let rent = &mut known.rent;
        if rent.is_stale() {
            rent.renew(size_of::<A>(datatype).unwrap_or(0), *limits.any());
        }
        let Some(bytes) = elements.checked_mul(rent.size).filter(|bytes| *bytes >= purpose.least) else {
            return Ok(false);
        };
        if rent.price == 0 && rent.bytes.saturating_add(bytes.saturating_mul(purpose.uses)) >= LOOKED_AT {
            estimate::<A>(datatype, rent);
        }
        Ok(has_paid(rent, bytes, purpose) || !limits.leaves_whole)
    });
    match looked {
        Some(Err(plan)) => Ok(plan),
        Some(Ok(true)) => buy::<A>(datatype, communicator),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_subarrays_end_with_the_first_dimension_that_is_not_whole() {
        const C: c_int = 56;
        const FORTRAN: c_int = 57;
        // Dimensions, sizes, parts, starts, order.
        let piece = |integers: &[c_int]| piece_of_subarray(integers, FORTRAN);
        assert_eq!(piece(&[2, 516, 516, 512, 512, 2, 2, C]), Some(512));
        assert_eq!(piece(&[3, 9, 8, 7, 2, 3, 7, 0, 0, 0, C]), Some(21));
        assert_eq!(piece(&[3, 9, 8, 7, 2, 3, 7, 0, 0, 0, FORTRAN]), Some(2));
        assert_eq!(piece(&[3, 9, 8, 7, 9, 8, 6, 0, 0, 0, FORTRAN]), Some(9 * 8 * 6));
        assert_eq!(piece(&[2, 5, 6, 5, 6, 0, 0, C]), Some(i64::MAX), "contiguous");
        assert_eq!((piece(&[]), piece(&[2, 5, 6, 5])), (None, None));
    }
}
