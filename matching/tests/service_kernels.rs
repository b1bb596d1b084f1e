//! The kernels of the matching service, compared with the sequential matcher; the shim runs them on the CPU, where blocks run one after
//! the other. So the entries are posted before, and the service is told to stop before it starts: it serves all that was posted.

mod drawn;

use drawn::Queue;
use dtc_matching::kernels;
use dtc_matching::port::{CLOSED, Kind, LINE_BYTES, Port, SLOT_BYTES};
use dtc_matching::queue::{self, Entry, HEADER_BYTES, Header};
use dtc_matching::workload::{Order, Shape};
use dtc_matching::{Envelope, Pattern, Queues, Semantics, SequentialMatcher, Wildcards};
use dtc_tests::nvrtc::compile_all;
use dtc_tests::shim::{Access, Buffer, Build, Case, Kernel, Range, Shim};
use dtc_tests::skip::skip;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;

const KINDS: [Kind; 2] = [Kind::Messages, Kind::Receives];

/// A service before and after it has run.
struct Model {
    port: Port,
    queues: Queues,
    /// The first ticket of each ring, and the entries that wait there.
    rings: Vec<(u32, VecDeque<Entry>)>,
    /// The queues while it runs.
    matchers: Vec<SequentialMatcher>,
    taken: Vec<u32>,
    outcomes: [Vec<u32>; 2],
}

impl Model {
    fn new(semantics: Semantics, queues: Queues, slots: u32, handles: u32, rng: &mut SmallRng) -> Model {
        let refused = match semantics.wildcards() {
            Wildcards::SourceAndTag => 0,
            Wildcards::Tag => 1,
            Wildcards::None => 3,
        };
        let Queues { communicators, partitions, .. } = queues;
        let system = rng.random_range(0..2);
        let port = Port { memory: 0, communicators, partitions, slots, handles, refused, system };
        let rings = 2 * queues.count() as usize;
        // Tickets that wrap around are among them.
        let ticket = |_| (0_u32.wrapping_sub(rng.random_range(0..2 * slots)), VecDeque::new());
        Model {
            port,
            queues,
            rings: (0..rings).map(ticket).collect(),
            matchers: vec![SequentialMatcher::default(); queues.count() as usize],
            taken: vec![0; rings],
            outcomes: [vec![0; handles as usize], vec![0; handles as usize]],
        }
    }

    fn post(&mut self, queue: u32, kind: Kind, entry: Entry) {
        self.rings[(2 * queue) as usize + kind as usize].1.push_back(entry);
    }

    /// Serves as many entries of a ring as the list has room for; returns whether there were some.
    fn serve(&mut self, queue: u32, kind: Kind) -> bool {
        let ring = (2 * queue) as usize + kind as usize;
        let matcher = &mut self.matchers[queue as usize];
        let list = if kind == Kind::Messages { matcher.unexpected(0).len() } else { matcher.posted(0).len() };
        if list >= self.queues.capacity as usize {
            return false;
        }
        let Some((bits, handle)) = self.rings[ring].1.pop_front() else { return false };
        self.taken[ring] += 1;
        let (source, tag) = ((bits >> 32) as u32, bits as u32);
        let number = |one: u32| (one != 1 << 31).then_some(one);
        let pair = if kind == Kind::Messages {
            let receive = matcher.arrive(Envelope::new(source, tag, 0).unwrap(), handle);
            receive.map(|receive| [handle, receive])
        } else {
            let message = matcher.post(Pattern::new(number(source), number(tag), 0).unwrap(), handle);
            message.map(|message| [message, handle])
        };
        if let Some([message, receive]) = pair {
            self.outcomes[0][message as usize] = 1 << 31 | receive;
            self.outcomes[1][receive as usize] = 1 << 31 | message;
        }
        true
    }

    /// The memory of the service: control, rings, slots and outcomes.
    fn memory(&self, first: &[u32], all: &[Vec<Entry>], after: bool) -> Vec<u8> {
        let port = self.port;
        let mut bytes = vec![0; port.pairs_at()];
        // Slots have entries of long ago. The turn of the last ticket before the first is the 0 of fresh memory, which all slots lose by then.
        bytes[port.slot_at(Kind::Messages, 0, 0)..port.outcome_at(Kind::Messages, 0)].fill(0x80);
        bytes[..4].copy_from_slice(&1_u32.to_ne_bytes());
        for queue in 0..self.queues.count() {
            for kind in KINDS {
                let ring = (2 * queue) as usize + kind as usize;
                let head = first[ring].wrapping_add(if after { self.taken[ring] } else { 0 });
                let tail = first[ring].wrapping_add(all[ring].len() as u32);
                let state = u64::from(tail) << 32 | if after { CLOSED } else { 0 };
                let at = port.ring_at(kind, queue);
                bytes[at..][..8].copy_from_slice(&state.to_ne_bytes());
                let room = port.slots - tail.wrapping_sub(head);
                for (place, number) in [room, head, if after { tail } else { 0 }].into_iter().enumerate() {
                    bytes[at + 8 + 4 * place..][..4].copy_from_slice(&number.to_ne_bytes());
                }
                for (index, (bits, handle)) in all[ring].iter().enumerate() {
                    let ticket = first[ring].wrapping_add(index as u32);
                    let turn = u64::from(ticket.wrapping_add(1)) << 32;
                    let words = [turn | bits >> 32, turn | bits & 0xffff_ffff, turn | u64::from(*handle)];
                    for (place, word) in words.into_iter().enumerate() {
                        let at = port.slot_at(kind, queue, ticket) + 8 * place;
                        bytes[at..][..8].copy_from_slice(&word.to_ne_bytes());
                    }
                }
            }
        }
        if after {
            for kind in KINDS {
                for (handle, outcome) in self.outcomes[kind as usize].iter().enumerate() {
                    bytes[port.outcome_at(kind, handle as u32)..][..4].copy_from_slice(&outcome.to_ne_bytes());
                }
            }
        }
        bytes
    }

    /// A launch of some blocks.
    fn case(mut self, name: &str, semantics: Semantics, blocks: u32) -> Case {
        let (port, queues) = (self.port, self.queues);
        let first: Vec<u32> = self.rings.iter().map(|(ticket, _)| *ticket).collect();
        let all: Vec<Vec<Entry>> = self.rings.iter().map(|(_, ring)| ring.iter().copied().collect()).collect();
        assert!(all.iter().all(|ring| ring.len() <= port.slots as usize), "a ring overflows");
        let before = self.memory(&first, &all, false);
        for queue in 0..queues.count() {
            // Not `any`: both rings are served, again and again.
            while KINDS.map(|kind| self.serve(queue, kind)) != [false; 2] {}
        }
        let after = self.memory(&first, &all, true);
        let update = |position: usize, before: &[u8], after: &[u8]| Range {
            position: position as i64,
            access: Access::Update,
            before: before.to_vec(),
            after: after.to_vec(),
        };
        let scratch = |position: usize, length: usize| Range {
            position: position as i64,
            access: Access::UpdateAny,
            before: vec![0x5a; length],
            after: vec![0x5a; length],
        };
        let pairs = 8 * queues.count() as usize * queues.capacity as usize;
        // Whether other blocks were told of the work does not matter.
        let packed = vec![
            update(0, &before[..4], &after[..4]),
            scratch(4, 4),
            update(8, &before[8..], &after[8..]),
            scratch(port.pairs_at(), pairs),
        ];
        let stride = queue::stride(queues.capacity);
        let mut memory = Vec::new();
        for (number, matcher) in self.matchers.iter().enumerate() {
            let bits = |(envelope, handle): &(Envelope, u32)| (envelope.bits(), *handle);
            let messages: Vec<Entry> = matcher.unexpected(0).iter().map(bits).collect();
            let receives: Vec<Entry> =
                matcher.posted(0).iter().map(|(pattern, handle)| (pattern.bits(), *handle)).collect();
            let mut left = vec![0; stride];
            queue::put(&mut left, queues.capacity, &messages, &receives);
            // The header's other numbers are of the last time that the block matched.
            let header = Header::of(left.first_chunk().unwrap());
            let counts = [header.messages, header.receives].map(u32::to_ne_bytes).concat();
            let base = number * stride;
            memory.push(update(base, &[0; 8], &counts));
            memory.push(Range { before: vec![0; 12], after: vec![0; 12], ..scratch(base + 8, 12) });
            let capacity = queues.capacity as usize;
            let mut at = HEADER_BYTES;
            for (width, count) in [(8, messages.len()), (8, receives.len()), (4, messages.len()), (4, receives.len())] {
                let (used, end) = (at + width * count, at + width * capacity);
                memory.push(update(base + at, &vec![0x77; used - at], &left[at..used]));
                memory.push(scratch(base + used, end - used));
                at = end;
            }
        }
        memory.retain(|range| !range.before.is_empty());
        let program = kernels::matching_service(semantics).unwrap();
        let mut extra = port.to_bytes().to_vec();
        // Where the pairs are, and two times that are long.
        extra.extend([port.pairs_at() as u64, 1 << 60, 1 << 60].into_iter().flat_map(u64::to_ne_bytes));
        Case {
            name: format!("{name}; {semantics}; {blocks} blocks"),
            kernel: Kernel::new(&program.source, kernels::SERVICE_ENTRIES[0])
                .blocks(blocks)
                .threads(program.threads)
                .extra(&extra),
            first: queues.capacity.into(),
            bytes: stride as u64,
            memory: Buffer { alignment: 256, ranges: memory },
            packed: Buffer { alignment: 256, ranges: packed },
        }
    }
}

/// Whether only one result is right: without ordering, tuples have to differ.
fn is_definite(semantics: Semantics, shape: &Shape) -> bool {
    semantics.ordering() || shape.peers * shape.tags > 1 << 20
}

fn shapes(length: u32) -> Vec<(&'static str, Shape)> {
    let random = Shape::random(length);
    vec![
        ("random", random),
        ("same order", Shape { order: Order::Same, ..random }),
        ("few tuples", Shape { peers: 3, tags: 2, unmatched: 0.3, ..random }),
        ("wildcards", Shape { any_source: 0.3, any_tag: 0.3, unmatched: 0.1, peers: 8, tags: 8, ..random }),
        ("nearly all unmatched", Shape { unmatched: 0.95, ..random }),
    ]
}

fn check(shim: &Shim) {
    let outcomes = shim.run().unwrap_or_else(|error| panic!("{error}"));
    println!("{} cases", outcomes.len());
    for outcome in outcomes {
        outcome.traffic();
    }
}

fn drawn(semantics: Semantics, shape: &Shape, seed: u64, handles: u32) -> Queue {
    Queue::draw(semantics, shape, seed, [handles, handles])
}

/// Short queues are matched by a warp alone, longer ones by the block; one block has several queues.
fn run(build: Build, lengths: &[u32], several: &[(u32, u32)]) {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut shim = Shim::new(build);
    shim.limit_seconds(20);
    for semantics in Semantics::all() {
        for &(communicators, blocks) in several {
            for &length in lengths {
                for (name, shape) in shapes(length) {
                    if !is_definite(semantics, &shape) {
                        continue;
                    }
                    let queues = Queues { communicators, partitions: 1, capacity: length + rng.random_range(1..9) };
                    let slots = length.max(1).next_power_of_two();
                    let mut model = Model::new(semantics, queues, slots, communicators * length + 1, &mut rng);
                    for queue in 0..communicators {
                        let drawn = drawn(semantics, &shape, rng.random_range(0..1000), queue * length);
                        // Of some queues a part is on its way.
                        let part = if semantics.unexpected() { rng.random_range(0..=length as usize) } else { 0 };
                        for (envelope, handle) in &drawn.messages[part.min(drawn.messages.len())..] {
                            model.post(queue, Kind::Messages, (envelope.bits(), *handle));
                        }
                        for (pattern, handle) in &drawn.receives {
                            model.post(queue, Kind::Receives, (pattern.bits(), *handle));
                        }
                    }
                    shim.add(model.case(&format!("{length}, {name}"), semantics, blocks));
                }
            }
        }
    }
    check(&shim);
}

#[test]
fn queues_of_a_warp_and_of_a_block() {
    run(Build::Fast, &[0, 1, 15, 16, 33, 120, 500, 1500], &[(1, 1), (5, 2)]);
}

#[test]
fn many_queues_in_a_block() {
    run(Build::Fast, &[7, 40], &[(37, 1), (40, 3)]);
}

#[test]
fn accesses_and_races() {
    run(Build::Checked, &[3, 40, 200], &[(1, 1), (3, 2)]);
}

/// A list that is full holds back its own ring and no other; what is not taken stays there.
#[test]
fn full_lists_hold_entries_back() {
    let mut rng = SmallRng::seed_from_u64(9);
    let mut shim = Shim::new(Build::Fast);
    for semantics in Semantics::all() {
        for (capacity, messages, receives) in [(1, 30, 0), (10, 60, 5), (10, 5, 60), (150, 400, 100), (150, 100, 400)] {
            let queues = Queues { communicators: 1, partitions: 1, capacity };
            let mut model = Model::new(semantics, queues, 512, 512, &mut rng);
            for handle in 0..messages {
                model.post(0, Kind::Messages, (3 << 32 | u64::from(handle), handle));
            }
            // In the reverse order of the messages. Some of them find no receive.
            for handle in 0..receives {
                model.post(0, Kind::Receives, (3 << 32 | u64::from(receives - 1 - handle), handle));
            }
            shim.add(model.case(&format!("{messages} messages, {receives} receives"), semantics, 1));
        }
    }
    check(&shim);
}

/// What the header's calls return, and what they write.
#[test]
fn header_posts_and_refuses() {
    const TEXT: &str = r#"
extern "C" __global__ void dtc_test(unsigned char *, unsigned char *memory, const unsigned char *, unsigned long long, unsigned long long,
                                    dtc_matching_port port, unsigned long long found)
{
    port.memory = memory;
    int *const status = (int *)(memory + found);
    unsigned other = 77;
    status[0] = dtc_matching_send(port, 5, 7, 1, 3);
    status[1] = dtc_matching_receive(port, 5, DTC_MATCHING_ANY, 1, 2);
    status[2] = dtc_matching_receive(port, DTC_MATCHING_ANY, 7, 1, 2);
    status[3] = dtc_matching_send(port, 0x80000000u, 7, 1, 3);
    status[4] = dtc_matching_send(port, 5, 0xffffffffu, 1, 3);
    status[5] = dtc_matching_receive(port, 5, 0x80000001u, 1, 3);
    status[6] = dtc_matching_send(port, 5, 7, 2, 3);
    status[7] = dtc_matching_receive(port, 5, 7, 1, 8);
    status[8] = dtc_matching_send(port, 5, 8, 1, 4);
    status[9] = dtc_matching_send(port, 5, 9, 1, 5);
    status[10] = dtc_matching_test(port, DTC_MATCHING_MESSAGES, 3, &other);
    status[11] = dtc_matching_test(port, DTC_MATCHING_RECEIVES, 6, &other);
    status[12] = (int)other;
    status[13] = dtc_matching_test(port, DTC_MATCHING_RECEIVES, 7, &other);
    status[14] = dtc_matching_wait(port, DTC_MATCHING_MESSAGES, 3, 1000000, &other);
    status[15] = dtc_matching_send(port, 2, 9, 0, 5);
}
"#;
    let queues = Queues { communicators: 2, partitions: 2, capacity: 1 };
    let semantics = Semantics::MPI.without_source_wildcard();
    let mut model = Model::new(semantics, queues, 2, 8, &mut SmallRng::seed_from_u64(1));
    let port = model.port;
    let first: Vec<u32> = model.rings.iter().map(|(ticket, _)| *ticket).collect();
    let entries = |model: &Model| -> Vec<Vec<Entry>> {
        model.rings.iter().map(|(_, ring)| ring.iter().copied().collect()).collect()
    };
    let closed = |mut memory: Vec<u8>| {
        memory[port.ring_at(Kind::Messages, 0)] |= 1;
        // Outcomes that were there: of a receive that has a message, and of one that was refused.
        memory[port.outcome_at(Kind::Receives, 6)..][..4].copy_from_slice(&(1_u32 << 31 | 9).to_ne_bytes());
        memory[port.outcome_at(Kind::Receives, 7)..][..4].copy_from_slice(&(1_u32 << 30 | 2).to_ne_bytes());
        memory
    };
    let before = closed(model.memory(&first, &entries(&model), false));
    // Source 5 is of the second partition of communicator 1.
    model.post(3, Kind::Messages, (5 << 32 | 7, 3));
    model.post(3, Kind::Receives, (5 << 32 | 1 << 31, 2));
    model.post(3, Kind::Messages, (5 << 32 | 8, 4));
    let mut after = closed(model.memory(&first, &entries(&model), false));
    // A closed ring gives tickets that are void.
    after[port.ring_at(Kind::Messages, 0) + 4..][..4].copy_from_slice(&first[0].wrapping_add(1).to_ne_bytes());
    let statuses: [u32; 16] = [0, 0, 6, 3, 3, 3, 4, 5, 0, 1, 7, 0, 9, 2, 2, 2];
    let found = port.pairs_at();
    let status: Vec<u8> = statuses.into_iter().flat_map(u32::to_ne_bytes).collect();
    let mut extra = port.to_bytes().to_vec();
    extra.extend((found as u64).to_ne_bytes());
    let mut shim = Shim::new(Build::Checked);
    shim.add(Case {
        name: "the header".to_owned(),
        kernel: Kernel::new(&format!("{}{TEXT}", dtc_matching::port::HEADER), "dtc_test").extra(&extra),
        first: 0,
        bytes: 0,
        memory: Buffer::default(),
        packed: Buffer {
            alignment: 256,
            ranges: vec![
                Range { position: 0, access: Access::Update, before, after },
                Range { position: found as i64, access: Access::Write, before: vec![1; 64], after: status },
            ],
        },
    });
    check(&shim);
    assert_eq!((LINE_BYTES, SLOT_BYTES), (128, 32));
}

#[test]
fn texts_of_the_service() {
    let snapshots = concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots");
    insta::with_settings!({ snapshot_path => snapshots, prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("service", kernels::matching_service(Semantics::MPI).unwrap().source);
    });
}

#[test]
fn nvrtc_accepts_the_service_and_the_header() {
    let services = Semantics::all()
        .map(|semantics| (format!("service, {semantics}"), kernels::matching_service(semantics).unwrap().source));
    let mut texts: Vec<(String, String)> = services.collect();
    texts.push(("the header".to_owned(), dtc_matching::port::HEADER.to_owned()));
    match compile_all(&texts) {
        Ok(refusals) => {
            refusals.iter().take(2).for_each(|refusal| println!("{refusal}"));
            assert!(refusals.is_empty(), "{} refused", refusals.len());
        }
        Err(missing) => skip("nvrtc_accepts_the_service_and_the_header", &missing.to_string()),
    }
}
