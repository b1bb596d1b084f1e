//! One direction of an exchange between GPUs ([`direct`](super::direct)): its blocks, and where each lies in the memory that it is packed into.

use super::arguments::BlockArguments;
use super::neighbors::Edges;
use crate::abi::Abi;
use crate::memory::{Form, Moved, is_decoded, offset, place_of, span_of};
use crate::rent::plan_now;
use crate::segment::Space;
use std::ffi::c_int;

/// Blocks start at multiples of this.
const ALIGNMENT: i64 = 256;

/// A block: its process, where it lies in the memory that it is packed into, and its elements, if it has bytes.
pub struct FlowBlock {
    /// The rank.
    pub peer: c_int,
    /// The place, in bytes.
    pub place: i64,
    /// The elements.
    pub moved: Option<Moved>,
}

impl FlowBlock {
    /// Its packed bytes.
    pub fn bytes(&self) -> i64 {
        self.moved.as_ref().map_or(0, |moved| moved.bytes)
    }

    /// What it takes of the memory that it is packed into.
    pub fn taken(&self) -> i64 {
        (self.bytes() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
    }
}

/// One direction of a call.
#[derive(Default)]
pub struct Flow {
    /// In the order of processes.
    pub blocks: Vec<FlowBlock>,
    /// The GPU of all elements; none if there are none.
    pub device: Option<i32>,
    /// Packed bytes.
    pub bytes: i64,
    /// What they take.
    pub taken: i64,
}

impl Flow {
    /// Plans one direction; none if its blocks do not lie on one GPU, or cannot be packed by dtc.
    pub fn plan<A: Abi>(given: &BlockArguments<A>, edges: &Edges, communicator: A::Handle) -> Option<Flow> {
        let mut flow = Flow::default();
        for edge in edges {
            let moved = flow.moved_of(given, edge.at, communicator)?;
            let block = FlowBlock { peer: edge.peer, place: flow.taken, moved };
            flow.bytes += block.bytes();
            flow.taken += block.taken();
            flow.blocks.push(block);
        }
        Some(flow)
    }

    /// The elements of a block, none within if it has no bytes.
    fn moved_of<A: Abi>(
        &mut self,
        given: &BlockArguments<A>,
        at: usize,
        communicator: A::Handle,
    ) -> Option<Option<Moved>> {
        let (elements, datatype, memory) = (given.elements(at), given.datatype(at), given.memory_of(at));
        if elements == 0 {
            return Some(None);
        }
        if elements < 0 || datatype == A::handles().datatype_null {
            return None;
        }
        let plan = plan_now::<A>(datatype, communicator).ok()?;
        let span = span_of::<A>(elements, datatype)?;
        if span.bytes == 0 {
            return Some(None);
        }
        let lies = place_of(offset(memory, span.low));
        let here = self.device.is_none_or(|device| device == lies.device);
        if !is_decoded(plan.as_deref(), &span) || !lies.is_device() || !here {
            return None;
        }
        self.device = Some(lies.device);
        Moved::of(Form::Packed, plan.as_ref(), &span, memory, elements).map(Some)
    }

    /// The blocks of each process, which lie one behind the other.
    pub fn groups(&self) -> impl Iterator<Item = &[FlowBlock]> {
        self.blocks.chunk_by(|one, other| one.peer == other.peer)
    }
}

/// The blocks between this process and another one, together.
pub fn space_of(group: &[FlowBlock]) -> Space {
    Space {
        place: group.first().map_or(0, |block| block.place),
        bytes: group.iter().map(FlowBlock::bytes).sum(),
        taken: group.iter().map(FlowBlock::taken).sum(),
    }
}
