//! The rules of matching, and the reason why a parallel matcher may ignore the order of events.

use dtc_matching::workload::{APPLICATIONS, Order, Shape, Workload};
use dtc_matching::{Envelope, LARGEST, Pattern, SequentialMatcher};
use proptest::prelude::*;

/// Pairs of positions, receive and message, in the order of the receives.
type Pairs = Vec<(u32, u32)>;

/// Feeds a workload to the matcher; `arrives` says for each step whether the next event is a message, while there are any.
fn run(workload: &Workload, mut arrives: impl FnMut() -> bool) -> (Pairs, SequentialMatcher) {
    let mut matcher = SequentialMatcher::default();
    let (mut messages, mut receives) = (0, 0);
    let mut pairs = Pairs::new();
    while messages < workload.messages.len() || receives < workload.receives.len() {
        let message = receives == workload.receives.len() || (messages < workload.messages.len() && arrives());
        if message {
            let taken = matcher.arrive(workload.messages[messages], messages as u32);
            pairs.extend(taken.map(|receive| (receive, messages as u32)));
            messages += 1;
        } else {
            let taken = matcher.post(workload.receives[receives], receives as u32);
            pairs.extend(taken.map(|message| (receives as u32, message)));
            receives += 1;
        }
    }
    pairs.sort_unstable();
    (pairs, matcher)
}

/// Whether no receive and message that fit would both rather have each other.
fn stable(workload: &Workload, pairs: &Pairs) -> bool {
    let mut message_of = vec![u32::MAX; workload.receives.len()];
    let mut receive_of = vec![u32::MAX; workload.messages.len()];
    for &(receive, message) in pairs {
        message_of[receive as usize] = message;
        receive_of[message as usize] = receive;
    }
    workload.receives.iter().enumerate().all(|(receive, pattern)| {
        workload.messages.iter().enumerate().all(|(message, envelope)| {
            let prefers = (message as u32) < message_of[receive] && (receive as u32) < receive_of[message];
            !(prefers && pattern.fits(*envelope))
        })
    })
}

prop_compose! {
    fn shapes()(
        length in 0..60u32, peers in 1..5u32, tags in 1..5u32, communicators in 1..3u32, order in 0..3,
        any_source in 0.0..0.6, any_tag in 0.0..0.6, unmatched in 0.0..0.5,
    ) -> Shape {
        let order = [Order::Same, Order::Reversed, Order::Random][order as usize];
        Shape { length, peers, tags, communicators, order, any_source, any_tag, unmatched }
    }
}

proptest! {
    #[test]
    fn every_interleaving_gives_the_one_stable_matching(
        shape in shapes(), seed in any::<u64>(), events in prop::collection::vec(any::<bool>(), 120),
    ) {
        let workload = shape.draw(seed);
        let (pairs, matcher) = run(&workload, || true);
        prop_assert!(stable(&workload, &pairs));
        let fits = |&(receive, message): &(u32, u32)| {
            workload.receives[receive as usize].fits(workload.messages[message as usize])
        };
        prop_assert!(pairs.iter().all(fits));
        let mut events = events.into_iter();
        let (others, other) = run(&workload, || events.next().unwrap_or(false));
        prop_assert_eq!(&pairs, &others);
        for communicator in 0..shape.communicators {
            prop_assert_eq!(matcher.posted(communicator), other.posted(communicator));
            prop_assert_eq!(matcher.unexpected(communicator), other.unexpected(communicator));
        }
    }

    /// Section 3.5: two messages of one sender that fit the same receive are taken in the order in which they were sent, and two
    /// receives that fit the same message take them in the order of posting.
    #[test]
    fn nothing_overtakes(shape in shapes(), seed in any::<u64>()) {
        let workload = shape.draw(seed);
        let (pairs, _) = run(&workload, || false);
        for &(one, first) in &pairs {
            for &(other, second) in &pairs {
                let pattern = workload.receives[other as usize];
                let later = one < other && second < first;
                let both = workload.receives[one as usize].fits(workload.messages[second as usize]);
                prop_assert!(!(later && both && pattern.fits(workload.messages[first as usize])));
            }
        }
    }
}

/// The example of section 3.5: the receives match both messages, in order.
#[test]
fn messages_of_a_sender_are_not_overtaken() {
    let message = |tag| Envelope::new(0, tag, 0).unwrap();
    let mut matcher = SequentialMatcher::default();
    assert_eq!(matcher.arrive(message(1), 0), None);
    assert_eq!(matcher.arrive(message(2), 1), None);
    assert_eq!(matcher.post(Pattern::new(Some(0), None, 0).unwrap(), 0), Some(0));
    assert_eq!(matcher.post(Pattern::new(Some(0), Some(2), 0).unwrap(), 1), Some(1));
}

/// A wildcard never reaches into another communicator.
#[test]
fn communicators_are_apart() {
    let mut matcher = SequentialMatcher::default();
    assert_eq!(matcher.post(Pattern::new(None, None, 1).unwrap(), 0), None);
    assert_eq!(matcher.arrive(Envelope::new(0, 0, 2).unwrap(), 0), None);
    assert_eq!(matcher.arrive(Envelope::new(0, 0, 1).unwrap(), 1), Some(0));
    assert_eq!((matcher.unexpected(2).len(), matcher.posted(1).len()), (1, 0));
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    for (field, error) in [
        ("source", Envelope::new(LARGEST + 1, 0, 0).unwrap_err()),
        ("tag", Envelope::new(LARGEST, LARGEST + 1, 0).unwrap_err()),
        ("communicator", Pattern::new(None, None, u32::MAX).unwrap_err()),
        ("source", Pattern::new(Some(u32::MAX), None, 0).unwrap_err()),
        ("tag", Pattern::new(Some(LARGEST), Some(u32::MAX), 0).unwrap_err()),
    ] {
        assert!(error.to_string().starts_with(&format!("{field}: expected 0 to 2147483647, found ")), "{error}");
    }
}

#[test]
fn shapes_have_what_they_say() {
    for application in APPLICATIONS {
        let workload = application.shape(2000).draw(3);
        let sources: std::collections::BTreeSet<u32> = workload.messages.iter().map(|m| m.source()).collect();
        let any = workload.receives.iter().filter(|receive| receive.source().is_none()).count();
        assert_eq!(sources.len() as u32, application.peers, "{}", application.name);
        assert_eq!(any > 0, application.any_source, "{}", application.name);
        assert!(workload.messages.iter().all(|message| message.tag() < application.tags), "{}", application.name);
    }
    // All random tuples match, whatever the order; of the others as many as said, about.
    for order in [Order::Same, Order::Reversed, Order::Random] {
        let shape = Shape { order, ..Shape::random(1000) };
        assert_eq!(run(&shape.draw(1), || true).0.len(), 1000);
        let found = run(&Shape { unmatched: 0.75, ..shape }.draw(1), || true).0.len();
        assert!((200..300).contains(&found), "{found}");
    }
}
