//! Every constructor of MPI, from its contents: for callers that have them as `MPI_Type_get_contents` tells.

use super::{Type, dtc_type, give};
use crate::arguments::{self, Growing};
use crate::engine::dtc_engine;
use crate::handle;
use crate::memory;
use crate::status::{DTC_ERROR_TYPE, Failure, Outcome, answer};
use dtc_compiler::datatype::{Constructor, Datatype, Distribution, GivenBounds, Order, ReadArguments};
use dtc_runtime::Engine;
use std::ffi::c_int;
use std::sync::Arc;

/// `MPI_Type_dup`: no numbers.
pub const DTC_COMBINER_DUP: i32 = 1;
/// `MPI_Type_contiguous`: count.
pub const DTC_COMBINER_CONTIGUOUS: i32 = 2;
/// `MPI_Type_vector`: count, blocklength, stride.
pub const DTC_COMBINER_VECTOR: i32 = 3;
/// `MPI_Type_create_hvector`: count, blocklength; addresses: stride.
pub const DTC_COMBINER_HVECTOR: i32 = 4;
/// `MPI_Type_indexed`: count, blocklengths, displacements.
pub const DTC_COMBINER_INDEXED: i32 = 5;
/// `MPI_Type_create_hindexed`: count, blocklengths; addresses: displacements.
pub const DTC_COMBINER_HINDEXED: i32 = 6;
/// `MPI_Type_create_indexed_block`: count, blocklength, displacements.
pub const DTC_COMBINER_INDEXED_BLOCK: i32 = 7;
/// `MPI_Type_create_hindexed_block`: count, blocklength; addresses: displacements.
pub const DTC_COMBINER_HINDEXED_BLOCK: i32 = 8;
/// `MPI_Type_create_struct`: count, blocklengths; addresses: displacements; one type for each block.
pub const DTC_COMBINER_STRUCT: i32 = 9;
/// `MPI_Type_create_subarray`: ndims, sizes, subsizes, starts, order (`DTC_ORDER_...`).
pub const DTC_COMBINER_SUBARRAY: i32 = 10;
/// `MPI_Type_create_darray`: size, rank, ndims, gsizes, distributions (`DTC_DISTRIBUTE_...`), their arguments, psizes, order.
pub const DTC_COMBINER_DARRAY: i32 = 11;
/// `MPI_Type_create_resized`: addresses: lower bound, extent.
pub const DTC_COMBINER_RESIZED: i32 = 12;

/// The last axis of an array is contiguous.
pub const DTC_ORDER_C: i64 = 0;
/// The first axis of an array is contiguous.
pub const DTC_ORDER_FORTRAN: i64 = 1;

/// An axis in one block for each process; the argument is the length of a block.
pub const DTC_DISTRIBUTE_BLOCK: i64 = 0;
/// An axis in blocks that are dealt in turn; the argument is their length.
pub const DTC_DISTRIBUTE_CYCLIC: i64 = 1;
/// An axis that is not distributed.
pub const DTC_DISTRIBUTE_NONE: i64 = 2;
/// The default argument of a distribution: `MPI_DISTRIBUTE_DFLT_DARG`.
pub const DTC_DISTRIBUTE_DEFAULT: i64 = -1;

/// What the MPI knows of a type. MPIs disagree on bounds (MPI 4.1, 5.1.7): those given here replace the computed ones.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_facts {
    /// `sizeof(dtc_facts)`.
    pub size: i64,
    /// Lower bound in bytes.
    pub lb: i64,
    /// Extent in bytes.
    pub extent: i64,
    /// Packed bytes of one element, which must be right; -1 if it is not known.
    pub packed_size: i64,
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value.
unsafe impl Growing for dtc_facts {
    const DEFAULT: dtc_facts = dtc_facts { size: size_of::<dtc_facts>() as i64, lb: 0, extent: 0, packed_size: -1 };
    const NAME: &'static str = "dtc_facts";
}

/// The numbers of a constructor, taken one after the other.
struct Contents<'a> {
    integers: &'a [i64],
    addresses: &'a [i64],
    combiner: &'static str,
    /// Of its lists.
    length: i64,
}

impl<'a> Contents<'a> {
    /// The next numbers of a list: `integers` or `addresses`.
    fn take(&mut self, list: &str, argument: &str, count: i64) -> Outcome<&'a [i64]> {
        let numbers = if list == "integers" { &mut self.integers } else { &mut self.addresses };
        let (found, count) = (numbers.len(), arguments::length(self.combiner, count)?);
        let split = usize::try_from(count).ok().and_then(|count| numbers.split_at_checked(count));
        let (taken, rest) = split.ok_or_else(|| {
            // MPI's names say nothing of units.
            let expected = format_args!("{count} more for {}", argument.trim_end_matches("_bytes"));
            Failure::argument(&format!("{}.{list}", self.combiner), expected, found)
        })?;
        *numbers = rest;
        Ok(taken)
    }

    /// All of them were used.
    fn end(&self) -> Outcome {
        for (what, left) in [("integers", self.integers.len()), ("addresses", self.addresses.len())] {
            if left > 0 {
                return Err(Failure::argument(&format!("{}.{what}", self.combiner), "no more", left));
            }
        }
        Ok(())
    }
}

impl ReadArguments for Contents<'_> {
    type Error = Failure;

    fn length(&mut self, name: &'static str) -> Outcome {
        self.length = self.integer(name)?;
        Ok(())
    }

    fn integer(&mut self, name: &'static str) -> Outcome<i64> {
        Ok(self.take("integers", name, 1)?[0])
    }

    fn address(&mut self, name: &'static str) -> Outcome<i64> {
        Ok(self.take("addresses", name, 1)?[0])
    }

    fn integers(&mut self, name: &'static str) -> Outcome<Arc<[i64]>> {
        Ok(self.take("integers", name, self.length)?.into())
    }

    fn addresses(&mut self, name: &'static str) -> Outcome<Arc<[i64]>> {
        Ok(self.take("addresses", name, self.length)?.into())
    }

    fn order(&mut self, name: &'static str) -> Outcome<Order> {
        order(self.combiner, self.integer(name)?)
    }

    fn distributions(&mut self, _name: &'static str) -> Outcome<Vec<Distribution>> {
        let kinds = self.take("integers", "distribs", self.length)?;
        distributions(kinds, self.take("integers", "dargs", self.length)?)
    }
}

/// The order of axes, as an argument of a constructor.
pub(super) fn order(combiner: &str, number: i64) -> Outcome<Order> {
    match number {
        DTC_ORDER_C => Ok(Order::C),
        DTC_ORDER_FORTRAN => Ok(Order::Fortran),
        found => Err(Failure::argument(&format!("{combiner}.order"), "one of DTC_ORDER_", found)),
    }
}

/// How axes are distributed, from kinds and arguments of each.
pub(super) fn distributions(kinds: &[i64], lengths: &[i64]) -> Outcome<Vec<Distribution>> {
    let of = |(axis, (&kind, &length)): (usize, (&i64, &i64))| {
        let length = (length != DTC_DISTRIBUTE_DEFAULT).then_some(length);
        match kind {
            DTC_DISTRIBUTE_BLOCK => Ok(Distribution::Block(length)),
            DTC_DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(length)),
            DTC_DISTRIBUTE_NONE => Ok(Distribution::None),
            found => Err(Failure::argument(&format!("darray.distributions[{axis}]"), "one of DTC_DISTRIBUTE_", found)),
        }
    };
    kinds.iter().zip(lengths).enumerate().map(of).collect()
}

/// The constructor of a combiner with its numbers.
fn constructor(combiner: i32, integers: &[i64], addresses: &[i64]) -> Outcome<Constructor> {
    let unknown = || Failure::argument("combiner", "one of DTC_COMBINER_", combiner);
    // Those behind it are of types with index tables, which have no handle.
    let known = usize::try_from(combiner).ok().filter(|_| combiner <= DTC_COMBINER_RESIZED);
    let name = known.and_then(Constructor::name_of_number).ok_or_else(unknown)?;
    let mut contents = Contents { integers, addresses, combiner: name, length: 0 };
    let constructor = Constructor::read(name, &mut contents)?.ok_or_else(unknown)?;
    contents.end()?;
    Ok(constructor)
}

/// Makes a type by any constructor of MPI, from what `MPI_Type_get_contents` tells of it, every number in 64 bits: counts,
/// blocklengths and displacements in elements are integers, what MPI has in bytes are addresses. (MPI 4.1, 5.1.2 to 5.1.13)
///
/// `combiner`: `DTC_COMBINER_...`, which says what the numbers are.
/// `integers`: `n_integers` numbers in the order of the constructor's arguments.
/// `addresses`: `n_addresses` numbers in bytes.
/// `types`: the `n_types` children; they may be released right after, and need not be committed.
/// `facts`: what the MPI knows; null if the bounds shall be computed as the standard says.
/// `type`: receives the type.
///
/// `DTC_ERROR_HANDLE`: not an engine, or a child is not a type.
/// `DTC_ERROR_ARGUMENT`: an unknown combiner, order or distribution; too few or too many numbers; a pointer is null.
/// `DTC_ERROR_TYPE`: numbers that the constructor does not allow, or whose sizes and bounds leave 64 bits; facts that
/// contradict them.
///
/// # Safety
///
/// `engine` is null or an engine, the lists have the lengths that are given, the children are types, `facts` is null or leads to
/// `facts->size` bytes, and `type` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_create(
    engine: *const dtc_engine,
    combiner: i32,
    integers: *const i64,
    n_integers: i64,
    addresses: *const i64,
    n_addresses: i64,
    types: *const *const dtc_type,
    n_types: i64,
    facts: *const dtc_facts,
    r#type: *mut *mut dtc_type,
) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `integers` has `n_integers` entries, which no thread writes during the call (contract of this function).
        let integers = unsafe { arguments::list("integers", integers, n_integers)? };
        // SAFETY: `addresses` has `n_addresses` entries, which no thread writes during the call (contract of this
        // function).
        let addresses = unsafe { arguments::list("addresses", addresses, n_addresses)? };
        // SAFETY: `types` has `n_types` entries, which no thread writes during the call (contract of this function).
        let types = unsafe { arguments::list("types", types, n_types)? };
        let numbers =
            [n_integers, n_addresses, n_types].iter().fold(0u64, |sum, &each| sum.saturating_add(each.max(0) as u64));
        let _claim = memory::for_numbers(numbers)?;
        let constructor = constructor(combiner, integers, addresses)?;
        let mut children = Vec::with_capacity(types.len());
        for &child in types {
            // SAFETY: each entry of `types` is null or a live type, which the caller keeps during the call (contract of
            // this function).
            children.push(unsafe { handle::borrow(child)? });
        }
        // SAFETY: `facts` is not null, so it is readable for the size that it begins with (contract of this function).
        let facts = if facts.is_null() { None } else { Some(unsafe { arguments::read(facts)? }) };
        let made = checked(engine, constructor, &children, facts)?;
        // SAFETY: `type` is null or writable, or `give` refuses it as misaligned (contract of this function).
        unsafe { give(made, r#type) }
    })
}

/// A type made of others. With other bounds alone it is a basic type as its child is.
pub(super) fn made_of(
    engine: &Engine,
    constructor: Constructor,
    children: &[&Type],
    given: Option<GivenBounds>,
) -> Outcome<Type> {
    let bfloat = match (&constructor, children) {
        (Constructor::Dup | Constructor::Resized { .. }, [child]) => child.bfloat,
        _ => false,
    };
    let nodes = children.iter().map(|child| child.datatype().clone());
    Ok(Type { bfloat, ..Type::new(engine, Datatype::new(constructor, nodes, given)?) })
}

/// A type whose size is the one that the caller knows.
fn checked(engine: &Engine, constructor: Constructor, children: &[&Type], facts: Option<dtc_facts>) -> Outcome<Type> {
    let given = facts.map(|facts| GivenBounds { lb: facts.lb, extent: facts.extent });
    let made = made_of(engine, constructor, children, given)?;
    let size = made.datatype().facts().size;
    match facts.map(|facts| facts.packed_size) {
        Some(found) if found != -1 && found as u64 != size => {
            Err(Failure::new(DTC_ERROR_TYPE, format!("dtc_facts.packed_size: expected {size}, found {found}")))
        }
        _ => Ok(made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combiners_have_the_numbers_of_the_compiler() {
        for (combiner, name) in [
            (DTC_COMBINER_DUP, "dup"),
            (DTC_COMBINER_CONTIGUOUS, "contiguous"),
            (DTC_COMBINER_VECTOR, "vector"),
            (DTC_COMBINER_HVECTOR, "hvector"),
            (DTC_COMBINER_INDEXED, "indexed"),
            (DTC_COMBINER_HINDEXED, "hindexed"),
            (DTC_COMBINER_INDEXED_BLOCK, "indexed_block"),
            (DTC_COMBINER_HINDEXED_BLOCK, "hindexed_block"),
            (DTC_COMBINER_STRUCT, "struct"),
            (DTC_COMBINER_SUBARRAY, "subarray"),
            (DTC_COMBINER_DARRAY, "darray"),
            (DTC_COMBINER_RESIZED, "resized"),
        ] {
            assert_eq!(Constructor::name_of_number(combiner as usize), Some(name));
        }
        assert!(constructor(DTC_COMBINER_RESIZED + 1, &[0, 4, 4, 0], &[8]).is_err());
    }
}
