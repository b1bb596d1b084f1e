//! What the tests of several forms share.
#![allow(dead_code, reason = "every test binary uses a part")]

pub mod documents;

use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds, TypeBuilder};

/// A datatype as a list of nodes, with equal predefined types as one node: what every written form keeps.
pub type Shape = Vec<(Constructor, Option<GivenBounds>, Vec<usize>)>;

/// The shape of a datatype: children first, in the order in which a walk from the root meets them.
pub fn shape(datatype: &Datatype) -> Shape {
    let nodes = datatype.nodes();
    let (mut shape, mut numbers): (Shape, Vec<Option<usize>>) = (Vec::new(), vec![None; nodes.len()]);
    let mut steps = vec![datatype];
    while let Some(&node) = steps.last() {
        let place = nodes.place(node);
        let waiting: Vec<&Datatype> =
            node.children().iter().filter(|child| numbers[nodes.place(child)].is_none()).collect();
        if numbers[place].is_none() && !waiting.is_empty() {
            steps.extend(waiting.into_iter().rev());
            continue;
        }
        steps.pop();
        if numbers[place].is_some() {
            continue;
        }
        let children = node.children().iter().filter_map(|child| numbers[nodes.place(child)]).collect();
        let entry = (node.constructor().clone(), node.given(), children);
        let named = matches!(entry.0, Constructor::Named(_));
        let known = if named { shape.iter().position(|other| *other == entry) } else { None };
        numbers[place] = Some(known.unwrap_or_else(|| {
            shape.push(entry);
            shape.len() - 1
        }));
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
