//! What the tests of the interface share: calls that must succeed or fail, and types by way of the interface.
#![allow(dead_code, reason = "each test program uses some of it")]

use dtc::*;
use dtc_compiler::datatype::{Constructor, Datatype, Distribution, Order};
use std::ffi::{CStr, CString, c_int};
use std::ptr::{null, null_mut};

/// The message of the last failure of this thread.
pub fn message() -> String {
    // SAFETY: valid until the next failure of this thread.
    unsafe { CStr::from_ptr(dtc_message()) }.to_string_lossy().into_owned()
}

/// A call that must succeed.
#[track_caller]
pub fn ok(status: c_int) {
    assert_eq!(status, DTC_OK, "{}", message());
}

/// A call that must fail in this way, with a message that names this.
#[track_caller]
pub fn fails(status: c_int, expected: c_int, named: &str) {
    assert_eq!(status, expected, "{}", message());
    assert!(message().contains(named), "expected a message about {named}, found {}", message());
}

/// An engine that ends with the value.
pub struct Engine(pub *mut dtc_engine);

impl Engine {
    pub fn new() -> Engine {
        let mut engine = null_mut();
        // SAFETY: a place for the engine.
        ok(unsafe { dtc_init(null(), &mut engine) });
        Engine(engine)
    }

    pub fn named(&self, name: &str) -> Type {
        let name = CString::new(name).expect("a name");
        let mut made = null_mut();
        // SAFETY: an engine, a text and a place.
        ok(unsafe { dtc_type_named(self.0, name.as_ptr(), &mut made) });
        Type(made)
    }

    /// A type by its constructor; the status if it is refused.
    pub fn create(
        &self,
        combiner: i32,
        integers: &[i64],
        addresses: &[i64],
        children: &[&Type],
        facts: Option<dtc_facts>,
    ) -> Result<Type, c_int> {
        let children: Vec<*const dtc_type> = children.iter().map(|child| child.0.cast_const()).collect();
        let facts = facts.as_ref().map_or(null(), |facts| facts as *const dtc_facts);
        let mut made = null_mut();
        // SAFETY: lists of these lengths, live types, and a place.
        let status = unsafe {
            dtc_type_create(
                self.0,
                combiner,
                integers.as_ptr(),
                integers.len() as i64,
                addresses.as_ptr(),
                addresses.len() as i64,
                children.as_ptr(),
                children.len() as i64,
                facts,
                &mut made,
            )
        };
        if status == DTC_OK { Ok(Type(made)) } else { Err(status) }
    }

    /// The same type as a description, made call by call and committed.
    pub fn describe(&self, datatype: &Datatype) -> Type {
        let nodes = datatype.nodes();
        let mut made: Vec<Type> = Vec::new();
        for node in nodes.iter() {
            let children: Vec<&Type> = node.children().iter().map(|child| &made[nodes.place(child)]).collect();
            let facts = node.given().map(|given| dtc_facts {
                size: size_of::<dtc_facts>() as i64,
                lb: given.lb,
                extent: given.extent,
                packed_size: node.facts().size as i64,
            });
            let created = match node.constructor() {
                Constructor::Named(predefined) if facts.is_none() => self.named(predefined.name()),
                Constructor::Named(predefined) => {
                    let plain = self.named(predefined.name());
                    self.create(DTC_COMBINER_DUP, &[], &[], &[&plain], facts).expect("a dup")
                }
                other => {
                    let (combiner, integers, addresses) = contents(other);
                    let created = self.create(combiner, &integers, &addresses, &children, facts);
                    created.unwrap_or_else(|status| panic!("{status}: {}", message()))
                }
            };
            made.push(created);
        }
        let root = made.pop().expect("the root");
        // SAFETY: a live type.
        ok(unsafe { dtc_type_commit(root.0, 0) });
        root
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        ok(unsafe { dtc_finalize(self.0) });
    }
}

/// A type that is released with the value.
pub struct Type(pub *mut dtc_type);

// SAFETY: the interface lets any thread use a type.
unsafe impl Send for Type {}
// SAFETY: the interface lets any threads use a type at once.
unsafe impl Sync for Type {}

impl Drop for Type {
    fn drop(&mut self) {
        // SAFETY: nobody else has this reference.
        ok(unsafe { dtc_type_release(self.0) });
    }
}

impl Type {
    pub fn info(&self) -> dtc_info {
        let mut info = empty_info();
        // SAFETY: a live type and a struct with its size.
        ok(unsafe { dtc_type_query(self.0, &mut info) });
        info
    }

    pub fn pack(&self, memory: &[u8], origin: usize, count: i64, offset: i64, packed: &mut [u8]) -> usize {
        let mut done = -1;
        let source = memory.as_ptr().wrapping_add(origin);
        let (target, max) = (packed.as_mut_ptr(), packed.len() as i64);
        // SAFETY: the callers keep to their buffers.
        ok(unsafe { dtc_pack(self.0, source.cast(), count, offset, target.cast(), max, &mut done, null()) });
        done as usize
    }

    pub fn unpack(&self, packed: &[u8], memory: &mut [u8], origin: usize, count: i64, offset: i64) -> usize {
        let mut done = -1;
        let target = memory.as_mut_ptr().wrapping_add(origin);
        let (source, length) = (packed.as_ptr(), packed.len() as i64);
        // SAFETY: a live type, and slices that hold the elements and the packed bytes of the tests.
        ok(unsafe { dtc_unpack(self.0, target.cast(), count, offset, source.cast(), length, &mut done, null()) });
        done as usize
    }

    pub fn flattened(&self) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: a live type, and a buffer of the length.
        unsafe {
            ok(dtc_flatten_size(self.0, &mut length));
            let mut bytes = vec![0u8; length as usize];
            ok(dtc_flatten(self.0, bytes.as_mut_ptr().cast(), length));
            bytes
        }
    }
}

/// A struct to be filled.
pub fn empty_info() -> dtc_info {
    // SAFETY: integers alone.
    let mut info: dtc_info = unsafe { std::mem::zeroed() };
    info.size = size_of::<dtc_info>() as i64;
    info
}

/// Settings with every field at its default.
pub fn config() -> dtc_config {
    // SAFETY: integers, and pointers that may be null.
    let mut config: dtc_config = unsafe { std::mem::zeroed() };
    config.size = size_of::<dtc_config>() as i64;
    config.abi_version = DTC_ABI_VERSION;
    config
}

/// The numbers of a constructor in the order of the interface.
pub fn contents(constructor: &Constructor) -> (i32, Vec<i64>, Vec<i64>) {
    let join = |lists: &[&[i64]]| lists.concat();
    let order = |order: &Order| if *order == Order::C { DTC_ORDER_C } else { DTC_ORDER_FORTRAN };
    match constructor {
        Constructor::Named(_) => unreachable!("made by name"),
        Constructor::Dup => (DTC_COMBINER_DUP, vec![], vec![]),
        Constructor::Table { .. } | Constructor::Addresses { .. } => unreachable!("no datatype has index tables"),
        Constructor::Contiguous { count } => (DTC_COMBINER_CONTIGUOUS, vec![*count], vec![]),
        Constructor::Vector { count, blocklength, stride } => {
            (DTC_COMBINER_VECTOR, vec![*count, *blocklength, *stride], vec![])
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            (DTC_COMBINER_HVECTOR, vec![*count, *blocklength], vec![*stride_bytes])
        }
        Constructor::Indexed { blocklengths, displacements } => {
            (DTC_COMBINER_INDEXED, join(&[&[blocklengths.len() as i64], blocklengths, displacements]), vec![])
        }
        Constructor::Hindexed { blocklengths, displacements_bytes } => {
            let integers = join(&[&[blocklengths.len() as i64], blocklengths]);
            (DTC_COMBINER_HINDEXED, integers, displacements_bytes.to_vec())
        }
        Constructor::IndexedBlock { blocklength, displacements } => {
            let integers = join(&[&[displacements.len() as i64, *blocklength], displacements]);
            (DTC_COMBINER_INDEXED_BLOCK, integers, vec![])
        }
        Constructor::HindexedBlock { blocklength, displacements_bytes } => {
            let integers = vec![displacements_bytes.len() as i64, *blocklength];
            (DTC_COMBINER_HINDEXED_BLOCK, integers, displacements_bytes.to_vec())
        }
        Constructor::Struct { blocklengths, displacements_bytes } => {
            let integers = join(&[&[blocklengths.len() as i64], blocklengths]);
            (DTC_COMBINER_STRUCT, integers, displacements_bytes.to_vec())
        }
        Constructor::Subarray { sizes, subsizes, starts, order: axes } => {
            let integers = join(&[&[sizes.len() as i64], sizes, subsizes, starts, &[order(axes)]]);
            (DTC_COMBINER_SUBARRAY, integers, vec![])
        }
        Constructor::Darray { size, rank, gsizes, distributions, psizes, order: axes } => {
            let kind = |each: &Distribution| match each {
                Distribution::Block(_) => DTC_DISTRIBUTE_BLOCK,
                Distribution::Cyclic(_) => DTC_DISTRIBUTE_CYCLIC,
                Distribution::None => DTC_DISTRIBUTE_NONE,
            };
            let length = |each: &Distribution| match each {
                Distribution::Block(length) | Distribution::Cyclic(length) => length.unwrap_or(DTC_DISTRIBUTE_DEFAULT),
                Distribution::None => DTC_DISTRIBUTE_DEFAULT,
            };
            let kinds: Vec<i64> = distributions.iter().map(kind).collect();
            let lengths: Vec<i64> = distributions.iter().map(length).collect();
            let head = [*size, *rank, gsizes.len() as i64];
            (DTC_COMBINER_DARRAY, join(&[&head, gsizes, &kinds, &lengths, psizes, &[order(axes)]]), vec![])
        }
        Constructor::Resized { lb, extent } => (DTC_COMBINER_RESIZED, vec![], vec![*lb, *extent]),
    }
}
