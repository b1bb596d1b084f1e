//! The generated kernels, compared with the reference walker; the shim runs them on the CPU.
//!
//! Every layout is packed and unpacked whole and in pieces cut anywhere, between buffers of any alignment. Each call
//! runs the kernel that its plan chooses for exactly that call, others that may serve it, and the generic kernels.

use dtc_compiler::codegen::cuda::{self, GenericKernel, Interpreted};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Columns, Family, GpuPlan, Masks, Pieces, Tiles, Variant, WordsKernel};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::shim::{Access, Build, Case, Fragment, Kernel, Outcome, Placement, Shim};
use dtc_tests::skip::is_full;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap};

/// Packed bytes of a whole call.
const WHOLE: u64 = 256 << 10;

/// Packed bytes of a fragment.
const PIECE: u64 = 12 << 10;

/// Most bytes of address space that elements may span.
const SPAN: i128 = 1 << 46;

/// Number of words at which 32-bit indices end.
const NARROW: u64 = 1 << 31;

const DIRECTIONS: [Direction; 2] = [Direction::Pack, Direction::Unpack];

/// One range of packed bytes, for a pack and an unpack.
struct Asked {
    count: u64,
    first: u64,
    bytes: u64,
    placement: Placement,
}

impl Asked {
    fn call(&self) -> Call {
        let Placement { memory, packed } = self.placement;
        Call { memory: memory as u64, packed: packed as u64, first: self.first, bytes: self.bytes }
    }
}

/// Number of runs besides those of the chosen kernels.
#[derive(Clone, Copy)]
struct Depth {
    /// Pieces of a layout.
    pieces: usize,
    /// Kernels that the plan did not choose, for one piece.
    others: usize,
}

/// Cases, and their layouts.
struct Run {
    shim: Shim,
    rng: SmallRng,
    generic: Kernel,
    depth: Depth,
    features: BTreeMap<String, usize>,
    texts: usize,
    /// Bytes that each case may store again, at most.
    again: Vec<u64>,
}

/// The kernels of one layout, compiled once each.
struct Compiled<'a> {
    subject: &'a Subject,
    interpreted: Interpreted,
    interpreted_tables: Kernel,
    kernels: HashMap<Variant, (Kernel, Vec<&'static str>)>,
}

impl Run {
    fn new(depth: Depth) -> Run {
        let generic = Kernel::new(&cuda::generic_source().unwrap(), "");
        let mut shim = Shim::new(Build::Checked);
        shim.limit_seconds(10);
        let rng = SmallRng::seed_from_u64(7);
        Run { shim, rng, generic, depth, features: BTreeMap::new(), texts: 1, again: Vec::new() }
    }

    fn compiled_of<'a>(&self, subject: &'a Subject) -> Compiled<'a> {
        let interpreted = Interpreted::new(&subject.plan);
        let interpreted_tables = self.generic.clone().tables(&interpreted.tables);
        Compiled { subject, interpreted, interpreted_tables, kernels: HashMap::new() }
    }

    /// Adds the cases of a layout. Returns false if it has none: it has no bytes, or does not fit a process.
    fn add(&mut self, subject: &Subject) -> bool {
        let Subject { layout, plan, count, .. } = subject;
        let span = i128::from(layout.true_ub()) - i128::from(layout.true_lb());
        let span = span + i128::from(layout.extent()).abs() * i128::from(*count - 1);
        if layout.size() == 0 || span > SPAN {
            return false;
        }
        let mut compiled = self.compiled_of(subject);
        if plan.allows() {
            // Both directions share a text, as when a type is committed.
            let program = kernels::usual(plan).unwrap();
            self.texts += 1;
            for direction in DIRECTIONS {
                let variant = plan.usual(direction);
                compiled.kernels.insert(variant, kernel(&program, &variant));
            }
        }
        let counts = if *count == 1 { vec![1, 2] } else { vec![1, *count] };
        for count in counts {
            let bytes = layout.size().saturating_mul(count);
            if bytes <= WHOLE {
                let asked = Asked { count, first: 0, bytes, placement: Placement::aligned(&mut self.rng, 256) };
                let fragment = Fragment::new(layout, count, 0, bytes);
                for direction in DIRECTIONS {
                    if plan.allows() {
                        self.compiled(&mut compiled, &fragment, &asked, plan.usual(direction));
                    }
                    self.interpreted(&compiled, &fragment, &asked, direction);
                }
            }
        }
        for (at, asked) in self.pieces(subject).iter().enumerate() {
            let fragment = Fragment::new(layout, asked.count, asked.first, asked.bytes);
            for direction in DIRECTIONS {
                let call = asked.call();
                if plan.allows() {
                    let variant = match self.rng.random_range(0..4) {
                        0 => plan.variant(direction, &call),
                        _ => kernels::of_longer(plan, direction, &call),
                    };
                    self.compiled(&mut compiled, &fragment, asked, variant);
                }
                self.interpreted(&compiled, &fragment, asked, direction);
                let mut others = kernels::variants(plan, direction, &call);
                // Calls of a test are too short for groups to be chosen.
                let by_groups = others.iter().find(|other| matches!(other.family, Family::Groups(_))).copied();
                if let Some(variant) = by_groups.filter(|_| self.depth.others > 1) {
                    let wide = asked.first + asked.bytes >= NARROW;
                    self.compiled(&mut compiled, &fragment, asked, Variant { wide, ..variant });
                }
                // The first piece has the best alignment, so most kernels may serve it.
                for _ in 0..if at == 0 { self.depth.others } else { 0 } {
                    // Kernels that have served least: few layouts have the rare ones.
                    let served = |other: &Variant| {
                        let family = &features(plan, other, &call)[0];
                        self.features.get(family).copied().unwrap_or_default()
                    };
                    if let Some(least) = (0..others.len()).min_by_key(|&at| served(&others[at])) {
                        let other = others.swap_remove(least);
                        let wide = asked.first + asked.bytes >= NARROW || self.rng.random_bool(0.5);
                        self.compiled(&mut compiled, &fragment, asked, Variant { wide, ..other });
                    }
                }
            }
        }
        true
    }

    /// Pieces of a layout, of every alignment and cut anywhere.
    fn pieces(&mut self, subject: &Subject) -> Vec<Asked> {
        let rng = &mut self.rng;
        let granularity = u64::from(subject.plan.granularity().word());
        let total = subject.layout.size() * subject.count;
        let mut pieces = Vec::new();
        for kind in 0..self.depth.pieces {
            // Pieces are multiples of a word, cut anywhere, or one byte long.
            let (placement, unit, most) = match kind % 8 {
                0 => (Placement::aligned(rng, 256), granularity, PIECE),
                1 => (Placement { memory: 256, ..Placement::random(rng) }, 1, PIECE),
                2 => (Placement::random(rng), 1, 1500),
                3 => (Placement::aligned(rng, 256), 1, PIECE),
                4 => (Placement { packed: 512, ..Placement::random(rng) }, granularity, 3000),
                5 => {
                    let to = 4 << rng.random_range(0..2);
                    (Placement::aligned(rng, to), to as u64, 3000)
                }
                6 => (Placement::random(rng), 1, 1),
                _ => (Placement { memory: 8, ..Placement::random(rng) }, granularity, PIECE),
            };
            let unit = if total >= unit { unit } else { 1 };
            let most = (most.min(total) / unit).max(1);
            let bytes = match subject.plan.found::<Tiles>().map(|tiles| tiles.rows * u64::from(tiles.word)) {
                // Tiles need at least two columns. Few columns cut every tile; many have whole tiles.
                Some(column) if kind < 2 && 4 * column <= WHOLE.min(total) => {
                    let most = if kind == 0 { 3 * column } else { WHOLE.min(total) };
                    rng.random_range(2 * column..most) / unit * unit
                }
                _ => rng.random_range(1..=most) * unit,
            };
            let first = rng.random_range(0..=(total - bytes) / unit) * unit;
            if subject.plan.found::<Columns>().is_some() && kind < 4 {
                let (size, element) = (subject.layout.size(), rng.random_range(0..subject.count));
                let elements = rng.random_range(1..=subject.count - element);
                pieces.push(Asked { count: subject.count, first: element * size, bytes: elements * size, placement });
                continue;
            }
            // Positions are the ends of the bounds, the borders of narrow indices, and random ones.
            let last = (total - bytes) / unit * unit;
            let border = (NARROW * unit).wrapping_sub(bytes) / unit * unit;
            let first = match rng.random_range(0..6) {
                0 => 0,
                1 => last,
                2..4 if border < last => border + rng.random_range(0..3) * unit - unit,
                _ => first,
            };
            pieces.push(Asked { count: subject.count, first, bytes, placement });
        }
        pieces
    }

    fn compiled(&mut self, compiled: &mut Compiled, fragment: &Fragment, asked: &Asked, variant: Variant) {
        let Subject { name, plan, .. } = compiled.subject;
        let variant = if self.rng.random_range(0..5) == 0 { variant.capped() } else { variant };
        let blocks = plan.blocks(&variant, &asked.call()).expect("a grid");
        let texts = &mut self.texts;
        let (kernel, lists) = compiled.kernels.entry(variant).or_insert_with(|| {
            *texts += 1;
            kernel(&cuda::program(plan, &[variant]).unwrap(), &variant)
        });
        let bounds = [fragment.low, fragment.high].map(i64::to_ne_bytes).concat();
        let kernel = kernel.clone().extra(&extra(blocks, &bounds));
        let kernel = kernel.blocks(self.grid(&variant, blocks));
        for feature in lists.iter().map(|list| (*list).to_owned()).chain(features(plan, &variant, &asked.call())) {
            *self.features.entry(feature).or_default() += 1;
        }
        self.case(&format!("{name}, {variant}"), &kernel, variant.direction, fragment, asked);
        if let Some(again) = self.again.last_mut() {
            *again = again.saturating_add(stored_again(&variant, asked.bytes));
        }
    }

    fn interpreted(&mut self, compiled: &Compiled, fragment: &Fragment, asked: &Asked, direction: Direction) {
        let Subject { name, plan, .. } = compiled.subject;
        let whole = [asked.first, asked.bytes].iter().all(|at| at.is_multiple_of(plan.layout().size()));
        let by_columns = |kernel: &&GenericKernel| {
            let Variant { direction: its, family, .. } = kernel.variant;
            let are_elements = plan.found::<Columns>().is_some_and(|columns| columns.are_elements(plan.layout()));
            are_elements && whole && its == direction && matches!(family, Family::Columns(_))
        };
        let lines = cuda::GENERIC_KERNELS
            .iter()
            .find(|kernel| matches!(kernel.variant.family, Family::Lines(_)))
            .expect("a kernel");
        let of_longer = GenericKernel::serving(plan, direction, &kernels::longer(plan, &asked.call()));
        let GenericKernel { entry, variant } = match self.rng.random_range(0..8) {
            0 => GenericKernel::capped(direction),
            // Calls of a test are too short for some to be chosen.
            1..5 if direction == Direction::Unpack && plan.found::<Masks>().is_some() => lines,
            1..5 if let Some(kernel) = cuda::GENERIC_KERNELS.iter().find(by_columns) => kernel,
            1..7 if !matches!(of_longer.variant.family, Family::Columns(_)) => of_longer,
            _ => GenericKernel::serving(plan, direction, &asked.call()),
        };
        let blocks = plan.blocks(variant, &asked.call()).expect("a grid");
        let parameter = compiled.interpreted.program.parameter(variant, &asked.call(), fragment.low, fragment.high);
        let program: Vec<u8> = parameter.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let kernel = compiled.interpreted_tables.clone().threads(variant.threads()).extra(&extra(blocks, &program));
        let kernel = kernel.blocks(self.grid(variant, blocks));
        *self.features.entry((*entry).to_owned()).or_default() += 1;
        let nodes =
            if plan.layout().nodes().len() > 22 { "generic: nodes in tables" } else { "generic: nodes in parameters" };
        *self.features.entry(nodes.to_owned()).or_default() += 1;
        if !plan.allows() {
            *self.features.entry("generic: not compiled".to_owned()).or_default() += 1;
        }
        let kernel = Kernel { entry: format!("{}::{entry}", entry.trim_start_matches("dtc_")), ..kernel };
        self.case(&format!("{name}, {entry}"), &kernel, direction, fragment, asked);
    }

    /// Blocks of the grid: as many as the work has, or fewer if the grid is capped.
    fn grid(&mut self, variant: &Variant, blocks: u32) -> u32 {
        if blocks == 1 || !variant.capped {
            return blocks;
        }
        *self.features.entry("fewer blocks than the work has".to_owned()).or_default() += 1;
        self.rng.random_range(1..blocks)
    }

    fn case(&mut self, name: &str, kernel: &Kernel, direction: Direction, fragment: &Fragment, asked: &Asked) {
        let make = if direction == Direction::Pack { Case::pack } else { Case::unpack };
        let name = format!("{name}, {} blocks, count {}", kernel.blocks[0], asked.count);
        let case = make(&name, kernel, fragment, asked.placement, &mut self.rng);
        let overlaps = case.memory.ranges.iter().any(|range| range.access == Access::WriteAny);
        self.again.push(if overlaps { u64::MAX } else { 0 });
        self.shim.add(case);
    }

    /// Runs all cases. Returns the number of cases with each feature.
    fn finish(self, what: &str) -> BTreeMap<String, usize> {
        let started = std::time::Instant::now();
        let outcomes = self.shim.run().unwrap_or_else(|error| panic!("{error}"));
        let mut faults = Vec::new();
        for (Outcome { name, result }, &most) in outcomes.iter().zip(&self.again) {
            match result {
                Err(fault) => faults.push(format!("{name}: {fault}")),
                Ok(traffic) => {
                    let again = [traffic.memory, traffic.packed].map(|side| side.stored_again);
                    if again.iter().any(|&bytes| bytes > most) {
                        faults.push(format!("{name}: stores {again:?} bytes of memory and packed bytes again"));
                    }
                }
            }
        }
        let cases = outcomes.len();
        println!("{what}: {cases} launches of {} texts in {:?}", self.texts, started.elapsed());
        for (feature, count) in &self.features {
            println!("{count:6}  {feature}");
        }
        let shown: Vec<&str> = faults.iter().take(30).map(String::as_str).collect();
        assert!(faults.is_empty(), "{} of {cases} launches are wrong:\n{}", faults.len(), shown.join("\n"));
        self.features
    }
}

/// The parameters of a kernel after the common five: the blocks of the work, then `last`.
fn extra(blocks: u32, last: &[u8]) -> Vec<u8> {
    [&u64::from(blocks).to_le_bytes(), last].concat()
}

/// A kernel of a program, and the lists that it reads.
fn kernel(program: &cuda::Program, variant: &Variant) -> (Kernel, Vec<&'static str>) {
    let source = &program.source;
    let begin = source.find(&format!("namespace {} {{", variant.direction)).expect("a namespace");
    let end = source[begin + 1..].find("namespace ").map_or(source.len(), |at| begin + 1 + at);
    let text = &source[begin..end];
    let known = [
        ("const uint2 *)(tables", "runs by rank"),
        ("last = __ldg(chunks + 1)", "runs by search"),
        ("const u64 *starts", "64-bit starts"),
        ("(i64)__ldg((const i64 *)(tables", "64-bit offsets"),
        ("(i64)__ldg((const int *)(tables", "32-bit offsets"),
    ];
    let mut lists: Vec<_> = known.into_iter().filter(|(sign, _)| text.contains(sign)).map(|(_, list)| list).collect();
    // Kernels of lists compare with variables, kernels of records with constants.
    if text.split("if (at < ").skip(1).any(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit())) {
        lists.push("records by bisection");
    }
    let entry = format!("{}::{}", variant.direction, cuda::entry(variant));
    (Kernel::new(source, &entry).threads(variant.threads()).tables(&program.tables), lists)
}

/// Bytes that a call of `bytes` bytes may store again, with the same values: the last box of an axis moves words of the one before, and threads beyond the
/// end, or before the first line, move the last word.
fn stored_again(variant: &Variant, bytes: u64) -> u64 {
    /// Words of a thread, and bytes of a word, at most.
    const ORDERED: u32 = 2 * 16;
    match variant.family {
        Family::Boxes(_) => bytes,
        Family::Words(WordsKernel { word, shape, .. }) if shape.unroll > 1 => {
            2 * u64::from(variant.threads() * shape.unroll * word)
        }
        Family::Ordered(_) => (variant.threads() * ORDERED).into(),
        _ => 0,
    }
}

/// Features of a launch of a compiled kernel.
fn features(plan: &GpuPlan, variant: &Variant, call: &Call) -> Vec<String> {
    let direction = variant.direction;
    let mut features = vec![match variant.family {
        Family::Words(words) => format!("{direction}: words of {}", words.word),
        Family::Shifted(shifted) => format!("{direction}: shifted words of {}", shifted.word),
        family => format!("{direction}: {family}"),
    }];
    if let (Family::Pieces(_), Some(pieces)) = (variant.family, plan.found::<Pieces>()) {
        features.push(format!("{direction}: {} lanes for a run", pieces.cut(direction).lanes));
    }
    let width = if variant.wide { "wide indices" } else { "narrow indices" };
    features.push(format!("{direction}: {width}"));
    if let (Family::Tiles(_), Some(tiles)) = (variant.family, plan.found::<Tiles>()) {
        let columns = if tiles.stream.is_some() { "a stream's copies" } else { "elements" };
        features.push(format!("{direction}: tiles with {columns} as columns"));
        let (begin, words) = (call.first / u64::from(tiles.word), call.bytes / u64::from(tiles.word));
        let (plane, end) = (tiles.rows * tiles.columns, begin + words.max(1));
        if begin / plane != (end - 1) / plane {
            features.push(format!("{direction}: tiles in several planes"));
        }
        if begin % tiles.rows != 0 && end % tiles.rows != 0 {
            features.push(format!("{direction}: tiles of which the call has a part"));
        }
    }
    features
}

#[test]
fn every_family() {
    let mut run = Run::new(Depth { pieces: 12, others: 5 });
    for subject in kernels::families() {
        assert!(run.add(&subject), "{}", subject.name);
    }
    let found = run.finish("families");
    let both = [
        "words of 1",
        "words of 2",
        "words of 4",
        "words of 8",
        "words of 16",
        "shifted words of 4",
        "shifted words of 8",
        "records through shared memory, fields from arrays of their own",
        "records through shared memory, packed field by field",
        "groups of runs through shared memory",
        "runs, each found by its number",
        "tiles through shared memory",
        "tiles through shared memory, unaligned to the packed words",
        "tiles with a stream's copies as columns",
        "tiles with elements as columns",
        "tiles in several planes",
        "tiles of which the call has a part",
        "boxes of permuted axes through shared memory",
        "narrow indices",
        "wide indices",
    ];
    let packs = [
        "packed words gathered from runs at any alignment",
        "packed words joined from listed runs",
        "words of 1 bytes, 16 stored at once",
        "words of 2 bytes, 8 stored at once",
    ];
    let unpacks = [
        "shifted words of 16",
        "packed words scattered to runs at any alignment",
        "packed bytes to runs through lines of shared memory",
        "words of memory that odd rows fill",
        "words of 16 bytes in the order of memory",
        "words of 8 bytes in the order of memory",
        "words of 4 bytes in the order of memory",
        "words of 2 bytes in the order of memory",
        "records through shared memory, in the order of memory",
        "bytes of short runs by masks, in the order of memory",
    ];
    let lists = [
        "generic: nodes in parameters",
        "generic: nodes in tables",
        "generic: not compiled",
        "fewer blocks than the work has",
        "runs by rank",
        "runs by search",
        "32-bit offsets",
        "64-bit offsets",
        "64-bit starts",
        "records by bisection",
    ];
    let direction = |direction: &'static str| move |what: &&str| format!("{direction}: {what}");
    let expected: Vec<String> = both
        .iter()
        .chain(&packs)
        .map(direction("pack"))
        .chain(both.iter().chain(&unpacks).map(direction("unpack")))
        .chain(lists.iter().map(|list| (*list).to_owned()))
        .chain(cuda::GENERIC_KERNELS.iter().map(|kernel| kernel.entry.to_owned()))
        .collect();
    let missing: Vec<&String> = expected.iter().filter(|feature| !found.contains_key(*feature)).collect();
    assert!(missing.is_empty(), "no launch has {missing:?}");
}

/// The ends of layouts, with every alignment of memory and packed bytes modulo 8, and several of memory modulo 32.
#[test]
fn every_alignment() {
    let layouts = [
        ("runs", "layout lb 0 extent 50 {\n  %0 = runs [(3 14) (27 22)] x byte\n  root %0\n}"),
        (
            "runs of dozens",
            "layout lb 0 extent 400 {\n  %0 = runs [(3 70) (99 32) (150 121) (290 19)] x byte\n  root %0\n}",
        ),
        (
            "runs of thousands",
            "layout lb 0 extent 9000 {\n  %0 = runs [(5003 1600) (1 2400) (7000 555)] x byte\n  root %0\n}",
        ),
        (
            "fields",
            "layout lb 0 extent 20000 {\n  %0 = runs [(0 8) (9000 4) (4000 2) (14001 1)] x byte\n  \
         %1 = stream 300 x 8 of %0\n  root %1\n}",
        ),
        (
            "records field by field",
            "layout lb 0 extent 16400 {\n  %0 = dense 2 x byte\n  %1 = dense 1 x byte\n  %2 = stream 2050 x 8 of %0\n  \
         %3 = stream 2050 x 8 of %1\n  %4 = record [2: %2, 0: %3, 4: %2, 1: %3]\n  root %4\n}",
        ),
        (
            "groups",
            "layout lb 0 extent 20000 {\n  %0 = runs [(6 14) (27 5) (0 4)] x byte\n  %1 = indexed [96 0 32 64 160 9999] of %0\n  root %1\n}",
        ),
        ("rows", "layout lb 0 extent 50 {\n  %0 = dense 23 x byte\n  %1 = stream 2 x 25 of %0\n  root %1\n}"),
        ("words", "layout lb 0 extent 60 {\n  %0 = dense 20 x byte\n  %1 = stream 2 x 28 of %0\n  root %1\n}"),
        ("wide words", "layout lb 0 extent 160 {\n  %0 = dense 32 x byte\n  %1 = stream 2 x 48 of %0\n  root %1\n}"),
    ];
    let mut run = Run::new(Depth { pieces: 0, others: 0 });
    let close = kernels::families().into_iter().find(|subject| subject.plan.found::<Masks>().is_some()).unwrap();
    let parse = |(name, text): (&str, &str)| Subject::new(name.to_owned(), Layout::parse(text).unwrap(), 1);
    for subject in layouts.into_iter().map(parse).chain([close]) {
        let mut compiled = run.compiled_of(&subject);
        for (memory, packed) in (0..64).map(|both| (both / 8 * 5, both % 8)) {
            let cut = run.rng.random_range(0..3);
            let (first, bytes) = (cut, subject.layout.size() - 2 * cut);
            let asked = Asked { count: 1, first, bytes, placement: Placement { memory, packed } };
            let fragment = Fragment::new(&subject.layout, 1, first, bytes);
            for direction in DIRECTIONS {
                for variant in kernels::variants(&subject.plan, direction, &asked.call()) {
                    run.compiled(&mut compiled, &fragment, &asked, variant);
                }
                run.interpreted(&compiled, &fragment, &asked, direction);
            }
        }
    }
    run.finish("alignments");
}

#[test]
fn the_corpus() {
    let mut run = Run::new(Depth { pieces: 7, others: usize::from(is_full()) });
    let empty = kernels::corpus().iter().filter(|subject| !run.add(subject)).count();
    run.finish("corpus");
    println!("{empty} types have no bytes");
}

/// What a plan chooses for whole calls is among what searches try.
#[test]
fn every_choice_is_a_candidate() {
    let mut choices = 0;
    for Subject { name, plan, layout, count } in kernels::corpus().into_iter().chain(kernels::families()) {
        let total = layout.size().saturating_mul(count);
        if total == 0 || !plan.allows() {
            continue;
        }
        // As long as the usual calls of a benchmark, at any alignment of both sides.
        let long = layout.size() * (4u64 << 20).div_ceil(layout.size());
        for (bytes, memory, packed) in [(total, 256, 512), (long, 256, 512), (long, 4, 8), (long, 1, 3)] {
            let call = Call { memory, packed, first: 0, bytes };
            for direction in DIRECTIONS {
                let chosen = plan.variant(direction, &call);
                assert!(plan.candidates(direction, &call).contains(&chosen), "{name}, {call:?}: {chosen}");
                choices += 1;
            }
        }
    }
    println!("{choices} choices");
    assert!(choices > 1000);
}

/// Every call is one kernel; this is the part of "at most one launch" that can be tested without a GPU.
#[test]
fn every_call_is_one_kernel() {
    let generic = cuda::generic_source().unwrap();
    for GenericKernel { entry, .. } in cuda::GENERIC_KERNELS {
        assert_eq!(generic.matches(&format!("\n{entry}(")).count(), 1, "{entry}");
    }
    let others = [cuda::GENERIC_BATCH_ENTRY, cuda::GENERIC_ACCUMULATE_ENTRY, cuda::GENERIC_COPY_ENTRY];
    for entry in others {
        assert_eq!(generic.matches(&format!("\n{entry}(")).count(), 1, "{entry}");
    }
    for kernel in cuda::GENERIC_TABLED {
        assert_eq!(generic.matches(&format!("\n{}(", kernel.entry)).count(), 1, "{}", kernel.entry);
    }
    let all = cuda::GENERIC_KERNELS.len() + cuda::GENERIC_TABLED.len() + others.len();
    assert_eq!(generic.matches("__global__").count(), all);
    let mut programs = 0;
    for Subject { name, plan, layout, count } in kernels::corpus().into_iter().chain(kernels::families()) {
        let total = layout.size().saturating_mul(count);
        if total == 0 {
            continue;
        }
        for direction in DIRECTIONS {
            let mut calls = Vec::new();
            for alignment in [16, 8, 4, 2, 1] {
                for first in [0, total / 2 / alignment * alignment, total - 1] {
                    let bytes = if total - first >= alignment { (total - first) / alignment * alignment } else { 1 };
                    calls.push(Call { memory: alignment, packed: alignment, first, bytes });
                }
            }
            for call in calls {
                assert!(GenericKernel::serving(&plan, direction, &call).variant.direction == direction, "{name}");
                let mut variants = kernels::variants(&plan, direction, &call);
                variants.extend(plan.allows().then(|| plan.variant(direction, &call)));
                for variant in variants {
                    let source = cuda::program(&plan, &[variant]).unwrap().source;
                    assert_eq!(source.matches("__global__").count(), 1, "{name}: {variant}");
                    programs += 1;
                }
            }
        }
    }
    println!("{programs} programs of one kernel");
}

#[test]
fn examples() {
    let mut run = Run::new(Depth { pieces: 5, others: 0 });
    let examples = kernels::examples();
    for example in &examples {
        assert!(run.add(example), "{}", example.name);
    }
    run.finish("examples");
    let large: Vec<&str> =
        examples.iter().filter(|example| example.layout.size() > WHOLE).map(|example| example.name.as_str()).collect();
    println!("{} of {} examples ran in pieces only: {}", large.len(), examples.len(), large.join(", "));
}

#[test]
fn random_layouts() {
    let mut run = Run::new(Depth { pieces: 5, others: 1 });
    let subjects = kernels::random(0..if is_full() { 86 } else { 30 });
    let moved = subjects.iter().filter(|subject| run.add(subject)).count();
    run.finish("random layouts");
    assert!(10 * moved >= 8 * subjects.len(), "{moved} of {} layouts have bytes", subjects.len());
}

#[test]
fn arrays_with_permuted_axes() {
    let mut run = Run::new(Depth { pieces: 2, others: 2 });
    for subject in kernels::arrays(0..if is_full() { 120 } else { 16 }) {
        assert!(run.add(&subject), "{}", subject.name);
    }
    let found = run.finish("arrays with permuted axes");
    assert!(found.keys().any(|feature| feature.starts_with("pack: boxes")), "{found:?}");
}
