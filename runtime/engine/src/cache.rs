//! The cache of types by their hashes: recently used ones, over reference counts.

use crate::cached_type::CachedType;
use dtc_compiler::layout::TypeHash;
use std::collections::HashMap;
use std::sync::Arc;

/// Limits of the unused types that the cache keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) types: usize,
    pub(crate) bytes: usize,
}

/// Slots that the sweep visits at each insertion.
const VISITS: usize = 8;

struct CacheSlot {
    cached: Arc<CachedType>,
    bytes: usize,
    /// Insertions into the cache before the type was last looked up.
    used: u64,
    /// Whether the type had another owner when the sweep last visited the slot.
    in_use: bool,
}

/// Types that are in use, and recently used ones that are not.
///
/// A CLOCK sweep visits eight slots at each insertion, so that every insertion costs the same, however many types are alive. It
/// notes which types are in use. While the others are beyond the caps, it drops those of them that were not looked up during as
/// many insertions as the caps have types. At most an eighth of all slots have changed since the sweep's last visit.
pub(crate) struct Cache {
    places: HashMap<TypeHash, usize>,
    slots: Vec<CacheSlot>,
    /// The slot that the sweep visits next.
    next_visited: usize,
    insertions: u64,
    caps: Caps,
    /// Types without another owner at the sweep's last visit, and their bytes.
    idle: Caps,
}

impl Cache {
    pub(crate) fn new(caps: Caps) -> Cache {
        let idle = Caps { types: 0, bytes: 0 };
        Cache { places: HashMap::new(), slots: Vec::new(), next_visited: 0, insertions: 0, caps, idle }
    }

    pub(crate) fn get(&mut self, hash: &TypeHash) -> Option<Arc<CachedType>> {
        let slot = &mut self.slots[*self.places.get(hash)?];
        slot.used = self.insertions;
        Some(slot.cached.clone())
    }

    pub(crate) fn insert(&mut self, cached: &Arc<CachedType>) {
        self.insertions += 1;
        let slot = CacheSlot { cached: cached.clone(), bytes: cached.bytes(), used: self.insertions, in_use: true };
        match self.places.get(&cached.hash) {
            // Another type with the hash: it is known as in use, whatever the sweep has noted of the one before.
            Some(&place) => {
                self.note(place, true);
                self.slots[place] = slot;
            }
            None => {
                self.places.insert(cached.hash, self.slots.len());
                self.slots.push(slot);
            }
        }
        for _ in 0..VISITS.min(self.slots.len()) {
            self.visit();
        }
    }

    /// How many insertions ago an idle cached type was last looked up at most, if it is kept.
    fn longest_idle(&self) -> u64 {
        let Caps { types, bytes } = self.idle;
        let fitting = match bytes > self.caps.bytes {
            true => (types as u128 * self.caps.bytes as u128 / bytes as u128) as usize,
            false => usize::MAX,
        };
        fitting.min(self.caps.types) as u64
    }

    /// Notes whether a cached type is in use, drops it if it is not, was idle for long, and too many are idle, and goes on.
    fn visit(&mut self) {
        let place = if self.next_visited < self.slots.len() { self.next_visited } else { 0 };
        let Some(slot) = self.slots.get(place) else { return };
        let in_use = Arc::strong_count(&slot.cached) > 1;
        self.note(place, in_use);
        self.next_visited = place + 1;
        let full = self.idle.types > self.caps.types || self.idle.bytes > self.caps.bytes;
        let age = self.insertions - self.slots[place].used;
        if full && !in_use && age > self.longest_idle() {
            // As if it were in use, it counts no more as idle.
            self.note(place, true);
            let dropped = self.slots.swap_remove(place);
            self.places.remove(&dropped.cached.hash);
            if let Some(moved) = self.slots.get(place) {
                self.places.insert(moved.cached.hash, place);
            }
            self.next_visited = place;
        }
    }

    fn note(&mut self, place: usize, in_use: bool) {
        let slot = &mut self.slots[place];
        let bytes = slot.bytes;
        match (std::mem::replace(&mut slot.in_use, in_use), in_use) {
            (true, false) => {
                self.idle = Caps { types: self.idle.types + 1, bytes: self.idle.bytes + bytes };
            }
            (false, true) => {
                self.idle = Caps { types: self.idle.types - 1, bytes: self.idle.bytes - bytes };
            }
            _ => {}
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}
