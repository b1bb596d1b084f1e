//! Size, bounds and runs of nodes, computed when they are interned.

use super::node::{Edge, Node, Run};

/// Properties of a node that need no look at its bytes. Offsets are in bytes from the node's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Packed bytes.
    pub size: u64,
    /// Lowest offset of a byte.
    pub low: i64,
    /// One past the highest offset of a byte.
    pub high: i64,
    /// Offset of the first byte in packed order.
    pub first: i64,
    /// One past the offset of the last byte in packed order.
    pub last: i64,
    /// Number of maximal runs: ranges of packed bytes that are consecutive in memory. Saturates at 2^64 - 1.
    pub runs: u64,
}

impl Measure {
    /// Measure of a node without bytes.
    pub(super) const EMPTY: Measure = Measure { size: 0, low: 0, high: 0, first: 0, last: 0, runs: 0 };

    fn dense(bytes: u64) -> Option<Measure> {
        let high = i64::try_from(bytes).ok()?;
        Some(Measure { size: bytes, low: 0, high, first: 0, last: high, runs: 1 })
    }

    /// Measure of the same bytes at another offset.
    pub(crate) fn shifted(self, offset: i64) -> Option<Measure> {
        Some(Measure {
            low: self.low.checked_add(offset)?,
            high: self.high.checked_add(offset)?,
            first: self.first.checked_add(offset)?,
            last: self.last.checked_add(offset)?,
            ..self
        })
    }

    /// Measure of these bytes followed by others.
    fn then(self, next: Measure) -> Option<Measure> {
        if self.size == 0 {
            return Some(next);
        }
        let joined = u64::from(self.last == next.first);
        Some(Measure {
            size: self.size.checked_add(next.size)?,
            low: self.low.min(next.low),
            high: self.high.max(next.high),
            first: self.first,
            last: next.last,
            runs: self.runs.saturating_add(next.runs) - joined,
        })
    }

    fn repeated(self, count: u64, stride: i64) -> Option<Measure> {
        let last_shift = i128::from(count - 1) * i128::from(stride);
        let last_shift = i64::try_from(last_shift).ok()?;
        let last = self.shifted(last_shift)?;
        let joined = if i128::from(self.first) + i128::from(stride) == i128::from(self.last) { count - 1 } else { 0 };
        let runs = u128::from(self.runs) * u128::from(count) - u128::from(joined);
        Some(Measure {
            size: i64::try_from(self.size.checked_mul(count)?).ok()? as u64,
            low: self.low.min(last.low),
            high: self.high.max(last.high),
            first: self.first,
            last: last.last,
            runs: u64::try_from(runs).unwrap_or(u64::MAX),
        })
    }

    /// Measure of these bytes at every offset of a list.
    fn listed(self, offsets: &[i64]) -> Option<Measure> {
        let (first, last) = (*offsets.first()?, *offsets.last()?);
        let bounds = |(low, high): (i64, i64), &offset: &i64| (low.min(offset), high.max(offset));
        let (lowest, highest) = offsets.iter().fold((first, first), bounds);
        // If the lowest and the highest fit, all sums between them do, and so do differences of two of them.
        let (lowest, highest) = (self.shifted(lowest)?, self.shifted(highest)?);
        let touching = self.last.wrapping_sub(self.first);
        let joined = offsets.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) == touching).count();
        let runs = u128::from(self.runs) * offsets.len() as u128 - joined as u128;
        Some(Measure {
            size: self.size.checked_mul(offsets.len() as u64)?,
            low: lowest.low,
            high: highest.high,
            first: self.first + first,
            last: self.last + last,
            runs: u64::try_from(runs).unwrap_or(u64::MAX),
        })
    }

    /// Measure of a list of runs of elements of `size` bytes.
    fn of_runs(runs: &[Run], size: u64) -> Option<Measure> {
        let (first, longest) = (runs.first()?.offset, i64::MAX as u64 / size);
        let (mut low, mut high, mut end) = (first, i64::MIN, None);
        let (mut total, mut joined, mut wrong) = (0u128, 0u64, false);
        // The loop has no early exit, so that each run of a long list costs a few instructions.
        for run in runs {
            let bytes = run.count.wrapping_mul(size);
            let (next, over) = run.offset.overflowing_add(bytes as i64);
            wrong |= over | (run.count == 0) | (run.count > longest);
            joined += u64::from(end == Some(run.offset));
            total += u128::from(bytes);
            low = low.min(run.offset);
            high = high.max(next);
            end = Some(next);
        }
        let size = u64::try_from(total).ok()?;
        (!wrong).then_some(Measure { size, low, high, first, last: end?, runs: runs.len() as u64 - joined })
    }

    /// Measure of a node whose children are measured. `None` if a number does not fit 64 bits, or if the node breaks a
    /// rule of [`Node`].
    pub(super) fn of(node: &Node, child_of: impl Fn(Edge) -> Measure) -> Option<Measure> {
        let edge = |edge: Edge| child_of(edge).shifted(edge.offset);
        let repeatable = |child: Edge| edge(child).filter(|measure| measure.size > 0);
        let measure = match node {
            Node::Dense { count, kind } => Measure::dense(count.checked_mul(kind.size())?)?,
            Node::Stream { count, stride, child } => {
                if *count == 0 {
                    return None;
                }
                repeatable(*child)?.repeated(*count, *stride)?
            }
            Node::Indexed { offsets, child } => repeatable(*child)?.listed(offsets)?,
            Node::Runs { runs, kind } => Measure::of_runs(runs, kind.size())?,
            Node::Record { parts } => {
                let mut all = Measure::EMPTY;
                for &part in parts.iter() {
                    let part = edge(part)?;
                    if part.size == 0 {
                        continue;
                    }
                    all = all.then(part)?;
                }
                all
            }
        };
        let allowed_empty = matches!(node, Node::Record { .. });
        let fits = i64::try_from(measure.size).is_ok() && measure.high.checked_sub(measure.low).is_some();
        (fits && (measure.size > 0 || allowed_empty)).then_some(measure)
    }
}
