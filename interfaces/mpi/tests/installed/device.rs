//! Memory of a GPU in the messages of every MPI of the machine: of an emulated GPU, which hides it from all but its own copies and
//! kernels, so that an MPI or an interposer that touches it ends by a signal; and, for an MPI that says that it is CUDA-aware, in the open.

use super::launcher::{Launcher, handled, interposer, preload};
use super::{root, succeed, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The emulated driver, with its generic kernels compiled.
static EMULATOR: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join("driver.so"));
    succeed(compiler.arg(root().join("tests/emulator/cpu/driver.c")).arg("-ldl"));
    let generic = dtc_compiler::codegen::cuda::generic_source().expect("a text");
    std::fs::write(folder.path().join("generic.cu"), generic).expect("a file");
    folder
});

/// What a program needs to find the emulated driver. Kernels are the generic ones alone: those of types take seconds to compile.
pub fn environment(hidden: bool) -> Vec<(&'static str, String)> {
    let folder = EMULATOR.path();
    let include =
        ["tests/emulator/shim", "tests/emulator/cpu"].map(|part| format!("-I{}", root().join(part).display()));
    let path = |file: &str| folder.join(file).display().to_string();
    vec![
        ("DTC_CUDA_DRIVER", path("driver.so")),
        ("DTC_NVRTC", path("missing")),
        ("DTC_CACHE_DIR", "off".to_owned()),
        ("EMULATOR_FOLDER", folder.display().to_string()),
        ("EMULATOR_GENERIC", path("generic.cu")),
        ("EMULATOR_INCLUDE", include.join(" ")),
        ("EMULATOR_HIDDEN", if hidden { "1" } else { "" }.to_owned()),
        ("DTC_MPI_REPORT", "1".to_owned()),
    ]
}

fn pairs<'a>(environment: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// Compiles a program for memory of a GPU.
fn compile(launcher: &Launcher, source: &str, folder: &Path) -> PathBuf {
    launcher.compile(source, folder, &["-Wno-stringop-overflow", "-Wno-stringop-overread", "-ldl"])
}

/// Holds the reports of a run against what they should contain.
#[track_caller]
fn expect_reported(output: &Output, parts: &[&str]) {
    let report = String::from_utf8_lossy(&output.stderr).into_owned() + &text(output);
    for part in parts {
        assert!(report.contains(part), "{part} in {report}");
    }
}

#[track_caller]
fn expect_done(launcher: &Launcher, output: &Output, program: &str, least: u64) {
    assert!(text(output).contains(&format!("{program}: done")), "{}", text(output));
    let (sent, received) = (handled(output, ": sent:"), handled(output, ": received:"));
    assert!(sent > least && received > least, "{}: {sent} {received}", launcher.compiler.display());
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn an_mpi_without_cuda_never_sees_memory_of_a_gpu() {
    let environment = environment(true);
    for launcher in Launcher::some("an_mpi_without_cuda_never_sees_memory_of_a_gpu") {
        let folder = TempDir::new().expect("a folder");
        let program = compile(&launcher, "device.c", folder.path());
        let ranks = if launcher.compiler.is_relative() { 3 } else { 2 };
        let output = launcher.pass(ranks, &program, &pairs(&environment));
        expect_done(&launcher, &output, "device", 500);
        expect_reported(
            &output,
            &[
                "memory of a GPU: staged in memory of the host (",
                "left to the MPI with memory of a GPU: MPI_Allgather ",
                ": elements in device memory, packed in pinned memory: ",
                ": elements in device memory, packed in device memory: ",
                ": elements in host memory, packed in device memory: ",
            ],
        );
        let program = compile(&launcher, "device_exchanges.c", folder.path());
        let output = launcher.pass(2, &program, &pairs(&without_direct(&environment)));
        expect_done(&launcher, &output, "device_exchanges", 50);
        expect_reported(&output, &["exchanges between GPUs of a machine: through the MPI (DTC_MPI_DIRECT=off)"]);
        assert_eq!(handled(&output, DIRECT), 0, "{}", launcher.compiler.display());
        for ranks in [2, 4] {
            let output = launcher.pass(ranks, &program, &pairs(&environment));
            expect_done(&launcher, &output, "device_exchanges", 50);
            // Blocking collectives whose elements all lie on the GPU.
            let direct = handled(&output, DIRECT);
            assert!(direct > 10 * u64::from(ranks), "{}: {direct}", launcher.compiler.display());
        }
        let program = compile(&launcher, "persistent_exchanges.c", folder.path());
        expect_done(&launcher, &launcher.pass(3, &program, &pairs(&environment)), "persistent_exchanges", 400);
    }
}

/// The line of the report that counts exchanges without the MPI.
const DIRECT: &str = ": packed into memory of other processes:";

/// The same, where processes exchange through the MPI.
fn without_direct(environment: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    environment.iter().cloned().chain([("DTC_MPI_DIRECT", "off".to_owned())]).collect()
}

/// Each thread has a communicator, and exchanges from GPU to GPU or through the host.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn threads_exchange_elements_on_a_gpu_at_once() {
    let environment = environment(true);
    for launcher in Launcher::some("threads_exchange_elements_on_a_gpu_at_once") {
        let folder = TempDir::new().expect("a folder");
        let options = ["-Wno-stringop-overflow", "-Wno-stringop-overread", "-ldl", "-pthread"];
        let program = launcher.compile("device_threads.c", folder.path(), &options);
        let staged = launcher.pass(2, &program, &pairs(&without_direct(&environment)));
        expect_done(&launcher, &staged, "device_threads", 100);
        let direct = launcher.pass(2, &program, &pairs(&environment));
        expect_done(&launcher, &direct, "device_threads", 100);
        // A call goes through the host if the other thread is decoding a datatype.
        assert!(handled(&direct, DIRECT) > 100, "{}", launcher.compiler.display());
    }
}

/// Processes exchange directly if all have the library, and none refuses.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn one_process_that_does_not_take_part_keeps_all_from_exchanging_directly() {
    let environment = environment(true);
    for launcher in Launcher::some("one_process_that_does_not_take_part_keeps_all_from_exchanging_directly") {
        let folder = TempDir::new().expect("a folder");
        let program = compile(&launcher, "device_exchanges.c", folder.path());
        let off = launcher.pass_beside(&program, &pairs(&environment), &[("DTC_MPI_DIRECT", "off")]);
        expect_done(&launcher, &off, "device_exchanges", 50);
        // Those of a process with itself, in communicators of one process.
        assert!(handled(&off, DIRECT) < 10, "{}: {}", launcher.compiler.display(), text(&off));
        // A process without the library keeps to memory of the host.
        let program = launcher.compile("exchanges.c", folder.path(), &["-ldl"]);
        let without = launcher.pass_beside(&program, &pairs(&environment), &[("LD_PRELOAD", &preload(&[]))]);
        assert!(text(&without).contains("exchanges: done"), "{}", text(&without));
        assert_eq!(handled(&without, DIRECT), 0, "{}", launcher.compiler.display());
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn large_count_forms_take_memory_of_a_gpu() {
    let environment = environment(true);
    for launcher in Launcher::some("large_count_forms_take_memory_of_a_gpu") {
        // Open MPI lacks them.
        if launcher.compiler.display().to_string().contains("openmpi") {
            continue;
        }
        let folder = TempDir::new().expect("a folder");
        for (source, least) in [("device.c", 500), ("device_exchanges.c", 25), ("persistent_exchanges.c", 250)] {
            let flags = ["-DLARGE_COUNTS", "-Wno-stringop-overflow", "-Wno-stringop-overread", "-ldl"];
            let program = launcher.compile(source, folder.path(), &flags);
            let output = launcher.pass(2, &program, &pairs(&environment));
            expect_done(&launcher, &output, source.trim_end_matches(".c"), least);
        }
    }
}

/// Neither by the interposer nor by libdtc.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn messages_pass_where_no_memory_can_be_pinned() {
    let mut environment = environment(true);
    environment.push(("EMULATOR_NO_PINNED", "1".to_owned()));
    let test = "messages_pass_where_no_memory_can_be_pinned";
    for launcher in Launcher::all(test).iter().filter(|launcher| launcher.compiler.is_relative()) {
        let folder = TempDir::new().expect("a folder");
        for (source, least) in [("device.c", 500), ("device_exchanges.c", 25)] {
            let program = compile(launcher, source, folder.path());
            let output = launcher.pass(2, &program, &pairs(&environment));
            expect_done(launcher, &output, source.trim_end_matches(".c"), least);
            expect_reported(&output, &[": elements in device memory, packed in host memory: "]);
        }
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn calls_that_find_no_memory_on_a_gpu_fail_and_leave_their_elements() {
    let environment = environment(true);
    for launcher in Launcher::some("calls_that_find_no_memory_on_a_gpu_fail_and_leave_their_elements") {
        let folder = TempDir::new().expect("a folder");
        let program = compile(&launcher, "shortage.c", folder.path());
        let said = text(&launcher.pass(1, &program, &pairs(&environment)));
        let told = said.lines().find_map(|line| line.strip_prefix("shortage: ")).unwrap_or_else(|| panic!("{said}"));
        let numbers: Vec<u32> = told.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] > 0 && numbers[1] > 20, "{}: {told}", launcher.compiler.display());
    }
}

/// Without the interposer: the emulated GPU would not let it pass.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn a_gpu_is_hidden_from_an_mpi() {
    let mut environment = environment(true);
    environment.push(("DTC_MPI", "off".to_owned()));
    for launcher in Launcher::some("a_gpu_is_hidden_from_an_mpi") {
        let folder = TempDir::new().expect("a folder");
        let program = compile(&launcher, "device.c", folder.path());
        let output = launcher.run(2, &program, &pairs(&environment));
        assert!(!output.status.success(), "{}: {}", launcher.compiler.display(), text(&output));
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn a_cuda_aware_mpi_is_given_packed_bytes_on_the_gpu() {
    for launcher in Launcher::some("a_cuda_aware_mpi_is_given_packed_bytes_on_the_gpu") {
        let folder = TempDir::new().expect("a folder");
        let aware = launcher.compile("aware.c", folder.path(), &["-shared", "-fPIC", "-ldl"]);
        let mut environment = environment(false);
        environment.push(("LD_PRELOAD", preload(&[&interposer(), &aware])));
        environment.push(("DEVICE_AWARE", "1".to_owned()));
        let program = compile(&launcher, "device.c", folder.path());
        let output = launcher.pass(2, &program, &pairs(&environment));
        expect_done(&launcher, &output, "device", 300);
        let given = "memory of a GPU: given to the MPI (MPIX_Query_cuda_support)";
        expect_reported(&output, &[given, ": elements in device memory, packed in device memory: "]);
        let said = text(&output);
        let told: Vec<&str> = said.lines().filter_map(|line| line.split("aware: ").nth(1)).collect();
        let counts = |word: &str| -> Vec<u64> {
            let parts = told.iter().flat_map(|line| line.split(", "));
            parts.filter(|part| part.ends_with(word)).filter_map(|part| part.split(' ').next()?.parse().ok()).collect()
        };
        // Contiguous elements and long messages on the GPU, short ones in pinned memory.
        let compiler = launcher.compiler.display();
        for kind in ["of a GPU", "pinned"] {
            let given = counts(kind);
            assert!(given.len() == 2 && given.iter().all(|&count| count > 50), "{compiler}: {kind} in {said}");
        }
        for (source, least) in [("device_exchanges.c", 30), ("persistent_exchanges.c", 250)] {
            let program = compile(&launcher, source, folder.path());
            expect_done(
                &launcher,
                &launcher.pass(3, &program, &pairs(&environment)),
                source.trim_end_matches(".c"),
                least,
            );
        }
        // The same MPI is given memory of the host, and none of the GPU.
        let program = compile(&launcher, "device_exchanges.c", folder.path());
        environment.push(("DTC_MPI_GPU", "host".to_owned()));
        environment.push(("EMULATOR_HIDDEN", "1".to_owned()));
        let output = launcher.pass(2, &program, &pairs(&environment));
        expect_done(&launcher, &output, "device_exchanges", 50);
        expect_reported(&output, &["memory of a GPU: staged in memory of the host (DTC_MPI_GPU=host)"]);
    }
}
