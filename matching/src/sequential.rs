//! The matcher of a CPU: two lists for each communicator, searched from their heads.

use crate::envelope::{Envelope, Pattern};
use std::collections::HashMap;

/// Matches messages and receives one at a time, with the rules of MPI 4.1, section 3.5.
///
/// A message goes to the earliest posted receive that it fits, or waits among the unexpected messages. A receive takes the
/// earliest unexpected message that fits it, or waits among the posted receives. Handles are numbers that the caller chooses.
///
/// ```
/// use dtc_matching::{Envelope, Pattern, SequentialMatcher};
/// let mut matcher = SequentialMatcher::default();
/// assert_eq!(matcher.post(Pattern::new(Some(1), None, 0)?, 10), None);
/// assert_eq!(matcher.post(Pattern::new(None, Some(5), 0)?, 11), None);
/// // Both receives fit; the first posted one takes the message.
/// assert_eq!(matcher.arrive(Envelope::new(1, 5, 0)?, 20), Some(10));
/// assert_eq!(matcher.posted(0).len(), 1);
/// # Ok::<(), dtc_matching::EnvelopeError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequentialMatcher {
    communicators: HashMap<u32, Lists>,
}

/// The lists of one communicator, earliest first.
#[derive(Clone, Debug, Default)]
struct Lists {
    unexpected: Vec<(Envelope, u32)>,
    posted: Vec<(Pattern, u32)>,
}

impl SequentialMatcher {
    /// A message arrives. Returns the handle of the receive that takes it, or keeps the message.
    ///
    /// ```
    /// # use dtc_matching::{Envelope, SequentialMatcher};
    /// assert_eq!(SequentialMatcher::default().arrive(Envelope::new(1, 5, 0)?, 20), None);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn arrive(&mut self, envelope: Envelope, handle: u32) -> Option<u32> {
        let lists = self.communicators.entry(envelope.communicator()).or_default();
        match lists.posted.iter().position(|(pattern, _)| pattern.fits(envelope)) {
            Some(at) => Some(lists.posted.remove(at).1),
            None => {
                lists.unexpected.push((envelope, handle));
                None
            }
        }
    }

    /// A receive is posted. Returns the handle of the message that it takes, or keeps the receive.
    ///
    /// ```
    /// # use dtc_matching::{Pattern, SequentialMatcher};
    /// assert_eq!(SequentialMatcher::default().post(Pattern::new(None, None, 0)?, 10), None);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn post(&mut self, pattern: Pattern, handle: u32) -> Option<u32> {
        let lists = self.communicators.entry(pattern.communicator()).or_default();
        match lists.unexpected.iter().position(|(envelope, _)| pattern.fits(*envelope)) {
            Some(at) => Some(lists.unexpected.remove(at).1),
            None => {
                lists.posted.push((pattern, handle));
                None
            }
        }
    }

    /// The unexpected messages of a communicator with their handles, in the order in which they came.
    ///
    /// ```
    /// assert_eq!(dtc_matching::SequentialMatcher::default().unexpected(0), []);
    /// ```
    pub fn unexpected(&self, communicator: u32) -> &[(Envelope, u32)] {
        self.communicators.get(&communicator).map_or(&[], |lists| &lists.unexpected)
    }

    /// The posted receives of a communicator that no message has come for, with their handles, in the order of posting.
    ///
    /// ```
    /// assert_eq!(dtc_matching::SequentialMatcher::default().posted(0), []);
    /// ```
    pub fn posted(&self, communicator: u32) -> &[(Pattern, u32)] {
        self.communicators.get(&communicator).map_or(&[], |lists| &lists.posted)
    }
}
