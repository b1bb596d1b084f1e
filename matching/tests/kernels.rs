//! The kernels of message matching, compared with the sequential matcher; the shim runs them on the CPU.

mod drawn;

use drawn::Queue;
use dtc_matching::kernels;
use dtc_matching::queue::{self, Entry, HEADER_BYTES, Header, NO_MESSAGE};
use dtc_matching::workload::{APPLICATIONS, Order, Shape};
use dtc_matching::{Envelope, Semantics, SequentialMatcher, Wildcards};
use dtc_tests::nvrtc::compile_all;
use dtc_tests::shim::{Access, Buffer, Build, Case, Kernel, Range, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{HashMap, HashSet};

/// The queue of a shape.
fn draw(semantics: Semantics, shape: &Shape, seed: u64) -> Queue {
    let messages = 0x1000 + seed as u32 * 0x10000;
    Queue::draw(semantics, &Shape { communicators: 1, ..*shape }, seed, [messages, messages | 1 << 30])
}

/// Header, pairs, and the lists that are left.
struct Expected {
    header: Header,
    pairs: Vec<u32>,
    messages: Vec<Entry>,
    receives: Vec<Entry>,
}

fn expected(queue: &Queue) -> Expected {
    let mut matcher = SequentialMatcher::default();
    for &(pattern, handle) in &queue.receives {
        matcher.post(pattern, handle);
    }
    let mut pairs: Vec<u32> = queue.receives.iter().flat_map(|&(_, handle)| [handle, NO_MESSAGE]).collect();
    let places: HashMap<u32, usize> = (0..).step_by(2).zip(&queue.receives).map(|(at, one)| (one.1, at)).collect();
    let mut matched = 0;
    for &(envelope, handle) in &queue.messages {
        if let Some(receive) = matcher.arrive(envelope, handle) {
            pairs[places[&receive] + 1] = handle;
            matched += 1;
        }
    }
    let examined = queue.receives.len() as u32;
    let messages: Vec<Entry> =
        matcher.unexpected(0).iter().map(|(envelope, handle)| (envelope.bits(), *handle)).collect();
    let receives: Vec<Entry> = matcher.posted(0).iter().map(|(pattern, handle)| (pattern.bits(), *handle)).collect();
    let header =
        Header { messages: messages.len() as u32, receives: receives.len() as u32, matched, status: 0, examined };
    Expected { header, pairs, messages, receives }
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// A launch of one block for each queue.
fn case(name: &str, semantics: Semantics, checked: bool, queues: &[Queue], rng: &mut SmallRng) -> Case {
    let most = queues.iter().map(|queue| queue.messages.len().max(queue.receives.len())).max().unwrap_or(0);
    let capacity = most as u32 + rng.random_range(1..9);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (mut pairs_before, mut pairs_after) = (Vec::new(), Vec::new());
    for queue in queues {
        let mut one = vec![0; queue::stride(capacity)];
        rng.fill(&mut one[..]);
        let bits =
            |entries: &[(Envelope, u32)]| -> Vec<Entry> { entries.iter().map(|(e, h)| (e.bits(), *h)).collect() };
        let patterns: Vec<Entry> = queue.receives.iter().map(|(pattern, handle)| (pattern.bits(), *handle)).collect();
        queue::put(&mut one, capacity, &bits(&queue.messages), &patterns);
        let expected = expected(queue);
        before.extend_from_slice(&one);
        if !semantics.ordering() && !repeats(queue) {
            // Messages that were taken are marked, and those that stay move over some of them.
            for (index, (_, handle)) in queue.messages.iter().enumerate() {
                if expected.messages.iter().all(|(_, left)| left != handle) {
                    one[HEADER_BYTES + 8 * index..][..8].fill(0xff);
                }
            }
        }
        queue::put(&mut one, capacity, &expected.messages, &expected.receives);
        one[..HEADER_BYTES].copy_from_slice(&expected.header.to_bytes());
        after.extend_from_slice(&one);
        let mut pairs = vec![0; 8 * capacity as usize];
        rng.fill(&mut pairs[..]);
        pairs_before.extend_from_slice(&pairs);
        pairs[..4 * expected.pairs.len()].copy_from_slice(&bytes(&expected.pairs));
        pairs_after.extend_from_slice(&pairs);
    }
    // Kernels for short lists and for long ones match both. Without ordering, their size says which queues are matched by ranks.
    let longest = if semantics.ordering() && rng.random() { rng.random_range(1..400) } else { capacity };
    let program = kernels::matching(semantics, checked, longest).unwrap();
    let kernel =
        Kernel::new(&program.source, kernels::MATCH_ENTRY).blocks(queues.len() as u32).threads(program.threads);
    let range = |before, after| Range { position: 0, access: Access::Update, before, after };
    Case {
        name: format!("{name}; {semantics}{}", if checked { ", checked" } else { "" }),
        kernel,
        first: capacity.into(),
        bytes: queue::stride(capacity) as u64,
        memory: Buffer { alignment: 256, ranges: vec![range(before, after)] },
        packed: Buffer { alignment: 256, ranges: vec![range(pairs_before, pairs_after)] },
    }
}

/// Shapes of a length: random tuples in all orders, few tuples, wildcards, messages without receives.
fn shapes(length: u32) -> Vec<(String, Shape)> {
    let random = Shape::random(length);
    let few = Shape { peers: 3, tags: 2, ..random };
    let mut shapes = vec![
        ("random".to_owned(), random),
        ("same order".to_owned(), Shape { order: Order::Same, ..random }),
        ("reversed".to_owned(), Shape { order: Order::Reversed, ..random }),
        ("one tuple".to_owned(), Shape { peers: 1, tags: 1, ..random }),
        ("few tuples".to_owned(), few),
        ("few tuples, half unmatched".to_owned(), Shape { unmatched: 0.5, ..few }),
        ("wildcards".to_owned(), Shape { any_source: 0.3, any_tag: 0.3, unmatched: 0.1, peers: 8, tags: 8, ..random }),
        ("all wildcards".to_owned(), Shape { any_source: 1.0, any_tag: 1.0, ..random }),
        (
            "one tuple, half of each wildcard".to_owned(),
            Shape { any_source: 0.5, any_tag: 0.5, peers: 1, tags: 1, ..random },
        ),
        (
            "few tuples, half of each wildcard".to_owned(),
            Shape { any_source: 0.5, any_tag: 0.5, unmatched: 0.2, ..few },
        ),
        // Long chains of proposals.
        (
            "some tuples, half of each wildcard".to_owned(),
            Shape { any_source: 0.5, any_tag: 0.5, unmatched: 0.2, peers: 8, tags: 4, ..random },
        ),
        ("one tag, half of any source".to_owned(), Shape { any_source: 0.5, tags: 1, ..random }),
        ("a wildcard, reversed".to_owned(), Shape { any_source: 0.05, order: Order::Reversed, ..random }),
        ("a wildcard, half unmatched".to_owned(), Shape { any_tag: 0.05, unmatched: 0.5, peers: 5, tags: 9, ..random }),
        ("nearly all unmatched".to_owned(), Shape { unmatched: 0.95, ..random }),
        ("all unmatched".to_owned(), Shape { unmatched: 1.0, ..random }),
    ];
    for (_, shape) in &mut shapes {
        shape.length = length;
    }
    shapes
}

/// Whether a queue without ordering is matched by ranks: a tuple has two places in the tables, and more than a quarter of the first
/// receives find none.
fn repeats(queue: &Queue) -> bool {
    let first = queue.receives.len().min(1024);
    let tuples: HashSet<u64> = queue.receives[..first].iter().map(|(pattern, _)| pattern.bits()).collect();
    first.saturating_sub(2 * tuples.len()) > first / 4
}

/// Whether only one result is right: without ordering, tuples have to differ, or ranks give that of ordering.
fn is_definite(semantics: Semantics, queue: &Queue) -> bool {
    let messages: HashSet<u64> = queue.messages.iter().map(|(envelope, _)| envelope.bits()).collect();
    let receives: HashSet<u64> = queue.receives.iter().map(|(pattern, _)| pattern.bits()).collect();
    let differ = messages.len() == queue.messages.len() && receives.len() == queue.receives.len();
    semantics.ordering() || differ || repeats(queue)
}

fn run(build: Build, lengths: &[u32], checked: &[bool]) {
    let mut rng = SmallRng::seed_from_u64(u64::from(lengths[0]) + 1);
    let mut shim = Shim::new(build);
    shim.limit_seconds(60);
    for semantics in Semantics::all() {
        for &checked in checked {
            for &length in lengths {
                for (name, shape) in shapes(length) {
                    let queue = draw(semantics, &shape, rng.random_range(0..1000));
                    if !is_definite(semantics, &queue) {
                        continue;
                    }
                    shim.add(case(&format!("{length}, {name}"), semantics, checked, &[queue], &mut rng));
                }
            }
        }
    }
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    println!("{} cases", outcomes.len());
    for outcome in outcomes {
        outcome.traffic();
    }
}

#[test]
fn queues_of_one_chunk() {
    run(Build::Fast, &[0, 1, 31, 65, 512, 1024], &[false]);
}

#[test]
fn queues_of_several_chunks() {
    run(Build::Fast, &[1025, 2500], &[false]);
}

#[test]
fn accesses_and_races() {
    run(Build::Checked, &[2, 33, 150], &[false, true]);
    run(Build::Checked, &[1100], &[true]);
}

#[test]
fn queues_of_applications() {
    let mut rng = SmallRng::seed_from_u64(5);
    let mut shim = Shim::new(Build::Fast);
    for semantics in Semantics::all() {
        for application in APPLICATIONS {
            // Lists of different lengths: half of the messages are still on their way.
            let mut queues: Vec<Queue> = (0..5).map(|seed| draw(semantics, &application.shape(300), seed)).collect();
            for (number, queue) in queues.iter_mut().enumerate() {
                queue.messages.truncate(80 * number);
            }
            let queues: Vec<Queue> = queues.into_iter().map(|queue| queue.without_leftovers(semantics)).collect();
            if !queues.iter().all(|queue| is_definite(semantics, queue)) {
                continue;
            }
            shim.add(case(application.name, semantics, false, &queues, &mut rng));
        }
    }
    for outcome in shim.run().unwrap_or_else(|error| panic!("{error}")) {
        outcome.traffic();
    }
}

/// What a call leaves in a queue.
fn left(queue: &Queue) -> Queue {
    let mut matcher = SequentialMatcher::default();
    for &(pattern, handle) in &queue.receives {
        matcher.post(pattern, handle);
    }
    for &(envelope, handle) in &queue.messages {
        matcher.arrive(envelope, handle);
    }
    Queue { messages: matcher.unexpected(0).to_vec(), receives: matcher.posted(0).to_vec() }
}

/// Streams of any shape, which come in pieces between calls.
#[test]
fn random_streams_call_after_call() {
    let mut rng = SmallRng::seed_from_u64(20);
    let mut shim = Shim::new(Build::Fast);
    shim.limit_seconds(60);
    for semantics in Semantics::all().filter(|semantics| semantics.unexpected()) {
        for stream in 0..12 {
            let mut share = || if rng.random() { rng.random_range(0.0..1.0) } else { 0.0 };
            let (any_source, any_tag, unmatched) = (share(), share(), share());
            let mut some = || 1 << rng.random_range(0..12);
            let (peers, tags, length) = (some(), some(), some());
            let shape = Shape { peers, tags, any_source, any_tag, unmatched, ..Shape::random(length) };
            let whole = draw(semantics, &shape, stream);
            let (mut messages, mut receives) = (whole.messages.into_iter(), whole.receives.into_iter());
            let mut queue = Queue { messages: Vec::new(), receives: Vec::new() };
            for call in 0..4 {
                let mut most = || rng.random_range(0..=length as usize / 2);
                queue.messages.extend(messages.by_ref().take(most()));
                queue.receives.extend(receives.by_ref().take(most()));
                if !is_definite(semantics, &queue) {
                    break;
                }
                let name = format!("stream {stream}, call {call}, {shape:?}");
                shim.add(case(&name, semantics, false, std::slice::from_ref(&queue), &mut rng));
                queue = left(&queue);
            }
        }
    }
    for outcome in shim.run().unwrap_or_else(|error| panic!("{error}")) {
        outcome.traffic();
    }
}

/// What a checked kernel makes of messages and receives, given as bits; at most one receive is for the message (2, 2).
fn broken(semantics: Semantics, messages: &[u64], receives: &[u64], status: u32, alone: bool) -> Case {
    let capacity = 4;
    let entries = |bits: &[u64], handle| -> Vec<Entry> { bits.iter().copied().zip(handle..).collect() };
    let (messages, receives) = (entries(messages, 10), entries(receives, 20));
    let pair = |left: &Entry| receives.iter().find(|right| right.0 == left.0 && left.0 == (2 << 32 | 2));
    let left: Vec<Entry> = messages.iter().filter(|one| alone || pair(one).is_none()).copied().collect();
    let open: Vec<Entry> =
        receives.iter().filter(|one| alone || messages.iter().all(|other| pair(other) != Some(one))).copied().collect();
    let mut before = vec![0x55; queue::stride(capacity)];
    queue::put(&mut before, capacity, &messages, &receives);
    let mut after = before.clone();
    queue::put(&mut after, capacity, &left, &open);
    let unexpected = if semantics.unexpected() || left.is_empty() { 0 } else { 2 };
    let header = Header {
        messages: left.len() as u32,
        receives: open.len() as u32,
        matched: (messages.len() - left.len()) as u32,
        status: status | unexpected,
        examined: receives.len() as u32,
    };
    after[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let mut pairs = vec![0x33; 8 * capacity as usize];
    let pairs_before = pairs.clone();
    for (index, receive) in receives.iter().enumerate() {
        let message = messages.iter().find(|message| !alone && pair(message) == Some(receive));
        pairs[8 * index..][..8].copy_from_slice(&bytes(&[receive.1, message.map_or(NO_MESSAGE, |message| message.1)]));
    }
    let program = kernels::matching(semantics, true, capacity).unwrap();
    let range = |before, after| Range { position: 0, access: Access::Update, before, after };
    Case {
        name: format!("status {status}; {semantics}"),
        kernel: Kernel::new(&program.source, kernels::MATCH_ENTRY).threads(program.threads),
        first: capacity.into(),
        bytes: queue::stride(capacity) as u64,
        memory: Buffer { alignment: 256, ranges: vec![range(before, after)] },
        packed: Buffer { alignment: 256, ranges: vec![range(pairs_before, pairs)] },
    }
}

#[test]
fn checked_kernels_find_broken_promises() {
    const ANY: u64 = 1 << 31;
    let mut shim = Shim::new(Build::Checked);
    for semantics in Semantics::all() {
        let messages = [1 << 32 | 1, 2 << 32 | 2];
        // Without ordering, a queue is left alone.
        let alone = !semantics.ordering();
        if semantics.wildcards() != Wildcards::SourceAndTag {
            shim.add(broken(semantics, &messages, &[ANY << 32 | 1, 2 << 32 | 2], 4, alone));
        }
        if semantics.wildcards() == Wildcards::None {
            shim.add(broken(semantics, &messages, &[1 << 32 | ANY, 2 << 32 | 2], 4, alone));
        }
        shim.add(broken(semantics, &[ANY | 7, 2 << 32 | 2], &[2 << 32 | 2], 8, alone));
        shim.add(broken(semantics, &[2 << 32 | 2, ANY << 32], &[1 << 32 | 1, 2 << 32 | 2], 8, alone));
    }
    for outcome in shim.run().unwrap_or_else(|error| panic!("{error}")) {
        outcome.traffic();
    }
}

/// A header that was overwritten ends the call, and the queue is left alone.
#[test]
fn lists_beyond_their_capacity_are_left_alone() {
    let mut shim = Shim::new(Build::Checked);
    for semantics in Semantics::all() {
        for (messages, receives) in [(5, 1), (1, 5), (u32::MAX, 0)] {
            let mut case = broken(semantics, &[1, 2], &[1], 0, true);
            let [memory, packed] = [&mut case.memory.ranges[0], &mut case.packed.ranges[0]];
            let header = Header { messages, receives, ..Header::default() };
            memory.before[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
            memory.after = memory.before.clone();
            memory.after[..HEADER_BYTES].copy_from_slice(&Header { status: 1, ..header }.to_bytes());
            packed.after = packed.before.clone();
            shim.add(case);
        }
    }
    for outcome in shim.run().unwrap_or_else(|error| panic!("{error}")) {
        outcome.traffic();
    }
}

#[test]
fn texts_of_every_kernel() {
    let snapshots = concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots");
    let settings = |name: &str, text: &str| {
        insta::with_settings!({ snapshot_path => snapshots, prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    };
    for semantics in Semantics::all() {
        let name = semantics.to_string().replace(", ", "_").replace(' ', "_");
        settings(&name, &kernels::matching(semantics, false, 1024).unwrap().source);
    }
    settings("checked", &kernels::matching(Semantics::MPI.without_unexpected(), true, 1024).unwrap().source);
    settings("short_lists", &kernels::matching(Semantics::MPI, false, 64).unwrap().source);
}

#[test]
fn nvrtc_accepts_every_kernel() {
    let texts: Vec<(String, String)> = Semantics::all()
        .flat_map(|semantics| [false, true].map(|checked| (semantics, checked)))
        .flat_map(|(semantics, checked)| [64, 1024].map(|longest| (semantics, checked, longest)))
        .map(|(semantics, checked, longest)| {
            let name = format!("{semantics}, checked {checked}, lists of {longest}");
            (name, kernels::matching(semantics, checked, longest).unwrap().source)
        })
        .collect();
    match compile_all(&texts) {
        Ok(refusals) => {
            refusals.iter().take(2).for_each(|refusal| println!("{refusal}"));
            assert!(refusals.is_empty(), "{} refused", refusals.len());
        }
        Err(missing) => skip("nvrtc_accepts_every_kernel", &missing.to_string()),
    }
}
