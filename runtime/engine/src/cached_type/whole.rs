//! The check of calls for whole elements.

use crate::memory::Room;
use crate::shape::Shape;
use dtc_compiler::plan::Target;

/// The numbers that calls for whole elements are checked against.
#[repr(C)]
pub(crate) struct WholeElements {
    /// Packed bytes of an element; more than any call has for a type whose uses are counted.
    size: u64,
    /// Maximum of packed bytes of a call for several elements.
    max_bytes: u64,
    /// Bytes that an element needs of a buffer before its origin and behind it, in all.
    span: u64,
    /// Bytes of these before the origin.
    before: u32,
    /// Bytes from one element to the next.
    extent: u32,
}

impl WholeElements {
    pub(super) fn new(shape: &Shape, is_counted: bool, target: &Target) -> WholeElements {
        let (low, high) = (shape.true_lb.min(0), shape.true_ub.max(0));
        let (before, extent) = (u32::try_from(low.unsigned_abs()), u32::try_from(shape.extent));
        WholeElements {
            size: if is_counted { u64::MAX } else { shape.size },
            // The functions for several elements use no non-temporal stores.
            max_bytes: if extent.is_ok() { target.non_temporal_bytes } else { 0 },
            span: if before.is_ok() { low.abs_diff(high) } else { u64::MAX },
            before: before.unwrap_or(0),
            extent: extent.unwrap_or(0),
        }
    }

    /// Packed bytes of `count` elements, if [`CachedType::dispatch`](super::CachedType::dispatch) serves a call for them that moves
    /// at most `room` bytes, fewer than `u64::MAX`.
    #[inline]
    pub(crate) fn bytes(&self, count: u64, room: u64) -> Option<u64> {
        let bytes = self.size.checked_mul(count)?;
        let max = if count == 1 { room } else { room.min(self.max_bytes) };
        // A call without bytes is not served: `bytes` wraps to the maximum.
        (bytes.wrapping_sub(1) < max).then_some(bytes)
    }

    /// Whether a buffer has every byte of `count` elements. False also where that takes more than these numbers to find out.
    #[inline]
    pub(crate) fn fits(&self, count: u64, room: Room) -> bool {
        let (length, origin) = (room.length as u64, room.origin as u64);
        let others = count.wrapping_sub(1).checked_mul(u64::from(self.extent));
        // The first byte has as many places as the buffer is longer than the elements.
        let places = others.and_then(|others| length.checked_sub(self.span.checked_add(others)?));
        places.is_some_and(|places| origin.wrapping_sub(u64::from(self.before)) <= places)
    }
}
