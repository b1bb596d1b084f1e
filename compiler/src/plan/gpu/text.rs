//! What the text of a kernel is made from. A family says it in data; `codegen/cuda/kernel.rs` writes the text.

use crate::layout::{Edge, Layout, NodeId};
use minijinja::Value;

/// What the text of a kernel is made from.
#[derive(Debug)]
pub(crate) struct KernelText {
    /// The name of its template in the crate `dtc-templates`.
    pub(crate) template: &'static str,
    /// Bytes of the words that the template moves; 1 where it moves bytes.
    pub(crate) word: u32,
    /// The device functions that the template calls, in the order in which they are written.
    pub(crate) functions: Vec<AddressFunction>,
    /// The lists that it reads, by the names of the values that say where they are.
    pub(crate) lists: Vec<(&'static str, KernelList)>,
    /// Its own values, beside those that every template has.
    pub(crate) values: Value,
    /// The functions of `dtc-templates` that it calls.
    pub(crate) library: Vec<LibraryPart>,
    /// `minBlocksPerMultiprocessor` of `__launch_bounds__`, which caps the registers of a thread; 1 for no cap.
    pub(crate) resident_blocks: u32,
}

impl KernelText {
    /// A template for words or bytes, and what it calls to find them.
    pub(crate) fn new(template: &'static str, word: u32, functions: Vec<AddressFunction>) -> KernelText {
        let (lists, library) = (Vec::new(), Vec::new());
        KernelText { template, word, functions, lists, values: Value::UNDEFINED, library, resident_blocks: 1 }
    }
}

/// Device functions that return where packed units are in memory.
#[derive(Clone, Debug)]
pub(crate) enum AddressFunction {
    /// `place(tables, at)` of a unit of all elements; with `run` also what is left of its run, and whether it is its first unit.
    Elements {
        /// Packed bytes of a unit.
        unit: u64,
        /// Whether it returns the rest of the run.
        run: bool,
    },
    /// `outer(tables, record)` of a record.
    Records {
        /// The node of a record.
        record: NodeId,
        /// Its packed bytes.
        size: u64,
    },
    /// `outer(tables, plane)` and `place(tables, row)`: of a plane, and of a word of a column in it.
    Planes {
        /// Bytes of a word.
        word: u32,
        /// The stream whose copies are the columns; `None` when those are the elements of a count.
        stream: Option<NodeId>,
        /// One column.
        column: Edge,
    },
    /// `source(tables, at)` and `target(tables, at)`: of word `at` in the order of memory, among the packed bytes and in memory.
    InOrder {
        /// Bytes of a word.
        word: u32,
        /// Pieces as they are among the packed bytes, in the order of memory.
        packed: Layout,
        /// The same pieces as they are in memory.
        memory: Layout,
    },
}

/// Memory offset and packed place of a piece, of 32 bits each in the memory of a device.
pub(crate) type ListedPiece = (i64, u64);

/// A list that a kernel reads.
#[derive(Debug)]
pub(crate) enum KernelList {
    /// Pieces.
    Pieces(Vec<ListedPiece>),
    /// Numbers of 32 bits.
    Numbers(Vec<u32>),
    /// Numbers of 16 bits.
    Shorts(Vec<u16>),
    /// Numbers of 8 bits.
    Bytes(Vec<u8>),
}

/// Functions of `dtc-templates` that several kernels call, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LibraryPart {
    /// Loads bytes at any address.
    LoadBytes,
    /// Stores bytes at any address.
    StoreBytes,
    /// Stores bytes inside one aligned word.
    StorePart,
    /// Shifts a word of 16 bytes out of two.
    Funnel,
    /// Puts a word of 16 bytes together from parts.
    Join,
    /// Brings a line of memory to the L2 cache.
    Prefetch,
    /// Does so where the runs of a warp begin or end inside of sectors.
    PrefetchEnds,
    /// Brings memory to shared memory so that its words are in all banks.
    Staged,
    /// Combines two elements.
    Combine,
    /// Loads and stores an element at any address.
    LoadValue,
}
