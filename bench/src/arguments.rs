//! The arguments of the benchmark.

use clap::Parser;
use dtc_measure::bench;
use std::path::PathBuf;

/// Measures as dtc bench does, for developers of dtc
#[derive(Parser)]
#[command(name = "dtc-bench", version)]
pub struct Benchmark {
    #[command(flatten)]
    pub shared: bench::Arguments,
    /// A list of benchmark cases: {"cases": [...]}
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    /// The index of cases for --backend cuda [default: bench/gpu/cases.json of the checkout]
    #[arg(long, value_name = "FILE")]
    pub gpu_cases: Option<PathBuf>,
    /// What to measure with --backend cuda [default: all; with types or --only, kernels]
    #[arg(long, value_enum, value_name = "PART")]
    pub part: Vec<Part>,
    /// Measures N types that are drawn from a seed, in 9 rounds unless --rounds is given, and prints distributions and
    /// the worst ones
    #[arg(long, value_name = "N", conflicts_with_all = ["files", "cases", "gpu_cases", "bundle", "layouts", "packed_mib"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub random: Option<u16>,
    /// Writes the types of --random to this folder, as JSON that dtc bench reads, and measures nothing
    #[arg(long, value_name = "DIRECTORY", requires = "random", conflicts_with = "json")]
    pub types: Option<PathBuf>,
    /// Measures N permutes of arrays on the CPU, drawn from a seed, beside strided-perm and memcpy; in 9 rounds unless --rounds is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    #[arg(conflicts_with_all = ["files", "cases", "gpu_cases", "bundle", "layouts", "packed_mib", "part", "peers", "backend", "starts", "random"])]
    pub permutes: Option<u16>,
    /// The seed of --random, --permutes and --part classes and families: draws the types of another run again [default: another one
    /// each time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Layouts of each class that --part classes and families draw
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub layouts: u16,
    /// MiB of packed bytes of each of them, about
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub packed_mib: u16,
    /// Bytes that the L2 cache of the GPU fetches at a time while --backend cuda measures
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(32..=128))]
    pub l2_fetch: Option<u16>,
    /// The folder that dtc build made of the types, for --part bundles; without --backend cuda, measures how soon types have the
    /// kernels of it
    #[arg(long, value_name = "DIRECTORY")]
    pub bundle: Option<PathBuf>,
    /// How often buffers are allocated and MPIs started anew, each time for as many rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub starts: u16,
    /// Writes all figures to a file, or with - to standard output instead of the table; with --backend cuda and
    /// --permutes one object to a line, as the programs in bench/gpu do
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The date that the figures bear [default: today]
    #[arg(long, value_name = "DATE")]
    pub date: Option<String>,
}

/// What is measured on a GPU.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Whole transfers of the cases
    Kernels,
    /// Random layouts of each class, from a seed that is printed; only where it is named
    Classes,
    /// Types, or such random layouts, by every kernel that may serve them: whether the fastest is chosen; only where it is named
    Families,
    /// Pieces of 64 MiB from odd offsets on
    Fragments,
    /// The 26 pieces of a halo in one launch, and items of very different sizes
    Batches,
    /// Unpacks with an operation, and copies from type to type
    Operations,
    /// Launches, small blocking calls, commits
    Latency,
    /// Lists that are new at every call: made, committed and packed once
    NewLists,
    /// Blocks by an index table of the call, beside the same type with its table written into it; only where it is named
    Tables,
    /// Calls between kinds of memory, and copies to another GPU
    Transfers,
    /// Functions and kernels of a bundle, beside the kernels that are compiled now; only where it is named
    Bundles,
    /// The first call of a process, in processes of its own with the driver's cache off; only where it is named
    First,
    /// Messages matched to receives, by guarantees, shapes and lengths; only where it is named
    Matching,
}
