//! Queues of messages and receives for the tests of matching, on a CPU and on a GPU.

use dtc_matching::workload::Shape;
use dtc_matching::{Envelope, Pattern, Semantics, SequentialMatcher, Wildcards};

/// One queue: messages and receives with their handles, in order.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The messages.
    pub messages: Vec<(Envelope, u32)>,
    /// The receives.
    pub receives: Vec<(Pattern, u32)>,
}

impl Queue {
    /// Draws a queue of a shape, as far as these guarantees allow it. Handles of messages and receives count up from two numbers that the
    /// caller chooses. Where no message may be unexpected, every one has a receive.
    pub fn draw(semantics: Semantics, shape: &Shape, seed: u64, [messages, receives]: [u32; 2]) -> Queue {
        let workload = allowed(semantics, shape).draw(seed);
        let queue = Queue {
            messages: workload.messages.into_iter().zip(messages..).collect(),
            receives: workload.receives.into_iter().zip(receives..).collect(),
        };
        queue.without_leftovers(semantics)
    }

    /// The queue without the messages that find no receive, if these guarantees allow none.
    pub fn without_leftovers(mut self, semantics: Semantics) -> Queue {
        if !semantics.unexpected() {
            let mut matcher = SequentialMatcher::default();
            for (pattern, handle) in &self.receives {
                matcher.post(*pattern, *handle);
            }
            self.messages.retain(|(envelope, handle)| matcher.arrive(*envelope, *handle).is_some());
        }
        self
    }
}

/// The shape without what these guarantees rule out.
fn allowed(semantics: Semantics, shape: &Shape) -> Shape {
    let wildcards = semantics.wildcards();
    Shape {
        any_source: if wildcards == Wildcards::SourceAndTag { shape.any_source } else { 0.0 },
        any_tag: if wildcards == Wildcards::None { 0.0 } else { shape.any_tag },
        unmatched: if semantics.unexpected() { shape.unmatched } else { 0.0 },
        ..*shape
    }
}
