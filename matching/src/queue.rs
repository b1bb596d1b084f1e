//! The queues in the memory of a device.
//!
//! A queue is a header of [`HEADER_BYTES`], the envelopes of the messages and the patterns of the receives with 8 bytes each, and
//! the handles of the messages and of the receives with 4. Each list has room for `capacity` entries. The header has numbers of 4
//! bytes: messages, receives; and of the last call the pairs, what was wrong, and the receives that were there before it.

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;

/// Stands for a receive without a message in the pairs of a call.
pub const NO_MESSAGE: u32 = u32::MAX;

/// Bits of what was wrong: a list with more entries than its capacity, messages without a receive, forbidden wildcards, and messages
/// whose numbers are out of range.
pub(crate) const OVERFLOWN: u32 = 1;
pub(crate) const UNEXPECTED: u32 = 2;
pub(crate) const WILDCARD: u32 = 4;
pub(crate) const RANGE: u32 = 8;

/// An entry of a list: the bits of its envelope or pattern, and its handle.
pub type Entry = (u64, u32);

/// Bytes from one queue to the next.
///
/// ```
/// assert_eq!(dtc_matching::queue::stride(8), 64 + 8 * 24);
/// ```
pub const fn stride(capacity: u32) -> usize {
    (HEADER_BYTES + 24 * capacity as usize).next_multiple_of(HEADER_BYTES)
}

/// Where the lists begin in a queue: messages, receives, handles of messages, handles of receives.
pub(crate) const fn offsets(capacity: u32) -> [usize; 4] {
    let capacity = capacity as usize;
    [HEADER_BYTES, HEADER_BYTES + 8 * capacity, HEADER_BYTES + 16 * capacity, HEADER_BYTES + 20 * capacity]
}

/// The header of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Messages that wait.
    pub messages: u32,
    /// Receives that wait.
    pub receives: u32,
    /// Pairs of the last call.
    pub matched: u32,
    /// Bits of what was wrong in the last call; 0 if nothing.
    pub status: u32,
    /// Receives before the last call: as many of its pairs are written.
    pub examined: u32,
}

impl Header {
    /// Its bytes.
    ///
    /// ```
    /// use dtc_matching::queue::Header;
    /// let header = Header { messages: 3, ..Header::default() };
    /// assert_eq!(Header::of(&header.to_bytes()), header);
    /// ```
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let numbers = [self.messages, self.receives, self.matched, self.status, self.examined];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// The header that these bytes are.
    ///
    /// ```
    /// assert_eq!(dtc_matching::queue::Header::of(&[0; 64]).messages, 0);
    /// ```
    pub fn of(bytes: &[u8; HEADER_BYTES]) -> Header {
        let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Header {
            messages: number(0),
            receives: number(4),
            matched: number(8),
            status: number(12),
            examined: number(16),
        }
    }
}

/// Writes entries into the lists of a queue, from its first entry on, and their numbers into its header.
///
/// ```
/// use dtc_matching::queue::{put, stride};
/// let mut queue = vec![0xa7; stride(8)];
/// put(&mut queue, 8, &[(3 << 32 | 7, 100)], &[]);
/// assert_eq!(&queue[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
/// ```
///
/// # Panics
///
/// There are more entries than `capacity`, or `queue` has fewer bytes than [`stride`].
pub fn put(queue: &mut [u8], capacity: u32, messages: &[Entry], receives: &[Entry]) {
    assert!(messages.len().max(receives.len()) <= capacity as usize, "a queue overflows");
    let [messages_at, receives_at, message_handles_at, receive_handles_at] = offsets(capacity);
    for (entries, at, handles_at) in
        [(messages, messages_at, message_handles_at), (receives, receives_at, receive_handles_at)]
    {
        for (index, (bits, handle)) in entries.iter().enumerate() {
            queue[at + 8 * index..][..8].copy_from_slice(&bits.to_ne_bytes());
            queue[handles_at + 4 * index..][..4].copy_from_slice(&handle.to_ne_bytes());
        }
    }
    let header = Header { messages: messages.len() as u32, receives: receives.len() as u32, ..Header::default() };
    queue[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
}

/// The lists of a queue: messages and receives, with as many entries as the header says.
pub(crate) fn lists(queue: &[u8], capacity: u32, header: Header) -> [Vec<Entry>; 2] {
    let [messages, receives, message_handles, receive_handles] = offsets(capacity);
    let list = |at: usize, handles_at: usize, count: u32| {
        let bits = queue[at..].as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
        let handles = queue[handles_at..].as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes));
        bits.zip(handles).take(count as usize).collect()
    };
    [list(messages, message_handles, header.messages), list(receives, receive_handles, header.receives)]
}
