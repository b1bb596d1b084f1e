//! Descriptions that were committed lately, and their cached types.
//!
//! The hash of a type takes about 10 ns for each list entry. A program that makes the same list again is spared that: its description
//! is found by a sample, and compared with the one that is known, which takes less than a nanosecond an entry.

use crate::cached_type::CachedType;
use dtc_compiler::layout::Layout;
use std::collections::VecDeque;
use std::hash::RandomState;
use std::sync::{Arc, Weak};

/// List entries of a description from which on it is kept. The hash of fewer takes less than a microsecond.
const FEWEST_ENTRIES: u64 = 64;

/// Descriptions that are kept.
const MOST: usize = 64;

/// List entries of all that are kept, 16 bytes each at most: 64 MiB, as much as the cache keeps of types that are not in use.
const MOST_ENTRIES: u64 = 4 << 20;

struct Description {
    sample: u64,
    layout: Layout,
    cached: Weak<CachedType>,
}

/// The descriptions, the oldest first.
#[derive(Default)]
pub(crate) struct Descriptions {
    seed: RandomState,
    known: VecDeque<Description>,
    entries: u64,
}

impl Descriptions {
    /// What tells descriptions apart; nothing for short ones, which are not kept.
    pub(crate) fn seed(&self, lowered: &Layout) -> Option<RandomState> {
        (FEWEST_ENTRIES..=MOST_ENTRIES).contains(&lowered.entries()).then(|| self.seed.clone())
    }

    /// The layouts and cached types of a sample. They are compared without the lock.
    pub(crate) fn candidates(&self, sample: u64) -> Vec<(Layout, Weak<CachedType>)> {
        let same = self.known.iter().filter(|known| known.sample == sample);
        same.map(|known| (known.layout.clone(), known.cached.clone())).collect()
    }

    /// Keeps a description, and forgets the oldest where there are too many.
    pub(crate) fn insert(&mut self, sample: u64, layout: Layout, cached: &Arc<CachedType>) {
        self.entries += layout.entries();
        self.known.push_back(Description { sample, layout, cached: Arc::downgrade(cached) });
        while self.known.len() > MOST || self.entries > MOST_ENTRIES {
            let Some(oldest) = self.known.pop_front() else { return };
            self.entries -= oldest.layout.entries();
        }
    }
}
