//! Subjects that run on the engine.
#![expect(unsafe_code, reason = "the calls on raw addresses are passed on")]

use super::Subject;
use dtc_compiler::datatype::Datatype;
use dtc_runtime::{Committed, Elements, Endpoint, Engine, Memory, MemoryMut, Policy, Range};
use std::cell::{Cell, RefCell};

/// A type committed to an engine.
#[derive(Clone)]
pub struct EngineSubject {
    name: String,
    /// The committed type.
    pub committed: Committed,
}

impl EngineSubject {
    /// Commits a type; `name` is for messages.
    pub fn new(engine: &Engine, name: &str, datatype: &Datatype) -> EngineSubject {
        let committed = engine.commit(datatype);
        EngineSubject { name: format!("{name}, {}", committed.tier()), committed }
    }

    fn at(&self, memory: *const u8, count: u64, offset: u64, most: usize) -> Elements<'_> {
        self.committed.at(Endpoint::host(memory), Range::elements(count).fragment(offset, most as u64))
    }
}

/// The engines that every type runs on: one without kernels; one that compiles all kernels; and one that compiles only
/// profitable ones, with thunks that call microkernels for the other types.
pub fn engines() -> [(&'static str, Engine); 3] {
    [("generic", Policy::Off), ("compiled", Policy::Always), ("bound", Policy::Eager)]
        .map(|(name, policy)| (name, Engine::builder().policy(policy).build()))
}

/// A type that is moved in its described form. It is committed anew when its engine has canonicalised it.
pub struct DescribedSubject {
    name: String,
    datatype: Datatype,
    current: RefCell<(Engine, EngineSubject)>,
    /// Number of calls, and of those served by a canonical form.
    calls: Cell<(u64, u64)>,
}

impl DescribedSubject {
    /// A type; `name` is for messages.
    pub fn new(name: &str, datatype: &Datatype) -> DescribedSubject {
        DescribedSubject {
            name: format!("{name}, described"),
            datatype: datatype.clone(),
            current: RefCell::new(DescribedSubject::fresh(name, datatype)),
            calls: Cell::default(),
        }
    }

    /// Number of calls, and of those served by a canonical form.
    pub fn calls(&self) -> (u64, u64) {
        self.calls.get()
    }

    fn fresh(name: &str, datatype: &Datatype) -> (Engine, EngineSubject) {
        let engine = Engine::builder().policy(Policy::Background).background_thread(false).build();
        let subject = EngineSubject { name: name.to_owned(), committed: engine.commit(datatype) };
        (engine, subject)
    }

    fn call<T>(&self, call: impl FnOnce(&EngineSubject) -> T) -> T {
        let mut current = self.current.borrow_mut();
        let result = call(&current.1);
        let (calls, canonical) = self.calls.get();
        let committed = current.0.cached_types() > 0;
        self.calls.set((calls + 1, canonical + u64::from(committed)));
        if committed {
            *current = DescribedSubject::fresh(&self.name, &self.datatype);
        }
        result
    }
}

impl Subject for DescribedSubject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String> {
        self.call(|subject| subject.pack(source, origin, count, offset, packed))
    }

    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String> {
        self.call(|subject| subject.unpack(packed, offset, destination, origin, count))
    }

    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize {
        // SAFETY: `source` and `packed` are valid for the bytes of the range (contract of `Subject::pack_raw`), which
        // is the contract of the callee.
        self.call(|subject| unsafe { subject.pack_raw(source, count, offset, packed, most) })
    }

    unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        most: usize,
        offset: u64,
        destination: *mut u8,
        count: u64,
    ) -> usize {
        // SAFETY: `packed` and `destination` are valid for the bytes of the range (contract of `Subject::unpack_raw`),
        // which is the contract of the callee.
        self.call(|subject| unsafe { subject.unpack_raw(packed, most, offset, destination, count) })
    }
}

impl Subject for EngineSubject {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pack(&self, source: &[u8], origin: usize, count: u64, offset: u64, packed: &mut [u8]) -> Result<usize, String> {
        let range = Range::elements(count).fragment(offset, packed.len() as u64);
        self.committed.pack(Memory::at(source, origin), range, packed).map_err(|error| error.to_string())
    }

    fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, String> {
        let range = Range::elements(count).fragment(offset, packed.len() as u64);
        self.committed.unpack(packed, range, MemoryMut::at(destination, origin)).map_err(|error| error.to_string())
    }

    unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, most: usize) -> usize {
        // SAFETY: `source` and `packed` are valid for the bytes of the range (contract of `Subject::pack_raw`), which
        // is the contract of the callee.
        unsafe { self.at(source, count, offset, most).pack(Endpoint::host(packed)).run() }.unwrap_or(0)
    }

    unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        most: usize,
        offset: u64,
        destination: *mut u8,
        count: u64,
    ) -> usize {
        // SAFETY: `packed` and `destination` are valid for the bytes of the range (contract of `Subject::unpack_raw`),
        // which is the contract of the callee.
        unsafe { self.at(destination, count, offset, most).unpack(Endpoint::host(packed)).run() }.unwrap_or(0)
    }
}
