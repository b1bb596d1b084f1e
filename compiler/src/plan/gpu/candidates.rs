//! Every kernel that may serve a call, also those that its plan does not choose: what searches and tests try.

use super::call::Call;
use super::choice::{WIDEST_SHIFT, cuts};
use super::cost::{self, Otherwise};
use super::granularity::alignment;
use super::{Family, GpuPlan, Variant};
use crate::plan::Direction;

impl GpuPlan {
    /// Every kernel that may serve a call; nothing where none may be compiled. Words have the shapes that the cost model gives them.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Direction, gpu::{Call, Family, GpuPlan}};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let call = Call::whole(32768);
    /// let candidates = plan.candidates(Direction::Pack, &call);
    /// assert!(candidates.contains(&plan.variant(Direction::Pack, &call)));
    /// assert!(candidates.iter().any(|candidate| candidate.family == Family::Gather));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn candidates(&self, direction: Direction, call: &Call) -> Vec<Variant> {
        if !self.allows() {
            return Vec::new();
        }
        let mut families = Vec::new();
        self.in_words(direction, call, &mut families);
        self.of_structure(direction, call, &mut families);
        families.into_iter().map(|family| self.indexed(direction, family, call)).collect()
    }

    /// Appends those that move words, or bytes of any run.
    fn in_words(&self, direction: Direction, call: &Call, families: &mut Vec<Family>) {
        let (memory, packed) = (alignment(call.memory), alignment(call.packed.wrapping_sub(call.first)));
        let runs = cost::Runs::of(self.layout());
        for word in [1, 2, 4, 8, 16] {
            let (in_memory, in_packed) = (word <= self.granularity.word().min(memory), word <= packed);
            if in_memory && in_packed {
                let shape = cost::shape(direction, word, &runs);
                let resident = cost::resident(word, call.bytes, Otherwise::Bytes).filter(|&resident| resident != shape);
                families.extend([Some(shape), resident].into_iter().flatten().map(|shape| Family::Words {
                    word,
                    shape,
                    cut: cuts(word, call),
                }));
            }
            let shifts = match direction {
                Direction::Pack => [4, 8].contains(&word) && !in_packed,
                Direction::Unpack => word >= 4,
            };
            if in_memory && shifts {
                families.push(Family::Shifted { word });
            }
        }
        families.push(if direction == Direction::Pack { Family::Gather } else { Family::Scatter });
    }

    /// Appends those that follow a structure which the layout has.
    fn of_structure(&self, direction: Direction, call: &Call, families: &mut Vec<Family>) {
        let (memory, packed) = (alignment(call.memory), alignment(call.packed.wrapping_sub(call.first)));
        let word = self.granularity.word().min(memory);
        let whole = [call.first, call.bytes].iter().all(|at| at.is_multiple_of(self.layout.size()));
        let packs = direction == Direction::Pack;
        if let Some(tiles) = self.tiles.as_ref().filter(|tiles| tiles.word <= word)
            && (tiles.word <= packed || tiles.word <= WIDEST_SHIFT)
        {
            families.push(Family::Tiles { shifted: tiles.word > packed });
        }
        if let Some(fields) = &self.fields {
            let (memory, packed) = fields.alignments(memory, packed);
            families.push(Family::Fields { memory, packed });
        }
        if let Some(columns) = self.columns.as_ref().filter(|_| whole) {
            families.push(Family::Columns { memory: columns.alignment(memory) });
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| groups.serves(memory)) {
            let (memory, packed) = groups.alignments(memory, packed);
            families.push(Family::Groups { memory, packed });
        }
        if self.pieces.is_some() {
            families.push(Family::Pieces);
            families.extend(packs.then_some(Family::Joined));
        }
        if packs {
            return;
        }
        families.extend(self.records.as_ref().map(|_| Family::Records));
        if self.masks.is_some() {
            families.extend([Family::Masks, Family::Lines]);
        }
        if self.disordered && whole && self.granularity.word() <= word.min(packed) {
            families.push(Family::Ordered { word });
        }
        families.extend(self.slots(call.memory, call.bytes).map(|(_, slots)| Family::Rows { slots }));
    }
}
