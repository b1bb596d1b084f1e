//! Values with their indices.

#[cfg(target_arch = "x86_64")]
use super::extended::Extended;
use super::value::{Ordered, Value, each_array};

/// The order of indices.
pub(super) trait Index: Ordered {}

impl Index for i32 {}
impl Index for f32 {}
impl Index for f64 {}

/// A value and its index, packed without padding.
#[derive(Clone, Copy)]
pub(super) struct ValueAndIndex<V, I> {
    value: V,
    index: I,
}

impl<V: Ordered, I: Index> ValueAndIndex<V, I> {
    /// The packed pair if its value is better, else that of memory; the lower index if the values are equal.
    #[inline(always)]
    pub(super) fn or_better(self, packed: Self, better: impl Fn(V, V) -> bool) -> Self {
        if better(packed.value, self.value) {
            packed
        } else if packed.value.equals(self.value) && packed.index.less(self.index) {
            ValueAndIndex { index: packed.index, ..self }
        } else {
            self
        }
    }
}

macro_rules! pairs {
    ($($value:ty, $index:ty;)*) => { $(
        impl Value for ValueAndIndex<$value, $index> {
            #[inline(always)]
            fn each(memory: &mut [u8], packed: &[u8], combine: impl Fn(Self, Self) -> Self) {
                const VALUE: usize = size_of::<$value>();
                let read = |bytes: [u8; VALUE + size_of::<$index>()]| ValueAndIndex {
                    value: <$value>::from_ne_bytes(std::array::from_fn(|byte| bytes[byte])),
                    index: <$index>::from_ne_bytes(std::array::from_fn(|byte| bytes[VALUE + byte])),
                };
                each_array(memory, packed, |memory, packed| {
                    let ValueAndIndex { value, index } = combine(read(memory), read(packed));
                    let (value, index) = (value.to_ne_bytes(), index.to_ne_bytes());
                    std::array::from_fn(|byte| if byte < VALUE { value[byte] } else { index[byte - VALUE] })
                });
            }
        }
    )* };
}

pairs! {
    f32, i32;
    f64, i32;
    i64, i32;
    i32, i32;
    i16, i32;
    f32, f32;
    f64, f64;
}

#[cfg(target_arch = "x86_64")]
pairs! {
    Extended, i32;
}
