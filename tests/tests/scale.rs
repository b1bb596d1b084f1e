//! Descriptions of extreme depth and length take time linear in their length, and no stack.

#[path = "scale/clock.rs"]
mod clock;
#[path = "scale/hostile.rs"]
mod hostile;

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder, TypeId, json};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use dtc_compiler::{canonicalise, lower};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// Levels of the deep types; a recursion over them would overflow the stack.
const LEVELS: usize = 10_000;

/// Entries of the long lists.
const ENTRIES: usize = 1_000_000;

/// Runs on a stack that a recursion over a deep type would overflow.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap()
}

/// The time of every stage of a type, and the canonical layout.
struct Stages {
    canonical: Layout,
    total: Duration,
    shown: String,
}

/// Runs every stage, and drops its results.
fn stages(datatype: Datatype, before: Duration) -> Stages {
    let mut shown = format!("read {before:.1?}");
    let mut total = before;
    let mut timed = |name: &str, start: Instant| {
        let elapsed = start.elapsed();
        total += elapsed;
        shown += &format!(", {name} {elapsed:.1?}");
    };
    let start = Instant::now();
    let lowered = lower(&datatype);
    timed("lower", start);
    let start = Instant::now();
    let canonical = canonicalise(&lowered).layout;
    timed("canonicalise", start);
    let start = Instant::now();
    let hash = canonical.type_hash();
    timed("hash", start);
    let start = Instant::now();
    let plan = Plan::new(&canonical);
    timed("plan", start);
    assert_eq!(plan.size(), datatype.facts().size);
    assert_eq!(hash, lowered.type_hash());
    let start = Instant::now();
    drop((datatype, lowered, plan));
    timed("drop", start);
    Stages { canonical, total, shown }
}

/// Text of one level around a child.
struct Wrapping {
    before: &'static str,
    after: &'static str,
}

const DOUBLE: &str = r#"{"kind": "named", "name": "MPI_DOUBLE"}"#;
const CONTIGUOUS: Wrapping = Wrapping { before: r#"{"kind": "contiguous", "count": 1, "child": "#, after: "}" };
const STRUCT: Wrapping = Wrapping {
    before: r#"{"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 16], "children":
        [{"kind": "named", "name": "MPI_DOUBLE"}, "#,
    after: "]}",
};
const RESIZED: Wrapping = Wrapping { before: r#"{"kind": "resized", "lb": 0, "extent": 160, "child": "#, after: "}" };
const DUP: Wrapping = Wrapping { before: r#"{"kind": "dup", "child": "#, after: "}" };
const HVECTOR: Wrapping = Wrapping {
    before: r#"{"kind": "hvector", "count": 1, "blocklength": 1, "stride_bytes": -7, "child": "#,
    after: "}",
};
const INDEXED: Wrapping = Wrapping {
    before: r#"{"kind": "indexed", "blocklengths": [0, 1, 0], "displacements": [5, 0, -7], "child": "#,
    after: "}",
};
const BLOCK: Wrapping = Wrapping {
    before: r#"{"kind": "hindexed_block", "blocklength": 1, "displacements_bytes": [8], "child": "#,
    after: "}",
};
const SUBARRAY: Wrapping = Wrapping {
    before: r#"{"kind": "subarray", "sizes": [1, 1], "subsizes": [1, 1], "starts": [0, 0], "order": "C", "child": "#,
    after: "}",
};
/// A level with more runs than entries, so that the structure stays up to the last level.
const MANY_RUNS: Wrapping = Wrapping {
    before: r#"{"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 1601], "children":
        [{"kind": "vector", "count": 100, "blocklength": 1, "stride": 2, "child":
            {"kind": "named", "name": "MPI_DOUBLE"}}, "#,
    after: "]}",
};

fn nested(levels: &[Wrapping], count: usize) -> String {
    let (mut before, mut after) = (String::new(), String::new());
    for at in 0..count {
        before += levels[at % levels.len()].before;
    }
    for at in (0..count).rev() {
        after += levels[at % levels.len()].after;
    }
    format!("{before}{DOUBLE}{after}")
}

fn deep(name: &'static str, levels: &'static [Wrapping]) -> Layout {
    let text = nested(levels, LEVELS);
    let stages = on_a_small_stack(move || {
        let start = Instant::now();
        let datatype = json::read(&text).unwrap().datatype;
        stages(datatype, start.elapsed())
    });
    println!("{name}: {}", stages.shown);
    assert!(stages.total < Duration::from_secs(1), "{name}: {}", stages.shown);
    stages.canonical
}

#[test]
fn depth_costs_no_stack_and_little_time() {
    for (name, levels) in [
        ("contiguous", &[CONTIGUOUS][..]),
        ("resized and dup", &[RESIZED, DUP]),
        ("hvector", &[HVECTOR]),
        ("indexed", &[INDEXED]),
        ("subarray", &[SUBARRAY]),
    ] {
        let canonical = deep(name, levels);
        assert_eq!(canonical.contiguous(), Some((0, 8)), "{name}");
    }
    assert_eq!(deep("blocks", &[BLOCK]).contiguous(), Some((8 * LEVELS as i64, 8)));
    let ladder = deep("struct", &[STRUCT]);
    assert_eq!(ladder.nodes().len(), 2, "{ladder}");
    let kept = deep("struct of many runs", &[MANY_RUNS]);
    assert!(!kept.exact());
    let all = deep("alternating", &[CONTIGUOUS, STRUCT, RESIZED, DUP, HVECTOR, INDEXED, SUBARRAY, BLOCK]);
    assert!(all.exact());
}

/// A type with a list of this many entries.
type List = fn(&mut TypeBuilder, &mut SmallRng, i64) -> TypeId;

const LISTS: &[(&str, List)] = &[
    ("indexed", |types, random, entries| {
        let lengths: Vec<i64> = (0..entries).map(|_| random.random_range(1..5)).collect();
        let offsets: Vec<i64> = (0..entries).map(|entry| entry * 8 + random.random_range(0..4)).collect();
        let int = types.named(Predefined::INT);
        types.indexed(&lengths, &offsets, int).unwrap()
    }),
    ("indexed_block", |types, random, entries| {
        let offsets: Vec<i64> = (0..entries).map(|_| random.random_range(0..1 << 40)).collect();
        let double = types.named(Predefined::DOUBLE);
        types.indexed_block(1, &offsets, double).unwrap()
    }),
    ("hindexed", |types, random, entries| {
        let lengths: Vec<i64> = (0..entries).map(|_| random.random_range(0..3)).collect();
        let offsets: Vec<i64> = (0..entries).map(|_| random.random_range(-(1 << 40)..1 << 40)).collect();
        let pair = types.named(Predefined::SHORT_INT);
        types.hindexed(&lengths, &offsets, pair).unwrap()
    }),
    ("struct", |types, random, entries| {
        let kinds = [Predefined::DOUBLE, Predefined::INT, Predefined::CHAR].map(|kind| types.named(kind));
        let children: Vec<TypeId> = (0..entries).map(|_| kinds[random.random_range(0..3)]).collect();
        let offsets: Vec<i64> = (0..entries).map(|entry| entry * 24 + random.random_range(0..8)).collect();
        types.structure(&vec![1; entries as usize], &offsets, &children).unwrap()
    }),
    // A list that is one piece, and one with a period of 1,000 entries, so that the passes have work.
    ("touching blocks", |types, _, entries| {
        let offsets: Vec<i64> = (0..entries).collect();
        let double = types.named(Predefined::DOUBLE);
        types.indexed_block(1, &offsets, double).unwrap()
    }),
    ("repeating blocks", |types, random, entries| {
        let first: Vec<i64> = (0..1000).map(|entry| entry * 4 + random.random_range(0..3)).collect();
        let offsets: Vec<i64> = (0..entries).map(|at| at / 1000 * 5000 + first[at as usize % 1000]).collect();
        let double = types.named(Predefined::DOUBLE);
        types.indexed_block(1, &offsets, double).unwrap()
    }),
];

fn long(list: List, entries: usize) -> Stages {
    on_a_small_stack(move || {
        let start = Instant::now();
        let mut types = TypeBuilder::new();
        let root = list(&mut types, &mut SmallRng::seed_from_u64(entries as u64), entries as i64);
        let datatype = types.finish(root).unwrap();
        stages(datatype, start.elapsed())
    })
}

#[test]
fn long_lists_cost_time_in_proportion() {
    for (name, list) in LISTS {
        // Four times the entries may take ten times as long, because longer lists leave the caches; a quadratic step would take
        // sixteen times. The least time of several runs counts, in alternation, because other processes may run at the same time.
        let [mut quarter, mut whole] = [ENTRIES / 4, ENTRIES].map(|entries| long(*list, entries));
        let fits = |quarter: &Stages, whole: &Stages| whole.total < quarter.total * 10 + Duration::from_millis(20);
        for _ in 0..5 {
            for (least, entries) in [(&mut quarter, ENTRIES / 4), (&mut whole, ENTRIES)] {
                let again = long(*list, entries);
                if again.total < least.total {
                    *least = again;
                }
            }
            if fits(&quarter, &whole) {
                break;
            }
        }
        println!("{name}: {}; a quarter {:.1?}", whole.shown, quarter.total);
        assert!(whole.total < Duration::from_secs(3), "{name}: {}", whole.shown);
        assert!(
            fits(&quarter, &whole),
            "{name}: four times the entries cost {:.1?} instead of {:.1?}",
            whole.total,
            quarter.total
        );
        assert!(whole.canonical.exact(), "{name}");
    }
}

#[test]
fn long_lists_are_read_from_descriptions() {
    for (name, list) in LISTS {
        let mut types = TypeBuilder::new();
        let root = list(&mut types, &mut SmallRng::seed_from_u64(1), ENTRIES as i64);
        let text = json::write(&types.finish(root).unwrap());
        let bytes = text.len();
        let elapsed = on_a_small_stack(move || {
            let start = Instant::now();
            drop(json::read(&text).unwrap());
            start.elapsed()
        });
        println!("{name}: {bytes} bytes of JSON in {elapsed:.1?}");
        assert!(elapsed < Duration::from_secs(6), "{name}: {elapsed:.1?}");
    }
}

/// A type of 2^60 bytes in 60 levels, each with the level below twice.
fn doubled(byte_extent: i64, order: impl Fn(u32, i64) -> [i64; 2]) -> Stages {
    let start = Instant::now();
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let mut id = types.resized(0, byte_extent, byte).unwrap();
    for level in 0..60 {
        let half = byte_extent << level;
        let pair = types.structure(&[1, 1], &order(level, half), &[id, id]).unwrap();
        id = types.resized(0, 2 * half, pair).unwrap();
    }
    let datatype = types.finish(id).unwrap();
    let stages = stages(datatype, start.elapsed());
    println!("60 levels: {}", stages.shown);
    assert!(stages.total < Duration::from_millis(100), "{}", stages.shown);
    assert_eq!(stages.canonical.size(), 1 << 60);
    assert!(stages.canonical.exact());
    stages
}

#[test]
fn doubling_sixty_times_costs_nothing() {
    let dense = doubled(1, |_, half| [0, half]).canonical;
    assert_eq!(dense.contiguous(), Some((0, 1 << 60)));
    let strided = doubled(3, |_, half| [0, half]).canonical;
    assert_eq!(strided.nodes().len(), 2, "{strided}");
    // Every second level is in descending order, so that no level continues another.
    let turned = doubled(1, |level, half| if level % 2 == 0 { [half, 0] } else { [0, half] }).canonical;
    assert_eq!(turned.nodes().len(), 61, "{turned}");
}
