//! Types that were packed before, found by how they were made.
//!
//! Applications create, use and free the same small types again and again. The engine knows equal layouts by their bytes,
//! which takes a microsecond to find out; that two types were made in the same way is found out in a tenth of it. Types that
//! were made in the same way share one description, too, so that their packs are counted together.
#![expect(clippy::disallowed_types, reason = "locks are only tried")]

use crate::types::{Form, Type};
use dtc_runtime::{Committed, UncommittedPlan};
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// How many types are kept.
const SLOTS: usize = 256;

/// Types that are made with more words are not kept.
const WORDS: usize = 96;

/// How a type was made, parents before children, in as many words as needed.
pub(crate) struct Recipe {
    words: SmallVec<[i64; WORDS]>,
    /// Of the words. Only speed depends on how well it spreads.
    hash: u64,
}

/// What is known of the types that were made in one way.
#[derive(Clone)]
pub(crate) enum CacheEntry {
    /// They were packed a few times.
    Described(Arc<UncommittedPlan>),
    /// They were packed often.
    Committed(Committed),
}

struct Slot {
    words: [i64; WORDS],
    length: usize,
    known: Option<CacheEntry>,
}

impl Slot {
    const EMPTY: Slot = Slot { words: [0; WORDS], length: 0, known: None };
}

/// Slots are only tried: in a forked child a slot may stay locked for ever.
static KNOWN: [Mutex<Slot>; SLOTS] = [const { Mutex::new(Slot::EMPTY) }; SLOTS];

/// The hash of the recipe that a slot holds: other recipes need not look into the slot, whose lines are seldom in the cache.
static HELD: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

/// The hash of the last recipe that was asked for and not kept. A description is kept when its recipe comes again: the memory of
/// those that never do is used again at once.
static REQUESTED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

impl Recipe {
    /// How a type was made; nothing if that takes too many words.
    pub(crate) fn of(root: &Type) -> Option<Recipe> {
        let mut recipe = Recipe { words: SmallVec::new(), hash: 0 };
        let mut waiting: SmallVec<[&Type; 16]> = smallvec![root];
        while let Some(each) = waiting.pop() {
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
                // Every type adds a word at least.
                if waiting.len() == WORDS {
                    return None;
                }
                waiting.push(child);
                next += 1;
            }
        }
        Some(recipe)
    }

    fn add(&mut self, words: &[i64]) -> Option<()> {
        if self.words.len() + words.len() > WORDS {
            return None;
        }
        self.words.extend_from_slice(words);
        let mix = |hash: u64, &word: &i64| (hash.rotate_left(5) ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = words.iter().fold(self.hash, mix);
        Some(())
    }

    fn slot(&self) -> usize {
        (self.hash >> 32) as usize % SLOTS
    }

    /// What is known of types that are made in this way. A slot that another thread has is as good as empty.
    pub(crate) fn find(&self) -> Option<CacheEntry> {
        // The lock orders what is found; the hashes only say whether to look.
        if HELD[self.slot()].load(Ordering::Relaxed) != self.hash {
            return None;
        }
        let slot = match KNOWN[self.slot()].try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if slot.words[..slot.length] == self.words[..] { slot.known.clone() } else { None }
    }

    /// Keeps a description, if one was offered for the recipe before.
    pub(crate) fn offer(&self, described: &Arc<UncommittedPlan>) {
        if REQUESTED[self.slot()].swap(self.hash, Ordering::Relaxed) == self.hash {
            self.keep(CacheEntry::Described(described.clone()));
        }
    }

    /// Keeps what is known, in the place of what was known of this or another type.
    pub(crate) fn keep(&self, known: CacheEntry) {
        let old = match KNOWN[self.slot()].try_lock() {
            Ok(mut slot) => {
                slot.words[..self.words.len()].copy_from_slice(&self.words);
                slot.length = self.words.len();
                HELD[self.slot()].store(self.hash, Ordering::Relaxed);
                slot.known.replace(known)
            }
            Err(_) => None,
        };
        // Types are freed without the lock.
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::{hindexed, hvector, resized, structure};
    use crate::types::Shared;

    #[test]
    fn recipes_tell_types_apart() {
        // SAFETY: handles of builtins.
        let [int, short] = [14, 16].map(|handle| unsafe { Shared::from_handle(handle) });
        let made = |stride, last: &Shared| {
            let rows = hvector(3, 2, stride, int.clone()).unwrap();
            let list = hindexed(&[1, 2], &[0, 8], rows).unwrap();
            resized(structure(&[1, 1], &[0, 99], [list, last.clone()]).unwrap(), 0, 512).unwrap()
        };
        let words = |of: &Type| Recipe::of(of).unwrap().words.to_vec();
        assert_eq!(words(&made(16, &short)), words(&made(16, &short)));
        assert_ne!(words(&made(16, &short)), words(&made(24, &short)));
        assert_ne!(words(&made(16, &short)), words(&made(16, &int)));
        let long = hindexed(&[1; 99], &std::array::from_fn::<_, 99, _>(|at| (at * at) as i64), int).unwrap();
        assert!(Recipe::of(&long).is_none());
    }

    #[test]
    fn what_was_kept_is_found() {
        // SAFETY: the handle of a builtin.
        let made = || hvector(3, 2, 12_345, unsafe { Shared::from_handle(14) }).unwrap();
        let recipe = Recipe::of(&made()).unwrap();
        assert!(recipe.find().is_none());
        assert!(made().described().unwrap().is_some());
        assert!(recipe.find().is_none());
        let second = made();
        let described = second.described().unwrap().unwrap();
        assert!(matches!(recipe.find(), Some(CacheEntry::Described(found)) if std::ptr::eq(&*found, described)));
        assert!(std::ptr::eq(made().described().unwrap().unwrap(), described));
        let first = made().committed().unwrap().type_hash();
        assert!(matches!(recipe.find(), Some(CacheEntry::Committed(found)) if found.type_hash() == first));
        assert!(made().described().unwrap().is_none());
        assert_eq!(made().committed().unwrap().type_hash(), first);
    }
}
