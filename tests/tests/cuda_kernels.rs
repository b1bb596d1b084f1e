//! The generated kernels move the bytes that the reference walker says, run on the CPU by the shim.
//!
//! Every layout is packed and unpacked in whole and in pieces cut anywhere, between buffers of any alignment, by the
//! kernel that its plan chooses for exactly that call, by others that may serve it, and by the generic kernels.

use dtc_compiler::codegen::cuda::{self, GenericKernel, Interpreted};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, Variant};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashMap};

/// Packed bytes of a whole call.
const WHOLE: u64 = 256 << 10;

/// Packed bytes of a fragment.
const PIECE: u64 = 12 << 10;

/// Where 32-bit indices end, as a number of words.
const NARROW: u64 = 1 << 31;

const DIRECTIONS: [Direction; 2] = [Direction::Pack, Direction::Unpack];

/// One range of packed bytes, to be moved both ways.
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

/// Which beside the chosen kernels run.
#[derive(Clone, Copy)]
struct Depth {
    /// Pieces of a layout.
    pieces: usize,
    /// Kernels that the plan did not choose, for one piece.
    others: usize,
}

/// Cases, and what they are about.
struct Run {
    shim: Shim,
    rng: SmallRng,
    generic: Kernel,
    depth: Depth,
    features: BTreeMap<String, usize>,
    texts: usize,
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
        Run { shim, rng: SmallRng::seed_from_u64(7), generic, depth, features: BTreeMap::new(), texts: 1 }
    }

    /// Adds the cases of a layout. Whether there were any.
    fn add(&mut self, subject: &Subject) -> bool {
        let Subject { layout, plan, count, .. } = subject;
        if layout.size() == 0 {
            return false;
        }
        let interpreted = Interpreted::new(plan);
        let interpreted_tables = self.generic.clone().tables(&interpreted.tables);
        let mut compiled = Compiled { subject, interpreted, interpreted_tables, kernels: HashMap::new() };
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
                    self.compiled(&mut compiled, &fragment, asked, plan.variant(direction, &call));
                }
                self.interpreted(&compiled, &fragment, asked, direction);
                let mut others = kernels::variants(plan, direction, &call);
                // The first pieces are aligned most, and have most.
                for _ in 0..if at < 2 { self.depth.others } else { 0 } {
                    if !others.is_empty() {
                        let other = others.swap_remove(self.rng.random_range(0..others.len()));
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
        let grain = u64::from(subject.plan.grain().word());
        let total = subject.layout.size() * subject.count;
        let mut pieces = Vec::new();
        for kind in 0..self.depth.pieces {
            // Multiples of a word, cut anywhere, or a byte.
            let (placement, unit, most) = match kind % 8 {
                0 => (Placement::aligned(rng, 256), grain, PIECE),
                1 => (Placement { memory: 256, ..Placement::random(rng) }, 1, PIECE),
                2 => (Placement::random(rng), 1, 1500),
                3 => (Placement::aligned(rng, 256), 1, PIECE),
                4 => (Placement { packed: 512, ..Placement::random(rng) }, grain, 3000),
                5 => {
                    let to = 4 << rng.random_range(0..2);
                    (Placement::aligned(rng, to), to as u64, 3000)
                }
                6 => (Placement::random(rng), 1, 1),
                _ => (Placement { memory: 8, ..Placement::random(rng) }, grain, PIECE),
            };
            let unit = if total >= unit { unit } else { 1 };
            let bytes = rng.random_range(1..=(most.min(total) / unit).max(1)) * unit;
            let first = rng.random_range(0..=(total - bytes) / unit) * unit;
            // Ends of the bounds, the borders of narrow indices, and anywhere.
            let last = (total - bytes) / unit * unit;
            let border = (NARROW * unit).wrapping_sub(bytes) / unit * unit;
            let first = match rng.random_range(0..6) {
                0 => 0,
                1 => last,
                2..4 if border < last => border + rng.random_range(0..3) * unit - unit,
                _ => first,
            };
            // The interpreter divides numbers below 2^63, and displacements must fit the address space.
            pieces.push(Asked { count: subject.count, first, bytes, placement });
        }
        pieces
    }

    fn compiled(&mut self, compiled: &mut Compiled, fragment: &Fragment, asked: &Asked, variant: Variant) {
        let Subject { name, plan, .. } = compiled.subject;
        let blocks = plan.blocks(&variant, &asked.call()).expect("a grid");
        let texts = &mut self.texts;
        let (kernel, lists) = compiled.kernels.entry(variant).or_insert_with(|| {
            *texts += 1;
            kernel(&cuda::program(plan, &[variant]).unwrap(), &variant)
        });
        let mut bounds = fragment.low.to_ne_bytes().to_vec();
        bounds.extend_from_slice(&fragment.high.to_ne_bytes());
        let kernel = kernel.clone().blocks(blocks).extra(&bounds);
        for feature in lists.iter().map(|list| (*list).to_owned()).chain(features(plan, &variant, &asked.call())) {
            *self.features.entry(feature).or_default() += 1;
        }
        self.case(&format!("{name}, {variant}"), &kernel, variant.direction, fragment, asked);
    }

    fn interpreted(&mut self, compiled: &Compiled, fragment: &Fragment, asked: &Asked, direction: Direction) {
        let Subject { name, plan, .. } = compiled.subject;
        let GenericKernel { entry, variant } = GenericKernel::serving(plan, direction, &asked.call());
        let blocks = plan.blocks(variant, &asked.call()).expect("a grid");
        let parameter = compiled.interpreted.parameter(fragment.low, fragment.high);
        let extra: Vec<u8> = parameter.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let kernel = compiled.interpreted_tables.clone().blocks(blocks).threads(variant.threads()).extra(&extra);
        *self.features.entry((*entry).to_owned()).or_default() += 1;
        let kernel = Kernel { entry: format!("{}::{entry}", entry.trim_start_matches("dtc_")), ..kernel };
        self.case(&format!("{name}, {entry}"), &kernel, direction, fragment, asked);
    }

    fn case(&mut self, name: &str, kernel: &Kernel, direction: Direction, fragment: &Fragment, asked: &Asked) {
        let make = if direction == Direction::Pack { Case::pack } else { Case::unpack };
        let name = format!("{name}, {} blocks, count {}", kernel.blocks[0], asked.count);
        self.shim.add(make(&name, kernel, fragment, asked.placement, &mut self.rng));
    }

    /// Runs all cases. The features that they have between them.
    fn finish(self, what: &str) -> BTreeMap<String, usize> {
        let started = std::time::Instant::now();
        let outcomes = self.shim.run().unwrap_or_else(|error| panic!("{error}"));
        let faults: Vec<String> = outcomes
            .iter()
            .filter_map(|outcome| Some(format!("{}: {}", outcome.name, outcome.result.as_ref().err()?)))
            .collect();
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

/// A kernel of a program, and which lists it reads.
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
        ("if (at < ", "records by bisection"),
    ];
    let lists = known.into_iter().filter(|(sign, _)| text.contains(sign)).map(|(_, list)| list).collect();
    let entry = format!("{}::{}", variant.direction, cuda::entry(variant.direction));
    (Kernel::new(source, &entry).threads(variant.threads()).tables(&program.tables), lists)
}

/// What a launch of a compiled kernel shows.
fn features(plan: &GpuPlan, variant: &Variant, call: &Call) -> Vec<String> {
    let direction = variant.direction;
    let mut features = vec![match variant.family {
        Family::Words { word, .. } => format!("{direction}: words of {word}"),
        Family::Shifted { word } => format!("{direction}: shifted words of {word}"),
        family => format!("{direction}: {family}"),
    }];
    let width = if variant.wide { "wide indices" } else { "narrow indices" };
    features.push(format!("{direction}: {width}"));
    if let (Family::Tiles, Some(tiles)) = (variant.family, plan.tiles()) {
        let columns = if tiles.stream.is_some() { "a stream's copies" } else { "elements" };
        features.push(format!("{direction}: tiles with {columns} as columns"));
        let (begin, words) = (call.first / u64::from(tiles.word), call.bytes / u64::from(tiles.word));
        let (plane, end) = (tiles.rows * tiles.columns, begin + words);
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
    let mut run = Run::new(Depth { pieces: 16, others: 4 });
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
        "tiles through shared memory",
        "tiles with a stream's copies as columns",
        "tiles with elements as columns",
        "tiles in several planes",
        "tiles of which the call has a part",
        "narrow indices",
        "wide indices",
    ];
    let packs = ["packed words gathered from runs at any alignment"];
    let unpacks = [
        "shifted words of 4",
        "shifted words of 8",
        "shifted words of 16",
        "packed words scattered to runs at any alignment",
        "words of memory that odd rows fill",
    ];
    let lists =
        ["runs by rank", "runs by search", "32-bit offsets", "64-bit offsets", "64-bit starts", "records by bisection"];
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

#[test]
fn the_corpus() {
    let mut run = Run::new(Depth { pieces: 7, others: 1 });
    let empty = kernels::corpus().iter().filter(|subject| !run.add(subject)).count();
    run.finish("corpus");
    println!("{empty} types have no bytes");
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
    let mut run = Run::new(Depth { pieces: 6, others: 1 });
    let subjects = kernels::random(0..90);
    let moved = subjects.iter().filter(|subject| run.add(subject)).count();
    run.finish("random layouts");
    assert!(moved >= 150, "{moved} layouts have bytes");
}
