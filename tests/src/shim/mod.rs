//! Runs CUDA kernels on the CPU and compares every byte with the reference walker.
//!
//! g++ compiles the texts behind `tests/emulator/shim/cuda_on_cpu.h` into one program. Each case runs in a child process, so
//! that a wrong kernel harms only that process; the case is named, and the others continue. This checks index
//! arithmetic, barriers and alignment, and not a GPU's memory, limits or speed.
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
mod kernel;
mod outcome;
mod program;

pub use case::{Access, Buffer, Case, Fragment, Placement, Range};
pub use kernel::Kernel;
pub use outcome::{Accesses, Outcome, Traffic};
pub use program::Build;

use program::Program;
use std::collections::BTreeMap;

/// Reason why no case ran.
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
    /// A shim without cases.
    pub fn new(build: Build) -> Shim {
        Shim { build, cases: Vec::new(), limit_seconds: 10 }
    }

    /// Adds a case.
    pub fn add(&mut self, case: Case) -> &mut Shim {
        self.cases.push(case);
        self
    }

    /// Ends cases that take longer than this many seconds.
    pub fn limit_seconds(&mut self, seconds: u32) -> &mut Shim {
        self.limit_seconds = seconds;
        self
    }

    /// Compiles all texts and runs all cases. The outcomes are in the order of the cases.
    ///
    /// # Errors
    ///
    /// A text does not compile: the messages of g++, with the name of the case and the line in its text.
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
