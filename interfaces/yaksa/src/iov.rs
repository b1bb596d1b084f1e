//! I/O vectors: the contiguous segments of types, counted and written down.
//!
//! Segments are joined where they touch inside one element, and never across elements, so that a count of elements has a
//! whole multiple of the segments of one: MPICH divides. An array without gaps is one segment.

use crate::memory;
use crate::segmented::Segmented;
use crate::status::Status;
use crate::types::Type;

impl Type {
    /// How many segments `count` elements have; nothing if they do not fit 64 bits.
    pub(crate) fn segments(&self, count: u64) -> Option<u64> {
        if self.shape.is_contiguous() { Some(1) } else { count.checked_mul(self.shape.segments) }
    }

    fn segmented(&self) -> Result<&Segmented, Status> {
        let committed = self.committed()?;
        let _claim = if self.segmented.get().is_none() { Some(memory::for_entries(self.entries())?) } else { None };
        Ok(self.segmented.get_or_init(|| {
            let layout = committed.layout();
            debug_assert_eq!(layout.measure(layout.root().node).runs, self.shape.segments);
            Box::new(Segmented::new(layout))
        }))
    }

    /// How many leading segments of `count` elements have at most `max_bytes` bytes in all, and how many bytes those are.
    /// O(depth) for strided types, and O(log n) for lists.
    pub(crate) fn segments_within(&self, count: u64, max_bytes: u64) -> Result<(u64, u64), Status> {
        let segments = self.segments(count).ok_or(Status::Internal)?;
        let bytes = count.checked_mul(self.shape.size).ok_or(Status::Internal)?;
        if bytes <= max_bytes {
            return Ok((segments, bytes));
        }
        if self.shape.is_contiguous() {
            return Ok((0, 0));
        }
        let segmented = self.segmented()?;
        let within = segmented.index.segment_at(&segmented.positions, max_bytes).ok_or(Status::Internal)?;
        Ok((within, segmented.start_of(within)?))
    }

    /// Hands the segments of `count` elements to `take`, from number `skip` on, as their offset and length in bytes, until it
    /// refuses one. The first is found in O(depth) for strided types, and in O(log n) for lists.
    pub(crate) fn each_segment(
        &self,
        count: u64,
        skip: u64,
        mut take: impl FnMut(i64, u64) -> bool,
    ) -> Result<(), Status> {
        let total = self.segments(count).ok_or(Status::Internal)?;
        if skip >= total {
            return Ok(());
        }
        if self.shape.is_contiguous() {
            take(self.shape.true_lb, count.checked_mul(self.shape.size).ok_or(Status::Internal)?);
            return Ok(());
        }
        let segmented = self.segmented()?;
        let segments = segmented.positions.segments(segmented.start_of(skip)?);
        for segment in segments.take((total - skip) as usize) {
            if !take(segment.offset, segment.bytes) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::construct::{hindexed, hvector, resized, structure};
    use crate::types::{Shared, Type};

    fn builtin(handle: u64) -> Shared {
        // SAFETY: the handle of a builtin.
        unsafe { Shared::from_handle(handle) }
    }

    fn vector(of: &Type, count: u64, skip: u64, length: usize) -> Vec<(i64, u64)> {
        let mut entries = vec![];
        of.each_segment(count, skip, |offset, bytes| {
            let room = entries.len() < length;
            if room {
                entries.push((offset, bytes));
            }
            room
        })
        .unwrap();
        entries
    }

    #[test]
    fn pieces_of_a_vector_make_the_whole() {
        let list = hindexed(&[2, 1, 3, 1], &[40, 0, 4, 99], builtin(14)).unwrap();
        let rows = hvector(3, 1, 200, list).unwrap();
        let pairs = structure(&[1, 2], &[-16, 1000], [builtin(55), rows]).unwrap();
        let whole = vector(&pairs, 3, 0, usize::MAX);
        assert_eq!(whole.len() as u64, pairs.segments(3).unwrap());
        assert_eq!(whole.len(), 3 * (2 + 2 * 3 * 3));
        assert_eq!(whole[..5], [(-16, 2), (-12, 4), (1040, 8), (1000, 16), (1099, 4)]);
        for length in [1, 2, 7, 64] {
            let mut pieces = vec![];
            while pieces.len() < whole.len() {
                pieces.extend(vector(&pairs, 3, pieces.len() as u64, length));
            }
            assert_eq!(pieces, whole, "{length} at a time");
        }
        // In any order, too.
        for skip in (0..whole.len()).rev() {
            assert_eq!(vector(&pairs, 3, skip as u64, 2), whole[skip..whole.len().min(skip + 2)]);
        }
    }

    #[test]
    fn segments_are_counted_up_to_any_byte() {
        let list = hindexed(&[2, 1, 3, 1], &[40, 0, 4, 99], builtin(14)).unwrap();
        let rows = hvector(3, 1, 200, list).unwrap();
        let pairs = structure(&[1, 2], &[-16, 1000], [builtin(55), rows]).unwrap();
        let flush = hvector(2, 1, 4, builtin(14)).unwrap();
        for (of, count) in [(pairs, 3), (flush, 5), (resized(builtin(14), 0, 8).unwrap(), 7), (builtin(14), 0)] {
            let whole = vector(&of, count, 0, usize::MAX);
            for max_bytes in 0..=count * of.shape.size + 1 {
                let mut within = (0, 0);
                for &(_, bytes) in &whole {
                    if within.1 + bytes > max_bytes {
                        break;
                    }
                    within = (within.0 + 1, within.1 + bytes);
                }
                assert_eq!(of.segments_within(count, max_bytes).unwrap(), within, "{max_bytes} bytes");
            }
        }
    }

    #[test]
    fn an_array_without_gaps_is_one_segment() {
        assert_eq!(vector(&builtin(14), 7, 0, 9), [(0, 28)]);
        assert_eq!(vector(&builtin(14), 7, 1, 9), []);
        let moved = resized(hvector(2, 1, 4, builtin(14)).unwrap(), -4, 8).unwrap();
        assert_eq!((moved.segments(5), vector(&moved, 5, 0, 9)), (Some(1), vec![(0, 40)]));
        let spread = resized(builtin(14), 0, 8).unwrap();
        assert_eq!((spread.segments(2), vector(&spread, 2, 0, 9)), (Some(2), vec![(0, 4), (8, 4)]));
    }
}
