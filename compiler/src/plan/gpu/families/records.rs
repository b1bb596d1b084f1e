//! Records with small gaps, one behind the other: their bytes are unpacked in the order of memory.

use super::pieces::each_run;
use super::{Instance, KernelFamily, Query};
use crate::layout::{Edge, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Grid, KernelList, KernelText, LINE, Structure, Tuning, Units, signed,
};
use minijinja::context;
use std::fmt;

/// A kernel that unpacks records byte by byte in the order of memory, through shared memory. Unpacks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordsKernel;

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
    /// Records of a block.
    tile_records: u64,
}

impl Structure for Records {}

impl Records {
    /// Packed bytes of a block.
    fn tile_bytes(&self) -> u64 {
        self.tile_records * self.size
    }

    /// Bytes of shared memory of a block's packed bytes, which may begin inside of a word.
    fn stage_bytes(&self) -> u32 {
        (self.tile_bytes() + 16).next_multiple_of(16) as u32
    }

    /// Bytes of shared memory of a block: its packed bytes, and the list of places.
    fn shared_bytes(&self) -> u32 {
        self.stage_bytes() + (self.stride as u32 * 2).next_multiple_of(16)
    }

    /// Where each byte of a record is packed, by its offset from `low`; `u16::MAX` for those between fields.
    fn places(&self) -> Vec<u16> {
        self.places.iter().map(|place| place.unwrap_or(u16::MAX)).collect()
    }
}

/// Finds the records that a count of elements, or a stream without a seam, consists of.
fn find(analysis: &Analysis) -> Option<Records> {
    let Analysis { layout, continues, tuning: Tuning { records: tuning, .. }, .. } = analysis;
    let root = layout.root().node;
    let (record, stride) = match layout.node(root) {
        Node::Stream { stride, child, .. } if *continues => (child.node, *stride),
        _ => (root, layout.extent()),
    };
    let measure = layout.measure(record);
    let stride = u64::try_from(stride).ok()?;
    let span = u64::try_from(measure.high.checked_sub(measure.low)?).ok()?;
    // Records of more bytes than they span have some of them twice, and may have any number of runs.
    if measure.runs < 2 || span > stride || measure.size > span {
        return None;
    }
    // Few bytes are between fields.
    if stride > tuning.max_stride || measure.size.saturating_mul(2) < stride {
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
    let tile_records = ((tuning.tile_bytes - LINE) / stride).max(1);
    (!overlaps).then_some(Records { record, size: measure.size, low: measure.low, stride, places, tile_records })
}

/// Serves unpacks of runs that are short and odd: longer ones move by pieces, and aligned words as such.
pub(super) fn admits(query: &Query<'_>) -> Option<RecordsKernel> {
    let tuning = &query.tuning().records;
    let odd = query.word < 4 && query.analysis.runs.mean < tuning.max_run;
    let serves = query.unpacks() && query.analysis.has::<Records>() && odd && query.call.bytes >= tuning.min_bytes;
    serves.then_some(RecordsKernel)
}

impl KernelFamily for RecordsKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<RecordsKernel> {
        if query.unpacks() && query.analysis.has::<Records>() { vec![RecordsKernel] } else { Vec::new() }
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.records.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let records = instance.analysis.found::<Records>()?;
        Some(Grid::new(Units::Touched, records.size, records.tile_records))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        instance.analysis.found::<Records>().map(Records::shared_bytes)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let records = instance.analysis.found::<Records>()?;
        let (threads, Records { record, size, low, stride, tile_records, .. }) = (instance.threads, records);
        let values = context! {
            size, stride, low => signed(*low), records => tile_records,
            rounds => (records.tile_bytes() + 15).div_ceil(16).div_ceil(threads.into()),
            lines => (tile_records * stride + LINE - 1).div_ceil(4 * u64::from(threads)),
            stage_bytes => records.stage_bytes(),
        };
        let outer = AddressFunction::Records { record: *record, size: *size };
        let lists = vec![("table", KernelList::Shorts(records.places()))];
        Some(KernelText { values, lists, ..KernelText::new("records", 1, vec![outer]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records through shared memory, in the order of memory")
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::layout::Layout;
    use crate::plan::gpu::{Analysis, SM_90};

    #[test]
    fn records_that_overlap_without_end_are_none() {
        // Runs at 0 and 3 of one element, 10^10 times at one place.
        let text = "layout lb 0 extent 4 {\n  %0 = dense 1 x byte\n  %1 = stream 2 x 3 of %0\n
             %2 = stream 10000000000 x 0 of %1\n  root %2\n}";
        let found = |text: &str| find(&Analysis::new(Layout::parse(text).unwrap(), &SM_90));
        assert_eq!(found(text), None);
        let text = "layout lb 0 extent 4 {\n  %0 = dense 1 x byte\n  %1 = stream 2 x 3 of %0\n  root %1\n}";
        assert!(found(text).is_some());
    }
}
