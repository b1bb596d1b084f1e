//! The program of the GPU tests works: on a driver that runs kernels on the CPU, and without any driver. Its results
//! there do not concern a GPU.

use dtc_emulator::Emulator;
use std::process::{Command, Output};

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_dtc-gpu-tests");

/// What the program leaves on the emulated GPU.
fn emulated(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Emulator::get(|| dtc_compiler::codegen::cuda::generic_source().expect("a text")).command(PROGRAM);
    command.args(arguments).envs(variables.iter().copied()).output().expect("the program")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn right_kernels_pass() {
    for arguments in [
        &["absolute addresses"] as &[&str],
        &["pointers into allocations"],
        &["generic: a forked child"],
        &["generic: transfers: memory of GPU 1, packed bytes in pageable memory"],
        &["generic: transfers: pinned memory, packed bytes in memory of GPU 0"],
        &["generic: one type in several kinds of memory"],
        &["fragments: three of four ints"],
        &["generic: batches: enqueued again at other"],
        &["generic: hostile flattened types"],
        &["generic: C: batches"],
        &["generic: C: memory and a batch at once"],
        &["generic: C: packs and unpacks"],
        &["generic: C: requests"],
        &["generic: C: copies"],
        &["generic: C: accumulations"],
        &["generic: C: on a stream"],
        &["generic: C: buffers of the caller"],
        &["generic: C: what is refused"],
        &["Yaksa: "],
        &["first call: "],
        &["tabled: packs and unpacks"],
        &["tabled: copies"],
        &["generic: tabled: copies in parts"],
        &["tabled: blocks by copies"],
        &["tabled: accumulations"],
        &["tabled: entries beyond"],
        &["tabled: tables of addresses"],
        &["tabled: kernels from a bundle"],
        &["tabled batches: drawn"],
        &["tabled batches: more than"],
        &["tabled batches: what is wrong"],
        &["--sanitizer", "rows of 17 bytes"],
        &["--sanitizer", "tiles of 33 x 65"],
    ] {
        let output = emulated(arguments, &[]);
        let said = text(&output);
        assert!(output.status.success() && said.contains("test result: ok."), "{arguments:?}: {said}");
        assert!(!said.contains(" 0 passed"), "{arguments:?}: {said}");
    }
}

#[test]
fn wrong_kernels_fail_by_name() {
    let output = emulated(&["fragments: odd runs"], &[("EMULATOR_WRONG", "1")]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["test generic: fragments: odd runs ... FAILED", "fragment 0", "pack of", "bytes are wrong; byte "] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn without_a_gpu_the_status_is_4() {
    let output = Command::new(PROGRAM).env("DTC_CUDA_DRIVER", "/missing/libcuda.so").output().expect("the program");
    let said = text(&output);
    assert!(output.status.code() == Some(4) && said.contains("install the NVIDIA driver"), "{said}");
}
