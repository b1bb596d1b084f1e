//! The cache of entries by type hash: recently used ones, over reference counts.

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

/// Slots that the hand visits at each insertion.
const VISITS: usize = 8;

struct Slot {
    entry: Arc<Entry>,
    bytes: usize,
    /// Found again since the hand was last here.
    found: bool,
    /// Held by somebody else when the hand was last here.
    in_use: bool,
}

/// Entries that are in use, and recently used ones that are not.
///
/// A hand goes round the slots, eight at each insertion: so every insertion costs the same, however many types are alive. It
/// notes which entries are in use. While the others are beyond the caps, it drops those that were not found again since its
/// last visit. What it does not know yet is at most an eighth of all slots.
pub(crate) struct Cache {
    places: HashMap<TypeHash, usize>,
    slots: Vec<Slot>,
    /// The slot that the hand visits next.
    hand: usize,
    caps: Caps,
    /// Entries that nobody else held when the hand was last there, and their bytes.
    idle: Caps,
}

impl Cache {
    pub(crate) fn new(caps: Caps) -> Cache {
        let idle = Caps { entries: 0, bytes: 0 };
        Cache { places: HashMap::new(), slots: Vec::new(), hand: 0, caps, idle }
    }

    pub(crate) fn get(&mut self, hash: &TypeHash) -> Option<Arc<Entry>> {
        let slot = &mut self.slots[*self.places.get(hash)?];
        slot.found = true;
        Some(slot.entry.clone())
    }

    pub(crate) fn insert(&mut self, entry: &Arc<Entry>) {
        let slot = Slot { entry: entry.clone(), bytes: entry.bytes(), found: false, in_use: true };
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

    /// Notes whether an entry is in use, drops it if it is idle, was not found again, and too many are idle, and goes on.
    fn visit(&mut self) {
        let place = if self.hand < self.slots.len() { self.hand } else { 0 };
        let Some(slot) = self.slots.get(place) else { return };
        let in_use = Arc::strong_count(&slot.entry) > 1;
        self.note(place, in_use);
        self.hand = place + 1;
        let full = self.idle.entries > self.caps.entries || self.idle.bytes > self.caps.bytes;
        if full && !in_use && !std::mem::take(&mut self.slots[place].found) {
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
