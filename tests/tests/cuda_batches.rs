//! One launch moves all items of a batch, compared with the reference walker; the shim runs it on the CPU.
//!
//! Batches have items of the examples and of the layouts of all families, at any alignment, whole or in parts. They run
//! with the compiled and with the generic kernel, with the items in the launch parameters and in memory.

use dtc_compiler::codegen::cuda::{
    self, BATCH_ENTRY, BATCH_INLINE, BATCH_KINDS, GENERIC_BATCH_ENTRY, Interpreted, Item, generic_batch,
};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Variant};
use dtc_tests::kernels::{self, Subject};
use dtc_tests::shim::{Build, Case, Fragment, Kernel, Placement, Shim};
use dtc_tests::skip::is_full;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::fmt::Write;

/// Most packed bytes of an item.
const ITEM: u64 = 20 << 10;

/// Most bytes that the elements of an item may span.
const SPAN: i64 = 4 << 20;

/// One item, with the positions of its elements and packed bytes among those of all items.
struct Asked<'a> {
    subject: &'a Subject,
    fragment: Fragment,
    base: i64,
    call: Call,
}

/// Draws items that share neither memory nor packed bytes.
fn draw<'a>(subjects: &'a [Subject], count: usize, at: &Placement, rng: &mut SmallRng) -> Vec<Asked<'a>> {
    let (mut end, mut packed) = (0, 0);
    let mut items = Vec::with_capacity(count);
    while items.len() < count {
        let subject = subjects.choose(rng).expect("subjects");
        let elements = rng.random_range(1..=subject.count.min(3));
        let all = subject.layout.size() * elements;
        let whole = rng.random_bool(0.7);
        let first = if whole { 0 } else { rng.random_range(0..all) };
        let bytes = if whole { all } else { rng.random_range(1..=all - first) }.min(ITEM);
        let fragment = Fragment::new(&subject.layout, elements, first, bytes);
        if fragment.high - fragment.low > SPAN {
            continue;
        }
        // Items are further apart than a pack may read beyond its bytes.
        let base =
            (end - fragment.low + 4200) / 16 * 16 + if rng.random_bool(0.7) { 0 } else { rng.random_range(0..16) };
        end = base + fragment.high;
        let call = Call { memory: (at.memory as i64 + base) as u64, packed: at.packed as u64 + packed, first, bytes };
        packed += bytes;
        items.push(Asked { subject, fragment, base, call });
    }
    items
}

/// All items as one fragment.
fn together(items: &[Asked]) -> Fragment {
    let mut pieces = Vec::new();
    for Asked { fragment, base, .. } in items {
        pieces.extend(fragment.pieces.iter().map(|(at, length)| (at + base, *length)));
    }
    let low = items.iter().map(|item| item.base + item.fragment.low).min().unwrap_or(0);
    let high = items.iter().map(|item| item.base + item.fragment.high).max().unwrap_or(0);
    Fragment { first: 0, bytes: items.iter().map(|item| item.call.bytes).sum(), pieces, low, high }
}

/// A kernel that turns offsets into the buffers into addresses, and calls the batch's kernel.
fn wrapped(source: &str, entry: &str) -> String {
    format!(
        "{source}
extern \"C\" __global__ void relocated(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, u32 count, u32 blocks, u64 lists)
{{
    Batch batch;
    batch.count = count;
    batch.blocks = blocks;
    // Items, and the item of every block, as they would be on the device.
    u64 copy[4 << 10];
    Item *items = count <= {BATCH_INLINE} ? batch.own : (Item *)copy;
    for (u32 at = 0; at < count; at++) {{
        items[at] = ((const Item *)tables)[at];
        items[at].memory = memory + (u64)items[at].memory;
        items[at].packed = packed + (u64)items[at].packed;
        items[at].tables = tables + lists + (u64)items[at].tables;
        items[at].program = tables + lists + (u64)items[at].program;
    }}
    batch.items = items;
    if (count > {BATCH_INLINE})
        for (u32 at = 0; at < blocks; at++)
            ((u32 *)(items + count))[at] = ((const u32 *)((const Item *)tables + count))[at];
    {entry}(batch);
}}
"
    )
}

/// Inputs of a kernel besides the items: the blocks and the kind of each item, and the positions of its lists and
/// program.
struct Served {
    blocks: Vec<u32>,
    items: Vec<Item>,
    lists: Vec<u8>,
}

fn compiled(items: &[Asked], direction: Direction) -> (String, Served) {
    let variants: Vec<Variant> =
        items.iter().map(|item| kernels::of_longer(&item.subject.plan, direction, &item.call)).collect();
    let asked: Vec<_> = items.iter().zip(&variants).map(|(item, variant)| (&item.subject.plan, *variant)).collect();
    let program = cuda::batch(&asked).unwrap();
    let mut blocks = Vec::new();
    let mut own = Vec::new();
    for ((item, variant), kind) in items.iter().zip(&variants).zip(&program.kinds) {
        let Asked { subject, fragment, base, call } = item;
        let root = subject.plan.layout().root().offset;
        blocks.push(subject.plan.batch_blocks(variant, call).expect("a grid"));
        own.push(Item {
            low: fragment.low - root,
            high: fragment.high - root,
            memory: (base + root) as u64,
            first: call.first,
            bytes: call.bytes,
            kind: *kind,
            ..Item::default()
        });
    }
    (program.program.source, Served { blocks, items: own, lists: program.program.tables })
}

fn interpreted(items: &[Asked], direction: Direction) -> Served {
    let (variant, kind) = generic_batch(direction);
    let mut served = Served { blocks: Vec::new(), items: Vec::new(), lists: Vec::new() };
    for Asked { subject, fragment, base, call } in items {
        let program = Interpreted::new(&subject.plan);
        let at = served.lists.len().next_multiple_of(16);
        served.lists.resize(at, 0);
        let parameter = program.program.nodes();
        parameter.iter().for_each(|number| served.lists.extend_from_slice(&number.to_ne_bytes()));
        let tables = served.lists.len().next_multiple_of(16);
        served.lists.resize(tables, 0);
        served.lists.extend_from_slice(&program.tables);
        served.blocks.push(subject.plan.batch_blocks(variant, call).expect("a grid"));
        served.items.push(Item {
            low: fragment.low,
            high: fragment.high,
            memory: *base as u64,
            tables: tables as u64,
            first: call.first,
            bytes: call.bytes,
            program: at as u64,
            kind,
            ..Item::default()
        });
    }
    served
}

/// A launch of a kernel that moves the items.
fn case(
    name: &str,
    text: &str,
    items: &[Asked],
    served: Served,
    direction: Direction,
    at: Placement,
    rng: &mut SmallRng,
) -> Case {
    let Served { blocks, items: mut own, lists } = served;
    let (mut begin, mut packed) = (0, 0);
    let mut of_blocks = Vec::new();
    for (number, (item, blocks)) in own.iter_mut().zip(&blocks).enumerate() {
        item.begin = begin;
        item.packed = packed;
        begin += blocks;
        packed += item.bytes;
        of_blocks.extend(std::iter::repeat_n(number as u32, *blocks as usize));
    }
    let mut tables: Vec<u8> = own.iter().flat_map(Item::to_bytes).collect();
    of_blocks.iter().for_each(|item| tables.extend_from_slice(&item.to_ne_bytes()));
    tables.resize(tables.len().next_multiple_of(16), 0);
    let lists_at = tables.len() as u64;
    tables.extend_from_slice(&lists);
    let mut extra = Vec::new();
    extra.extend_from_slice(&(own.len() as u32).to_ne_bytes());
    extra.extend_from_slice(&begin.to_ne_bytes());
    extra.extend_from_slice(&lists_at.to_ne_bytes());
    let kernel = Kernel::new(text, "relocated").threads(256).tables(&tables).blocks(begin).extra(&extra);
    let fragment = together(items);
    let make = if direction == Direction::Pack { Case::pack } else { Case::unpack };
    make(name, &kernel, &fragment, at, rng)
}

#[test]
fn every_item_is_moved() {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut subjects = kernels::examples();
    subjects.extend(kernels::families());
    subjects.extend(kernels::arrays(0..60));
    subjects.retain(|subject| {
        let size = subject.layout.size();
        subject.plan.allows_in_batch() && size > 0 && size <= 1 << 20
    });
    let tiles: Vec<Subject> = [4, 8, 16].into_iter().flat_map(|word| kernels::transposes(word, 5)).collect();
    let generic = wrapped(&cuda::generic_source().unwrap(), GENERIC_BATCH_ENTRY);
    let mut shim = Shim::new(Build::Checked);
    shim.limit_seconds(20);
    let mut log = String::new();
    // The compiler takes long for the texts of many items.
    let counts: &[usize] = if is_full() {
        &[1, 2, 5, 12, 26, BATCH_INLINE, BATCH_INLINE + 1, BATCH_KINDS]
    } else {
        &[1, 2, 12, BATCH_INLINE, BATCH_INLINE + 1]
    };
    for (round, &count) in counts.iter().enumerate() {
        for direction in [Direction::Pack, Direction::Unpack] {
            let at = Placement::random(&mut rng);
            let items = draw(&subjects, count, &at, &mut rng);
            let name = format!("round {round}, {direction} of {count} items");
            let (source, served) = compiled(&items, direction);
            let text = wrapped(&source, BATCH_ENTRY);
            shim.add(case(&name, &text, &items, served, direction, at, &mut rng));
            let served = interpreted(&items, direction);
            shim.add(case(&format!("{name}, generic"), &generic, &items, served, direction, at, &mut rng));
        }
    }
    // Kinds with shared memory that does not fit side by side.
    for direction in [Direction::Pack, Direction::Unpack] {
        let at = Placement::aligned(&mut rng, 256);
        let items = draw(&tiles, BATCH_INLINE, &at, &mut rng);
        let (source, served) = compiled(&items, direction);
        assert_eq!(source.matches("__shared__").count(), 1);
        let name = format!("{direction} of {} items in tiles", items.len());
        shim.add(case(&name, &wrapped(&source, BATCH_ENTRY), &items, served, direction, at, &mut rng));
    }
    for outcome in shim.run().unwrap_or_else(|error| panic!("{error}")) {
        if let Err(fault) = &outcome.result {
            let _ = writeln!(log, "{}: {fault}", outcome.name);
        }
    }
    assert!(log.is_empty(), "{log}");
}
