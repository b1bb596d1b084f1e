//! The operations.

use super::pair::{Index, ValueAndIndex};
use super::value::{Arithmetic, Bits, Ordered, Truth, Value};
use std::marker::PhantomData;

/// One operation on one element.
pub(super) trait Accumulate {
    /// Accumulates as many whole elements as both slices have.
    fn run(memory: &mut [u8], packed: &[u8]);
}

macro_rules! operations {
    ($($name:ident of $bound:ident: $memory:ident, $packed:ident => $result:expr;)*) => { $(
        pub(super) struct $name<T>(PhantomData<T>);

        impl<T: $bound> Accumulate for $name<T> {
            #[inline(always)]
            fn run(memory: &mut [u8], packed: &[u8]) {
                T::each(memory, packed, |$memory, $packed| $result);
            }
        }
    )* };
}

operations! {
    Sum of Arithmetic: memory, packed => memory.sum(packed);
    Product of Arithmetic: memory, packed => memory.product(packed);
    Min of Ordered: memory, packed => if packed.less(memory) { packed } else { memory };
    Max of Ordered: memory, packed => if memory.less(packed) { packed } else { memory };
    LogicalAnd of Truth: memory, packed => T::from_truth(memory.is_true() & packed.is_true());
    LogicalOr of Truth: memory, packed => T::from_truth(memory.is_true() | packed.is_true());
    LogicalXor of Truth: memory, packed => T::from_truth(memory.is_true() ^ packed.is_true());
    BitwiseAnd of Bits: memory, packed => memory.and(packed);
    BitwiseOr of Bits: memory, packed => memory.or(packed);
    BitwiseXor of Bits: memory, packed => memory.xor(packed);
}

pub(super) struct MinLoc<T>(PhantomData<T>);
pub(super) struct MaxLoc<T>(PhantomData<T>);

impl<V: Ordered, I: Index> Accumulate for MinLoc<ValueAndIndex<V, I>>
where
    ValueAndIndex<V, I>: Value,
{
    #[inline(always)]
    fn run(memory: &mut [u8], packed: &[u8]) {
        ValueAndIndex::each(memory, packed, |memory: ValueAndIndex<V, I>, packed| memory.or_better(packed, V::less));
    }
}

impl<V: Ordered, I: Index> Accumulate for MaxLoc<ValueAndIndex<V, I>>
where
    ValueAndIndex<V, I>: Value,
{
    #[inline(always)]
    fn run(memory: &mut [u8], packed: &[u8]) {
        ValueAndIndex::each(memory, packed, |memory: ValueAndIndex<V, I>, packed| {
            memory.or_better(packed, |one, other| other.less(one))
        });
    }
}
