//! `dtc doctor`: what this machine offers.

use super::doctor_mpi;
use dtc_compiler::datatype::text;
use dtc_measure::failure::Failure;
use dtc_measure::first_call::FirstCall;
use dtc_measure::machine::{find, processor};
use dtc_measure::program::called;
use dtc_measure::report::{self, row};
use dtc_runtime::cuda::{Device, DeviceInfo, Driver, Nvrtc};
use dtc_runtime::store::{Bundle, Config, Store};
use dtc_runtime::{Engine, Policy, Tier, TransferModel};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Says what this machine offers: vectors, executable memory, GPUs, peers for measurements, the store of kernels
#[derive(clap::Args)]
pub struct Arguments {
    /// Runs a program of MPI with libdtc_mpi preloaded, and says what it serves there, or why it does not
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    mpi: Option<Vec<OsString>>,
    /// libdtc_mpi.so; that of the installation unless given. Before `--mpi`, which takes all that follows
    #[arg(long, value_name = "FILE", requires = "mpi")]
    interposer: Option<PathBuf>,
}

/// A type whose kernel is always worth having.
const RECORD: &str = "struct [1@0 double, 3@16 int, 1@40 (vector 7 3 5 float), 1@512 (vector 5 1 3 double)]";

/// Commands that measurements use, what for, and the Debian packages that hold them.
pub const PEERS: [(&str, &str, &str); 3] = [
    ("mpicc.mpich", "MPICH", "mpich libmpich-dev"),
    ("mpicc.openmpi", "Open MPI", "openmpi-bin libopenmpi-dev"),
    ("gcc", "hand-written loops", "gcc libc6-dev"),
];

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(program) = &arguments.mpi {
        return doctor_mpi::run(program, arguments.interposer.as_deref(), out);
    }
    let engine = Engine::builder().policy(Policy::Eager).build();
    let target = engine.target();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    writeln!(out, "dtc {}", env!("CARGO_PKG_VERSION"))?;
    row(out, "processor", &format!("{}, {cores} available", processor()))?;
    row(out, "vectors", &target.level.to_string())?;
    if let Some(problem) = dtc_runtime::unknown_level() {
        row(out, "", &problem)?;
    }
    let non_temporal = report::bytes(target.non_temporal_bytes);
    row(out, "cache", &format!("packs of more than {non_temporal} bypass it"))?;
    row(out, "kernels", &kernels(&engine))?;
    for (command, what, packages) in PEERS {
        let state = match find(command) {
            Some(path) => format!("{} ({what})", path.display()),
            None => format!("missing; {} wants it for {what}: apt-get install {packages}", called("bench --peers")),
        };
        row(out, command, &state)?;
    }
    gpu(out)?;
    store(out)?;
    bundles(out)?;
    match dtc_runtime::recording_file() {
        Some(Ok(file)) => row(out, "recording", &format!("into {}", file.display())),
        Some(Err(finding)) => row(out, "recording", &format!("off: {finding}")),
        None => Ok(()),
    }
}

/// Where compiled GPU code is kept.
fn store(out: &mut dyn Write) -> Result<(), Failure> {
    let store = Store::open(Config::from_environment());
    if store.directories().is_empty() {
        row(out, "kernel store", "off, as DTC_CACHE_DIR says")?;
    }
    for directory in store.directories() {
        let use_made = match (&directory.finding, directory.writable) {
            (Some(finding), _) => format!("not used: {finding}"),
            (None, true) => {
                format!("{}, at most {}", directory.path.display(), report::bytes(store.capacity()))
            }
            (None, false) => format!("{}, only read", directory.path.display()),
        };
        row(out, "kernel store", &use_made)?;
    }
    Ok(())
}

/// What is compiled already, as `DTC_BUNDLES` lists it.
fn bundles(out: &mut dyn Write) -> Result<(), Failure> {
    for path in Config::from_environment().bundles() {
        let state = match Bundle::open(path, dtc_runtime::REVISION) {
            Ok(bundle) => format!("{}, with kernels under {} keys", path.display(), bundle.entries()),
            Err(finding) => format!("not used: {finding}"),
        };
        row(out, "bundle", &state)?;
    }
    Ok(())
}

/// Devices and the libraries for them. That they are missing is no failure: the message says how to get them.
fn gpu(out: &mut dyn Write) -> Result<(), Failure> {
    let driver = Driver::get();
    match &driver {
        Ok(driver) => row(out, "CUDA driver", &format!("{}{}", driver.version(), place(driver.path())))?,
        Err(error) => row(out, "CUDA driver", &error.to_string())?,
    }
    match Device::list() {
        Ok(devices) => {
            for device in &devices {
                row(out, &format!("GPU {}", device.ordinal), &line(device))?;
                row(out, "first call", &first_call(device))?;
            }
            transfers(&devices, out)?;
        }
        Err(_) if driver.is_err() => row(out, "GPU", "unknown without a CUDA driver")?,
        Err(error) => row(out, "GPU", &error.to_string())?,
    }
    let nvrtc = match Nvrtc::get() {
        Err(error) => error.to_string(),
        Ok(nvrtc) => {
            let known = nvrtc.supported_architectures();
            let (oldest, newest) = (known.first().copied().unwrap_or(0), known.last().copied().unwrap_or(0));
            let advice = match &driver {
                Ok(driver) if nvrtc.version().major > driver.version().major => {
                    "; the driver is older and may refuse its code: install a newer driver, or name an older \
                     libnvrtc.so in DTC_NVRTC"
                }
                _ => "",
            };
            format!("{}{}, compiles for sm_{oldest} to sm_{newest}{advice}", nvrtc.version(), place(nvrtc.path()))
        }
    };
    row(out, "NVRTC", &nvrtc)
}

/// What the first call on a device takes in this process, without a kernel of the type's own.
fn first_call(device: &DeviceInfo) -> String {
    let Ok(datatype) = text::parse(RECORD) else { return "unknown".to_owned() };
    match FirstCall::make(device.ordinal, Policy::Off, &datatype) {
        Ok(call) => call.to_string(),
        // The log of a compiler follows the first line.
        Err(error) => format!("failed: {}", error.to_string().lines().next().unwrap_or_default()),
    }
}

/// Which GPUs reach each other's memory, and by what transfers choose their way.
fn transfers(devices: &[DeviceInfo], out: &mut dyn Write) -> Result<(), Failure> {
    let reach = |one: &DeviceInfo, other: &DeviceInfo| {
        Device::get(one.ordinal)?.can_access(&Device::get(other.ordinal)?).map(|reaches| (other.ordinal, reaches))
    };
    for one in devices.iter().filter(|_| devices.len() > 1) {
        let others = devices.iter().filter(|other| other.ordinal != one.ordinal);
        let found: Result<Vec<(u32, bool)>, _> = others.map(|other| reach(one, other)).collect();
        let text = match found {
            Err(error) => error.to_string(),
            Ok(found) => {
                let reached = found.iter().filter(|(_, reaches)| *reaches);
                let reached: Vec<String> = reached.map(|(ordinal, _)| format!("GPU {ordinal}")).collect();
                match reached.as_slice() {
                    [] => "reaches no other; transfers to others go through the driver's copies".to_owned(),
                    some => format!("reaches the memory of {}", some.join(", ")),
                }
            }
        };
        row(out, &format!("link of GPU {}", one.ordinal), &text)?;
    }
    let store = Store::open(Config::from_environment());
    let measured = |info: &&DeviceInfo| TransferModel::stored(&store, info).is_some();
    let text = match devices.iter().filter(measured).count() {
        all if all == devices.len() => format!("ways are chosen as {} measured", called("calibrate")),
        _ => format!("ways are chosen by the default model; {} measures this machine", called("calibrate")),
    };
    row(out, "transfers", &text)
}

fn place(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", path.display()))
}

fn line(device: &DeviceInfo) -> String {
    format!(
        "{}, sm_{}, {} multiprocessors, {} with {} of cache",
        device.name,
        device.architecture(),
        device.multiprocessors,
        report::bytes(device.memory_bytes),
        report::bytes(device.l2_bytes)
    )
}

/// Whether compiled code may run, found by compiling some.
fn kernels(engine: &Engine) -> String {
    let Ok(datatype) = text::parse(RECORD) else { return "unknown".to_owned() };
    let committed = engine.commit(&datatype);
    match committed.tier() {
        Tier::Specialised => "executable memory is allowed; types get kernels of their own".to_owned(),
        Tier::Generic if committed.plan().decision().specialise() => {
            "executable memory is refused, so the generic tier serves; lift the policy that forbids it \
             (SELinux execmem, a seccomp filter) to get kernels"
                .to_owned()
        }
        Tier::Generic => "not tried: the generic tier is best for everything here".to_owned(),
    }
}
