//! Types that were committed before, found by how they were made.
//!
//! Applications create, use and free the same small types again and again. The engine knows equal layouts by their bytes,
//! which takes a microsecond to find out; that two types were made in the same way is found out in a tenth of it.
#![expect(clippy::disallowed_types, reason = "locks are only tried")]

use crate::types::{Form, Type};
use dtc_runtime::Committed;
use std::sync::{Mutex, TryLockError};

/// How many types are kept.
const SLOTS: usize = 256;

/// Types that are made with more words are not kept.
const WORDS: usize = 48;

/// How a type was made, parents before children, in as many words as needed.
#[derive(Clone, Copy)]
pub(crate) struct Recipe {
    words: [i64; WORDS],
    length: usize,
}

struct Slot {
    recipe: Recipe,
    committed: Committed,
}

/// Nobody waits for a slot: in a forked child one may be locked for ever.
static KNOWN: [Mutex<Option<Box<Slot>>>; SLOTS] = [const { Mutex::new(None) }; SLOTS];

impl Recipe {
    /// How a type was made; nothing if that takes too many words.
    pub(crate) fn of(root: &Type) -> Option<Recipe> {
        let mut recipe = Recipe { words: [0; WORDS], length: 0 };
        let mut waiting = [root; WORDS];
        let mut count = 1;
        while count > 0 {
            count -= 1;
            let each = waiting[count];
            match &each.form {
                Form::Builtin(builtin) => recipe.add(&[0, builtin.handle() as i64])?,
                Form::Strided { count, blocklength, stride, .. } => {
                    recipe.add(&[1, *count as i64, *blocklength as i64, *stride])?;
                }
                Form::Blocks { blocklength, displacements, .. } => {
                    recipe.add(&[2, *blocklength as i64, displacements.len() as i64])?;
                    recipe.add(displacements)?;
                }
                Form::Listed { blocklengths, displacements, .. } => {
                    recipe.add(&[3, displacements.len() as i64])?;
                    recipe.add(blocklengths)?;
                    recipe.add(displacements)?;
                }
                Form::Struct { parts } => {
                    recipe.add(&[4, parts.len() as i64])?;
                    parts.iter().try_for_each(|part| recipe.add(&[part.blocklength, part.displacement]))?;
                }
                Form::Resized { .. } | Form::Dup { .. } => recipe.add(&[5, each.shape.lb, each.shape.extent()])?,
            }
            let mut next = 0;
            while let Some(child) = each.form.child(next) {
                *waiting.get_mut(count)? = child;
                (count, next) = (count + 1, next + 1);
            }
        }
        Some(recipe)
    }

    fn add(&mut self, words: &[i64]) -> Option<()> {
        let end = self.length + words.len();
        self.words.get_mut(self.length..end)?.copy_from_slice(words);
        self.length = end;
        Some(())
    }

    fn words(&self) -> &[i64] {
        &self.words[..self.length]
    }

    fn slot(&self) -> &'static Mutex<Option<Box<Slot>>> {
        // Only speed depends on how well this spreads.
        let mix = |hash: u64, &word: &i64| (hash.rotate_left(5) ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = self.words().iter().fold(0, mix);
        &KNOWN[(hash >> 32) as usize % SLOTS]
    }

    /// The type that was committed when one was made in this way. A slot that another thread has is as good as empty.
    pub(crate) fn find(&self) -> Option<Committed> {
        let slot = match self.slot().try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        slot.as_ref().filter(|slot| slot.recipe.words() == self.words()).map(|slot| slot.committed.clone())
    }

    /// Keeps a type, in the place of another one.
    pub(crate) fn keep(self, committed: Committed) {
        if let Ok(mut slot) = self.slot().try_lock() {
            *slot = Some(Box::new(Slot { recipe: self, committed }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::{hindexed, hvector, resized, structure};
    use crate::shared::Shared;

    #[test]
    fn recipes_tell_types_apart() {
        // SAFETY: handles of builtins.
        let [int, short] = [14, 16].map(|handle| unsafe { Shared::from_handle(handle) });
        let made = |stride, last: &Shared| {
            let rows = hvector(3, 2, stride, int.clone()).unwrap();
            let list = hindexed(&[1, 2], &[0, 8], rows).unwrap();
            resized(structure(&[1, 1], &[0, 99], [list, last.clone()]).unwrap(), 0, 512).unwrap()
        };
        let words = |of: &Type| Recipe::of(of).unwrap().words().to_vec();
        assert_eq!(words(&made(16, &short)), words(&made(16, &short)));
        assert_ne!(words(&made(16, &short)), words(&made(24, &short)));
        assert_ne!(words(&made(16, &short)), words(&made(16, &int)));
        let long = hindexed(&[1; 60], &std::array::from_fn::<_, 60, _>(|at| (at * at) as i64), int).unwrap();
        assert!(Recipe::of(&long).is_none());
    }

    #[test]
    fn what_was_kept_is_found() {
        // SAFETY: the handle of a builtin.
        let made = || hvector(3, 2, 12_345, unsafe { Shared::from_handle(14) }).unwrap();
        let recipe = Recipe::of(&made()).unwrap();
        assert!(recipe.find().is_none());
        let first = made().committed().unwrap().type_hash();
        assert_eq!(recipe.find().unwrap().type_hash(), first);
        assert_eq!(made().committed().unwrap().type_hash(), first);
    }
}
