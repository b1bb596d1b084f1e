//! The cache of entries by type hash: least recently used, over reference counts.

use crate::entry::Entry;
use dtc_compiler::layout::TypeHash;
use std::collections::HashMap;
use std::sync::Arc;

/// What the cache may hold beside what is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

struct Slot {
    entry: Arc<Entry>,
    used: u64,
    bytes: usize,
}

/// Entries that are in use, and the most recently used ones that are not.
pub(crate) struct Cache {
    slots: HashMap<TypeHash, Slot>,
    caps: Caps,
    bytes: usize,
    clock: u64,
    /// Evict when the table has grown to this: twice what the last eviction left, so that its cost is amortised.
    next_eviction: usize,
}

impl Cache {
    pub(crate) fn new(caps: Caps) -> Cache {
        Cache { slots: HashMap::new(), caps, bytes: 0, clock: 0, next_eviction: caps.entries.max(1) }
    }

    pub(crate) fn get(&mut self, hash: &TypeHash) -> Option<Arc<Entry>> {
        self.clock += 1;
        let slot = self.slots.get_mut(hash)?;
        slot.used = self.clock;
        Some(slot.entry.clone())
    }

    pub(crate) fn insert(&mut self, entry: &Arc<Entry>) {
        self.clock += 1;
        let bytes = entry.bytes();
        let slot = Slot { entry: entry.clone(), used: self.clock, bytes };
        self.bytes += bytes;
        if let Some(old) = self.slots.insert(entry.hash, slot) {
            self.bytes -= old.bytes;
        }
        if self.slots.len() > self.next_eviction || self.bytes > self.caps.bytes {
            self.evict();
        }
    }

    /// Drops the least recently used entries that nobody holds, down to half of the caps.
    fn evict(&mut self) {
        let mut idle: Vec<(u64, TypeHash, usize)> = self
            .slots
            .iter()
            .filter(|(_, slot)| Arc::strong_count(&slot.entry) == 1)
            .map(|(hash, slot)| (slot.used, *hash, slot.bytes))
            .collect();
        idle.sort_unstable_by_key(|&(used, ..)| std::cmp::Reverse(used));
        let (mut kept, mut kept_bytes) = (0, 0);
        for (_, hash, bytes) in idle {
            if kept < self.caps.entries / 2 && kept_bytes + bytes <= self.caps.bytes / 2 {
                kept += 1;
                kept_bytes += bytes;
            } else if let Some(slot) = self.slots.remove(&hash) {
                self.bytes -= slot.bytes;
            }
        }
        self.next_eviction = self.caps.entries.max(self.slots.len() * 2);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}
