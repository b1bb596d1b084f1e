//! Kernels of the shim.

use std::sync::Arc;

/// A kernel and its launch parameters.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The CUDA text. Cases with the same text share its compilation.
    pub text: Arc<str>,
    /// Name of the kernel in the text, with its namespaces.
    pub entry: String,
    /// Blocks of the grid, by axis.
    pub blocks: [u32; 3],
    /// Threads of a block, by axis.
    pub threads: [u32; 3],
    /// The lists of the type; empty for a null pointer.
    pub tables: Arc<[u8]>,
    /// The parameters after the common five, as the bytes of a C struct.
    pub extra: Vec<u8>,
}

impl Kernel {
    /// A kernel launched with one thread, without lists and extra parameters.
    pub fn new(text: &str, entry: &str) -> Kernel {
        Kernel {
            text: text.into(),
            entry: entry.to_owned(),
            blocks: [1; 3],
            threads: [1; 3],
            tables: Arc::default(),
            extra: Vec::new(),
        }
    }

    /// The same kernel with this many blocks.
    pub fn blocks(self, blocks: u32) -> Kernel {
        Kernel { blocks: [blocks, 1, 1], ..self }
    }

    /// The same kernel with this many threads in a block.
    pub fn threads(self, threads: u32) -> Kernel {
        Kernel { threads: [threads, 1, 1], ..self }
    }

    /// The same kernel with lists.
    pub fn tables(self, tables: &[u8]) -> Kernel {
        Kernel { tables: tables.into(), ..self }
    }

    /// The same kernel with parameters after the common five.
    pub fn extra(self, extra: &[u8]) -> Kernel {
        Kernel { extra: extra.to_vec(), ..self }
    }
}
