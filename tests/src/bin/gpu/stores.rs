//! The store of compiled code: one process compiles, the next one finds the code, and damage costs only a compilation.
//! Each process is this program with a hidden argument.

use crate::buffers::Buffers;
use crate::harness::{Fault, Outcome, Tests, expect, text};
use crate::types;
use dtc_compiler::Pipeline;
use dtc_runtime::cuda::{Device, Nvrtc};
use dtc_runtime::store::{Config, Key, Store};
use dtc_runtime::{BundleWriter, Engine, Tier};
use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The argument that selects such a process.
pub const CHILD: &str = "--store-child";

/// Time limit for a kernel from the store.
const QUICK: Duration = Duration::from_millis(50);

/// The same for a kernel as PTX, which the driver compiles: 56 to 62 ms without its cache, on an H100.
const QUICK_PTX: Duration = Duration::from_millis(250);

pub fn add(tests: &mut Tests) {
    tests.add("store: a second process finds what the first compiled", second_process);
    let filled = Rc::new(OnceCell::new());
    for damage in DAMAGES {
        let filled = filled.clone();
        tests.add(format!("store: {}", damage.name), move || survives(damage, &filled));
    }
    tests.add("store: none", none);
    tests.add("store: a bundle has machine code for this device", || bundled(None));
    tests.add("store: a bundle has PTX for an older device", || bundled(Some(75)));
}

/// Observations of a process.
#[derive(Debug)]
struct Report {
    specialised: bool,
    prepare: Duration,
    nvrtc: bool,
    line: String,
}

/// The child process: packs on the device, compares, and reports on one line.
pub fn child() -> ExitCode {
    let look = || -> Result<(Tier, Duration, String), String> {
        let engine = Engine::new();
        let gpu = engine.gpu(0).map_err(text)?;
        gpu.load().map_err(text)?;
        let committed = engine.commit(&types::listed(7, 1000)?);
        let start = Instant::now();
        let tier = committed.prepare(&gpu).map_err(text)?;
        let prepare = start.elapsed();
        let mut buffers = Buffers::new(&gpu, &committed, 1, 1)?;
        buffers.pack_and_check(&committed)?;
        let total = buffers.expected.len();
        buffers.fragment(&committed, 0, total, 0)?;
        Ok((tier, prepare, gpu.problem().map(|problem| problem.to_string()).unwrap_or_default()))
    };
    match look() {
        Ok((tier, prepare, problem)) => {
            let nvrtc = fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libnvrtc"));
            let problem = problem.replace('\n', " ");
            println!("store-child {tier} {} {nvrtc} {problem}", prepare.as_micros());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            println!("store-child failed: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a child process on a store, with or without NVRTC.
fn look(folder: &Path, nvrtc: bool) -> Result<Report, String> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.arg(CHILD).env("DTC_CACHE_DIR", folder).env_remove("DTC_CACHE_SITE");
    // One that is absent is left out.
    command.env("DTC_BUNDLES", bundle_beside(folder));
    if !nvrtc {
        command.env("DTC_NVRTC", folder.join("no-libnvrtc.so"));
    }
    let output = command.output().map_err(text)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find(|line| line.starts_with("store-child ")).unwrap_or_default().to_owned();
    let failed =
        || format!("{}: {said}{} (NVRTC: {nvrtc})", output.status, String::from_utf8_lossy(&output.stderr).trim());
    expect(output.status.success(), failed)?;
    let words: Vec<&str> = line.split(' ').collect();
    let [_, tier, micros, opened, ..] = words[..] else { return Err(failed()) };
    let prepare = Duration::from_micros(micros.parse().map_err(text)?);
    Ok(Report { specialised: tier == "specialised", prepare, nvrtc: opened == "true", line })
}

fn expect_report(report: &Report, what: &str, specialised: bool, nvrtc: bool) -> Result<(), String> {
    let right = report.specialised == specialised && report.nvrtc == nvrtc;
    expect(right, || format!("{what}: expected specialised {specialised}, NVRTC {nvrtc}; found {report:?}"))
}

/// A directory that a child process has filled.
fn filled() -> Result<(TempDir, PathBuf), Fault> {
    if let Err(error) = Nvrtc::get() {
        return Err(Fault::Skipped(error.to_string()));
    }
    let scratch = tempfile::tempdir().map_err(text)?;
    let folder = scratch.path().join("kernels");
    let report = look(&folder, true)?;
    expect_report(&report, "the process that finds nothing", true, true)?;
    println!("  compiled in {:?}", report.prepare);
    expect(!entries(&folder)?.is_empty(), || "the process that compiled has kept nothing".to_owned())?;
    Ok((scratch, folder))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "kernel"));
    Ok(paths)
}

fn second_process() -> Outcome {
    let (_scratch, folder) = filled()?;
    // One run more than needed: the first process after a compilation may find cold files.
    let mut best = Duration::MAX;
    for _ in 0..2 {
        let report = look(&folder, false)?;
        expect_report(&report, "a process without NVRTC", true, false)?;
        println!("  from the store in {:?}", report.prepare);
        best = best.min(report.prepare);
    }
    let report = look(&folder, true)?;
    expect_report(&report, "a process that could open NVRTC", true, false)?;
    Ok(expect(best <= QUICK, || format!("the quickest of two took {best:?}, expected at most {QUICK:?}"))?)
}

/// Without entries and without NVRTC, the generic kernels serve.
fn none() -> Outcome {
    let scratch = tempfile::tempdir().map_err(text)?;
    let report = look(&scratch.path().join("kernels"), false)?;
    expect_report(&report, "without NVRTC and entries", false, false)?;
    let told = report.line.contains("pip install nvidia-cuda-nvrtc");
    Ok(expect(told, || format!("the problem does not say how to get NVRTC: {}", report.line))?)
}

/// The file of the bundle that a child process with this store loads.
fn bundle_beside(folder: &Path) -> PathBuf {
    folder.with_extension("dtc")
}

/// Without entries and without NVRTC, a bundle serves, which was made for an architecture or for this device's.
fn bundled(architecture: Option<u32>) -> Outcome {
    if let Err(error) = Nvrtc::get() {
        return Err(Fault::Skipped(error.to_string()));
    }
    let own = Device::get(0).map_err(text)?.info().architecture();
    let mut writer = BundleWriter::default();
    let made = writer.add_gpu(&Pipeline::new(types::listed(7, 1000)?), &[architecture.unwrap_or(own)]).map_err(text)?;
    expect(made, || "the type has no kernels".to_owned())?;
    let scratch = tempfile::tempdir().map_err(text)?;
    let folder = scratch.path().join("kernels");
    fs::write(bundle_beside(&folder), writer.finish()).map_err(text)?;
    // One run more than needed: the driver keeps what it makes of PTX.
    let mut best = Duration::MAX;
    for _ in 0..2 {
        let report = look(&folder, false)?;
        expect_report(&report, "a process with a bundle", true, false)?;
        println!("  from the bundle in {:?}", report.prepare);
        best = best.min(report.prepare);
    }
    expect(entries(&folder)?.is_empty(), || "the process with a bundle has kept an entry".to_owned())?;
    let most = if architecture.is_none() { QUICK } else { QUICK_PTX };
    Ok(expect(best <= most, || format!("the quickest of two took {best:?}, expected at most {most:?}"))?)
}

/// Damage to the files of a store.
#[derive(Clone, Copy)]
struct Damage {
    name: &'static str,
    /// Damages the directory; called for each entry in it.
    happens: fn(&Path, &Path) -> Result<(), String>,
    /// Whether the next process compiles again.
    compiles: bool,
    /// Whether the code that it compiles can be kept for a third process.
    keeps: bool,
    /// Whether only root can cause the damage.
    as_root: bool,
}

const DAMAGES: [Damage; 11] = [
    Damage { name: "a flipped bit in the code", happens: flip_last, ..Damage::OF_FILE },
    Damage { name: "a flipped bit in the header", happens: flip_header, ..Damage::OF_FILE },
    Damage { name: "half of the file", happens: |_, entry| cut(entry, 2), ..Damage::OF_FILE },
    Damage { name: "an empty file", happens: |_, entry| cut(entry, 1 << 40), ..Damage::OF_FILE },
    Damage { name: "another key's kernel that does nothing", happens: foreign, ..Damage::OF_FILE },
    Damage { name: "code that the driver refuses", happens: refused_code, ..Damage::OF_FILE },
    Damage { name: "code without the kernel", happens: other_code, ..Damage::OF_FILE },
    Damage { name: "a file that others may write", happens: |_, entry| mode(entry, 0o666), ..Damage::OF_FILE },
    Damage { name: "a file of another user", happens: |_, entry| give_away(entry), as_root: true, ..Damage::OF_FILE },
    Damage {
        name: "a directory that others may write",
        happens: |folder, _| mode(folder, 0o777),
        keeps: false,
        ..Damage::OF_FILE
    },
    Damage {
        name: "a directory that cannot be written",
        happens: |folder, _| mode(folder, 0o500),
        compiles: false,
        keeps: false,
        ..Damage::OF_FILE
    },
];

impl Damage {
    const OF_FILE: Damage = Damage { name: "", happens: |_, _| Ok(()), compiles: true, keeps: true, as_root: false };
}

/// The result is right with NVRTC and without, and recompiled code replaces the damaged entry.
fn survives(damage: Damage, source: &OnceCell<(TempDir, PathBuf)>) -> Outcome {
    if source.get().is_none() {
        let _ = source.set(filled()?);
    }
    let (_, source) = source.get().ok_or("the store was not filled")?;
    let is_root = fs::metadata(source).map_err(text)?.uid() == 0;
    if damage.as_root && !is_root {
        return Err(Fault::Skipped("only root can do that".to_owned()));
    }
    let scratch = tempfile::tempdir().map_err(text)?;
    let [with, without] = ["with", "without"].map(|name| scratch.path().join(name));
    for folder in [&with, &without] {
        fs::create_dir(folder).map_err(text)?;
        mode(folder, 0o700)?;
        for entry in entries(source)? {
            let copy = folder.join(entry.file_name().unwrap_or_default());
            fs::copy(&entry, &copy).map_err(text)?;
            (damage.happens)(folder, &copy)?;
        }
    }
    // Both run at once, because starting CUDA takes most of the time.
    let (generic, again) = std::thread::scope(|scope| {
        let generic = scope.spawn(|| look(&without, false));
        let again = look(&with, true);
        (generic.join(), again)
    });
    expect_report(&generic.map_err(|_| "a thread panicked")??, "without NVRTC", !damage.compiles, false)?;
    expect_report(&again?, "with NVRTC", true, damage.compiles)?;
    if damage.keeps {
        expect_report(&look(&with, false)?, "after it was compiled again", true, false)?;
    }
    // The owner removes the directories.
    [with, without].iter().try_for_each(|folder| mode(folder, 0o700))?;
    Ok(())
}

fn change(entry: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), String> {
    let mut bytes = fs::read(entry).map_err(text)?;
    change(&mut bytes);
    fs::write(entry, bytes).map_err(text)
}

fn flip_last(_: &Path, entry: &Path) -> Result<(), String> {
    change(entry, |bytes| {
        if let Some(byte) = bytes.last_mut() {
            *byte ^= 1;
        }
    })
}

fn flip_header(_: &Path, entry: &Path) -> Result<(), String> {
    change(entry, |bytes| bytes[20] ^= 1)
}

fn cut(entry: &Path, part: usize) -> Result<(), String> {
    change(entry, |bytes| bytes.truncate(bytes.len() / part))
}

fn mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(text)
}

fn give_away(entry: &Path) -> Result<(), String> {
    std::os::unix::fs::chown(entry, Some(12_345), None).map_err(text)
}

/// Code that has the names of the expected kernels and does nothing.
fn idle_kernels() -> String {
    let parameters = ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u32 f, .param .align 8 .b8 g[16]";
    let kernels = ["dtc_pack", "dtc_unpack"].map(|name| format!(".visible .entry {name}({parameters}) {{ ret; }}\n"));
    format!(".version 7.0\n.target sm_70\n.address_size 64\n{}", kernels.concat())
}

fn foreign(folder: &Path, entry: &Path) -> Result<(), String> {
    let store = Store::open(Config::none().directory(folder));
    let key = Key::of(&[b"another source"]);
    expect(store.put(&key, idle_kernels().as_bytes()), || "the store takes nothing".to_owned())?;
    let other = folder.join(format!("{key}.kernel"));
    if entry != other {
        fs::copy(&other, entry).map_err(text)?;
    }
    Ok(())
}

/// Writes code into an entry as the runtime does, so that only the code is wrong.
fn put(folder: &Path, entry: &Path, code: &[u8]) -> Result<(), String> {
    let store = Store::open(Config::none().directory(folder));
    let listed = store.list();
    let key = listed.iter().find(|listed| listed.path.file_name() == entry.file_name()).map(|listed| listed.key);
    let key = key.ok_or("the entry is not listed")?;
    expect(store.put(&key, code), || "the store takes nothing".to_owned())
}

fn refused_code(folder: &Path, entry: &Path) -> Result<(), String> {
    put(folder, entry, b"no code of any kind")
}

fn other_code(folder: &Path, entry: &Path) -> Result<(), String> {
    put(folder, entry, b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry another() { ret; }\n")
}
