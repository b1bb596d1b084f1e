//! What a call has to give, as the sequential matcher has it.

use crate::envelope::{Envelope, Pattern};
use crate::semantics::Semantics;
use crate::sequential::SequentialMatcher;
use std::collections::{HashMap, VecDeque};

/// The handles of receives and of their messages, by the order of the receives. Handles of receives differ from each other.
///
/// Without wildcards, receives of one envelope take its messages in turn, which a table finds faster than lists.
///
/// ```
/// use dtc_matching::{Envelope, Pattern, expected_pairs};
/// let messages = [(Envelope::new(1, 5, 0)?, 10), (Envelope::new(2, 5, 0)?, 11)];
/// let receives = [(Pattern::new(Some(2), Some(5), 0)?, 20), (Pattern::new(None, Some(5), 0)?, 21)];
/// assert_eq!(expected_pairs(&messages, &receives), [(20, 11), (21, 10)]);
/// # Ok::<(), dtc_matching::EnvelopeError>(())
/// ```
pub fn expected_pairs(messages: &[(Envelope, u32)], receives: &[(Pattern, u32)]) -> Vec<(u32, u32)> {
    if receives.iter().all(|(pattern, _)| pattern.source().is_some() && pattern.tag().is_some()) {
        let mut waiting: HashMap<(u64, u32), VecDeque<u32>> = HashMap::new();
        for (envelope, handle) in messages {
            waiting.entry((envelope.bits(), envelope.communicator())).or_default().push_back(*handle);
        }
        let take = |&(pattern, receive): &(Pattern, u32)| {
            Some((receive, waiting.get_mut(&(pattern.bits(), pattern.communicator()))?.pop_front()?))
        };
        return receives.iter().filter_map(take).collect();
    }
    let mut matcher = SequentialMatcher::default();
    for (envelope, handle) in messages {
        matcher.arrive(*envelope, *handle);
    }
    receives.iter().filter_map(|(pattern, handle)| Some((*handle, matcher.post(*pattern, *handle)?))).collect()
}

/// Checks the pairs of a call against [`expected_pairs`]. Without ordering, messages of one envelope may be taken in any order.
///
/// # Errors
///
/// The first difference.
///
/// ```
/// use dtc_matching::{Envelope, Pattern, Semantics, verify};
/// let (messages, receives) = ([(Envelope::new(1, 5, 0)?, 10)], [(Pattern::new(Some(1), Some(5), 0)?, 20)]);
/// assert_eq!(verify(Semantics::MPI, &messages, &receives, &[(20, 10)]), Ok(()));
/// assert!(verify(Semantics::MPI, &messages, &receives, &[]).is_err());
/// # Ok::<(), dtc_matching::EnvelopeError>(())
/// ```
pub fn verify(
    semantics: Semantics,
    messages: &[(Envelope, u32)],
    receives: &[(Pattern, u32)],
    pairs: &[(u32, u32)],
) -> Result<(), String> {
    let envelopes: HashMap<u32, Envelope> = messages.iter().map(|&(envelope, handle)| (handle, envelope)).collect();
    // Without ordering, a message is as good as another of its envelope, but none is taken twice.
    let mut taken = HashMap::new();
    let mut by_receive = |pairs: &[(u32, u32)]| {
        let mut found = HashMap::new();
        taken.clear();
        for &(receive, message) in pairs {
            if found.insert(receive, message).is_some() || taken.insert(message, receive).is_some() {
                return Err(format!("receive {receive} or message {message} is in two pairs"));
            }
        }
        Ok(found)
    };
    let (expected, found) = (by_receive(&expected_pairs(messages, receives))?, by_receive(pairs)?);
    if !semantics.ordering() {
        // Which of several equal receives goes away empty is open too.
        let mut counts: HashMap<(u64, u32), i64> = HashMap::new();
        let patterns: HashMap<u32, Pattern> = receives.iter().map(|&(pattern, handle)| (handle, pattern)).collect();
        for (pairs, change) in [(&expected, 1), (&found, -1)] {
            for (receive, message) in pairs {
                let (Some(pattern), Some(envelope)) = (patterns.get(receive), envelopes.get(message)) else {
                    return Err(format!(
                        "receive {receive} and message {message}: expected handles of the queue, found others"
                    ));
                };
                if !pattern.fits(*envelope) {
                    return Err(format!("receive {receive}: expected a message that fits, found {message}"));
                }
                *counts.entry((envelope.bits(), envelope.communicator())).or_default() += change;
            }
        }
        return match counts.iter().find(|(_, count)| **count != 0) {
            None => Ok(()),
            Some((tuple, count)) => Err(format!("envelope {tuple:?}: expected {count} more pairs")),
        };
    }
    for (_, receive) in receives {
        let (expected, found) = (expected.get(receive), found.get(receive));
        if expected != found {
            return Err(format!("receive {receive}: expected message {expected:?}, found {found:?}"));
        }
    }
    if found.len() == expected.len() { Ok(()) } else { Err("expected receives of the queue, found others".to_owned()) }
}
