//! Plain sources of types with index tables, compiled and run beside the reference walker.
//!
//! Tables become constants of the text, so that a call moves the bytes of a type without tables: that of the pieces the walker yields.

mod driven;

use driven::{Functions, SANITIZED, Subject, Toolchain};
use dtc_compiler::codegen::source;
use dtc_compiler::datatype::{Datatype, Predefined, TabledDatatype, TypeBuilder};
use dtc_compiler::tabled::{Entries, TabledLayout};
use dtc_tests::generate::tabled::{Tabled, tabled};
use dtc_tests::nvrtc::compile_in_turn;
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// Types that are drawn.
const TYPES: u64 = 330;

/// A type with tables, and the type without them that has the same bytes.
struct WithTables {
    drawn: Tabled,
    subject: Subject,
}

impl WithTables {
    fn draw(seed: u64) -> WithTables {
        let drawn = tabled(&mut SmallRng::seed_from_u64(seed), false);
        let subject = Subject::new(&format!("tabled {seed}"), flat(&drawn), 3);
        WithTables { drawn, subject }
    }

    fn name(&self) -> String {
        source::identifier(&self.subject.name)
    }

    /// The name of the functions that take tables.
    fn by_table(&self) -> String {
        format!("{}_by_table", self.name())
    }

    /// Whether entries have 64 bits.
    fn wide(&self) -> bool {
        self.drawn.tables.len().is_multiple_of(2)
    }

    /// The tables as constant arrays, and as the members of a structure.
    fn arrays(&self, array: &str) -> (String, String) {
        let (mut arrays, mut members) = (String::new(), Vec::new());
        for (number, table) in self.drawn.tables.iter().enumerate() {
            let entries: Vec<String> = table.iter().chain([&0]).map(ToString::to_string).collect();
            let name = format!("{}_entries{number}", self.name());
            writeln!(arrays, "{array} {name}[] = {{{}}};", entries.join(", ")).unwrap();
            members.push(format!("{name}, {}", table.len()));
        }
        (arrays, members.join(", "))
    }
}

/// The bytes of a call as a type without tables.
fn flat(drawn: &Tabled) -> Datatype {
    let tables: Vec<Entries<'_>> = drawn.tables.iter().map(|table| Entries::Wide(table)).collect();
    let pieces = TabledLayout::new(&drawn.datatype).walk(&tables);
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let lengths: Vec<i64> = pieces.iter().map(|piece| piece.bytes as i64).collect();
    let places: Vec<i64> = pieces.iter().map(|piece| piece.place as i64).collect();
    let root = types.hindexed(&lengths, &places, byte).unwrap();
    types.finish(root).unwrap()
}

/// The C of a type, and functions that bring tables along and loop over elements.
fn with_constants(case: &WithTables) -> String {
    let (name, by_table) = (case.name(), case.by_table());
    let entry = if case.wide() { "int64_t" } else { "int32_t" };
    let (arrays, members) = case.arrays(&format!("static const {entry}"));
    let file = source::tabled_c(&by_table, &case.drawn.datatype).unwrap();
    let macro_name = by_table.to_uppercase();
    let (size, extent) = (case.subject.layout().size(), case.subject.layout().extent());
    let mut text = format!("#include <stdint.h>\n#define {macro_name}_ENTRY {entry}\n{file}\n{arrays}");
    writeln!(text, "static const struct {by_table}_tables {name}_tables = {{{members}}};").unwrap();
    for (direction, sides, from, to) in [
        (
            "pack",
            "const void *restrict memory, void *restrict packed",
            "const unsigned char *memory_of = memory",
            "unsigned char *packed_of = packed",
        ),
        (
            "unpack",
            "const void *restrict packed, void *restrict memory",
            "unsigned char *memory_of = memory",
            "const unsigned char *packed_of = packed",
        ),
    ] {
        let order = |memory: &str, packed: &str| match direction {
            "pack" => format!("{memory}, {packed}"),
            _ => format!("{packed}, {memory}"),
        };
        let whole = order(&format!("memory_of + (ptrdiff_t)i * {extent}"), &format!("packed_of + i * {size}"));
        let part = order(&format!("memory_of + (ptrdiff_t)(offset / bytes) * {extent}"), "packed_of");
        write!(
            text,
            "static void {name}_{direction}({sides}, size_t count)\n{{\n    {from};\n    {to};\n    \
             for (size_t i = 0; i < count; i++) {by_table}_{direction}({whole}, &{name}_tables);\n}}\n\
             static void {name}_{direction}_fragment({sides}, size_t offset, size_t length)\n{{\n    {from};\n    {to};\n    \
             const size_t bytes = {by_table}_size(&{name}_tables);\n    while (length > 0) {{\n        \
             const size_t at = offset % bytes, some = bytes - at < length ? bytes - at : length;\n        \
             {by_table}_{direction}_fragment({part}, at, some, &{name}_tables);\n        \
             packed_of += some; offset += some; length -= some;\n    }}\n}}\n"
        )
        .unwrap();
    }
    text
}

fn expect_c(toolchain: &Toolchain, types: u64) {
    let cases: Vec<WithTables> = (0..types).map(WithTables::draw).collect();
    let texts: Vec<(String, String)> =
        cases.iter().map(|case| (case.subject.name.clone(), with_constants(case))).collect();
    let subjects: Vec<Subject> = cases.into_iter().map(|case| case.subject).collect();
    driven::expect(toolchain, &subjects, |subject| {
        let text = texts.iter().find(|(name, _)| *name == subject.name).map(|(_, text)| text.clone()).unwrap();
        Functions { text, fragments: true, object: None }
    });
}

#[test]
fn c_with_tables_moves_what_the_walker_says() {
    expect_c(&Toolchain::GCC, TYPES);
}

#[test]
fn c_with_tables_moves_what_the_walker_says_under_the_sanitizers() {
    expect_c(&SANITIZED, TYPES / 4);
}

/// Entries that are no places, at both ends of what they may be, and addresses.
#[test]
fn c_skips_what_is_no_place() {
    let datatype: TabledDatatype =
        "struct [1@0 (table 0 4 4 16 (contiguous 2 int)), 1@0 (addresses 1 3 4 (contiguous 3 int))]".parse().unwrap();
    let main = r"
#include <assert.h>
int main(void)
{
    int32_t memory[16], other[3] = {7, 8, 9}, packed[17];
    for (int i = 0; i < 16; i++) memory[i] = 100 + i;
    memset(packed, 0x5a, sizeof packed);
    const int32_t places[] = {3, -1, 4, 1};
    void *const addresses[] = {NULL, other, NULL};
    const struct skipping_tables tables = {places, 4, addresses, 3};
    assert(skipping_size(&tables) == 4 * 8 + 3 * 12);
    skipping_pack(memory, packed, &tables);
    const int32_t none = 0x5a5a5a5a;
    const int32_t expected[17] = {112, 113, none, none, none, none, 104, 105, none, none, none, 7, 8, 9, none, none, none};
    assert(memcmp(packed, expected, sizeof packed) == 0);
    int32_t before[16];
    for (int i = 0; i < 17; i++) packed[i] = -i;
    memcpy(before, memory, sizeof memory);
    before[12] = 0, before[13] = -1, before[4] = -6, before[5] = -7;
    skipping_unpack(packed, memory, &tables);
    assert(memcmp(memory, before, sizeof memory) == 0);
    assert(other[0] == -11 && other[1] == -12 && other[2] == -13);
    return 0;
}
";
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("skipping.c"), folder.path().join("skipping"));
    fs::write(&file, source::tabled_c("skipping", &datatype).unwrap() + main).unwrap();
    let mut command = Command::new("gcc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]).arg(&file);
    assert!(command.arg("-o").arg(&program).status().unwrap().success());
    assert!(Command::new(&program).env("ASAN_OPTIONS", "detect_leaks=0").status().unwrap().success());
}

/// C and C++ take the header, whose names are those of the file.
#[test]
fn c_headers_declare_what_the_files_define() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..10 {
        let case = WithTables::draw(seed);
        let name = case.by_table();
        fs::write(folder.path().join("it.h"), source::tabled_c_header(&name, &case.drawn.datatype).unwrap()).unwrap();
        let file = source::tabled_c(&name, &case.drawn.datatype).unwrap();
        let structure = file.find(&format!("struct {name}_tables {{")).unwrap();
        let end = structure + file[structure..].find("};").unwrap() + 2;
        // The file has the structure once more.
        let file = file[..structure].to_owned() + &file[end..];
        fs::write(folder.path().join("it.c"), format!("#include \"it.h\"\n{file}")).unwrap();
        fs::write(folder.path().join("it.cpp"), "#include \"it.h\"\n").unwrap();
        for (compiler, file) in [("gcc", "it.c"), ("g++", "it.cpp")] {
            let mut command = Command::new(compiler);
            command.current_dir(folder.path()).args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", file]);
            assert!(command.status().unwrap().success(), "{compiler}, seed {seed}: {}", case.drawn.datatype);
        }
    }
}

/// The header and kernels that pack and unpack by constant tables; blocks take equal shares.
fn kernels(case: &WithTables) -> String {
    let name = case.by_table();
    let entry = if case.wide() { "long long" } else { "int" };
    let (arrays, members) = case.arrays(&format!("static __device__ const {entry}"));
    let mut text = source::tabled_cuda_header(&name, &case.drawn.datatype).unwrap() + "\n" + &arrays;
    for direction in ["pack", "unpack"] {
        write!(
            text,
            "
extern \"C\" __global__ void {direction}(unsigned char *memory, unsigned char *packed, const unsigned char *,
    unsigned long long first, unsigned long long bytes)
{{
    const {name}::tables<{entry}> tables = {{{members}}};
    const unsigned long long share = (bytes / 16 / gridDim.x + 1) * 16, begin = blockIdx.x * share;
    const unsigned long long end = begin + share < bytes ? begin + share : bytes;
    if (begin < end)
        {name}::{direction}(memory, packed + begin, first + begin, end - begin, tables);
}}
"
        )
        .unwrap();
    }
    text
}

#[test]
fn cuda_headers_with_tables_compile() {
    let texts: Vec<(String, String)> =
        (0..TYPES).step_by(10).map(WithTables::draw).map(|case| (case.subject.name.clone(), kernels(&case))).collect();
    match compile_in_turn(&texts) {
        Ok(refusals) => assert!(refusals.is_empty(), "{} refused: {}", refusals.len(), refusals[0]),
        Err(missing) => skip("cuda_headers_with_tables_compile", &missing.to_string()),
    }
}

#[test]
fn cuda_headers_with_tables_move_what_the_walker_says() {
    let mut shim = Shim::new(Build::Checked);
    shim.limit_seconds(20);
    let mut rng = SmallRng::seed_from_u64(12);
    for case in (0..TYPES).step_by(4).map(WithTables::draw) {
        let layout = case.subject.layout();
        let all = layout.size();
        if all == 0 || all > 64 << 10 {
            continue;
        }
        let text = kernels(&case);
        let first = rng.random_range(0..all);
        for (first, bytes) in [(0, all), (first, rng.random_range(0..=all - first))] {
            let fragment = Fragment::new(layout, 1, first, bytes);
            let placement = if first == 0 { Placement::aligned(&mut rng, 256) } else { Placement::random(&mut rng) };
            let pack = Kernel::new(&text, "pack").blocks(3).threads(64);
            shim.add(Case::pack(&case.subject.name, &pack, &fragment, placement, &mut rng));
            let unpack = Kernel::new(&text, "unpack").blocks(1).threads(40);
            shim.add(Case::unpack(&case.subject.name, &unpack, &fragment, placement, &mut rng));
        }
    }
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    let faults: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| outcome.result.as_ref().err().map(|fault| format!("{}: {fault}", outcome.name)))
        .collect();
    assert!(faults.is_empty(), "{} of {} cases: {:?}", faults.len(), outcomes.len(), &faults[..faults.len().min(3)]);
    assert!(outcomes.len() > 200, "{}", outcomes.len());
}
