//! The commands that report on types and machines.

mod common;

use common::{Run, dtc, is_full, write};
use dtc_compiler::tabled::TabledLayout;
use dtc_emulator::{Stub, build_stub};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// A type whose kernel is worth having: unlike arrays in a loop.
const TYPE: &str = r#"{"story": "unlike rows", "count": 3, "type": {"kind": "struct", "blocklengths": [1, 2, 1],
    "displacements_bytes": [0, 24, 700], "children": [
        {"kind": "named", "name": "MPI_DOUBLE"},
        {"kind": "vector", "count": 9, "blocklength": 3, "stride": 7, "child": {"kind": "named", "name": "MPI_FLOAT"}},
        {"kind": "vector", "count": 5, "blocklength": 1, "stride": 3, "child": {"kind": "named", "name": "MPI_SHORT"}}]}}"#;

#[test]
fn explain_tells_of_index_tables() {
    let folder = tempdir().expect("a folder");
    let notation = "hvector 2 1 512 (table 0 8 4 64 (contiguous 8 double))";
    let text = dtc(folder.path(), &["explain", notation]).fine();
    for part in [
        "at most 4 indices below 8",
        "512 packed bytes",
        "0, 1024",
        "words of 16 bytes by table",
        "generic kernels",
        "hash",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let object: Value = serde_json::from_str(&dtc(folder.path(), &["explain", notation, "--json"]).fine()).unwrap();
    assert_eq!(object["most_bytes"], 512);
    assert!(text.contains(object["hash"].as_str().unwrap()));
    write(folder.path(), "t.dtc", notation);
    assert_eq!(dtc(folder.path(), &["explain", "t.dtc"]).fine(), text);
    // What knows no tables names them.
    dtc(folder.path(), &["lower", notation]).fails(2, &["a type without index tables"]);
    dtc(folder.path(), &["emit", notation, "--as", "mpi-c"])
        .fails(2, &["--as", "for a type with index tables, found mpi-c"]);
    for (form, part) in [
        ("layout", "tabled {"),
        ("c", "size_t t_size(const struct t_tables *tables);"),
        ("cuda-header", "struct t {"),
        ("cuda", "dtc_tabled"),
    ] {
        let text = dtc(folder.path(), &["emit", "t.dtc", "--as", form]).fine();
        assert!(text.contains(part), "{part} in {text}");
    }
    dtc(folder.path(), &["emit", "t.dtc", "--as", "c", "--header", "t.h", "-o", "t.c"]).fine();
    assert!(std::fs::read_to_string(folder.path().join("t.h")).unwrap().contains("#define T_MOST_BYTES 512"));
}

/// The least traffic of a call with tables: assumed ones, those of an argument, and those of a file.
#[test]
fn explain_reckons_with_index_tables() {
    let folder = tempdir().expect("a folder");
    // Rows of 64 bytes at multiples of 256.
    let notation = "table 0 32 4 256 (contiguous 8 double)";
    let explain = |given: &[&str]| dtc(folder.path(), &[&["explain", notation][..], given].concat());
    let text = explain(&[]).fine();
    for part in
        ["a call with tables of 4 entries, assumed", "moves 256 bytes in 4 pieces, in 8 sectors", "at most 1.00 of"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    write(folder.path(), "list", "7\n-1, 9");
    for (given, call) in [("7,-1", (2, 64, 1, 2)), ("list", (3, 128, 2, 4)), ("", (0, 0, 0, 0))] {
        let text = explain(&["--table", given, "--json"]).fine();
        let object: Value = serde_json::from_str(&text).unwrap();
        let (entries, bytes, pieces, sectors) = call;
        let expected =
            json!({"assumed": false, "lengths": [entries], "bytes": bytes, "pieces": pieces, "sectors": sectors});
        assert_eq!(object["call"], expected, "{given}");
        assert_eq!(object["gpu"]["roofline"]["unpack"]["written_bytes"], 32 * sectors, "{given}");
    }
    explain(&["--table", "32"]).fails(2, &["--table", "table 0, entry 0: expected a place below 32, found 32"]);
    explain(&["--table", "1", "--table", "2"]).fails(2, &["expected 1 tables of the type, found 2"]);
    explain(&["--table", "1 2-3"]).fails(2, &["--table 0, entry 1: expected an integer, found 2-3"]);
    dtc(folder.path(), &["explain", "double", "--table", "1"]).fails(2, &["a type with index tables", "one without"]);
}

/// A recording's types with index tables are explained with their uses; `bench` says that it leaves them out.
#[test]
fn recorded_types_with_index_tables_are_read() {
    let folder = tempdir().expect("a folder");
    let notation = "table 0 8 4 64 (contiguous 2 double)";
    let hash = TabledLayout::new(&notation.parse().unwrap()).hash();
    let lines = format!("\ntype {hash} {notation};\nused {hash} 3 96 1 64 64;\ntype {} {notation};\n", "0".repeat(64));
    write(folder.path(), "a.recorded", lines);
    let run = dtc(folder.path(), &["explain", "a.recorded"]);
    assert!(
        run.err.contains("left out recorded type 0000") && run.err.contains("expected a type with this hash"),
        "{run:?}"
    );
    for part in [
        "1 recorded type",
        "3 packs of 96 bytes, 1 unpack of 64 bytes; 64 bytes a call at most; with index tables",
        "a call with tables",
    ] {
        assert!(run.out.contains(part), "{part} in {}", run.out);
    }
    let run = dtc(folder.path(), &["explain", "a.recorded", "--json"]);
    let objects: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&objects[0]["hash"], &objects[0]["uses"]["packed_bytes"]), (&json!(hash), &json!(96)));
    assert_eq!(objects[0]["name"], format!("type_{}", &hash[..12]));
    let run = dtc(folder.path(), &["bench", "a.recorded"]);
    assert!(run.err.contains("left out 1 type with index tables"), "{run:?}");
}

#[test]
fn explain_tells_the_facts() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    let text = dtc(folder.path(), &["explain", "t.json"]).fine();
    for part in ["unlike rows", "lb, ub, extent", "passes", "plan of", "hash"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The legend explains every word that introduces a node or a step, and no other.
    let (shown, legend) = text.split_once("words of the layouts").unwrap();
    let used = shown.lines().filter_map(|line| line.trim().split_once(" = ")?.1.split(' ').next());
    for word in used {
        assert!(legend.contains(&format!("\n    {word:<10}")), "{word} in {legend}");
    }
    assert!(!legend.contains("scatter"), "{legend}");
    let object: Value = serde_json::from_str(&dtc(folder.path(), &["explain", "t.json", "--json"]).fine()).unwrap();
    assert_eq!(object["size"], 8 + 2 * 9 * 12 + 10);
    assert_eq!((&object["lb"], &object["true_lb"], &object["count"]), (&0.into(), &0.into(), &3.into()));
    assert_eq!(object["true_extent"], 700 + 4 * 6 + 2);
    assert_eq!(object["hash"].as_str().map(str::len), Some(32));
    assert_eq!(object["exact"], true);
    assert!(object["passes"]["erase-kinds"].as_u64() > Some(0));
    for key in ["extent", "alignment", "elements", "runs", "plan", "tier", "story", "decision", "kernels", "lowered"] {
        assert!(!object[key].is_null(), "{key}");
    }
    let layout = object["layout"].as_str().unwrap();
    let emitted = dtc(folder.path(), &["emit", "t.json", "--as", "layout"]).fine();
    assert_eq!(emitted.trim_end(), layout);
    assert!(dtc(folder.path(), &["lower", "t.json"]).fine().trim_end().ends_with(layout));
}

#[test]
fn every_form_is_emitted() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    for (form, part) in
        [("layout", "root"), ("dot", "digraph"), ("clif", "function"), ("asm", "ret"), ("mpi-c", "MPI_Type_commit")]
    {
        for direction in ["pack", "unpack"] {
            let arguments = ["emit", "t.json", "--as", form, "--direction", direction];
            let text = dtc(folder.path(), &arguments).fine();
            assert!(text.contains(part), "{form}: {text}");
            let to_file = [&arguments[..], &["-o", "out", "--target", "native"]].concat();
            assert_eq!(dtc(folder.path(), &to_file).fine(), "");
            assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), text);
        }
    }
}

#[test]
fn functions_are_emitted_for_llvm() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "my rows.dtc", "vector 1000 3 7 int");
    let text = dtc(folder.path(), &["emit", "my rows.dtc", "--as", "llvm", "--target", "aarch64"]).fine();
    for part in ["aarch64-unknown-linux-gnu", "@my_rows_pack(", "@my_rows_unpack("] {
        assert!(text.contains(part), "{part} in {text}");
    }
    if cfg!(not(feature = "llvm")) {
        let emit = dtc(folder.path(), &["emit", "my rows.dtc", "--as", "llvm-asm"]);
        emit.fails(4, &["--as llvm-asm", "built with LLVM", "--features llvm"]);
    }
}

/// A DAG of so many levels, each of three parts that share what is below.
fn deep(levels: usize) -> String {
    let mut types =
        r#""t0": {"kind": "named", "name": "MPI_INT"}, "t1": {"kind": "vector", "count": 3, "blocklength": 1,
        "stride": 2, "child": {"ref": "t0"}}"#
            .to_owned();
    for level in 2..levels {
        let step = 8 * 3i64.pow(level as u32);
        let (below, further) = (level - 1, level - 2);
        types += &format!(
            r#", "t{level}": {{"kind": "struct", "blocklengths": [1, 1, 1],
            "displacements_bytes": [0, {step}, {}], "children": [{{"ref": "t{below}"}}, {{"ref": "t{further}"}},
            {{"ref": "t{below}"}}]}}"#,
            2 * step + 4 * level as i64
        );
    }
    format!(r#"{{"types": {{{types}}}, "root": "t{}"}}"#, levels - 1)
}

#[test]
fn kernels_of_huge_plans_are_refused_at_once() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "deep.json", deep(35));
    for form in ["clif", "asm"] {
        let arguments = ["emit", "deep.json", "--as", form, "-o", "out"];
        dtc(folder.path(), &arguments).fails(2, &["kernel", "512 steps in 16 levels", "levels; pack and unpack work"]);
        assert!(!folder.path().join("out").exists());
    }
    assert!(dtc(folder.path(), &["emit", "deep.json", "--as", "layout"]).fine().contains("record"));
}

#[test]
fn assembly_names_its_loops() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    write(folder.path(), "rows.dtc", "vector 1000 3 7 int");
    let text = dtc(folder.path(), &["emit", "t.json", "--as", "asm"]).fine();
    if cfg!(target_arch = "x86_64") {
        for part in ["bytes for x86-64: memory rdi", "loop over the elements", "    ; #", "; the next element"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Every line of code has its address, in order.
        let addresses = text.lines().filter(|line| line.starts_with("    ") && !line.starts_with("    ;"));
        let addresses: Vec<u32> =
            addresses.map(|line| u32::from_str_radix(line[4..].split(' ').next().unwrap(), 16).unwrap()).collect();
        assert!(addresses.len() > 10 && addresses.is_sorted() && addresses[0] == 0, "{text}");
        assert!(!text.contains("(bad)") && !text.contains('%'), "{text}");
        // Blocks in a loop of columns, in a loop of blocks of columns.
        let matrix = concat!(env!("CARGO_MANIFEST_DIR"), "/../ir-examples/darray_block_cyclic.json");
        let text = dtc(folder.path(), &["emit", matrix, "--as", "asm"]).fine();
        for part in ["; loop over the elements", "; loop of #2", "; loop of #1", "; again, until #1 is done"] {
            assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
        }
    }
    for form in ["clif", "asm"] {
        let text = dtc(folder.path(), &["emit", "rows.dtc", "--as", form]).fine();
        assert!(text.starts_with("; this kernel is never compiled: the type stays generic: one microkernel"), "{text}");
        assert!(!dtc(folder.path(), &["emit", "t.json", "--as", form]).fine().contains("stays generic"));
    }
}

#[test]
fn demos_check_every_byte() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    write(folder.path(), "back.dtc", "vector 4 1 -3 int");
    write(folder.path(), "none.dtc", "contiguous 0 int");
    let long = format!("{}.dtc", "long".repeat(40));
    let list: Vec<String> = (0..100u64).map(|index| format!("{}@{}", index % 7 + 1, index * index)).collect();
    write(folder.path(), &long, format!("hvector 3 1 123457 (indexed [{}] double)", list.join(", ")));
    for arguments in
        [&["demo"] as &[&str], &["demo", "t.json"], &["demo", "back.dtc"], &["demo", "none.dtc"], &["demo", &long]]
    {
        let text = dtc(folder.path(), &[arguments, &["--backend", "cpu"]].concat()).fine();
        let labels = text.lines().filter_map(|line| line.split(' ').next());
        let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
        let moved = labels.starts_with(&["type", "pack", "unpack", "beside", "passes"]);
        assert!(moved || labels.starts_with(&["type", "speed", "passes"]), "{text}");
        assert!(text.contains("every byte equals the reference walker's"), "{text}");
        assert!(text.contains("memcpy") != text.contains("nothing is moved"), "{text}");
        let narrow = |text: &str| text.lines().all(|line| line.chars().count() <= 80);
        assert!(narrow(&text), "{text}");
        if is_full() || arguments.contains(&"t.json") {
            let verbose = dtc(folder.path(), &[arguments, &["--backend", "cpu", "--verbose"]].concat()).fine();
            assert!(verbose.contains("layout before the passes") && verbose.contains("hash"), "{verbose}");
            assert!(narrow(&verbose), "{verbose}");
        }
    }
    let text = dtc(folder.path(), &["demo", "--backend", "cpu"]).fine();
    let verdict: Vec<&str> = text.lines().take(4).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verdict, ["type", "pack", "unpack", "beside"], "{text}");
    assert!(text.contains("x loop") && (text.contains("kernels compiled") || text.contains("generic:")), "{text}");
    assert!(
        text.contains("a 2-D FFT's transpose (DDTBench): 4.0 MiB in 262,144 runs")
            && text.contains("above 1x, dtc is faster"),
        "{text}"
    );
    for (name, large) in [("far.dtc", "vector 2 1 1000000000000 int"), ("same.dtc", "vector 1000000000000 1 0 int")] {
        write(folder.path(), name, large);
        dtc(folder.path(), &["demo", name]).fails(3, &["buffer"]);
        dtc(folder.path(), &["bench", name]).fails(3, &["buffer"]);
    }
    // Eight bytes in three gigabytes; and elements of which there are too many for a buffer.
    write(folder.path(), "sparse.dtc", "hvector 2 1 3000000000 int");
    dtc(folder.path(), &["demo", "sparse.dtc"]).fails(3, &["buffer", "3000000004 bytes spanned, 8 packed"]);
    dtc(folder.path(), &["bench", "sparse.dtc"]).fails(3, &["buffer"]);
    write(
        folder.path(),
        "many.json",
        r#"{"type": {"kind": "resized", "lb": 0, "extent": 30000000, "child": {"kind": "named", "name": "MPI_INT"}},
            "count": 1000, "buffer_bytes": 30000000000}"#,
    );
    let text = dtc(folder.path(), &["demo", "many.json", "--backend", "cpu"]).fine();
    assert!(text.contains("5 elements instead of 1000"), "{text}");
    let text = dtc(folder.path(), &["bench", "many.json", "--rounds", "1", "--min-time", "1"]).fine();
    assert!(text.contains("5 elements instead of 1000"), "{text}");
}

/// Compilers of MPI programs and of C in a folder of their own.
#[cfg(unix)]
fn with_path(folder: &Path, programs: &[(&str, &str)]) -> Run {
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools).expect("a folder");
    for (name, script) in programs {
        let path = write(&tools, name, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
    command.args(["demo", "t.json", "--backend", "cpu"]).current_dir(folder).env("PATH", tools).env_remove("CC");
    Run::of(&mut command)
}

#[test]
#[cfg(unix)]
fn demos_leave_out_peers_that_are_not_there() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    let start = std::time::Instant::now();
    let text = with_path(folder.path(), &[]).fine();
    assert!(text.contains("beside  loop: absent; MPICH: absent; Open MPI: absent"), "{text}");
    assert!(text.contains("x memcpy") && text.contains("every byte equals"), "{text}");
    // One that does not compile, one whose program is no peer, and one that never ends.
    let programs = [
        ("mpicc.mpich", "exit 1"),
        (
            "mpicc.openmpi",
            "while [ $# -gt 2 ]; do [ $1 = -o ] && printf '#!/bin/sh\\n' > $2; shift; done; /bin/chmod +x mpicc.openmpi",
        ),
        ("mpicc", "exec /bin/sleep 100"),
    ];
    let text = with_path(folder.path(), &programs).fine();
    assert!(text.contains("MPICH: absent; Open MPI: absent"), "{text}");
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

/// Demos that are run until every peer of the machine is measured.
const DEMOS: usize = 8;

#[test]
fn demos_are_measured_beside_the_mpis_of_the_machine() {
    if ["mpicc.mpich", "mpicc.openmpi"].iter().any(|name| Command::new(name).arg("-show").output().is_err()) {
        let line =
            "\nskipped: demos_are_measured_beside_the_mpis_of_the_machine: needs mpicc.mpich and mpicc.openmpi\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        return;
    }
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    for arguments in [&["demo", "--backend", "cpu"] as &[&str], &["demo", "t.json", "--backend", "cpu"]] {
        let parts = ["x loop", "x MPICH", "x Open MPI", "x memcpy", "every byte equals"];
        let mut text = String::new();
        // On a loaded machine, an MPI may start or answer later than a demo waits for.
        let complete = (0..DEMOS).any(|_| {
            text = dtc(folder.path(), arguments).fine();
            parts.iter().all(|part| text.contains(part))
        });
        assert!(complete, "{parts:?} in {text}");
    }
}

#[test]
fn a_bench_without_peers_compares_with_memcpy() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    let text = dtc(folder.path(), &["bench", "t.json", "--rounds", "2", "--min-time", "1"]).fine();
    assert!(text.contains("memcpy, loop") && text.contains("median of the rounds"), "{text}");
    for part in ["lines of 64 bytes", " GB/s ", " limit ", "above 1, dtc is faster"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Warnings of a busy machine are for documents, too.
    let wide = text.lines().filter(|line| !line.starts_with("warning")).find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    let json = dtc(folder.path(), &["bench", "t.json", "--rounds", "2", "--min-time", "1", "--json", "-"]).fine();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let (case, units) = (&json["cases"][0], &json["units"]);
    assert!(case["lines"].is_u64() && case["pack"]["limit_over_dtc"].is_f64(), "{json}");
    assert!(units.as_str().is_some_and(|units| units.contains("above 1 dtc is faster")), "{units}");
    let mut alone = Command::new(env!("CARGO_BIN_EXE_dtc"));
    alone.args(["bench", "t.json", "--rounds", "1", "--min-time", "1", "--markdown"]).current_dir(folder.path());
    let text = Run::of(alone.env("PATH", "").env_remove("CC")).fine();
    assert!(text.starts_with("| type ") || text.contains("\n| type "), "{text}");
    assert!(text.contains("note: no hand loops: no C compiler"), "{text}");
    let missing = ["bench", "t.json", "--peers", "peers", "--peers-script", "absent"];
    dtc(folder.path(), &missing).fails(4, &["bench/peers", "--peers-script"]);
}

#[test]
fn passes_are_traced_on_request() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.dtc", "vector 12 5 14 double");
    let traced = |level: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
        Run::of(command.args(["lower", "t.dtc"]).current_dir(folder.path()).env("RUST_LOG", level))
    };
    let run = traced("dtc_compiler=trace");
    for part in ["fold-dense: %", "lowered: ", "canonical: ", "becomes"] {
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
    let stages = traced("dtc_compiler=debug");
    assert!(stages.err.contains("canonical: ") && !stages.err.contains("becomes"), "{}", stages.err);
    assert_eq!(traced("off").fine(), run.out);
}

#[test]
fn the_doctor_looks_around() {
    let text = dtc(&std::env::temp_dir(), &["doctor"]).fine();
    for part in ["vectors", "executable memory", "mpicc.mpich", "mpicc.openmpi", "gcc", "GPU", "CUDA driver", "NVRTC"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// A library that does nothing stands for the interposer.
fn stand_in(folder: &Path) -> PathBuf {
    let library = folder.join("libdtc_mpi.so");
    let mut compiler = Command::new("cc");
    let status = compiler.args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(&library).status();
    assert!(status.expect("the C compiler cc").success());
    library.canonicalize().expect("a file")
}

/// A script says what the interposer would.
#[test]
fn the_doctor_runs_a_program_of_mpi() {
    let folder = tempdir().unwrap();
    let library = stand_in(folder.path());
    let script = "echo libdtc_mpi: ABI: $DTC_MPI_REPORT; echo libdtc_mpi: ABI: 1 >&2; echo other; printf half; \
                  echo libdtc_mpi: memory of a GPU: staged; echo bad >&2; exit";
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
        let file = library.to_str().unwrap();
        Run::of(command.args(["doctor", "--interposer", file, "--mpi"]).args(arguments))
    };
    let shown = run(&["sh", "-c", script]);
    let name = format!("    interposer       {}\n", library.display());
    let next = "    faster           dtc compare -- PROGRAM measures whether this program is\n";
    let report = format!("{name}    ABI              1\n    memory of a GPU  staged\n{next}");
    assert_eq!((shown.out, shown.err.as_str()), (format!("other\nhalf\n{report}"), "bad\n"));
    assert!(run(&["true"]).fine().contains("no call came to the library"));
    let failed = run(&["sh", "-c", "echo no such program >&2; exit 3"]);
    let found = "no such program\ndtc: sh: expected a program that ends well, found exit status: 3\n";
    assert_eq!(failed.err, found);
    assert!(failed.out.contains("MPI         unknown: the program ended before"), "{}", failed.out);
    assert!(run(&["/missing/program"]).err.contains("dtc: /missing/program: No such file"));
    let missing = dtc(folder.path(), &["doctor", "--mpi", "true"]);
    assert!(missing.err.contains("--interposer FILE"), "{}", missing.err);
}

/// A script says what the interposer would, and writes down which runs there were.
#[test]
fn programs_are_compared_with_and_without_the_interposer() {
    let folder = tempdir().unwrap();
    let library = stand_in(folder.path());
    let runs = folder.path().join("runs");
    let script = r#"case $LD_PRELOAD in *libdtc_mpi.so*) kind=with;; *) kind=without;; esac
        echo $kind $DTC_MPI $DTC_MPI_REPORT >>"$0"; echo result; [ "$DTC_MPI_REPORT" ] || exit 0
        if [ "$DTC_MPI" = off ]; then dtc=0 passed=4; echo "libdtc_mpi: off: every call" >&2; else dtc=3 passed=1; fi
        echo "libdtc_mpi: mpich: call MPI_Init: 0 with dtc in 0.0 s, 1 passed on in 5.0 s" >&2
        echo "libdtc_mpi: mpich: call MPI_Send: $dtc with dtc in 0.0 s, 1 passed on in $passed.0 s" >&2"#;
    let run = |options: &[&str], program: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
        command.args(["compare", "--interposer"]).arg(&library).args(options).arg("--").args(program);
        Run::of(command.env_remove("DTC_MPI").env_remove("DTC_MPI_REPORT"))
    };
    let text = run(&["--runs", "3"], &["sh", "-c", script, runs.to_str().unwrap()]).fine();
    let found = std::fs::read_to_string(&runs).unwrap();
    // The report first, then rounds in turns.
    let expected = ["with off 1", "with 1", "without ", "with ", "with ", "without ", "without ", "with "];
    assert_eq!(found.lines().map(str::trim_end).collect::<Vec<_>>(), expected.map(str::trim_end));
    assert!(text.starts_with("result\n    interposer "), "{text}");
    for part in [
        "    processes      1\n",
        "    round 3 ",
        "    wall time ",
        "    in MPI calls   4.000 s     1.000 s     4.00 (",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    run(&[], &["true"]).fails(3, &["true: expected a program of MPI"]);
    run(&[], &["sh", "-c", "exit 5"])
        .fails(3, &["sh: expected a program that ends well, found exit status: 5 with DTC_MPI=off"]);
    assert_eq!(run(&["--runs", "0"], &["true"]).status, 2);
    assert!(run(&[], &["/missing/program"]).err.contains("dtc: /missing/program: No such file"));
}

/// A script stands for the compiler of an MPI; the program that it makes prints what the real one would.
#[test]
fn an_mpi_is_calibrated() {
    let folder = tempdir().unwrap();
    let library = stand_in(folder.path());
    let (compiler, table) = (folder.path().join("mpicc"), folder.path().join("table.txt"));
    let script = r#"#!/bin/sh
        grep -q 'PMPI_Send' "$5" || exit 1
        cat >"$4" <<'END'
#!/bin/sh
[ "$DTC_MPI" = all ] || exit 1
case $LD_PRELOAD in *libdtc_mpi.so*) ;; *) exit 1;; esac
[ -z "$DTC_MPI_REPORT" ] || { echo "libdtc_mpi: $SAYS" >&2; exit; }
echo "mpi: An MPI   1.0"
echo once >>runs.txt
echo "pack regular 1/2 8 $1 $((6000 / $(wc -l <runs.txt))) 1000"
echo "message listed 1/8 64 $1 900 1000"
[ -z "$FAILS" ] || echo "error: expected 2 processes"
END
        chmod +x "$4""#;
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run_where = |says: &str, fails: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
        command.args(["calibrate", "--interposer"]).arg(&library).arg("--mpicc").arg(&compiler).arg("-o").arg(&table);
        command.args(more).args(["--mpi", "env"]).env("FAILS", fails).env("SAYS", says);
        Run::of(command.current_dir(folder.path()))
    };
    let run = |fails: &str, more: &[&str]| run_where("ABI: mpich", fails, more);
    let text = run("", &["--largest", "4096", "--runs", "3"]).fine();
    assert!(text.starts_with("An MPI 1.0: bytes of the contiguous pieces with which dtc does a call"), "{text}");
    assert!(text.contains("| pack | regular | 1/2 | - | - | 8 | - |"), "{text}");
    assert!(text.contains(&format!("written to {}; DTC_MPI_TABLE, set to this path", table.display())), "{text}");
    let written = std::fs::read_to_string(&table).unwrap();
    assert!(written.contains("pack      regular  1/2        8      -     -  2.00"), "{written}");
    assert!(written.contains("message   listed   1/8       64      -     -  0.90"), "{written}");
    // What fails leaves the table as it was.
    run("yes", &[]).fails(3, &["env: expected a measurement, found expected 2 processes"]);
    // So does a library that does nothing, for whatever reason.
    run_where("leaves all calls to the MPI: other bytes", "", &[])
        .fails(3, &["a library that does calls, found one that leaves all calls to the MPI: other bytes"]);
    assert_eq!(std::fs::read_to_string(&table).unwrap(), written);
    let passed = "mpich: rank 0, datatype vector 8 1 2 int: 9 MPI_Send passed on (other)";
    let text = run_where(passed, "", &["--largest", "4096"]).fine();
    assert!(text.contains(&format!("whose gains say nothing:\n\n    {passed}\n")), "{text}");
    assert!(!run("", &["--largest", "4096"]).fine().contains("say nothing"));
    assert_eq!(run("", &["--largest", "255"]).status, 2);
    std::fs::write(&compiler, "#!/bin/sh\necho no mpi.h >&2; exit 1").unwrap();
    run("", &[]).fails(3, &["mpicc: expected a program that compiles, found no mpi.h"]);
    std::fs::remove_file(&compiler).unwrap();
    run("", &[]).fails(4, &["mpicc: expected a compiler of the MPI", "--mpicc FILE"]);
}

/// What the doctor says of these libraries.
fn doctor(driver: &Path, nvrtc: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
    let output = command.arg("doctor").env("DTC_CUDA_DRIVER", driver).env("DTC_NVRTC", nvrtc).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_doctor_says_how_to_get_cuda() {
    let text = doctor(Path::new("/missing/cuda.so"), Path::new("/missing/nvrtc.so"));
    for part in ["/missing/cuda.so; install the NVIDIA driver", "/missing/nvrtc.so; pip install nvidia-cuda-nvrtc"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_doctor_lists_devices() {
    let folders = [(); 3].map(|()| tempdir().expect("a folder"));
    let driver = |at: usize, definition: &'static [&'static str]| {
        build_stub(folders[at].path(), "driver", Stub::Built(definition))
    };
    let nvrtc = build_stub(folders[0].path(), "nvrtc", Stub::Built(&[]));
    let text = doctor(&driver(0, &["STUB_VERSION=12080"]), &nvrtc);
    for part in [
        "12.8 (",
        "GPU 0          first, sm_90, 132 multiprocessors, 1.0 GiB with 50.0 MiB of cache",
        "GPU 1          second, sm_121",
        "first call     failed: CUDA driver: expected code that compiles",
        "12.9 (",
        "compiles for sm_75 to sm_90",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(doctor(&driver(1, &["STUB_VERSION=11040"]), &nvrtc).contains("the driver is older"));
    assert!(doctor(&driver(2, &["STUB_NO_DEVICE"]), &nvrtc).contains("nvidia-smi"));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    let mut child = Command::new(env!("CARGO_BIN_EXE_dtc"))
        .args(["explain", "t.json", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
