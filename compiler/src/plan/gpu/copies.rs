//! Calls as strided copies, which copy engines make while the multiprocessors are busy.

use super::call::Call;
use super::plan::GpuPlan;
use crate::layout::Node;

/// The longest distance between rows that drivers take, in bytes.
const LONGEST_PITCH: u64 = 1 << 31;

/// Copies that one call is made of at most.
pub const MOST_COPIES: u64 = 256;

/// The bytes of a call as rows, planes of rows, and volumes of planes. The packed bytes follow each other without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Offset of the first byte from element 0, in bytes.
    pub offset: i64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Rows of a plane.
    pub rows: u64,
    /// Bytes from one row to the next; at least a row.
    pub pitch: u64,
    /// Planes of a copy.
    pub planes: u64,
    /// Bytes from one plane to the next; a multiple of `pitch`.
    pub plane_pitch: u64,
    /// How many copies there are.
    pub copies: u64,
    /// Bytes from one to the next; may be negative.
    pub copy_pitch: i64,
}

impl Copies {
    /// Packed bytes of one of the copies.
    pub fn copy_bytes(&self) -> u64 {
        self.row_bytes * self.rows * self.planes
    }
}

/// Some copies of what is below, and bytes from one to the next.
#[derive(Clone, Copy)]
struct CopyLevel {
    count: u64,
    stride: i64,
}

impl GpuPlan {
    /// The copies of at most three dimensions that move a call of whole elements; nothing where the layout is no such nest,
    /// or needs more than [`MOST_COPIES`].
    ///
    /// # Example
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::{Call, GpuPlan};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 256 x byte\n  %1 = stream 64 x 1024 of %0\n  root %1\n}";
    /// let copies = GpuPlan::new(&Layout::parse(text)?).copies(&Call::whole(16384)).unwrap();
    /// assert_eq!((copies.row_bytes, copies.rows, copies.pitch, copies.copies), (256, 64, 1024, 1));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn copies(&self, call: &Call) -> Option<Copies> {
        let size = self.layout().size();
        if size == 0 || !call.first.is_multiple_of(size) || !call.bytes.is_multiple_of(size) {
            return None;
        }
        let extent = self.layout().extent();
        let elements = CopyLevel { count: call.bytes / size, stride: extent };
        let first = i64::try_from(call.first / size).ok()?.checked_mul(extent)?;
        let mut offset = self.layout().root().offset.checked_add(first)?;
        // From the elements down to the rows.
        let mut levels = vec![elements];
        let mut at = self.layout().root().node;
        let row_bytes = loop {
            match self.layout().node(at) {
                Node::Dense { count, kind } => break count * kind.size(),
                Node::Stream { count, stride, child } => {
                    levels.push(CopyLevel { count: *count, stride: *stride });
                    offset = offset.checked_add(child.offset)?;
                    at = child.node;
                }
                _ => return None,
            }
        };
        levels.retain(|level| level.count > 1);
        let mut nest = join(&levels);
        let (rows, pitch) =
            take(&mut nest, |level| level.stride >= row_bytes as i64 && level.stride < LONGEST_PITCH as i64)
                .map_or((1, row_bytes), |level| (level.count, level.stride as u64));
        let above = (rows * pitch) as i64;
        let whole_pitches = |level: &CopyLevel| level.stride >= above && level.stride % pitch as i64 == 0;
        let (planes, plane_pitch) =
            take(&mut nest, whole_pitches).map_or((1, rows * pitch), |level| (level.count, level.stride as u64));
        let (copies, copy_pitch) = match nest.as_slice() {
            [] => (1, 0),
            [level] => (level.count, level.stride),
            _ => return None,
        };
        (copies <= MOST_COPIES).then_some(Copies {
            offset,
            row_bytes,
            rows,
            pitch,
            planes,
            plane_pitch,
            copies,
            copy_pitch,
        })
    }
}

/// The innermost of some levels, if it is of a kind.
fn take(levels: &mut Vec<CopyLevel>, is: impl Fn(&CopyLevel) -> bool) -> Option<CopyLevel> {
    levels.pop_if(|level| is(level))
}

/// The levels, of which some may go on where the one below ends: the elements of a count mostly.
fn join(levels: &[CopyLevel]) -> Vec<CopyLevel> {
    let mut joined: Vec<CopyLevel> = Vec::with_capacity(levels.len());
    for &level in levels {
        match joined.last_mut() {
            Some(above) if i128::from(level.count) * i128::from(level.stride) == i128::from(above.stride) => {
                *above = CopyLevel { count: above.count * level.count, stride: level.stride };
            }
            _ => joined.push(level),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{Copies, GpuPlan};
    use crate::layout::Layout;
    use crate::plan::gpu::Call;

    fn plan(text: &str) -> GpuPlan {
        GpuPlan::new(&crate::canonicalise(&Layout::parse(text).unwrap()).layout)
    }

    /// Every byte of the copies, in packed order.
    fn bytes(copies: &Copies) -> Vec<i64> {
        let mut all = Vec::new();
        for copy in 0..copies.copies as i64 {
            for plane in 0..copies.planes {
                for row in 0..copies.rows {
                    let at = copies.offset
                        + copy * copies.copy_pitch
                        + (plane * copies.plane_pitch + row * copies.pitch) as i64;
                    all.extend(at..at + copies.row_bytes as i64);
                }
            }
        }
        all
    }

    #[test]
    fn copies_are_the_bytes_of_the_walker() {
        let nests = [
            "layout lb 0 extent 40 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 10 of %0\n  root 2: %1\n}",
            "layout lb 0 extent 100 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 10 of %0\n  root %1\n}",
            "layout lb 0 extent 100 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 5 of %0\n  %2 = stream 3 x 30 of %1\n  root %2\n}",
            "layout lb 0 extent 99 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 5 of %0\n  %2 = stream 3 x 33 of %1\n  root %2\n}",
            "layout lb 0 extent 7 {\n  %0 = dense 7 x byte\n  root %0\n}",
            "layout lb 0 extent 9 {\n  %0 = dense 7 x byte\n  root %0\n}",
            "layout lb 0 extent -90 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 10 of %0\n  root %1\n}",
        ];
        for text in nests {
            let layout = Layout::parse(text).unwrap();
            for (first, count) in [(0, 1), (0, 3), (2, 2)] {
                let size = layout.size();
                let call = Call { memory: 0, packed: 0, first: first * size, bytes: count * size };
                let copies = plan(text).copies(&call).expect(text);
                let expected: Vec<i64> = (first..first + count)
                    .flat_map(|element| {
                        let shift = element as i64 * layout.extent();
                        layout.walk().flat_map(move |piece| {
                            (0..piece.bytes() as i64).map(move |byte| shift + piece.offset + byte)
                        })
                    })
                    .collect();
                assert_eq!(bytes(&copies), expected, "{text}\n{copies:?}");
                assert!(copies.pitch >= copies.row_bytes && copies.plane_pitch.is_multiple_of(copies.pitch));
            }
        }
    }

    #[test]
    fn other_calls_are_no_copies() {
        let list = "layout lb 0 extent 99 {\n  %0 = runs [(0 3) (10 5) (30 1)] x byte\n  root %0\n}";
        assert_eq!(plan(list).copies(&Call::whole(9)), None);
        let rows = "layout lb 0 extent 40 {\n  %0 = dense 3 x byte\n  %1 = stream 4 x 10 of %0\n  root %1\n}";
        assert_eq!(plan(rows).copies(&Call::whole(11)), None);
        let backwards = "layout lb 0 extent 40 {\n  %0 = dense 1 x byte\n  %1 = stream 999 x -10 of %0\n  root %1\n}";
        assert_eq!(plan(backwards).copies(&Call::whole(999)), None);
    }
}
