//! The opposite of the address function: which packed byte is at a place, for types that are loops around one another.

use super::outline::{NodeShape, Outline};
use super::text::Text;

/// Loops from the outside in, the first of them over elements.
pub(super) struct LoopNest {
    /// Where the first byte is, from the address of the type; not negative.
    origin: i64,
    /// Bytes of memory and packed bytes from one iteration to the next.
    loops: Vec<(i64, u64)>,
}

impl LoopNest {
    /// The loops of a type, if no iteration of any reaches into the memory of the next: then quotients tell the iterations apart.
    pub(super) fn of(outline: &Outline) -> Option<LoopNest> {
        let layout = outline.layout();
        let mut loops = vec![(layout.extent(), layout.size())];
        let mut counts = vec![1];
        let mut id = outline.root();
        let mut span = loop {
            match outline.shape(id) {
                NodeShape::Bytes(bytes) => break i64::try_from(bytes).ok()?,
                NodeShape::Repeat { count, stride, child } => {
                    loops.push((stride, outline.size(child)));
                    counts.push(i64::try_from(count).ok()?);
                    id = child;
                }
                NodeShape::Empty | NodeShape::Listed { .. } | NodeShape::Runs(_) | NodeShape::Parts(_) => return None,
            }
        };
        for (&(stride, _), count) in loops.iter().zip(counts).rev() {
            if stride < span {
                return None;
            }
            span = stride.checked_mul(count - 1)?.checked_add(span)?;
        }
        (outline.origin() >= 0).then_some(LoopNest { origin: outline.origin(), loops })
    }

    /// The function `position`.
    pub(super) fn position(&self, text: &mut Text) {
        text.line("template <typename Index>");
        text.function("static __device__ __forceinline__ Index position(Index place)");
        if self.origin != 0 {
            text.line(format_args!("place -= {};", self.origin));
        }
        let mut declared = false;
        for &(stride, size) in &self.loops {
            // Iterations that follow each other on both sides are no loop to tell apart.
            if i128::from(stride) == i128::from(size) {
                continue;
            }
            let quotient = if stride == 1 { "place".to_owned() } else { format!("place / {stride}") };
            let term = if size == 1 { quotient } else { format!("{quotient} * {size}") };
            text.line(if declared { format!("at += {term};") } else { format!("Index at = {term};") });
            text.line(format_args!("place %= {stride};"));
            declared = true;
        }
        text.line(if declared { "return at + place;" } else { "return place;" });
        text.close("}");
    }
}
