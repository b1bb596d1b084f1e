//! What the tests of several forms share.
#![allow(dead_code, reason = "every test binary uses a part")]

pub mod documents;

use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds, TypeBuilder, TypeId};
use std::collections::HashMap;

/// A datatype as a list of nodes, with equal predefined types as one node: what every written form keeps.
pub type Shape = Vec<(Constructor, Option<GivenBounds>, Vec<usize>)>;

/// The shape of a datatype: children first, in the order in which a walk from the root meets them.
pub fn shape(datatype: &Datatype) -> Shape {
    let mut shape: Shape = Vec::new();
    let mut numbers: HashMap<TypeId, usize> = HashMap::new();
    let mut steps = vec![datatype.root()];
    while let Some(&id) = steps.last() {
        if numbers.contains_key(&id) {
            steps.pop();
            continue;
        }
        let children = datatype.children(id).unwrap();
        let waiting: Vec<TypeId> = children.iter().copied().filter(|child| !numbers.contains_key(child)).collect();
        if !waiting.is_empty() {
            steps.extend(waiting.into_iter().rev());
            continue;
        }
        steps.pop();
        let node = datatype.node(id).unwrap();
        let entry = (node.constructor.clone(), node.given, children.iter().map(|child| numbers[child]).collect());
        let leaf = matches!(entry.0, Constructor::Named(_));
        let known = if leaf { shape.iter().position(|other| *other == entry) } else { None };
        numbers.insert(
            id,
            known.unwrap_or_else(|| {
                shape.push(entry);
                shape.len() - 1
            }),
        );
    }
    shape
}

/// A nest of `levels` types that alternate between a few kinds.
pub fn nest(levels: usize) -> Datatype {
    let mut types = TypeBuilder::new();
    let mut id = types.named(dtc_compiler::datatype::Predefined::INT);
    for level in 0..levels {
        id = match level % 4 {
            0 => types.dup(id).unwrap(),
            1 => types.contiguous(1, id).unwrap(),
            2 => types.structure(&[1], &[0], &[id]).unwrap(),
            _ => types.resized(0, 8, id).unwrap(),
        };
    }
    types.finish(id).unwrap()
}

/// Runs on a stack that any recursion over a deep type would leave.
pub fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}
