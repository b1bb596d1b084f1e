//! Messages are matched on the device as the sequential matcher does it, with every kernel, over several calls.

use super::drawn::Queue;
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc_matching::workload::{APPLICATIONS, Order, Shape};
use dtc_matching::{Envelope, MatchError, Matcher, Pattern, Queues, Semantics, Wildcards, verify};
use dtc_runtime::cuda::Stream;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

type Messages = Vec<(Envelope, u32)>;
type Receives = Vec<(Pattern, u32)>;

pub fn add(tests: &mut Tests, on: &OnTier) {
    for semantics in Semantics::all() {
        for checked in [false, true] {
            let name = format!("matching: {semantics}{}", if checked { ", checked" } else { "" });
            let of = on.clone();
            tests.add(format!("{name}: short queues"), move || {
                shapes(&of, semantics, checked, &[1, 2, 31, 32, 33, 64, 65, 100])
            });
            let of = on.clone();
            tests.add(format!("{name}: queues of one chunk"), move || {
                shapes(&of, semantics, checked, &[500, 1000, 1024])
            });
            let of = on.clone();
            tests.add(format!("{name}: long queues"), move || shapes(&of, semantics, checked, &[1025, 5000]));
            let of = on.clone();
            tests.add(format!("{name}: applications"), move || applications(&of, semantics, checked));
            let of = on.clone();
            tests.add(format!("{name}: call after call"), move || calls(&of, semantics, checked));
        }
    }
    let of = on.clone();
    tests.add("matching: bad input", move || bad_input(&of));
}

/// Part of [`add`] for compute-sanitizer.
pub fn add_small(tests: &mut Tests, on: &OnTier) {
    for semantics in Semantics::all() {
        let of = on.clone();
        tests.add(format!("matching: {semantics}"), move || shapes(&of, semantics, true, &[1, 70, 1100]));
    }
}

/// Messages and receives of a shape, as far as the guarantees allow it.
fn draw(semantics: Semantics, shape: &Shape, seed: u64) -> (Messages, Receives) {
    let Queue { messages, receives } = Queue::draw(semantics, shape, seed, [0, 1 << 30]);
    (messages, receives)
}

/// One call for all queues, compared.
fn one_call(matcher: &mut Matcher, stream: &Stream, messages: &Messages, receives: &Receives) -> Result<(), String> {
    matcher.post(stream, receives).map_err(text)?;
    matcher.arrive(stream, messages).map_err(text)?;
    matcher.enqueue(stream).map_err(text)?;
    let pairs = matcher.pairs(stream).map_err(text)?;
    verify(matcher.semantics(), messages, receives, &pairs)?;
    let (mut left, mut open) = (0, 0);
    for queue in 0..matcher.queues().count() {
        let contents = matcher.contents(stream, queue).map_err(text)?;
        // What is left is in order, so in that of the handles.
        expect(contents.messages.is_sorted_by_key(|entry| entry.1), || "messages lost their order".to_owned())?;
        expect(contents.receives.is_sorted_by_key(|entry| entry.1), || "receives lost their order".to_owned())?;
        left += contents.messages.len();
        open += contents.receives.len();
    }
    expect(left + pairs.len() == messages.len(), || format!("{left} messages wait after {} pairs", pairs.len()))?;
    expect(open + pairs.len() == receives.len(), || format!("{open} receives wait after {} pairs", pairs.len()))
}

/// A kernel for lists of a length, which matches others too.
fn matcher(on: &OnTier, semantics: Semantics, checked: bool, capacity: u32) -> Result<Matcher, String> {
    let queues = Queues { communicators: 1, partitions: 1, capacity };
    Matcher::new(&on.gpu, semantics, checked, queues).map_err(text)
}

fn shapes(on: &OnTier, semantics: Semantics, checked: bool, lengths: &[u32]) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let kernels = [matcher(on, semantics, checked, 1)?, matcher(on, semantics, checked, 1024)?];
    for (&length, kernel) in lengths.iter().flat_map(|length| kernels.iter().map(move |kernel| (length, kernel))) {
        let random = Shape::random(length);
        let few = Shape { peers: 3, tags: 2, ..random };
        for (name, shape) in [
            ("random", random),
            ("reversed", Shape { order: Order::Reversed, ..random }),
            ("the same order", Shape { order: Order::Same, ..random }),
            ("one tuple", Shape { peers: 1, tags: 1, ..random }),
            ("few tuples", Shape { unmatched: 0.3, ..few }),
            ("wildcards", Shape { any_source: 0.2, any_tag: 0.2, unmatched: 0.1, peers: 9, tags: 9, ..random }),
            ("all wildcards", Shape { any_source: 1.0, any_tag: 1.0, ..random }),
            ("one tuple, half of each wildcard", Shape { any_source: 0.5, any_tag: 0.5, peers: 1, tags: 1, ..random }),
            ("few tuples, half of each wildcard", Shape { any_source: 0.5, any_tag: 0.5, ..few }),
            (
                "some tuples, half of each wildcard",
                Shape { any_source: 0.5, any_tag: 0.5, peers: 8, tags: 4, ..random },
            ),
            ("one tag, half of any source", Shape { any_source: 0.5, tags: 1, ..random }),
            ("unmatched", Shape { unmatched: 0.9, ..random }),
        ] {
            let (messages, receives) = draw(semantics, &shape, u64::from(length));
            let queues = Queues { communicators: 1, partitions: 1, capacity: length };
            let mut matcher = kernel.another(queues).map_err(text)?;
            one_call(&mut matcher, &stream, &messages, &receives)
                .map_err(|fault| format!("{length}, {name}: {fault}"))?;
        }
    }
    Ok(())
}

fn applications(on: &OnTier, semantics: Semantics, checked: bool) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let kernel = matcher(on, semantics, checked, 2000)?;
    for application in APPLICATIONS {
        let (messages, receives) = draw(semantics, &application.shape(2000), 11);
        let partitions = if semantics.wildcards() == Wildcards::SourceAndTag { 1 } else { 16 };
        let queues = Queues { communicators: application.communicators, partitions, capacity: 2000 };
        let mut matcher = kernel.another(queues).map_err(text)?;
        one_call(&mut matcher, &stream, &messages, &receives)
            .map_err(|fault| format!("{}: {fault}", application.name))?;
    }
    Ok(())
}

/// Messages and receives come in pieces, between which the queues are matched.
fn calls(on: &OnTier, semantics: Semantics, checked: bool) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let kernel = matcher(on, semantics, checked, 2000)?;
    let mut rng = SmallRng::seed_from_u64(3);
    for seed in 0..5 {
        let shape = Shape { peers: 12, tags: 5, any_source: 0.1, any_tag: 0.2, unmatched: 0.1, ..Shape::random(1500) };
        let (messages, receives) = draw(semantics, &shape, seed);
        let mut matcher = kernel.another(Queues { communicators: 1, partitions: 1, capacity: 1500 }).map_err(text)?;
        let mut pairs = Vec::new();
        let (mut come, mut posted) = (0, 0);
        if !semantics.unexpected() {
            // All receives are there before their messages.
            matcher.post(&stream, &receives).map_err(text)?;
            posted = receives.len();
        }
        while come < messages.len() || posted < receives.len() {
            let next = |from: usize, end: usize, rng: &mut SmallRng| (from + rng.random_range(0..400)).min(end);
            let (to, until) = (next(come, messages.len(), &mut rng), next(posted, receives.len(), &mut rng));
            matcher.arrive(&stream, &messages[come..to]).map_err(text)?;
            matcher.post(&stream, &receives[posted..until]).map_err(text)?;
            (come, posted) = (to, until);
            matcher.enqueue(&stream).map_err(text)?;
            pairs.extend(matcher.pairs(&stream).map_err(text)?);
        }
        verify(semantics, &messages, &receives, &pairs)?;
    }
    Ok(())
}

fn bad_input(on: &OnTier) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let message = |source, tag| Envelope::new(source, tag, 0).map_err(text);
    let receive = |source, tag| Pattern::new(source, tag, 0).map_err(text);
    let queues = Queues { communicators: 1, partitions: 1, capacity: 4 };

    // An overflow adds nothing, and what is there is matched.
    let mut matcher = Matcher::new(&on.gpu, Semantics::MPI, false, queues).map_err(text)?;
    matcher.arrive(&stream, &[(message(1, 1)?, 1)]).map_err(text)?;
    let many: Messages = (2..6).map(|handle| Ok((message(1, 1)?, handle))).collect::<Result<_, String>>()?;
    let overflow = matcher.arrive(&stream, &many);
    expect(matches!(overflow, Err(MatchError::Overflow { list: "messages", found: 5, .. })), || {
        format!("{overflow:?}")
    })?;
    matcher.post(&stream, &[(receive(None, None)?, 9)]).map_err(text)?;
    matcher.enqueue(&stream).map_err(text)?;
    expect(matcher.pairs(&stream) == Ok(vec![(9, 1)]), || "a pair after an overflow".to_owned())?;
    let nowhere = matcher.arrive(&stream, &[(Envelope::new(0, 0, 1).map_err(text)?, 1)]);
    expect(matches!(nowhere, Err(MatchError::Communicator { .. })), || format!("{nowhere:?}"))?;

    // Promises that are broken where they can be seen at once.
    let mut tags = Matcher::new(&on.gpu, Semantics::MPI.without_source_wildcard(), true, queues).map_err(text)?;
    let refused = tags.post(&stream, &[(receive(None, Some(1))?, 1)]);
    expect(matches!(refused, Err(MatchError::Wildcard { wildcard: "MPI_ANY_SOURCE", .. })), || format!("{refused:?}"))?;

    // An unexpected message is reported by a checked kernel, and waits for its receive.
    let semantics = Semantics::MPI.without_unexpected();
    let mut none = Matcher::new(&on.gpu, semantics, true, queues).map_err(text)?;
    none.arrive(&stream, &[(message(1, 1)?, 1), (message(2, 2)?, 2)]).map_err(text)?;
    none.post(&stream, &[(receive(Some(2), Some(2))?, 3)]).map_err(text)?;
    none.enqueue(&stream).map_err(text)?;
    let broken = none.pairs(&stream);
    expect(matches!(broken, Err(MatchError::Unexpected { messages: 1, .. })), || format!("{broken:?}"))?;
    let contents = none.contents(&stream, 0).map_err(text)?;
    expect(contents.pairs == [(3, Some(2))] && contents.messages.len() == 1, || format!("{contents:?}"))?;
    none.post(&stream, &[(receive(Some(1), Some(1))?, 4)]).map_err(text)?;
    none.enqueue(&stream).map_err(text)?;
    Ok(expect(none.pairs(&stream) == Ok(vec![(4, 1)]), || "the message was lost".to_owned())?)
}
