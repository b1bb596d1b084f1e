//! Compiles what hand-loop prints and compares the bytes it moves with an expansion of the type map.
//!
//! Needs a C compiler, as measurements do: `CC`, or `cc`.

mod type_map;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SEED: u64 = 20_260_802;
const POISON: u8 = 0xa5;

/// Whole buffers up to this size are compared; of larger ones, what a second pack finds there.
const COMPARED_WHOLE: i64 = 64 << 20;

/// Word `index` of a peer's buffer, as bench/README.md defines it.
fn word(index: u64) -> u64 {
    let mut value = SEED.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    value
}

/// One byte of a peer's buffer.
fn byte_at(position: i64) -> u8 {
    word(position as u64 / 8).to_ne_bytes()[position as usize % 8]
}

fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn compiler() -> Command {
    Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// The driver, compiled once for all types of a test.
fn driver(directory: &Path) -> PathBuf {
    let object = directory.join("peer.o");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peer.c");
    run(compiler().args(["-O2", "-DPEER_LOOP", "-c", "-o"]).arg(&object).arg(source));
    object
}

fn printed(file: &Path) -> String {
    String::from_utf8(run(Command::new(env!("CARGO_BIN_EXE_hand-loop")).arg(file))).unwrap()
}

struct Peer {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(program: &Path) -> Self {
        let mut process = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers }
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.questions, "{question}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    fn quit(mut self) {
        writeln!(self.questions, "quit").unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

/// Compiles the loops of a description and checks every byte they move.
fn check(name: &str, document: &Value, directory: &Path, driver: &Path) {
    let description = directory.join(format!("{name}.json"));
    std::fs::write(&description, document.to_string()).unwrap();
    let (source, program) = (directory.join(format!("{name}.loop.c")), directory.join(format!("{name}.loop")));
    std::fs::write(&source, printed(&description)).unwrap();
    let warnings = ["-O3", "-march=native", "-Wall", "-Wextra", "-Werror"];
    run(compiler().args(warnings).arg("-o").arg(&program).arg(driver).arg(&source));

    let count = document.get("count").map_or(1, |count| count.as_i64().unwrap());
    let origin = document.get("origin_bytes").map_or(0, |origin| origin.as_i64().unwrap());
    let map = type_map::expand(document);
    let runs = map.bytes(count);
    let end = runs.iter().map(|(at, bytes)| origin + at + bytes).max().unwrap_or(0);
    let buffer = document.get("buffer_bytes").map_or(end, |bytes| bytes.as_i64().unwrap());
    let packed: i64 = runs.iter().map(|(_, bytes)| bytes).sum();
    let positions = || runs.iter().flat_map(|(at, bytes)| (0..*bytes).map(move |byte| origin + at + byte));
    let packed_sum = format!("checksum {:016x}", fnv1a(positions().map(byte_at)));

    let mut peer = Peer::start(&program);
    assert_eq!(peer.ask(&format!("setup {buffer} {origin} {count} {SEED}")), format!("packed {packed}"), "{name}");
    assert_eq!(peer.ask("checksum packed"), packed_sum, "{name}: packed bytes");
    assert_eq!(peer.ask(&format!("poison {POISON}")), "ok");
    assert!(peer.ask("unpack 1").starts_with("nanoseconds "), "{name}");
    if buffer <= COMPARED_WHOLE {
        let mut memory = vec![POISON; buffer as usize];
        for position in positions() {
            memory[position as usize] = byte_at(position);
        }
        let memory_sum = format!("checksum {:016x}", fnv1a(memory));
        assert_eq!(peer.ask("checksum memory"), memory_sum, "{name}: memory after unpack");
    }
    assert!(peer.ask("pack 1").starts_with("nanoseconds "), "{name}");
    assert_eq!(peer.ask("checksum packed"), packed_sum, "{name}: packed bytes after unpack");
    peer.quit();
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ir-examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn every_example_moves_the_bytes_of_its_type_map() {
    let directory = directory("examples");
    let driver = driver(&directory);
    let files = examples();
    assert!(files.len() >= 28);
    for file in files {
        check(file.file_stem().unwrap().to_str().unwrap(), &read(&file), &directory, &driver);
    }
}

fn named(name: &str) -> Value {
    json!({"kind": "named", "name": name})
}

#[test]
fn corners_of_the_semantics() {
    let directory = directory("corners");
    let driver = driver(&directory);
    let (double, int, char) = (named("MPI_DOUBLE"), named("MPI_INT"), named("MPI_CHAR"));
    let record = json!({"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 8],
        "children": [double, char]});
    let corners = json!({
        "single": double,
        "padding": record,
        "padded_array": {"kind": "contiguous", "count": 5, "child": record},
        "pair": {"kind": "contiguous", "count": 3, "child": named("MPI_SHORT_INT")},
        "long_double_pair": {"kind": "vector", "count": 3, "blocklength": 2, "stride": 3,
            "child": named("MPI_LONG_DOUBLE_INT")},
        "long_double": {"kind": "vector", "count": 3, "blocklength": 2, "stride": 3, "child": named("MPI_LONG_DOUBLE")},
        "complex_column": {"kind": "vector", "count": 7, "blocklength": 1, "stride": 4, "child": named("MPI_C_COMPLEX")},
        "no_blocks": {"kind": "vector", "count": 0, "blocklength": 3, "stride": 4, "child": double},
        "no_block_lengths": {"kind": "indexed", "blocklengths": [0, 2, 0, 1], "displacements": [90, 3, -90, 0],
            "child": double},
        "nothing_with_extent": {"kind": "resized", "lb": 0, "extent": 40,
            "child": {"kind": "contiguous", "count": 0, "child": int}},
        "same_element_again": {"kind": "vector", "count": 1, "blocklength": 1, "stride": 0, "child": double},
        "backwards": {"kind": "vector", "count": 4, "blocklength": 2, "stride": -3, "child": int},
        "order_of_the_map": {"kind": "indexed_block", "blocklength": 2, "displacements": [8, 0, 4], "child": int},
        "odd_displacements": {"kind": "hindexed", "blocklengths": [2, 1], "displacements_bytes": [1, 29],
            "child": double},
        "odd_stride": {"kind": "hvector", "count": 5, "blocklength": 2, "stride_bytes": 13, "child": int},
        "interleaved_count": {"kind": "resized", "lb": 0, "extent": 8,
            "child": {"kind": "vector", "count": 4, "blocklength": 1, "stride": 3, "child": double}},
        "negative_extent": {"kind": "resized", "lb": 0, "extent": -24,
            "child": {"kind": "contiguous", "count": 2, "child": double}},
        "bounds_that_stick": {"kind": "contiguous", "count": 2, "child": {"kind": "struct", "blocklengths": [2, 1],
            "displacements_bytes": [0, 64], "children": [int, {"kind": "resized", "lb": 0, "extent": 160,
                "child": {"kind": "vector", "count": 2, "blocklength": 1, "stride": 2, "child": int}}]}},
        "lower_bound_moved": {"kind": "contiguous", "count": 3, "child": {"kind": "resized", "lb": -16, "extent": 48,
            "child": {"kind": "contiguous", "count": 2, "child": double}}},
        "records_in_array": {"kind": "vector", "count": 3, "blocklength": 2, "stride": 5,
            "child": {"kind": "struct", "blocklengths": [1, 1, 1], "displacements_bytes": [0, 8, 12],
                "children": [double, int, int]}},
        "fortran_box": {"kind": "subarray", "sizes": [5, 6, 7], "subsizes": [2, 3, 4], "starts": [3, 0, 2],
            "order": "Fortran", "child": record},
        "cyclic": {"kind": "darray", "size": 6, "rank": 3, "gsizes": [7, 11, 5],
            "distributions": ["cyclic", {"cyclic": 2}, "none"], "psizes": [2, 3, 1], "order": "C", "child": int},
        "block_uneven": {"kind": "darray", "size": 6, "rank": 5, "gsizes": [7, 11],
            "distributions": ["block", {"block": 5}], "psizes": [2, 3], "order": "Fortran", "child": double},
        "rank_without_a_share": {"kind": "darray", "size": 4, "rank": 3, "gsizes": [5],
            "distributions": [{"block": 2}], "psizes": [4], "order": "C", "child": double},
        "list_of_records": {"kind": "hindexed_block", "blocklength": 2, "displacements_bytes": [160, 0, 64],
            "child": record}
    });
    let parts = json!({
        "parts_end_with_their_padding": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [4, 8],
            "children": [char, record]},
        "pairs_end_with_their_padding": {"kind": "struct", "blocklengths": [2, 1], "displacements_bytes": [4, 24],
            "children": [named("MPI_SHORT_INT"), named("MPI_DOUBLE_INT")]},
        "part_without_bytes": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [100, 0],
            "children": [{"kind": "contiguous", "count": 0, "child": double}, int]},
        "copies_without_bytes": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 40],
            "children": [int, {"kind": "contiguous", "count": 3, "child": {"kind": "resized", "lb": -4, "extent": 16,
                "child": {"kind": "contiguous", "count": 0, "child": double}}}]}
    });
    for (name, tree) in corners.as_object().unwrap().iter().chain(parts.as_object().unwrap()) {
        let document = json!({"type": tree, "count": 3, "origin_bytes": 256});
        check(name, &document, &directory, &driver);
    }
}

#[test]
fn shared_nodes_are_functions_even_where_one_use_is_unaligned() {
    let directory = directory("shared");
    let driver = driver(&directory);
    let document = json!({"count": 2, "types": {
        "column": {"kind": "vector", "count": 3, "blocklength": 1, "stride": 2, "child": named("MPI_DOUBLE")},
        "twice": {"kind": "struct", "blocklengths": [1, 1, 2], "displacements_bytes": [0, 57, 160],
            "children": [{"ref": "column"}, {"ref": "column"}, {"ref": "column"}]},
        "all": {"kind": "hvector", "count": 2, "blocklength": 1, "stride_bytes": 400, "child": {"ref": "twice"}}
    }, "root": "all"});
    check("shared", &document, &directory, &driver);
    let text = printed(&directory.join("shared.json"));
    assert_eq!(text.matches("static char *pack_column").count(), 1);
}

/// The limits of the loops of an example.
fn limits(example: &str) -> Vec<String> {
    limits_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../ir-examples/{example}.json")))
}

/// The limits of the loops of `pack`, in the order in which they are printed, without the loop over the count.
fn limits_of(file: &Path) -> Vec<String> {
    let text = printed(file);
    let start = text.find("void pack(const char *restrict").unwrap();
    let pack = &text[start..text.find("void unpack(char *restrict").unwrap()];
    let loops = pack.lines().filter(|line| line.contains("for (long")).skip(1);
    loops.map(|line| line.split("< ").nth(1).unwrap().split(';').next().unwrap().to_owned()).collect()
}

/// DDTBench publishes the loops that the applications pack with. Ours nest in the same way; two differences, both in
/// favour of the loop, are that bounds are constants and that a contiguous stretch is one loop, not one per dimension.
#[test]
fn loops_nest_like_those_of_the_published_benchmark() {
    // Points of a column, unknowns of a point.
    assert_eq!(limits("nas_lu_y_12"), ["12", "5"]);
    // Half lattices and time slices; the stretch of 768 floats is 8 x 16 x 6 in the benchmark.
    assert_eq!(limits("milc_su3_zdown"), ["2", "16", "768"]);
    // Four 2-D arrays by y and x, then three 3-D and two 4-D arrays by y, z and x.
    let expected = [["44", "3"].repeat(4), ["44", "65", "3"].repeat(5)].concat();
    assert_eq!(limits("wrf_x_vec"), expected);
    assert_eq!(limits("wrf_x_sa"), expected);
    // Molecular dynamics: one loop per array over one index list, positions with three components.
    assert_eq!(limits("lammps_full_send"), ["3062", "3", "3062", "3062", "3062", "3062", "3062"]);
}

/// A selection of particles: five fields of 58 in 88 bytes, of some of them.
fn particles(chosen: usize) -> Value {
    let names = ["MPI_INT", "MPI_DOUBLE", "MPI_FLOAT", "MPI_SHORT", "MPI_DOUBLE"].map(named);
    let fields = json!({"kind": "struct", "blocklengths": [1, 3, 3, 1, 2], "displacements_bytes": [0, 8, 32, 46, 64],
        "children": names});
    let displacements: Vec<usize> = (0..chosen).map(|index| index * 7 % (chosen + 1)).collect();
    json!({"type": {"kind": "indexed_block", "blocklength": 1, "displacements": displacements,
        "child": {"kind": "resized", "lb": 0, "extent": 88, "child": fields}}, "count": 2})
}

#[test]
fn a_list_of_structs_is_one_loop_over_the_list() {
    let directory = directory("particles");
    check("particles", &particles(40), &directory, &driver(&directory));
    let file = directory.join("particles.json");
    assert_eq!(limits_of(&file), ["40", "3", "3", "2"]);
    assert_eq!(printed(&file).matches("static const int list_").count(), 1);
}

#[test]
fn long_lists_are_files_and_every_name_has_the_prefix() {
    let directory = directory("parts");
    let (mut source, mut expected) = ("#include <stdio.h>\n#include <stdlib.h>\n".to_owned(), String::new());
    for (prefix, chosen) in [("small_", 40), ("large_", 2_000)] {
        let document = particles(chosen);
        let part = dtc_hand_loop::part(&document, prefix).unwrap();
        assert_eq!(part.files.len(), usize::from(chosen > 1_000));
        for (name, bytes) in part.files {
            assert!(name.starts_with(prefix) && bytes.len() == 4 * chosen);
            std::fs::write(directory.join(name), bytes).unwrap();
        }
        source.push_str(&part.text);
        let runs = type_map::expand(&document).bytes(2);
        let positions = runs.iter().flat_map(|(at, bytes)| *at..at + bytes);
        let sum = fnv1a(positions.map(|at| (at * 37 + (at >> 8)) as u8));
        expected.push_str(&format!("{sum:016x}\n"));
    }
    source.push_str(
        r#"
static void print_sum(char *memory, char *packed, long bytes, void (*pack)(const char *, char *, long))
{
    pack(memory, packed, 2);
    unsigned long sum = 0xcbf29ce484222325;
    for (long at = 0; at < bytes; at++)
        sum = (sum ^ (unsigned char)packed[at]) * 0x100000001b3;
    printf("%016lx\n", sum);
}

int main(void)
{
    long bytes = 2 * large_extent_bytes;
    char *memory = malloc(bytes), *packed = malloc(bytes);
    for (long at = 0; at < bytes; at++)
        memory[at] = (char)(at * 37 + (at >> 8));
    print_sum(memory, packed, 2 * small_packed_bytes, small_pack);
    print_sum(memory, packed, 2 * large_packed_bytes, large_pack);
}
"#,
    );
    std::fs::write(directory.join("parts.c"), source).unwrap();
    run(compiler().args(["-O2", "-Wall", "-Werror", "-o", "parts", "parts.c"]).current_dir(&directory));
    assert_eq!(String::from_utf8(run(&mut Command::new(directory.join("parts")))).unwrap(), expected);
}

#[test]
fn a_bad_description_names_the_field() {
    let file = directory("bad").join("bad.json");
    let document = json!({"type": {"kind": "contiguous", "count": 2, "child": {"kind": "vector", "count": 1,
        "blocklength": "many", "stride": 1, "child": named("MPI_INT")}}});
    std::fs::write(&file, document.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hand-loop")).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("type.child.blocklength: expected a whole number"), "{message}");
}
