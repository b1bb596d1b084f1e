//! What addresses of nodes are multiples of.

use crate::description::{Bytes, Description, Form, NodeId, common_divisor};

/// Both buffers start at such an address; the drivers allocate them so.
const BUFFER_ALIGNMENT: Bytes = 64;

/// What the two addresses of a node are multiples of, at every place where the node occurs; 0 is "anything".
#[derive(Clone, Copy, Default)]
pub(super) struct Alignment {
    pub(super) memory: Bytes,
    pub(super) packed: Bytes,
}

/// Goes from the root down; parents stand behind their children, so one pass backwards sees all occurrences of a node
/// before the node itself.
pub(super) fn alignments(description: &Description) -> Vec<Alignment> {
    let mut alignments = vec![Alignment::default(); description.nodes.len()];
    let root = &description.nodes[description.root].facts;
    alignments[description.root] = Alignment {
        memory: common_divisor(common_divisor(BUFFER_ALIGNMENT, description.origin_bytes), root.extent()),
        packed: common_divisor(BUFFER_ALIGNMENT, root.size),
    };
    for id in (0..description.nodes.len()).rev() {
        let here = alignments[id];
        let mut occurs = |child: NodeId, memory: Bytes, packed: Bytes| {
            let there = &mut alignments[child];
            there.memory = common_divisor(there.memory, common_divisor(here.memory, memory));
            there.packed = common_divisor(there.packed, common_divisor(here.packed, packed));
        };
        let below = |child: NodeId| &description.nodes[child].facts;
        match &description.nodes[id].form {
            Form::Named(_) => {}
            Form::Wrapped(child) => occurs(*child, 0, 0),
            Form::Repeat { child, .. } | Form::List { child, .. } | Form::Grid { child, .. } => {
                occurs(*child, description.nodes[id].facts.own_step, below(*child).size);
            }
            Form::Struct(fields) => {
                let mut position = 0;
                for &(length, displacement, child) in fields {
                    let (extent, size) = if length > 1 { (below(child).extent(), below(child).size) } else { (0, 0) };
                    occurs(child, common_divisor(displacement, extent), common_divisor(position, size));
                    position += length.max(0) * below(child).size;
                }
            }
        }
    }
    alignments
}
