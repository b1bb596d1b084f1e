//! What a launch runs.

use std::sync::Arc;

/// What is launched, and how.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The text, as a GPU's compiler gets it. Cases that share one are compiled once.
    pub text: Arc<str>,
    /// Name of the kernel in the text, with its namespaces.
    pub entry: String,
    /// Of the grid.
    pub blocks: [u32; 3],
    /// Of a block.
    pub threads: [u32; 3],
    /// The lists of the type; none for a null pointer.
    pub tables: Arc<[u8]>,
    /// The parameters after the common five, as a C struct holds them.
    pub extra: Vec<u8>,
}

impl Kernel {
    /// A kernel to be launched with one thread, without tables and extra parameters.
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

    /// The same in a one-dimensional grid.
    pub fn blocks(self, blocks: u32) -> Kernel {
        Kernel { blocks: [blocks, 1, 1], ..self }
    }

    /// The same with one-dimensional blocks.
    pub fn threads(self, threads: u32) -> Kernel {
        Kernel { threads: [threads, 1, 1], ..self }
    }

    /// The same with lists.
    pub fn tables(self, tables: &[u8]) -> Kernel {
        Kernel { tables: tables.into(), ..self }
    }

    /// The same with parameters after the common five.
    pub fn extra(self, extra: &[u8]) -> Kernel {
        Kernel { extra: extra.to_vec(), ..self }
    }
}
