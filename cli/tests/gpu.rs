//! The commands on a GPU: without one, and on one that is emulated on the CPU.

mod common;

use common::{Run, data, emulator, is_full, write};
use dtc_runtime::cuda::Nvrtc;
use serde_json::Value;
use std::fs::read;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

/// Runs `dtc` in a folder with a GPU that is emulated.
fn emulated(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    emulator().run(env!("CARGO_BIN_EXE_dtc"), folder, arguments, variables)
}

/// Runs `dtc` in a folder where there is no GPU.
fn without(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
    command.args(arguments).current_dir(folder);
    Run::of(command.env("DTC_CUDA_DRIVER", "/missing/libcuda.so"))
}

const ROWS: &str = r#"{"count": 3, "type": {"kind": "vector", "count": 50, "blocklength": 3, "stride": 7,
    "child": {"kind": "named", "name": "MPI_INT"}}}"#;

#[test]
fn a_bench_checks_every_byte() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "byte.dtc", "vector 9 1 3 byte");
    let arguments = ["bench", "--backend", "cuda", "--rounds", "2", "rows.json", "byte.dtc"];
    let text = emulated(folder.path(), &arguments, &[]).fine();
    for part in ["sm_90", "words of 4 bytes", "x memcpy, cold", "geometric mean", "2 cases"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let wrong = emulated(folder.path(), &arguments, &[("EMULATOR_WRONG", "1")]);
    wrong.fails(3, &["pack rows", "wrong bytes", "byte 0"]);
    assert!(wrong.out.contains("WRONG"), "{}", wrong.out);
    let full = emulated(folder.path(), &arguments, &[("EMULATOR_FREE", "1000000")]);
    full.fails(3, &["memory of the GPU", "--only"]);
    emulated(folder.path(), &arguments, &[("DTC_NVRTC", "/missing/nvrtc.so")]).fails(4, &["NVRTC", "pip install"]);
}

#[test]
fn without_a_gpu_the_status_is_4() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "data", [7; 4096]);
    let transfer = ["rows.json", "--in", "data", "--out", "data2", "--backend", "cuda"];
    for arguments in [
        &["bench", "--backend", "cuda", "rows.json"] as &[&str],
        &["bench", "--backend", "cuda"],
        &["demo", "--backend", "cuda"],
        &[&["pack"], &transfer[..]].concat(),
        &[&["unpack"], &transfer[..]].concat(),
    ] {
        without(folder.path(), arguments).fails(4, &["/missing/libcuda.so", "install the NVIDIA driver"]);
    }
}

#[test]
fn files_pass_through_the_gpu() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "memory", data(4096));
    write(folder, "poison", [0xee; 4096]);
    let cases: [(&str, &[&str]); 5] = [
        ("subarray c [3@2 of 6, 4@1 of 8] double", &[]),
        ("resized 0 -64 (vector 3 1 2 int)", &["--count", "9", "--origin", "1000"]),
        ("vector 5 3 7 short", &["--count", "20", "--origin", "3", "--offset", "17", "--max", "301"]),
        ("struct [1@100 char, 2@300 double]", &["--count", "2"]),
        ("contiguous 0 int", &["--count", "7"]),
    ];
    for (notation, options) in cases {
        write(folder, "type.dtc", notation);
        let run = |way: &str, from: &str, to: &str, backend: &str| {
            let arguments = [&[way, "type.dtc", "--in", from, "--out", to, "--backend", backend], options].concat();
            emulated(folder, &arguments, &[]).fine();
            read(folder.join(to)).unwrap()
        };
        assert_eq!(run("pack", "memory", "packed", "cuda"), run("pack", "memory", "right", "generic"), "{notation}");
        for copy in ["one", "other"] {
            std::fs::copy(folder.join("poison"), folder.join(copy)).unwrap();
        }
        assert_eq!(run("unpack", "right", "one", "cuda"), run("unpack", "right", "other", "generic"), "{notation}");
    }
    let pack = ["pack", "type.dtc", "--in", "memory", "--out", "packed", "--backend", "cuda"];
    emulated(folder, &[&pack[..], &["--threads", "2"]].concat(), &[]).fails(2, &["--threads"]);
    write(folder, "type.dtc", "subarray c [3@2 of 6, 4@1 of 8] double");
    emulated(folder, &pack, &[("EMULATOR_FREE", "500")]).fails(3, &["memory of GPU 0", "an element", "500 bytes"]);
}

#[test]
fn large_files_pass_in_groups() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    // Two elements fit a group.
    let extent = 130_000_000;
    write(folder, "type.dtc", format!("resized 8 {extent} (vector 3 2 20000000 short)"));
    let places = (0..3).flat_map(|element| (0..3).map(move |row| element * extent + row * 40_000_000));
    for (name, random) in [("memory", true), ("other", false)] {
        let file = std::fs::File::create(folder.join(name)).unwrap();
        file.set_len(3 * extent).unwrap();
        for place in places.clone().filter(|_| random) {
            file.write_all_at(&place.to_le_bytes()[..4], place).unwrap();
        }
    }
    let options = ["--count", "3", "--backend", "cuda"];
    let arguments = ["pack", "type.dtc", "--in", "memory", "--out", "packed"];
    emulated(folder, &[&arguments[..], &options].concat(), &[]).fine();
    let right: Vec<u8> = places.clone().flat_map(|place| place.to_le_bytes()[..4].to_vec()).collect();
    assert_eq!(read(folder.join("packed")).unwrap(), right);
    let arguments = ["unpack", "type.dtc", "--in", "packed", "--out", "other"];
    emulated(folder, &[&arguments[..], &options].concat(), &[]).fine();
    let other = std::fs::File::open(folder.join("other")).unwrap();
    for place in places {
        let mut found = [0xee; 6];
        other.read_exact_at(&mut found[1..], place).unwrap();
        assert_eq!((&found[1..5], found[5]), (&place.to_le_bytes()[..4], 0));
    }
}

#[test]
fn demos_run_on_the_gpu_if_there_is_one() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "back.dtc", "vector 4 1 -3 int");
    write(folder.path(), "none.dtc", "contiguous 0 int");
    for arguments in [&["demo", "rows.json", "-v"] as &[&str], &["demo", "back.dtc", "-v", "--backend", "cuda"]] {
        let text = emulated(folder.path(), arguments, &[]).fine();
        let parts = ["GPU 0", "plan for the GPU", "move_block(", "specialised", "x device copy", "every byte equals"];
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    assert!(emulated(folder.path(), &["demo", "none.dtc"], &[]).fine().contains("no kernel"));
    let text = emulated(folder.path(), &["demo", "rows.json"], &[("DTC_NVRTC", "/missing/nvrtc.so")]).fine();
    assert!(text.contains("no kernel: NVRTC") && text.contains("every byte equals"), "{text}");
    emulated(folder.path(), &["demo", "rows.json"], &[("EMULATOR_WRONG", "1")]).fails(3, &["generic pack", "byte 0"]);
    assert!(!emulated(folder.path(), &["demo", "rows.json", "--backend", "cpu"], &[]).fine().contains("GPU"));
    let failed = without(folder.path(), &["demo", "rows.json", "--backend", "cuda"]);
    failed.fails(4, &["CUDA driver"]);
    assert_eq!(failed.out, "", "a missing GPU is told before anything else");
    let text = without(folder.path(), &["demo", "rows.json", "--verbose"]).fine();
    assert!(text.contains("plan for this processor") && text.contains("memcpy"), "{text}");
    // Of 64 MiB, which the emulator moves for a long time.
    if !is_full() {
        return;
    }
    let text = emulated(folder.path(), &["demo"], &[]).fine();
    let parts = [
        "cuMemcpy2D: 4096 calls",
        "2-D FFT's transpose",
        "x cuMemcpy2D",
        "x device copy, on GPU 0",
        "every byte equals",
    ];
    for part in parts {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn kernels_are_emitted_for_targets() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "rows.json", ROWS);
    write(folder, "piece.dtc", "contiguous 7 int");
    write(folder, "list.dtc", "indexed [1@0, 3@2, 1@9, 2@11] int");
    // The stub of NVRTC hands out the source.
    for form in ["cuda", "ptx", "cubin"] {
        let emit = ["emit", "rows.json", "--as", form, "-o", "out"];
        for (options, pack, unpack) in [
            (&[] as &[&str], true, true),
            (&["--direction", "pack"], true, false),
            (&["--target", "sm_80"], true, true),
        ] {
            assert_eq!(emulated(folder, &[&emit[..], options].concat(), &[]).fine(), "");
            let text = String::from_utf8(read(folder.join("out")).unwrap()).unwrap();
            assert_eq!((text.contains("dtc_pack("), text.contains("dtc_unpack(")), (pack, unpack), "{form}: {text}");
        }
    }
    let emit =
        |arguments: &[&str], variables: &[(&str, &str)]| emulated(folder, &[&["emit"], arguments].concat(), variables);
    assert!(emit(&["list.dtc", "--as", "cuda"], &[]).fine().contains("bytes of lists"));
    assert!(emit(&["piece.dtc", "--as", "cuda"], &[]).fine().contains("// contiguous"));
    emit(&["piece.dtc", "--as", "ptx"], &[]).fails(2, &["--as", "contiguous"]);
    emit(&["rows.json", "--as", "asm", "--target", "sm_90"], &[]).fails(2, &["--target", "sm_90"]);
    emit(&["rows.json", "--as", "ptx", "--target", "sm_70"], &[]).fails(4, &["NVRTC", "[75, 80, 90]"]);
    emit(&["rows.json", "--as", "ptx"], &[("DTC_NVRTC", "/missing/nvrtc.so")]).fails(4, &["NVRTC", "pip install"]);
    assert_eq!(emit(&["rows.json", "--as", "ptx", "--target", "90"], &[]).status, 2);
    without(folder, &["emit", "rows.json", "--as", "ptx", "--target", "native"]).fails(4, &["CUDA driver"]);
}

#[test]
fn nvrtc_compiles_what_is_emitted() {
    if let Err(error) = Nvrtc::get() {
        // The form that `./test` counts.
        let _ = std::io::stderr().write_all(format!("\nskipped: nvrtc_compiles_what_is_emitted: {error}\n").as_bytes());
        return;
    }
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "rows.json", ROWS);
    // Where there is no GPU, for sm_90.
    let text = without(folder, &["emit", "rows.json", "--as", "ptx"]).fine();
    assert!(text.contains(".target sm_90") && text.contains(".entry dtc_unpack"), "{text}");
    assert!(without(folder, &["emit", "rows.json", "--as", "ptx", "--target", "sm_80"]).fine().contains("sm_80"));
    without(folder, &["emit", "rows.json", "--as", "cubin", "-o", "cubin"]).fine();
    assert!(read(folder.join("cubin")).unwrap().starts_with(b"\x7fELF"));
}

#[test]
fn plans_for_a_gpu_need_none() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "rows.json", ROWS);
    write(folder, "piece.dtc", "contiguous 7 int");
    let text = without(folder, &["explain", "rows.json"]).fine();
    assert!(!text.contains("GPU") && text.contains("words of the layouts"), "{text}");
    assert!(emulated(folder, &["explain", "rows.json"], &[]).fine().contains("plan for a GPU"));
    let text = without(folder, &["explain", "rows.json", "--gpu"]).fine();
    for part in ["plan for a GPU", "pack: words of 4 bytes", "odd address", "until it is compiled", "least traffic"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let object = without(folder, &["explain", "rows.json", "--json"]).fine();
    let gpu = &serde_json::from_str::<Value>(&object).unwrap()["gpu"];
    assert_eq!((&gpu["compiles"], &gpu["contiguous"]), (&true.into(), &false.into()));
    for variant in gpu["variants"].as_array().unwrap() {
        for key in ["direction", "call", "kernel", "generic"] {
            assert!(variant[key].is_string(), "{variant}");
        }
    }
    let unpack = &gpu["roofline"]["unpack"];
    assert!(unpack["written_bytes"].as_u64() > Some(0) && unpack["least_us"].as_f64() > Some(0.0), "{unpack}");
    let object = without(folder, &["explain", "piece.dtc", "--json"]).fine();
    assert_eq!(serde_json::from_str::<Value>(&object).unwrap()["gpu"]["contiguous"], true);
}

#[test]
fn the_doctor_tells_of_the_store() {
    let folder = tempdir().expect("a folder");
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    for (directory, part) in
        [("off", "off, as DTC_CACHE_DIR says"), (store, store), ("/dev/null/dtc", "not used: /dev/null")]
    {
        let text = emulated(folder.path(), &["doctor"], &[("DTC_CACHE_DIR", directory)]).fine();
        assert!(text.contains("kernel store") && text.contains(part), "{part} in {text}");
        let calls: Vec<&str> = text.lines().filter(|line| line.contains("first call     context ")).collect();
        assert!(calls.len() == 2 && calls[0].ends_with("; machine code of sm_90"), "{text}");
    }
}
