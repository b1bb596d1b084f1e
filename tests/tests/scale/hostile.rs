//! Hostile input costs at most four times what harmless input of the same size costs.
//!
//! Runs of both alternate in this process, and the minima of several runs are compared: other load on the machine makes
//! runs slower, and never a minimum smaller.

use crate::clock::computed;
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder, TypeId, json};
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::layout::segments::SegmentIndex;
use dtc_compiler::layout::{Edge, Kind, Layout, LayoutBuilder, Node};
use dtc_compiler::plan::Plan;
use dtc_compiler::{canonicalise, lower, raise};
use dtc_runtime::{Committed, Engine, Policy};
use std::hint::black_box;
use std::time::Duration;

/// Most time of hostile input, in multiples of harmless input.
const RATIO: u32 = 4;

fn once(work: &mut dyn FnMut()) -> Duration {
    let start = computed();
    work();
    computed() - start
}

/// Compares the minima of alternating runs.
fn compared(name: &str, harmless: &mut dyn FnMut(), hostile: &mut dyn FnMut()) -> Result<(), String> {
    let (mut least, mut least_hostile) = (Duration::MAX, Duration::MAX);
    for run in 0..12 {
        least = least.min(once(harmless));
        least_hostile = least_hostile.min(once(hostile));
        // A description of any length may expand to 4,096 runs, which the constant allows for.
        if run >= 4 && least_hostile < least * RATIO + Duration::from_micros(500) {
            println!("{name}: {least_hostile:.1?}, harmless {least:.1?}");
            return Ok(());
        }
    }
    Err(format!("{name}: expected at most {RATIO} times {least:.1?}, found {least_hostile:.1?}\n"))
}

/// Lists of 66 displacements. In a hostile set, those at even indices and the last are equal in all lists.
fn lists(count: i64, hostile: bool) -> Vec<Vec<i64>> {
    let list = |number: i64| {
        let entry = |at: i64| {
            let varied = (at % 2 == 1 && at < 65) == hostile;
            at * 1_000_000_000 + if varied { (number + at * 7919) % count } else { 0 }
        };
        (0..66).map(entry).collect()
    };
    (0..count).map(list).collect()
}

fn layout_of(lists: &[Vec<i64>]) -> Layout {
    let mut builder = LayoutBuilder::new();
    let element = builder.intern(Node::Dense { count: 1, kind: Kind::F64 }).unwrap();
    let list = |list: &Vec<i64>| {
        let node = Node::Indexed { offsets: list[..].into(), child: Edge { offset: 0, node: element } };
        Edge { offset: 0, node: builder.intern(node).unwrap() }
    };
    let parts = lists.iter().map(list).collect();
    let root = builder.intern(Node::Record { parts }).unwrap();
    builder.finish(Edge { offset: 0, node: root }, 0, 8)
}

#[test]
fn equal_hashes_cannot_be_prepared() {
    let sets = [false, true].map(|hostile| layout_of(&lists(6000, hostile)));
    let [harmless, hostile] = sets.map(|layout| layout.to_bytes());
    let read = |bytes: &[u8]| drop(black_box(Layout::from_bytes(bytes).unwrap()));
    let flattened = compared("flattened bytes", &mut || read(&harmless), &mut || read(&hostile));
    let [harmless, hostile] = [false, true].map(|hostile| {
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let list = |list: &Vec<i64>| types.hindexed_block(1, list, double).unwrap();
        let children: Vec<TypeId> = lists(3000, hostile).iter().map(list).collect();
        let root = types.structure(&[1; 3000], &[0; 3000], &children).unwrap();
        json::write(&types.finish(root).unwrap())
    });
    let read = |text: &str| drop(black_box(lower(&json::read(text).unwrap().datatype)));
    let described = compared("JSON", &mut || read(&harmless), &mut || read(&hostile));
    assert_eq!(flattened.and(described), Ok(()));
}

#[test]
fn a_hundred_thousand_live_types_cost_the_same_each() {
    const CHUNK: i64 = 5000;
    let engine = Engine::builder().policy(Policy::Off).build();
    let mut held: Vec<Committed> = Vec::new();
    let mut variant = 0;
    let mut chunk = |held: &mut Vec<Committed>| {
        let start = computed();
        for _ in 0..CHUNK {
            variant += 1;
            let mut types = TypeBuilder::new();
            let double = types.named(Predefined::DOUBLE);
            let vector = types.vector(2 + variant, 1, 2, double).unwrap();
            let committed = engine.commit(&types.finish(vector).unwrap());
            // The cache keeps the canonical form.
            assert_eq!(committed.plan().size(), (2 + variant as u64) * 8);
            held.push(committed);
        }
        computed() - start
    };
    let all: Vec<Duration> = (0..20).map(|_| chunk(&mut held)).collect();
    let (first, last) = (all[..5].iter().min().unwrap(), all[15..].iter().min().unwrap());
    println!("{CHUNK} commits: {first:.1?} at first, {last:.1?} beside 75,000 others");
    assert!(*last < *first * RATIO, "expected at most {RATIO} times {first:.1?}, found {last:.1?}");
    assert_eq!(engine.cached_types(), held.len());
    // Types that are no longer used are dropped while others are in use.
    held.truncate(50_000);
    (0..4).for_each(|_| {
        chunk(&mut Vec::new());
    });
    assert!(engine.cached_types() < 75_000, "{} types are kept", engine.cached_types());
}

/// Builds a level around the type below it.
type Level = fn(&mut TypeBuilder, TypeId, TypeId, i64) -> TypeId;

/// Levels that contain the level below more than once, so that the type has at least 2^40 bytes.
const EXPANDING: &[(&str, Level)] = &[
    ("apart", |types, below, _, number| types.structure(&[1, 1], &[0, (3 << 42) + number], &[below, below]).unwrap()),
    ("overlapping", |types, below, _, number| types.structure(&[1, 1], &[0, number], &[below, below]).unwrap()),
    ("in turns", |types, below, _, number| {
        types.structure(&[1, 1], &[number % 2, 1 - number % 2], &[below, below]).unwrap()
    }),
    ("two below", |types, below, before, number| types.structure(&[1, 1], &[0, 9 + number], &[below, before]).unwrap()),
    ("listed", |types, below, _, number| types.hindexed_block(1, &[number, 0], below).unwrap()),
    ("strided", |types, below, _, number| types.hvector(2, 1, 5 + number % 3, below).unwrap()),
    ("blocks", |types, below, _, number| types.hindexed(&[1, 2], &[number, 0], below).unwrap()),
];

/// A level that adds one element to the type below it.
const PLAIN: Level = |types, below, _, number| {
    let int = types.named(Predefined::INT);
    types.structure(&[1, 1], &[0, (3 << 42) + number], &[below, int]).unwrap()
};

/// Several towers of levels, side by side.
fn towers(level: Level, towers: i64, levels: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let element = types.named(Predefined::DOUBLE_INT);
    let tower = |tower: i64| {
        let (mut before, mut below) = (element, element);
        for number in 0..levels {
            (before, below) = (below, level(&mut types, below, before, 1 + tower * levels + number));
            below = types.resized(0, 1 << 44, below).unwrap();
        }
        below
    };
    let children: Vec<TypeId> = (0..towers).map(tower).collect();
    let places: Vec<i64> = (0..towers).map(|tower| tower << 45).collect();
    let root = types.structure(&vec![1; children.len()], &places, &children).unwrap();
    types.finish(root).unwrap()
}

/// Work to measure, with its name.
type Named = (&'static str, Box<dyn FnMut()>);

/// Every stage of a description.
fn stages(datatype: Datatype) -> Vec<Named> {
    let lowered = lower(&datatype);
    let canonical = canonicalise(&lowered).layout;
    let again = json::write(&datatype);
    let (text, printed, bytes) = (json::write(&datatype), lowered.to_string(), lowered.to_bytes());
    let [l, c] = [&lowered, &canonical];
    let [l1, l2, l3, l4, c1, c2, c3, c4] = [l, l, l, l, c, c, c, c].map(Layout::clone);
    vec![
        ("read JSON", Box::new(move || drop(black_box(json::read(&text).unwrap())))),
        ("read notation", Box::new(move || drop(black_box(Layout::parse(&printed).unwrap())))),
        ("read bytes", Box::new(move || drop(black_box(Layout::from_bytes(&bytes).unwrap())))),
        ("lower", Box::new(move || drop(black_box(lower(&datatype))))),
        ("canonicalise", Box::new(move || drop(black_box(canonicalise(&l1))))),
        (
            "hash",
            Box::new(move || {
                black_box(l2.type_hash());
            }),
        ),
        ("raise", Box::new(move || drop(black_box(raise(&l3).unwrap())))),
        ("print", Box::new(move || drop(black_box(l4.to_string())))),
        ("plan", Box::new(move || drop(black_box(Plan::new(&c1))))),
        (
            "run lengths",
            Box::new(move || {
                black_box(c2.run_lengths());
            }),
        ),
        ("positions", Box::new(move || drop(black_box(Positions::new(&c3))))),
        ("segment index", Box::new(move || drop(black_box(SegmentIndex::new(&c4))))),
        // New engines have cached no type.
        (
            "description to committed type",
            Box::new(move || {
                let datatype = json::read(&again).unwrap().datatype;
                drop(black_box(Engine::builder().policy(Policy::Off).build().commit(&datatype)));
            }),
        ),
    ]
}

#[test]
fn expanding_descriptions_cost_what_plain_ones_cost() {
    let mut slower = String::new();
    for (name, level) in EXPANDING {
        for (number, levels) in [(1, 17), (20, 15), (300, 10)] {
            let [mut plain, mut hostile] = [PLAIN, *level].map(|level| stages(towers(level, number, levels)));
            let Some((_, mut whole)) = plain.pop() else { continue };
            for (at, (stage, hostile)) in hostile.iter_mut().enumerate() {
                // A plain type becomes a short list, and queries on it take almost no time, so the sum is compared.
                let name = format!("{name}, {number} x {levels}: {stage}");
                let harmless = plain.get_mut(at).filter(|_| stage.starts_with("read "));
                let harmless = harmless.map_or(&mut whole, |(_, harmless)| harmless);
                slower.extend(compared(&name, harmless, hostile).err());
            }
        }
    }
    assert!(slower.is_empty(), "{slower}");
}

/// A thousand queries by position and by number.
fn queries(layout: Layout) -> Box<dyn FnMut()> {
    let (positions, index, size) = (Positions::owning(layout.clone()), SegmentIndex::new(&layout), layout.size());
    Box::new(move || {
        for at in 0..1000u64 {
            let position = size / 1000 * at;
            let segment = index.segment_at(&positions, position).unwrap();
            black_box((positions.memory_of(position), index.start_of(&positions, segment)));
        }
    })
}

#[test]
fn queries_by_position_cost_the_depth_and_the_logarithm_of_lists() {
    let canonical = |datatype: &Datatype| canonicalise(&lower(datatype)).layout;
    let rows = |rows: i64| {
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let row = types.vector(rows, 1, 2, int).unwrap();
        let rows = types.hindexed(&[1, 2, 1], &[0, 1 << 40, 7 << 40], row).unwrap();
        canonical(&types.finish(rows).unwrap())
    };
    let list = |entries: i64| {
        let mut types = TypeBuilder::new();
        let int = types.named(Predefined::INT);
        let lengths: Vec<i64> = (0..entries).map(|at| 1 + at % 3).collect();
        let places: Vec<i64> = (0..entries).map(|at| at * 5 + at * at % 2).collect();
        let list = types.indexed(&lengths, &places, int).unwrap();
        canonical(&types.finish(list).unwrap())
    };
    let deep = |levels: i64| canonical(&towers(EXPANDING[0].1, 1, levels));
    for (name, mut fewer, mut more) in [
        ("segments, a billion instead of a thousand", queries(rows(1000)), queries(rows(1_000_000_000))),
        ("entries, 64,000 instead of 1,000", queries(list(1000)), queries(list(64_000))),
        ("levels, 16 instead of 4", queries(deep(4)), queries(deep(16))),
    ] {
        assert_eq!(compared(name, &mut *fewer, &mut *more), Ok(()));
    }
}
