//! Records with small gaps, one behind the other: their bytes are unpacked in the order of memory.

use super::cost;
use super::pieces::each_run;
use super::sizes::LINE;
use crate::layout::{Edge, Layout, Node, NodeId};

/// Records whose packed bytes a block brings to memory from shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// The node of a record.
    pub record: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// Offset in memory of its first byte.
    pub low: i64,
    /// Bytes from record to record in memory.
    pub stride: u64,
    /// Where each byte of the record is packed, by its offset from `low`.
    places: Vec<Option<u16>>,
}

impl Records {
    /// Records of a block.
    pub(crate) fn tile_records(&self) -> u64 {
        ((cost::RECORDS_TILE - LINE) / self.stride).max(1)
    }

    /// Packed bytes of a block.
    pub(crate) fn tile_bytes(&self) -> u64 {
        self.tile_records() * self.size
    }

    /// Bytes of shared memory of a block's packed bytes, which may begin inside of a word.
    pub(crate) fn stage_bytes(&self) -> u32 {
        (self.tile_bytes() + 16).next_multiple_of(16) as u32
    }

    /// Bytes of shared memory of a block: its packed bytes, and the list of places.
    pub(crate) fn shared_bytes(&self) -> u32 {
        self.stage_bytes() + (self.stride as u32 * 2).next_multiple_of(16)
    }

    /// Where each byte of a record is packed, by its offset from `low`; `u16::MAX` for those between fields.
    pub(crate) fn places(&self) -> Vec<u16> {
        self.places.iter().map(|place| place.unwrap_or(u16::MAX)).collect()
    }
}

/// Finds the records that a count of elements, or a stream without a seam, consists of.
pub(super) fn find(layout: &Layout, continues: bool) -> Option<Records> {
    let root = layout.root().node;
    let (record, stride) = match layout.node(root) {
        Node::Stream { stride, child, .. } if continues => (child.node, *stride),
        _ => (root, layout.extent()),
    };
    let measure = layout.measure(record);
    let stride = u64::try_from(stride).ok()?;
    let span = u64::try_from(measure.high.checked_sub(measure.low)?).ok()?;
    // Records of more bytes than they span have some of them twice, and may have any number of runs.
    if measure.runs < 2 || span > stride || measure.size > span || !cost::by_records(measure.size, stride) {
        return None;
    }
    let mut places = vec![None; stride as usize];
    let (mut packed, mut overlaps) = (0, false);
    each_run(layout, Edge { offset: 0, node: record }, &mut |offset, length| {
        for place in &mut places[(offset - measure.low) as usize..][..length as usize] {
            overlaps |= place.replace(packed).is_some();
            packed += 1;
        }
    });
    (!overlaps).then_some(Records { record, size: measure.size, low: measure.low, stride, places })
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::layout::Layout;

    #[test]
    fn records_that_overlap_without_end_are_none() {
        // Runs at 0 and 2 of one element, 10^10 times at one place.
        let text = "layout lb 0 extent 4 {\n  %0 = dense 1 x byte\n  %1 = stream 2 x 2 of %0\n
             %2 = stream 10000000000 x 0 of %1\n  root %2\n}";
        assert_eq!(find(&Layout::parse(text).unwrap(), false), None);
        let text = "layout lb 0 extent 4 {\n  %0 = dense 1 x byte\n  %1 = stream 2 x 2 of %0\n  root %1\n}";
        assert!(find(&Layout::parse(text).unwrap(), false).is_some());
    }
}
