//! The cache of entries by type hash: recently used ones, over reference counts.

use crate::cached_type::Entry;
use dtc_compiler::layout::TypeHash;
use std::collections::HashMap;
use std::sync::Arc;

/// Limits of the unused entries that the cache keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

/// Slots that the hand visits at each insertion.
const VISITS: usize = 8;

struct Slot {
    entry: Arc<Entry>,
    bytes: usize,
    /// Insertions into the cache before it was last asked for.
    used: u64,
    /// Whether the entry had another owner at the hand's last visit.
    in_use: bool,
}

/// Entries that are in use, and recently used ones that are not.
///
/// A hand goes round the slots, eight at each insertion: so every insertion costs the same, however many types are alive. It
/// notes which entries are in use. While the others are beyond the caps, it drops those of them that were not asked for during as
/// many insertions as the caps have entries. At most an eighth of all slots have changed since the hand's last visit.
pub(crate) struct Cache {
    places: HashMap<TypeHash, usize>,
    slots: Vec<Slot>,
    /// The slot that the hand visits next.
    hand: usize,
    insertions: u64,
    caps: Caps,
    /// Entries without another owner at the hand's last visit, and their bytes.
    idle: Caps,
}

impl Cache {
    pub(crate) fn new(caps: Caps) -> Cache {
        let idle = Caps { entries: 0, bytes: 0 };
        Cache { places: HashMap::new(), slots: Vec::new(), hand: 0, insertions: 0, caps, idle }
    }

    pub(crate) fn get(&mut self, hash: &TypeHash) -> Option<Arc<Entry>> {
        let slot = &mut self.slots[*self.places.get(hash)?];
        slot.used = self.insertions;
        Some(slot.entry.clone())
    }

    pub(crate) fn insert(&mut self, entry: &Arc<Entry>) {
        self.insertions += 1;
        let slot = Slot { entry: entry.clone(), bytes: entry.bytes(), used: self.insertions, in_use: true };
        match self.places.get(&entry.hash) {
            // Another type with the hash: it is known as in use, whatever the hand has noted of the one before.
            Some(&place) => {
                self.note(place, true);
                self.slots[place] = slot;
            }
            None => {
                self.places.insert(entry.hash, self.slots.len());
                self.slots.push(slot);
            }
        }
        for _ in 0..VISITS.min(self.slots.len()) {
            self.visit();
        }
    }

    /// How many insertions ago an idle entry was last asked for at most, if it is kept.
    fn longest_idle(&self) -> u64 {
        let Caps { entries, bytes } = self.idle;
        let fitting = match bytes > self.caps.bytes {
            true => (entries as u128 * self.caps.bytes as u128 / bytes as u128) as usize,
            false => usize::MAX,
        };
        fitting.min(self.caps.entries) as u64
    }

    /// Notes whether an entry is in use, drops it if it is not, was idle for long, and too many are idle, and goes on.
    fn visit(&mut self) {
        let place = if self.hand < self.slots.len() { self.hand } else { 0 };
        let Some(slot) = self.slots.get(place) else { return };
        let in_use = Arc::strong_count(&slot.entry) > 1;
        self.note(place, in_use);
        self.hand = place + 1;
        let full = self.idle.entries > self.caps.entries || self.idle.bytes > self.caps.bytes;
        let age = self.insertions - self.slots[place].used;
        if full && !in_use && age > self.longest_idle() {
            // As if it were in use, it counts no more as idle.
            self.note(place, true);
            let dropped = self.slots.swap_remove(place);
            self.places.remove(&dropped.entry.hash);
            if let Some(moved) = self.slots.get(place) {
                self.places.insert(moved.entry.hash, place);
            }
            self.hand = place;
        }
    }

    fn note(&mut self, place: usize, in_use: bool) {
        let slot = &mut self.slots[place];
        let bytes = slot.bytes;
        match (std::mem::replace(&mut slot.in_use, in_use), in_use) {
            (true, false) => {
                self.idle = Caps { entries: self.idle.entries + 1, bytes: self.idle.bytes + bytes };
            }
            (false, true) => {
                self.idle = Caps { entries: self.idle.entries - 1, bytes: self.idle.bytes - bytes };
            }
            _ => {}
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}
