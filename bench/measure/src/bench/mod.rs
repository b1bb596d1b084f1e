//! Types side by side with memcpy, hand-written loops and MPIs, in one run on this machine: what `dtc bench` measures, and `dtc-bench`
//! with more figures.

pub mod calls;
pub mod case;
pub mod checkout;
mod commit;
pub mod comparison;
pub mod cuda;
pub mod figures;
pub mod hand_loop;
pub mod loops;
pub mod measure;
pub mod peer;
pub mod peers;
pub mod prepare;
mod progress;
mod rows;
pub mod shared;
pub mod table;

pub use progress::tell;

use crate::failure::{Failure, reason};
use crate::output::Scratch;
use case::Case;
use comparison::Settings;
use measure::{Measured, measurable, measure};
use peers::Peers;
use std::io::Write;
use std::path::PathBuf;
use table::Style;

/// What is measured, and how
#[derive(clap::Args)]
pub struct Arguments {
    /// Type descriptions, recordings, and folders of both [default: every file of ir-examples, of the checkout or the installation]
    #[arg(value_name = "TYPE.json")]
    pub files: Vec<PathBuf>,
    /// Only types whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Builds peers in this directory and measures them too
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// The script that builds peers [default: bench/peers of the checkout, or the one in this program]
    #[arg(long, value_name = "PATH")]
    pub peers_script: Option<PathBuf>,
    /// Where the data is
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub backend: Backend,
    /// Interleaved rounds [default: 5, with --backend cuda 9]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// The least milliseconds of a sample
    #[arg(long, value_name = "MS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub min_time: u16,
    /// Prints tables in Markdown
    #[arg(long)]
    pub markdown: bool,
}

/// Where the data of a measurement is.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// In the memory of the host
    Cpu,
    /// In the memory of a GPU
    Cuda,
}

impl Arguments {
    fn style(&self) -> Style {
        if self.markdown { Style::Markdown } else { Style::Lines }
    }

    /// Interleaved rounds.
    pub fn rounds(&self) -> usize {
        let default = if self.backend == Backend::Cpu { 5 } else { 9 };
        self.rounds.unwrap_or(default).into()
    }
}

/// What `dtc bench --help` says.
pub const LONG_ABOUT: &str = "Measures packs and unpacks side by side with memcpy, hand-written loops and, with --peers, MPIs\n\n\
    Types are descriptions, notations such as 'vector 12 1 14 double', what programs recorded (DTC_RECORD), and folders of these. \
    The figures of each are printed as soon as it is measured. The loops are written for the types and compiled by gcc, or what CC \
    names; without a C compiler they are left out.\n\nWith --backend cuda: kernels made for types, generic kernels, and a copy of as \
    many bytes, on the first GPU.";

/// What was measured of all cases on the CPU.
pub struct Results {
    /// In the order of the cases.
    pub cases: Vec<Measured>,
    /// Remarks on peers that cannot be built.
    pub notes: Vec<String>,
    /// What the library of each MPI calls itself.
    pub versions: Vec<(&'static str, String)>,
}

impl Results {
    /// Builds the peers, or the hand-written loops alone, and measures; prints the figures of each case. `starts` is
    /// [`Settings::starts`].
    pub fn measure(
        arguments: &Arguments,
        cases: &[Case],
        starts: u16,
        out: &mut dyn Write,
    ) -> Result<Results, Failure> {
        cases.iter().try_for_each(measurable)?;
        let mut folder = None;
        let (loops, notes) = if let Some(directory) = &arguments.peers {
            prepare::prepare(directory, cases, &prepare::find_script(arguments.peers_script.as_deref(), directory)?)?
        } else {
            let made = Scratch::temporary("bench")
                .map_err(|error| Failure::data("a temporary folder", "room for loops", reason(&error)))?;
            loops::compile(folder.insert(made).path(), cases)
        };
        let settings = Settings {
            rounds: arguments.rounds(),
            starts: starts.into(),
            least: f64::from(arguments.min_time) * 1e6,
            sparing: None,
        };
        rows::begin(arguments.style(), out)?;
        let mut peers = Peers::new(arguments.peers.as_deref());
        let mut measured = Vec::new();
        for (index, (case, loops)) in cases.iter().zip(&loops).enumerate() {
            tell(&format!("{} ({} of {})", case.name, index + 1, cases.len()));
            let found = measure(case, loops, &mut peers, &settings)?;
            tell("");
            rows::row(&found, arguments.style(), out)?;
            measured.push(found);
        }
        tell("");
        let versions = peers.versions().map(|(kind, version)| (kind, version.to_owned())).collect();
        Ok(Results { cases: measured, notes, versions })
    }

    /// Prints what comes behind the rows: tables, notes and mismatches.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] with the first mismatch.
    pub fn print(&self, arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out)?;
        table::print(&self.cases, arguments.peers.is_some(), arguments.style(), out)?;
        for note in self.notes.iter().chain(self.cases.iter().flat_map(|case| &case.notes)) {
            writeln!(out, "note: {note}")?;
        }
        let mismatches: Vec<&String> = self.cases.iter().flat_map(|case| &case.mismatches).collect();
        let Some((first, rest)) = mismatches.split_first() else { return Ok(()) };
        for mismatch in rest {
            writeln!(out, "mismatch: {mismatch}")?;
        }
        Err(Failure::Data((*first).clone()))
    }
}
