//! Kernels that serve every call for whole elements, with grids that a few numbers tell: for callers without a plan.

use super::call::Call;
use super::grid::Grid;
use super::plan::GpuPlan;
use super::sizes::{LINE, NARROW};
use super::variant::Variant;
use crate::plan::Direction;

/// Packed bytes of elements that are taken to be moved one at a time: arrays of 4,096 records, field by field, took 1.2 and 2.1 times as
/// long by the kernels for 4 MiB of them, on an H200.
const ALONE: u64 = 64 << 10;

/// A kernel for whole elements, and when it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeKernel {
    /// The kernel.
    pub variant: Variant,
    /// Bytes that divide the address of element 0 and that of the packed bytes: a power of two.
    pub alignment: u64,
    /// How many blocks it is launched with.
    pub grid: Grid,
}

impl GpuPlan {
    /// Kernels for whole elements: a call is served by the first whose alignment both of its addresses have, and the last serves
    /// all. Nothing for layouts that have no kernels. Kernels with narrow indices serve up to [`GpuPlan::whole_bytes`] bytes.
    ///
    /// `alignment`: what addresses are multiples of where they are not those of allocations, a power of two: that of the basic
    /// elements.
    pub fn whole(&self, direction: Direction, alignment: u64) -> Vec<WholeKernel> {
        if !self.allows() {
            return Vec::new();
        }
        let wide = self.layout().size() >= NARROW;
        let mut kernels: Vec<WholeKernel> = Vec::new();
        for alignment in [LINE, alignment, 1] {
            let size = self.layout().size();
            let bytes = if size >= ALONE { size } else { self.usual_bytes() };
            let call = Call { memory: alignment, packed: alignment, ..Call::whole(bytes) };
            let variant = Variant { wide, ..self.variant(direction, &call) };
            let Some(grid) = variant.family.kernel().grid(&self.instance(&variant, variant.threads())) else {
                continue;
            };
            match kernels.last_mut() {
                // The wider alignment gained nothing.
                Some(last) if last.variant == variant => last.alignment = alignment,
                _ => kernels.push(WholeKernel { variant, alignment, grid }),
            }
        }
        kernels
    }

    /// Packed bytes at most of a call that [`GpuPlan::whole`] serves, unless an element has more.
    pub fn whole_bytes() -> u64 {
        NARROW - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::text;
    use crate::{
        Pipeline,
        plan::gpu::{Family, MasksKernel},
    };

    /// Types of every family, with the alignment of their elements.
    const TYPES: [(&str, u64); 12] = [
        ("vector 100 3 5 double", 8),
        ("vector 4096 2 4 float", 4),
        ("hvector 101 7 -19 char", 1),
        ("hvector 300 9 24 char", 1),
        ("hvector 45 1 8 (vector 37 1 45 double)", 8),
        ("contiguous 72 (resized 0 8 (vector 64 1 72 double))", 8),
        ("resized 0 8 (vector 500 1 4000 double)", 8),
        ("indexed_block 3 [0, 50, 7, 31, 90, 12, 200, 4, 61, 140] int", 4),
        ("indexed [3@0, 1@9, 70@20, 2@7, 33@200, 5@100, 9@300, 1@15, 4@330, 6@400, 11@410] double", 8),
        ("indexed [13@0, 900@19, 70@2000, 2222@4000] char", 1),
        ("resized 0 120 (struct [3@0 float, 1@16 double, 1@24 int, 2@32 double, 7@50 short, 1@70 char])", 8),
        ("resized 0 4 (hvector 5 1 4000000 float)", 4),
    ];

    #[test]
    fn grids_are_those_of_plans() {
        let mut families = Vec::new();
        let close: Vec<String> = (0..900).map(|at| format!("{}@{}", 2 + at * at % 7, at * 12)).collect();
        let close = format!("indexed [{}] char", close.join(", "));
        for (notation, alignment) in TYPES.into_iter().chain([(close.as_str(), 1)]) {
            let pipeline = Pipeline::new(text::parse(notation).expect(notation));
            let plan = pipeline.gpu_plan();
            for direction in [Direction::Pack, Direction::Unpack] {
                let kernels = plan.whole(direction, alignment);
                assert_eq!(kernels.last().map(|kernel| kernel.alignment), Some(1), "{notation}");
                for WholeKernel { variant, alignment, grid } in kernels {
                    families.push(std::mem::discriminant(&variant.family));
                    for (count, lines) in [(1, 0), (2, 1), (31, 2), (1000, 3), (77777, 5)] {
                        let packed = (lines * LINE) + alignment * (lines * 7 % (LINE / alignment));
                        let bytes = plan.layout().size() * count;
                        let call = Call { memory: alignment, packed, ..Call::whole(bytes) };
                        let exact = u64::from(plan.blocks(&variant, &call).expect("a grid"));
                        let found = grid.blocks(packed, bytes);
                        let exactly = matches!(variant.family, Family::Tiles(_) | Family::Columns(_));
                        let more = if exactly { 0 } else { 1 };
                        assert!(
                            (exact..=exact + more).contains(&found),
                            "{count} {notation} {variant:?}: {found}, {exact}"
                        );
                    }
                }
            }
        }
        families.sort_by_key(|family| format!("{family:?}"));
        families.dedup();
        assert!(families.len() >= 9, "{families:?}");
        assert!(families.contains(&std::mem::discriminant(&Family::Masks(MasksKernel))));
    }
}
