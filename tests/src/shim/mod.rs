//! Runs the text of CUDA kernels on the CPU and compares every byte with the reference walker.
//!
//! The texts are compiled by g++ behind `tests/shim/cuda_on_cpu.h`, all in one program, and the cases run in a child
//! process: what a wrong kernel does to its process costs that process alone, the case is named, and the others go on.
//! This is a check of index arithmetic, barriers and alignment. It says nothing about a GPU's memory, limits or speed.
//!
//! ```no_run
//! use dtc_compiler::layout::Layout;
//! use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
//! use rand::{SeedableRng, rngs::SmallRng};
//!
//! let layout = Layout::parse("layout lb 0 extent 24 {\n  %0 = dense 1 x f64\n  %1 = stream 2 x 16 of %0\n  root %1\n}")?;
//! let text = "extern \"C\" __global__ void pack(unsigned char* memory, unsigned char* packed, \
//!             const unsigned char* tables, unsigned long long first, unsigned long long bytes) { /* ... */ }";
//! let kernel = Kernel::new(text, "pack").blocks(4).threads(128);
//! let mut rng = SmallRng::seed_from_u64(0);
//! let mut shim = Shim::new(Build::Checked);
//! let fragment = Fragment::new(&layout, 10, 3, 100);
//! shim.add(Case::pack("a vector", &kernel, &fragment, Placement::random(&mut rng), &mut rng));
//! for outcome in shim.run()? {
//!     outcome.traffic();
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod case;
mod program;

pub use case::{Access, Buffer, Case, Fragment, Placement, Range};

use program::Program;
use std::collections::BTreeMap;
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

/// How the texts are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Optimised, for many and large cases: contents are compared, vector accesses must be aligned, and gaps and ends are
    /// closed by pages.
    Fast,
    /// Every load and store is held against what the case allows, to the byte; races in shared memory and undefined
    /// behaviour are faults. Accesses are counted.
    Checked,
    /// Under the address sanitizer, which also knows the borders of single variables, and undefined behaviour.
    Sanitized,
}

/// Loads and stores of one buffer, by width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Of 1, 2, 4, 8 and 16 bytes.
    pub loads: [u64; 5],
    /// Of 1, 2, 4, 8 and 16 bytes.
    pub stores: [u64; 5],
    /// Bytes that were stored to before: work done twice, and a race unless one thread did both.
    pub stored_again: u64,
}

/// The accesses of a launch; counted in checked builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Of memory.
    pub memory: Accesses,
    /// Of the packed bytes.
    pub packed: Accesses,
    /// Of the lists.
    pub tables: Accesses,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the case.
    pub name: String,
    /// The accesses, or what was wrong first.
    pub result: Result<Traffic, String>,
}

impl Outcome {
    /// The accesses.
    ///
    /// # Panics
    ///
    /// When something was wrong.
    pub fn traffic(&self) -> Traffic {
        match &self.result {
            Ok(traffic) => *traffic,
            Err(fault) => panic!("{}: {fault}", self.name),
        }
    }
}

/// Why nothing ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShimError(String);

impl std::fmt::Display for ShimError {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ShimError {}

/// Cases to run.
#[derive(Clone, Debug)]
pub struct Shim {
    build: Build,
    cases: Vec<Case>,
    limit_seconds: u32,
}

impl Shim {
    /// No cases yet.
    pub fn new(build: Build) -> Shim {
        Shim { build, cases: Vec::new(), limit_seconds: 10 }
    }

    /// Adds a case.
    pub fn add(&mut self, case: Case) -> &mut Shim {
        self.cases.push(case);
        self
    }

    /// Ends cases that take longer.
    pub fn limit_seconds(&mut self, seconds: u32) -> &mut Shim {
        self.limit_seconds = seconds;
        self
    }

    /// Compiles all texts and runs all cases; the outcomes are in the order of the cases.
    ///
    /// # Errors
    ///
    /// When a text does not compile: the messages of g++, with the text's name for a case and its line.
    pub fn run(&self) -> Result<Vec<Outcome>, ShimError> {
        let mut texts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut entries: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut program = Program::new(self.build);
        let mut kernels = Vec::new();
        for case in &self.cases {
            let kernel = &case.kernel;
            let text = *texts.entry(&kernel.text).or_insert_with(|| program.add_text(&kernel.text, &case.name));
            let entry = entries.entry((text, &kernel.entry)).or_insert_with(|| program.add_entry(text, &kernel.entry));
            kernels.push(*entry);
        }
        program.run(&self.cases, &kernels, self.limit_seconds).map_err(ShimError)
    }
}
