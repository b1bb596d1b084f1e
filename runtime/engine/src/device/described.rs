//! Long lists as they were described, on devices: for the first calls of types whose canonical form takes longer than moving them.
//!
//! Codes make a list for one message, and never use it again. Its offsets are uploaded as they were described, and generic kernels
//! move it. Canonical form, hash and the tables that compiled kernels search are made in the background, once a type was used again.

use super::device_type::DeviceType;
use super::state::{DEVICES, DeviceState};
use crate::shape::Shape;
use dtc_compiler::layout::Layout;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// List entries of a description from which on its first calls on a device move it as it is. The canonical form of fewer takes less
/// than 20 us (Zen 4).
const LONG: u64 = 256;

/// Calls on devices that a type is moved as described for, where no thread makes its canonical form. By then generic kernels, which
/// take up to twice as long as compiled ones, have cost as much as making it does.
const CALLS: u32 = 8;

/// A type as described on the devices that it was used on.
#[derive(Default)]
pub(crate) struct UncommittedOnDevices {
    devices: OnceLock<Box<[OnceLock<Arc<DeviceType>>; DEVICES]>>,
    calls: AtomicU32,
}

/// What a call on a device does with a type that has no canonical form yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstUse {
    /// Moves what was described.
    Described,
    /// The same, and asks for the canonical form, which the background makes.
    DescribedAgain,
    /// Makes the canonical form.
    Canonical,
}

impl UncommittedOnDevices {
    /// Counts a call, for a description of so many list entries.
    pub(crate) fn count(&self, entries: u64, background: bool) -> FirstUse {
        if entries < LONG {
            return FirstUse::Canonical;
        }
        // Nobody asks after the canonical form is there, so the counter cannot wrap.
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 => FirstUse::Described,
            1 if background => FirstUse::DescribedAgain,
            CALLS.. if !background => FirstUse::Canonical,
            _ => FirstUse::Described,
        }
    }

    /// The type on a device.
    pub(crate) fn on(&self, state: &Arc<DeviceState>, layout: &Layout, shape: Shape) -> &Arc<DeviceType> {
        let device = state.device.info().ordinal as usize % DEVICES;
        let slot = &self.devices.get_or_init(Default::default)[device];
        slot.get_or_init(|| DeviceType::as_described(state.clone(), layout, shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_are_canonical_at_once() {
        assert_eq!(UncommittedOnDevices::default().count(LONG - 1, true), FirstUse::Canonical);
    }

    #[test]
    fn the_second_call_asks_the_background() {
        let calls = UncommittedOnDevices::default();
        let all: Vec<FirstUse> = (0..20).map(|_| calls.count(LONG, true)).collect();
        assert_eq!(all.iter().position(|&first| first == FirstUse::DescribedAgain), Some(1));
        assert_eq!(all.iter().filter(|&&first| first == FirstUse::Described).count(), 19);
    }

    #[test]
    fn without_a_thread_a_later_call_makes_the_canonical_form() {
        let calls = UncommittedOnDevices::default();
        let described = (0..20).take_while(|_| calls.count(LONG, false) == FirstUse::Described).count();
        assert_eq!(described, CALLS as usize);
    }
}
