//! What `dtc pack` and `dtc unpack` share: arguments, fragments, progress.

use crate::array_file::is_npy;
use crate::elements::Elements;
use clap::ValueEnum;
use dtc_measure::buffer;
use dtc_measure::description;
use dtc_measure::failure::Failure;
use dtc_measure::output;
use dtc_measure::paths::{STANDARD, shown};
use dtc_measure::report;
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{Committed, Engine, PackError, Policy, Tier};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Packed bytes that are moved between two looks at the clock.
pub const FRAGMENT_BYTES: u64 = 64 << 20;

/// Arguments of both commands.
#[derive(clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// A type description: JSON, or the short notation in a file that ends in .dtc or .txt; - for standard input
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
    /// The file to read: raw bytes, or a NumPy array if it ends in .npy; - for standard input
    #[arg(long = "in", value_name = "FILE")]
    pub input: PathBuf,
    /// The file to write: raw bytes, or a NumPy array if it ends in .npy; for pack also - for standard output
    #[arg(long = "out", value_name = "FILE")]
    pub output: PathBuf,
    /// Takes NumPy arrays as bytes, whatever their elements are: otherwise these must be of the type's kinds, in the byte
    /// order of this machine
    #[arg(long)]
    raw: bool,
    /// Elements of the type [default: the description's count]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>)]
    count: Option<u64>,
    /// Where in the data, behind the header of a NumPy array, address 0 of the type is
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = number::<usize>)]
    pub origin: usize,
    /// The first packed byte to move
    #[arg(long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true, value_parser = number::<u64>)]
    pub offset: u64,
    /// The most packed bytes to move [default: all]
    #[arg(long = "max", value_name = "BYTES", allow_negative_numbers = true, value_parser = number::<u64>)]
    pub most: Option<u64>,
    /// Threads that move bytes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Which code moves the bytes
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// With --backend cuda: where the elements are, device:N, pinned, managed or pageable
    #[arg(long, value_name = "KIND", default_value = "device:0", value_parser = buffer::parse_kind)]
    memory: MemoryKind,
    /// With --backend cuda: where the packed bytes are, device:N, pinned, managed or pageable
    #[arg(long, value_name = "KIND", default_value = "device:0", value_parser = buffer::parse_kind)]
    packed: MemoryKind,
}

/// Reads a number that is not negative.
fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected an integer from 0 to {}, found {text}", u64::MAX))
}

#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    /// SIMD leaves driven by the plan
    Generic,
    /// A kernel compiled for the type
    Cranelift,
    /// Whichever of these the engine prefers
    Auto,
    /// Kernels on GPUs, and what it takes to bring the bytes there
    Cuda,
}

impl Arguments {
    /// Refuses files that would be read and written at once.
    ///
    /// # Errors
    ///
    /// [`Failure::Description`], before anything is opened.
    pub fn check_files(&self) -> Result<(), Failure> {
        if [&self.file, &self.input].iter().all(|path| path.as_path() == Path::new(STANDARD)) {
            return Err(Failure::description("--in", "a file, as standard input has the type description", "-"));
        }
        output::distinct("--out", &self.output, &[("--in", &self.input), ("TYPE.json", &self.file)])
    }
}

/// A committed type with the counts of one call.
pub struct Transfer {
    /// The type.
    pub committed: Committed,
    /// How many elements.
    pub count: u64,
    /// Packed bytes of all elements.
    pub total: u64,
    /// Where elements and packed bytes are on their way, if GPUs should move them.
    pub kinds: Option<[MemoryKind; 2]>,
    /// What the elements of NumPy arrays must be, if there are arrays and --raw is not given.
    pub elements: Option<Elements>,
}

impl Transfer {
    /// Reads and commits the type.
    pub fn prepare(arguments: &Arguments) -> Result<Transfer, Failure> {
        let description = description::read(&arguments.file)?.description;
        let policy = match arguments.backend {
            Backend::Generic => Policy::Off,
            Backend::Cranelift | Backend::Cuda => Policy::Eager,
            Backend::Auto => Policy::Background,
        };
        let engine = Engine::builder().policy(policy).build();
        let kinds = match arguments.backend {
            Backend::Cuda if arguments.threads > 1 => {
                return Err(Failure::description("--threads", "1 with --backend cuda", arguments.threads));
            }
            Backend::Cuda => {
                let kinds = [arguments.memory, arguments.packed];
                buffer::open(&engine, kinds)?;
                Some(kinds)
            }
            _ => None,
        };
        let committed = engine.commit(&description.datatype);
        if matches!(arguments.backend, Backend::Cranelift)
            && committed.plan().decision().specialise()
            && committed.tier() == Tier::Generic
        {
            let remedy = "lift the policy that refuses it, or use --backend generic";
            return Err(Failure::missing(
                "--backend cranelift",
                "executable memory",
                "that the system refuses it",
                remedy,
            ));
        }
        let count = arguments.count.unwrap_or(description.count);
        let total = committed.packed_size(count).map_err(|error| refused(&arguments.output, error))? as u64;
        if arguments.offset > total {
            return Err(Failure::description(
                "--offset",
                format_args!("at most {total} packed bytes"),
                arguments.offset,
            ));
        }
        let arrays = is_npy(&arguments.input) || is_npy(&arguments.output);
        let elements = (arrays && !arguments.raw).then(|| Elements::of(&description.datatype));
        Ok(Transfer { committed, count, total, kinds, elements })
    }

    /// How many bytes of the data are up to the end of the last element.
    pub fn reach(&self, arguments: &Arguments) -> u64 {
        let end = self.committed.span(self.count).map_or(0, |(_, high)| high);
        u64::try_from((arguments.origin as i128 + end.max(0)).max(0)).unwrap_or(u64::MAX)
    }

    /// Packed bytes from the offset on, as far as the arguments want them.
    pub fn wanted(&self, arguments: &Arguments) -> u64 {
        arguments.most.unwrap_or(u64::MAX).min(self.total - arguments.offset)
    }
}

/// A call that the runtime refused, said of the file whose data is too small.
pub fn refused(file: &Path, error: PackError) -> Failure {
    let file = shown(file);
    match error {
        PackError::Bounds { low, high, before, after } if low + before as i128 >= 0 => {
            let needed = u64::try_from(high + before as i128).unwrap_or(u64::MAX);
            let found = report::grouped(before.saturating_add(after) as u64);
            let origin = match before {
                0 => String::new(),
                _ => format!(", {} of them from the origin on", report::grouped(after as u64)),
            };
            let expected = format_args!("at least {} bytes, to the end of the last element", report::grouped(needed));
            Failure::data(file, expected, format_args!("{found} bytes{origin}"))
        }
        PackError::Bounds { low, high, before, after } => Failure::data(
            file,
            format_args!("bytes {low} to {high} from the origin to lie inside the data"),
            format_args!("{before} bytes before the origin and {after} after it"),
        ),
        PackError::Origin { origin, length } => Failure::data(
            file,
            format_args!("the origin, {origin}, to lie inside the data"),
            format_args!("{length} bytes"),
        ),
        PackError::Count { count, most } => {
            Failure::description("--count", format_args!("at most {most} elements, for 63-bit sizes"), count)
        }
        error => Failure::Data(format!("{file}: {error}")),
    }
}

/// A bar on the terminal, for transfers that take more than a second.
pub struct Progress {
    start: Instant,
    total: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts the clock.
    pub fn new(total: u64) -> Progress {
        Progress { start: Instant::now(), total, bar: None }
    }

    /// Shows that `done` bytes are done, once the first second is over.
    pub fn reached(&mut self, done: u64) {
        if self.start.elapsed() < Duration::from_secs(1) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
            // The bar draws to standard error, and only if that is a terminal.
            let bar = ProgressBar::new(self.total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(done);
            // The rate is that from here on: what came before was not watched.
            bar.reset_eta();
            bar
        });
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
