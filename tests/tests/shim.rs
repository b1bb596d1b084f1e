//! Tests of the shim: it accepts correct kernels of several kinds, and detects one mistake in each.

use dtc_compiler::layout::Layout;
use dtc_compiler::lower;
use dtc_tests::conformance::Expectation;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::shim::{Access, Accesses, Buffer, Build, Case, Fragment, Kernel, Placement, Range, Shim, Traffic};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const ROWS: &str = include_str!("../emulator/shim/kernels/rows.cu");
const COLUMNS: &str = include_str!("../emulator/shim/kernels/columns.cu");
const RUNS: &str = include_str!("../emulator/shim/kernels/runs.cu");
const WORDS: &str = include_str!("../emulator/shim/kernels/words.cu");

fn rows(row: u64, stride: i64, text: &str) -> (String, Layout) {
    let layout = format!(
        "layout lb 0 extent {} {{\n  %0 = dense {row} x byte\n  %1 = stream 50 x {stride} of %0\n  root %1\n}}",
        50 * stride
    );
    (format!("#define ROW {row}\n#define STRIDE {stride}\n{text}"), Layout::parse(&layout).unwrap())
}

fn columns(height: u64, width: u64, text: &str) -> (Kernel, Layout) {
    let layout = format!(
        "layout lb 0 extent 4 {{\n  %0 = dense 4 x byte\n  %1 = stream {height} x {} of %0\n  \
         %2 = stream {width} x 4 of %1\n  root %2\n}}",
        4 * width
    );
    let text = format!("#define HEIGHT {height}\n#define WIDTH {width}\n{text}");
    let kernel = Kernel { threads: [32, 8, 1], ..Kernel::new(&text, "pack").blocks(3) };
    (kernel, Layout::parse(&layout).unwrap())
}

fn runs(runs: &[(i64, u64)], unpack: bool) -> (Kernel, Layout) {
    let list: Vec<String> = runs.iter().map(|(at, length)| format!("({at} {length})")).collect();
    let layout = format!("layout lb 0 extent 1 {{\n  %0 = runs [{}] x byte\n  root 16: %0\n}}", list.join(" "));
    let tables: Vec<u8> =
        runs.iter().flat_map(|(at, length)| [*at as u64, *length]).flat_map(u64::to_ne_bytes).collect();
    let mut program = Vec::new();
    program.extend_from_slice(&(runs.len() as u32).to_ne_bytes());
    program.extend_from_slice(&i32::from(unpack).to_ne_bytes());
    program.extend_from_slice(&16i64.to_ne_bytes());
    let kernel = Kernel::new(RUNS, "move").threads(64).tables(&tables).extra(&program);
    (kernel, Layout::parse(&layout).unwrap())
}

/// Fragments of a stream: whole, at the ends, and random ones.
fn fragments(size: u64, rng: &mut SmallRng) -> Vec<(u64, u64)> {
    let mut fragments = vec![(0, size), (size - 1, 1), (0, 1), (size / 2, 0)];
    for _ in 0..4 {
        let first = rng.random_range(0..size);
        fragments.push((first, rng.random_range(0..=size - first)));
    }
    fragments
}

/// Correct kernels of every kind.
fn right() -> Vec<Case> {
    let mut rng = SmallRng::seed_from_u64(1);
    let rng = &mut rng;
    let mut cases = Vec::new();
    let mut add = |name: &str, kernel: &Kernel, layout: &Layout, count: u64, unpacks: &[bool], rng: &mut SmallRng| {
        for (first, bytes) in fragments(layout.size() * count, rng) {
            let fragment = Fragment::new(layout, count, first, bytes);
            for &unpack in unpacks {
                let placement = if rng.random_bool(0.5) { Placement::random(rng) } else { Placement::aligned(rng, 16) };
                let make = if unpack { Case::unpack } else { Case::pack };
                cases.push(make(name, kernel, &fragment, placement, rng));
            }
        }
    };
    for (row, stride) in [(64, 80), (17, 23), (16, 5000), (33, -48), (1, 2), (48, 0x1_0000_0000)] {
        let (text, layout) = rows(row, stride, ROWS);
        let kernel = Kernel::new(&text, "pack").blocks(2).threads(96);
        let name = format!("rows of {row} bytes, {stride} apart");
        add(&name, &kernel, &layout, 2, &[false], rng);
        add(&name, &Kernel { entry: "unpack".to_owned(), ..kernel }, &layout, 2, &[true], rng);
    }
    for (height, width) in [(40, 70), (64, 32), (3, 5)] {
        let (kernel, layout) = columns(height, width, COLUMNS);
        add(&format!("{height} x {width} by columns"), &kernel, &layout, 1, &[false], rng);
    }
    let list: Vec<(i64, u64)> = (0..77).map(|at| (at * 50 - 900, rng.random_range(1..50))).collect();
    for unpack in [false, true] {
        let (kernel, layout) = runs(&list, unpack);
        add("runs", &kernel, &layout, 1, &[unpack], rng);
    }
    cases
}

fn run(build: Build, limit: u32, cases: Vec<Case>) -> Vec<Result<Traffic, String>> {
    let mut shim = Shim::new(build);
    shim.limit_seconds(limit);
    for case in cases {
        shim.add(case);
    }
    shim.run().unwrap_or_else(|error| panic!("{error}")).into_iter().map(|outcome| outcome.result).collect()
}

fn expect_right(build: Build) {
    let cases = right();
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    for (name, result) in names.iter().zip(run(build, 60, cases)) {
        result.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    println!("{} cases", names.len());
}

#[test]
fn right_kernels_pass_fast() {
    expect_right(Build::Fast);
}

#[test]
fn right_kernels_pass_checked() {
    expect_right(Build::Checked);
}

#[test]
fn right_kernels_pass_sanitized() {
    expect_right(Build::Sanitized);
}

/// The text of a kernel with one mistake.
fn wrong(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from:?} is not in the kernel");
    text.replace(from, to)
}

/// Every mistake, with the message expected of the checked build, and whether the fast build detects it too.
fn mistakes() -> Vec<(&'static str, Case, &'static str, bool)> {
    let mut rng = SmallRng::seed_from_u64(2);
    let rng = &mut rng;
    let mut mistakes = Vec::new();
    let aligned = Placement { memory: 0, packed: 0 };
    let mut row = |name, from: &str, to: &str, placement, message, fast| {
        let (text, layout) = rows(48, 80, &wrong(ROWS, from, to));
        let fragment = Fragment::new(&layout, 1, 5, 2000);
        for (entry, make) in [("pack", Case::pack as fn(&_, &_, &_, _, &mut _) -> _), ("unpack", Case::unpack)] {
            // Some mistakes concern one direction only.
            if (from.contains("packed[byte] =") || from.contains("__ldg")) == (entry == "unpack") && from != "<=" {
                continue;
            }
            let kernel = Kernel::new(&text, entry).blocks(2).threads(64);
            mistakes.push((name, make(name, &kernel, &fragment, placement, rng), message, fast));
        }
    };
    row(
        "a byte is moved to its neighbour",
        "memory[displacement(first + byte)] = packed[byte]",
        "memory[displacement(first + byte) + 1] = packed[byte]",
        aligned,
        "may not be touched",
        true,
    );
    row(
        "a row is taken from its neighbour",
        "packed[byte] = memory[displacement(first + byte)]",
        "packed[byte] = memory[displacement(first + byte - (byte == 900))]",
        aligned,
        "packed at 900 is",
        true,
    );
    row(
        "a row in the gap gets its old value",
        "memory[displacement(first + byte)] = packed[byte];",
        "memory[displacement(first + byte)] = packed[byte]; memory[60] = memory[60];",
        aligned,
        "may not be touched",
        false,
    );
    row(
        "a wide load is not aligned",
        "(u64)at % 16 == 0) {\n            if (PACK) {\n                __stcs((uint4*)(packed + from), __ldg((const uint4*)at));",
        "true) {\n            if (PACK) {\n                __stcs((uint4*)(packed + from), __ldg((const uint4*)at));",
        Placement { memory: 4, packed: 0 },
        "not aligned",
        true,
    );
    row(
        "a wide store is not aligned",
        "+ 16 <= ROW && (u64)at % 16 == 0",
        "+ 16 <= ROW",
        Placement { memory: 4, packed: 0 },
        "misaligned address",
        true,
    );
    row(
        "the bytes before the first are read",
        "packed[byte] = memory[displacement(first + byte)];",
        "unsigned char before = memory[displacement(first + byte) - 6]; packed[byte] = memory[displacement(first + byte)];",
        aligned,
        "may not be touched",
        false,
    );
    row(
        "one byte more is packed",
        "min(piece == 0 ? lead : from + 16, bytes)",
        "min(piece == 0 ? lead : from + 16, bytes + 1)",
        aligned,
        "may not be touched",
        true,
    );
    row("it does not end", "byte < to; byte++", "byte < to;", aligned, "has not ended", true);
    row(
        "it multiplies past 31 bits",
        "u64 lead =",
        "int much = (int)bytes * 2000000; u64 lead =",
        aligned,
        "signed integer overflow",
        false,
    );
    row(
        "it reads a wild pointer",
        "u64 lead =",
        "bytes -= *(const unsigned char*)(first + 100); u64 lead =",
        aligned,
        "in no buffer",
        true,
    );

    let mut column = |name, from: &str, to: &str, message, fast| {
        let (kernel, layout) = columns(40, 70, &wrong(COLUMNS, from, to));
        let fragment = Fragment::new(&layout, 1, 0, layout.size());
        mistakes.push((name, Case::pack(name, &kernel, &fragment, aligned, rng), message, fast));
    };
    column("no barrier after filling", "__syncthreads(); // filled", "", "a race on byte", true);
    column("no barrier after emptying", "__syncthreads(); // emptied", "", "a race on byte", true);
    column(
        "some threads leave early",
        "__syncthreads(); // filled",
        "if (threadIdx.x == 9) return; __syncthreads();",
        "divergent barrier",
        true,
    );
    column(
        "a barrier for some",
        "__syncthreads(); // filled",
        "if (threadIdx.y < 4) __syncthreads();",
        "a race on byte",
        true,
    );
    column(
        "two barriers for one",
        "__syncthreads(); // filled",
        "if (threadIdx.y < 4) { __syncthreads(); } else { __syncthreads(); }",
        "wait at different ones",
        false,
    );
    column(
        "past the end of shared memory",
        "tile.bytes[y][threadIdx.x][byte] =",
        "(&tile.bytes[0][0][0])[(y * 33 + threadIdx.x) * 4 + byte + 129 * (y == 31)] =",
        "insufficient space",
        false,
    );
    column(
        "a row of the tile too far",
        "tile.bytes[y][threadIdx.x][byte] =",
        "tile.bytes[y + 1][threadIdx.x][byte] =",
        "out of bounds",
        true,
    );

    let list: Vec<(i64, u64)> = (0..40).map(|at| (at * 9, 5)).collect();
    let (kernel, layout) = runs(&list, false);
    let fragment = Fragment::new(&layout, 1, 0, layout.size());
    let mut warp = |name, from: &str, to: &str, message, fast| {
        let kernel = Kernel { text: wrong(RUNS, from, to).into(), ..kernel.clone() };
        mistakes.push((name, Case::pack(name, &kernel, &fragment, aligned, rng), message, fast));
    };
    warp("lanes part ways", "__syncwarp();", "if (lane < 7) __syncwarp();", "are at different warp operations", true);
    warp("half a warp is masked", "__ballot_sync(0xffffffff", "__ballot_sync(0xffff", "part of the lanes", true);
    warp("the scan is not inclusive", "if (lane >= delta) end", "if (lane > delta) end", "", true);
    warp(
        "a list is read past its end",
        "start + lane < program.runs",
        "start + lane <= program.runs",
        "bytes of tables at 640",
        false,
    );
    let short = Kernel { extra: kernel.extra[..8].to_vec(), ..kernel.clone() };
    mistakes.push((
        "short parameters",
        Case::pack("short parameters", &short, &fragment, aligned, rng),
        "are shorter",
        true,
    ));
    mistakes
}

#[test]
fn wrong_kernels_are_refused() {
    for build in [Build::Checked, Build::Fast, Build::Sanitized] {
        let mistakes = mistakes();
        let outcomes = run(build, 4, mistakes.iter().map(|mistake| mistake.1.clone()).collect());
        for ((name, case, message, fast), outcome) in mistakes.iter().zip(outcomes) {
            let what = format!("{name} ({}), {build:?}", case.kernel.entry);
            match outcome {
                Err(fault) => {
                    println!("{what}: {fault}");
                    assert!(build != Build::Checked || fault.contains(message), "{what}: {fault}");
                }
                Ok(_) => assert!(build != Build::Checked && !(build == Build::Fast && *fast), "{what} was not refused"),
            }
        }
    }
}

#[test]
fn intrinsics_mean_what_the_manual_says() {
    let (a, b, z, w) = (0x8765_43f2_u32, 0x1234_abcd_u32, 0xdead_beef_u32, 0x0102_0304_u32);
    let wide = u64::from(w) << 32 | u64::from(z);
    let both = u64::from(b) << 32 | u64::from(a);
    let expected = [
        u64::from((both << 8 >> 32) as u32),
        u64::from((both >> 8) as u32),
        u64::from(b),
        // Bytes of the pair, lowest first: f2 43 65 87 cd ab 34 12.
        0xab65_4334,
        (u64::from(a) * u64::from(b)) >> 32,
        ((u128::from(wide) * u128::from(!wide)) >> 64) as u64,
        a.count_ones().into(),
        wide.count_ones().into(),
        5,
        0,
        24,
        32,
        b.into(),
        3,
        13,
        both,
        wide,
    ];
    let bytes: Vec<u8> = expected.into_iter().flat_map(u64::to_ne_bytes).collect();
    let range = |access, before: Vec<u8>, after: Vec<u8>| Buffer {
        alignment: 16,
        ranges: vec![Range { position: 0, access, before, after }],
    };
    let case = Case {
        name: "words".to_owned(),
        kernel: Kernel::new(WORDS, "words"),
        first: 0,
        bytes: bytes.len() as u64,
        memory: range(Access::Read, [a, b, z, w].into_iter().flat_map(u32::to_ne_bytes).collect(), Vec::new()),
        packed: range(Access::Write, vec![0; bytes.len()], bytes),
    };
    for build in [Build::Fast, Build::Checked, Build::Sanitized] {
        assert_eq!(run(build, 60, vec![case.clone()])[0].as_ref().err(), None, "{build:?}");
    }
}

#[test]
fn accesses_are_counted() {
    let (text, layout) = rows(64, 80, ROWS);
    let mut rng = SmallRng::seed_from_u64(3);
    let placement = Placement { memory: 16, packed: 32 };
    let kernel = Kernel::new(&text, "pack").threads(32);
    let case = Case::pack("rows", &kernel, &Fragment::new(&layout, 1, 0, 3200), placement, &mut rng);
    let traffic = run(Build::Checked, 60, vec![case])[0].clone().unwrap();
    let wide = [0, 0, 0, 0, 200];
    assert_eq!(traffic.memory, Accesses { loads: wide, ..Accesses::default() });
    assert_eq!(traffic.packed, Accesses { stores: wide, ..Accesses::default() });
    assert_eq!(traffic.tables, Accesses::default());
    // Without the division into shares, each of the two blocks does all the work.
    let twice = wrong(&wrong(&text, "blockIdx.x * (u64)blockDim.x +", ""), "(u64)gridDim.x *", "");
    let kernel = Kernel::new(&twice, "pack").threads(32).blocks(2);
    let case = Case::pack("rows", &kernel, &Fragment::new(&layout, 1, 0, 3200), placement, &mut rng);
    assert_eq!(run(Build::Checked, 60, vec![case])[0].clone().unwrap().packed.stored_again, 3200);
}

#[test]
fn fragments_agree_with_the_oracle() {
    let mut nontrivial = 0;
    for seed in 0..1000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &Limits::SMALL);
        let count = rng.random_range(1..4);
        let bytes = Expectation::new(&datatype, count).bytes;
        let lowered = lower(&datatype);
        let first = rng.random_range(0..=bytes.len());
        let length = rng.random_range(0..=bytes.len() - first);
        let fragment = Fragment::new(&lowered, count, first as u64, length as u64);
        let pieces = fragment.pieces.iter().flat_map(|&(at, length)| at..at + length as i64);
        assert!(pieces.eq(bytes[first..first + length].iter().copied()), "seed {seed}: {datatype:?}");
        nontrivial += u32::from(fragment.pieces.len() > 2);
    }
    assert!(nontrivial > 200, "only {nontrivial} fragments are worth the name");
}

#[test]
fn texts_that_do_not_compile_are_named() {
    let kernel = Kernel::new("extern \"C\" __global__ void pack(unsigned char* memory) { nonsense; }", "pack");
    let (_, layout) = rows(1, 2, "");
    let mut rng = SmallRng::seed_from_u64(4);
    let mut shim = Shim::new(Build::Fast);
    shim.add(Case::pack("bad", &kernel, &Fragment::new(&layout, 1, 0, 1), Placement::random(&mut rng), &mut rng));
    let error = shim.run().unwrap_err().to_string();
    assert!(error.contains("text 0, first used by bad, packed bytes 0..1") && error.contains("nonsense"), "{error}");
}
