//! Types as they were made, for their first packs: a layout straight from the tree, without the compiler.

use crate::known::{CacheEntry, Recipe};
use crate::memory;
use crate::status::Status;
use crate::types::{Form, Shared, Type};
use dtc_compiler::layout::{Edge, Layout};
use dtc_compiler::lower::{Child, Lowering};
use dtc_runtime::{UncommittedPlan, is_recording};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Types made of more types than this go to the compiler at once: they are told apart by looking at each.
const MOST_TYPES: usize = 32;

/// The types below one, as far as they are lowered. Without bytes there is nothing to lower.
type Lowered = SmallVec<[(*const Type, Option<Child>); 16]>;

impl Type {
    /// The type as it was made, unless it was committed, or one that was made in the same way was.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub(crate) fn described(&self) -> Result<Option<&UncommittedPlan>, Status> {
        if let Some(known) = self.described.get() {
            return Ok(Some(known));
        }
        // A recording knows committed types alone.
        if self.committed.get().is_some() || is_recording() {
            return Ok(None);
        }
        // A refusal is not kept: there may be memory later.
        let _claim = memory::for_entries(self.entries())?;
        Ok(self.describe())
    }

    fn describe(&self) -> Option<&UncommittedPlan> {
        let recipe = Recipe::of(self);
        let described = match recipe.as_ref().and_then(Recipe::find) {
            Some(CacheEntry::Committed(committed)) => {
                self.committed.get_or_init(|| Box::new(Some(committed)));
                return None;
            }
            Some(CacheEntry::Described(described)) => described,
            None => {
                let described = Arc::new(UncommittedPlan::new(self.layout()?));
                if let Some(recipe) = recipe {
                    recipe.offer(&described);
                }
                described
            }
        };
        Some(self.described.get_or_init(|| Box::new(described)))
    }

    /// The layout of a type that has bytes; nothing if it is made of too many types.
    fn layout(&self) -> Option<Layout> {
        let mut lowering = Lowering::new();
        let mut lowered = Lowered::new();
        let mut stack: SmallVec<[(&Type, usize); 16]> = smallvec![(self, 0)];
        while let Some((top, next)) = stack.last_mut() {
            let top = *top;
            if let Some(child) = top.form.child(*next) {
                *next += 1;
                if find(&lowered, child).is_none() {
                    if lowered.len() + stack.len() == MOST_TYPES {
                        return None;
                    }
                    stack.push((child, 0));
                }
                continue;
            }
            let edge = lower(top, &mut lowering, |child| find(&lowered, child).flatten());
            lowered.push((top, edge.map(|edge| Child { edge, extent: top.shape.extent() })));
            stack.pop();
        }
        let (_, root) = lowered.pop()?;
        let layout = lowering.finish(root, self.shape.lb, self.shape.extent());
        (layout.size() == self.shape.size && self.shape.size > 0).then_some(layout)
    }
}

fn find(lowered: &Lowered, child: &Shared) -> Option<Option<Child>> {
    lowered.iter().find(|(address, _)| *address == child.address()).map(|(_, child)| *child)
}

/// Where the bytes of a type are, from where those of its children are.
fn lower(each: &Type, lowering: &mut Lowering, known: impl Fn(&Shared) -> Option<Child>) -> Option<Edge> {
    match &each.form {
        Form::Builtin(builtin) => lowering.named(builtin.predefined()?),
        Form::Struct { parts } => {
            let blocks = parts.iter().map(|part| (part.blocklength, part.displacement, known(&part.child)));
            lowering.structure(blocks)
        }
        Form::Strided { count, blocklength, stride, child } => {
            lowering.strided(*count as i64, *blocklength as i64, (*stride).into(), known(child)?)
        }
        Form::Blocks { blocklength, displacements, child } => {
            lowering.equal_blocks(*blocklength as i64, displacements.iter().copied().collect(), known(child)?)
        }
        Form::Listed { blocklengths, displacements, child } => {
            lowering.listed(blocklengths, displacements.iter().copied(), known(child)?)
        }
        Form::Resized { child } | Form::Dup { child } => Some(known(child)?.edge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::{Order, hindexed, hindexed_block, hvector, resized, structure, subarray};

    fn builtin(handle: u64) -> Shared {
        // SAFETY: the handle of a builtin.
        unsafe { Shared::from_handle(handle) }
    }

    #[test]
    fn descriptions_mean_what_the_compiler_is_told() {
        let [int, short, pair] = [14, 16, 55].map(builtin);
        let rows = hvector(3, 2, 20, int.clone()).unwrap();
        let boxed = subarray(&[6, 5, 4], &[2, 3, 2], &[1, 2, 1], Order::Fortran, pair.clone()).unwrap();
        let fields = structure(&[2, 0, 1, 3], &[0, 7, 40, 64], [rows.clone(), int, pair, short.clone()]).unwrap();
        for made in [
            hindexed(&[1, 3, 2], &[0, 90, -40], rows.clone()).unwrap(),
            hindexed(&[1, 3, 2], &[0, 90, -40], short).unwrap(),
            hindexed_block(2, &[4, 100, 31], fields.clone()).unwrap(),
            hvector(4, 2, -300, fields).unwrap(),
            resized(boxed, -8, 4000).unwrap(),
            rows,
        ] {
            let layout = made.layout().unwrap();
            assert_eq!(layout.type_hash(), made.committed().unwrap().type_hash(), "{layout}");
        }
    }

    #[test]
    fn types_of_many_types_go_to_the_compiler() {
        let nest =
            |levels: i64| (0..levels).try_fold(builtin(14), |child, level| hvector(2, 1, 8 << level, child)).unwrap();
        assert!(nest(20).layout().is_some());
        assert!(nest(33).layout().is_none());
        assert!(nest(33).described().unwrap().is_none());
    }
}
