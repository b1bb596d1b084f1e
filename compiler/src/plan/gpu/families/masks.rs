//! Short listed runs close to each other, packed in the order of memory: unpacked sector by sector, by masks of memory.

use super::pieces::{Pieces, each_run};
use super::{Generic, Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Grid, KernelList, KernelText, LINE, SECTOR, Structure, Tuning, Units, WARP, signed,
};
use minijinja::context;
use std::fmt;

/// A kernel that unpacks short runs byte by byte in the order of memory, which masks tell. Unpacks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MasksKernel;

/// Bytes of memory at least of a record: of less, groups that are not full cost too much.
const LEAST_SPAN: u64 = 8 * Masks::GROUP;

/// Runs of a record, each behind the one before, whose bytes masks tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masks {
    /// The node of a record.
    pub record: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// Offset in memory of its first byte.
    pub low: i64,
    /// Bytes of memory from its first byte to its last.
    span: u64,
}

impl Structure for Masks {}

impl Masks {
    /// Bytes of memory of a group, which a warp unpacks: a mask for each lane.
    const GROUP: u64 = WARP * SECTOR;

    /// Words of 16 bytes of shared memory that hold the packed bytes of a group, which may begin inside of one.
    const STAGE_WORDS: u64 = Masks::GROUP / 16 + 1;

    /// The same, with 8 bytes for each sector.
    const WARP_WORDS: u64 = Masks::STAGE_WORDS + WARP / 2;

    /// Bytes of shared memory of a block.
    fn shared_bytes(threads: u32) -> u32 {
        (u64::from(threads) / WARP * Masks::WARP_WORDS * 16) as u32
    }

    /// Groups of bytes of memory that a record touches, wherever in a line it begins.
    fn groups(&self) -> u64 {
        (self.span + LINE - 1).div_ceil(Masks::GROUP)
    }

    /// The masks of a record, of 32 bytes of memory each from `low` on; and for every group the packed bytes in front of it. Masks of a
    /// line without bytes go before all: where a record begins inside a line, the masks of its sectors are shifted.
    fn lists(&self, layout: &Layout) -> [Vec<u32>; 2] {
        let mut masks = vec![0u32; (self.groups() * WARP + LINE / SECTOR) as usize];
        each_run(layout, Edge { offset: 0, node: self.record }, &mut |offset, length| {
            let (mut at, mut rest) = ((offset - self.low) as u64 + LINE, length);
            while rest > 0 {
                let bits = rest.min(SECTOR - at % SECTOR);
                masks[(at / SECTOR) as usize] |= u32::MAX >> (SECTOR - bits) << (at % SECTOR);
                at += bits;
                rest -= bits;
            }
        });
        let count = |group: &[u32]| group.iter().map(|mask| mask.count_ones()).sum::<u32>();
        let before = masks[(LINE / SECTOR) as usize..].chunks(WARP as usize).scan(0, |before, group| {
            let own = *before;
            *before += count(group);
            Some(own)
        });
        let before = before.collect();
        [masks, before]
    }
}

/// Finds out whether listed runs are packed in the order of memory, close to each other.
fn find(analysis: &Analysis) -> Option<Masks> {
    let &Pieces { record, size, ascending, .. } = analysis.found()?;
    let (measure, tuning) = (analysis.layout.measure(record), &analysis.tuning.masks);
    let span = u64::try_from(measure.high.checked_sub(measure.low)?).ok()?;
    let runs = measure.runs;
    let touched = runs.saturating_mul(SECTOR - 1).saturating_add(size);
    // Runs below 8 bytes go by single bytes otherwise, which is as fast where a sector has less than one of them.
    let dense = size >= runs.saturating_mul(tuning.min_run) || runs.saturating_mul(SECTOR) >= span;
    let short = size < runs.saturating_mul(tuning.max_run);
    let close = span >= LEAST_SPAN && touched >= span / 8 * tuning.touched_eighths;
    (ascending && dense && short && close).then_some(Masks { record, size, low: measure.low, span })
}

/// Serves unpacks of odd runs.
pub(super) fn admits(query: &Query<'_>) -> Option<MasksKernel> {
    let many = query.call.bytes >= query.tuning().masks.min_bytes;
    (query.unpacks() && query.analysis.has::<Masks>() && query.word < 4 && many).then_some(MasksKernel)
}

impl KernelFamily for MasksKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<MasksKernel> {
        if query.unpacks() && query.analysis.has::<Masks>() { vec![MasksKernel] } else { Vec::new() }
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.masks.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let masks = instance.analysis.found::<Masks>()?;
        let grid = Grid::new(Units::Touched, masks.size, u64::from(instance.threads) / WARP);
        Some(Grid { share: masks.groups(), ..grid })
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        Some(Masks::shared_bytes(instance.threads))
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        instance.may_prefetch() && !instance.analysis.whole_sectors
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let masks = instance.analysis.found::<Masks>()?;
        let [list, befores] = masks.lists(&instance.analysis.layout).map(KernelList::Numbers);
        let values = context! {
            size => masks.size, low => signed(masks.low), groups => masks.groups(), group => Masks::GROUP,
            line => LINE, stage_words => Masks::STAGE_WORDS, warp_words => Masks::WARP_WORDS,
        };
        let lists = vec![("masks", list), ("befores", befores)];
        let outer = AddressFunction::Records { record: masks.record, size: masks.size };
        // More registers leave fewer threads.
        let own_threads = self.threads(instance.analysis.tuning, instance.direction, instance.capped);
        let resident_blocks = instance.analysis.tuning.masks.resident_threads / own_threads;
        Some(KernelText { values, lists, resident_blocks, ..KernelText::new("masks", 1, vec![outer]) })
    }

    fn generic(&self, _query: &Query<'_>) -> Generic {
        Generic::Lines
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes of short runs by masks, in the order of memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::gpu::GpuPlan;

    /// The masks of a layout of runs `(offset, length)`.
    fn masks_of(runs: &[(i64, u64)]) -> Option<(Masks, Layout)> {
        let runs: Vec<String> = runs.iter().map(|(offset, length)| format!("({offset} {length})")).collect();
        let text = format!("layout lb 0 extent 100000 {{\n  %0 = runs [{}] x byte\n  root %0\n}}", runs.join(" "));
        let plan = GpuPlan::regular(Layout::parse(&text).expect(&text));
        plan.found().map(|masks: &Masks| (*masks, plan.layout().clone()))
    }

    #[test]
    fn masks_tell_the_bytes_of_each_sector() {
        let runs: Vec<(i64, u64)> = (0..1000).map(|at| (5 + at * 10, 3 + at as u64 % 2)).collect();
        let (masks, layout) = masks_of(&runs).expect("masks");
        let [list, before] = masks.lists(&layout);
        // Four masks of a line, then runs at 0, 10, 20 and 30 from the first byte on.
        assert_eq!(list[..5], [0, 0, 0, 0, 0b11 << 30 | 0b111 << 20 | 0b1111 << 10 | 0b111]);
        let bytes: u32 = list.iter().map(|mask| mask.count_ones()).sum();
        assert_eq!(u64::from(bytes), masks.size);
        // 103 runs begin in the first 1,024 bytes, the last with 3 of its bytes there.
        assert_eq!(before[..2], [0, 51 * 4 + 52 * 3]);
    }

    #[test]
    fn runs_in_another_order_or_far_apart_have_none() {
        let close = |at: i64| (at * 10, 3 + at as u64 % 2);
        assert!(masks_of(&(0..1000).map(close).collect::<Vec<_>>()).is_some());
        assert!(masks_of(&(0..1000).map(|at| close(at ^ 1)).collect::<Vec<_>>()).is_none());
        assert!(masks_of(&(0..1000).map(|at| (at * 90, 9 + at as u64 % 2)).collect::<Vec<_>>()).is_none());
        // Less memory than a few groups.
        assert!(masks_of(&(0..700).map(close).collect::<Vec<_>>()).is_none());
    }
}
