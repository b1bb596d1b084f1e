//! The runtime as a subject.
#![expect(unsafe_code, reason = "the calls on raw addresses are passed on")]

use super::Subject;
use dtc_compiler::datatype::Datatype;
use dtc_runtime::{Committed, Engine, Policy};

/// A type committed to the runtime.
#[derive(Clone)]
pub struct EngineSubject {
    name: String,
    /// The committed type.
    pub committed: Committed,
}

impl EngineSubject {
    /// Commits a type under a name for messages.
    pub fn new(engine: &Engine, name: &str, datatype: &Datatype) -> EngineSubject {
        let committed = engine.commit(datatype);
        EngineSubject { name: format!("{name}, {}", committed.tier()), committed }
    }
}

/// The engines that every type runs on: generic code alone; kernels for all; and kernels for those that gain, with thunks that
/// call leaves for the others.
pub fn engines() -> [(&'static str, Engine); 3] {
    [("generic", Policy::Off), ("compiled", Policy::Always), ("bound", Policy::Eager)]
        .map(|(name, policy)| (name, Engine::builder().policy(policy).build()))
}

impl Subject for EngineSubject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String> {
        self.committed.pack(source, origin, count, offset, packed).map_err(|error| error.to_string())
    }

    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String> {
        self.committed.unpack(packed, offset, destination, origin, count).map_err(|error| error.to_string())
    }

    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize {
        // SAFETY: the caller's promise is the one asked for.
        unsafe { self.committed.pack_raw(source, count, offset, packed, most as u64) as usize }
    }

    unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        most: usize,
        offset: u64,
        destination: *mut u8,
        count: u64,
    ) -> usize {
        // SAFETY: as for `pack_raw`.
        unsafe { self.committed.unpack_raw(packed, most as u64, destination, count, offset) as usize }
    }
}
