//! Queues in the memory of a GPU, and calls that match what is queued.
#![expect(unsafe_code, reason = "launches a kernel")]

use crate::envelope::{Envelope, Pattern};
use crate::error::MatchError;
use crate::kernels::{MATCH_ENTRY, matching, no_kernel};
use crate::queue::{self, Entry, HEADER_BYTES, Header};
use crate::semantics::{Semantics, Wildcards};
use dtc_runtime::Gpu;
use dtc_runtime::cuda::{Device, DeviceBuffer, Function, Stream};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;

/// Most queues of a matcher, and most entries of a list.
pub(crate) const MOST: u32 = 1 << 20;

/// How many queues there are, and how long.
///
/// ```
/// let queues = dtc_matching::Queues { communicators: 2, partitions: 1, capacity: 1024 };
/// assert_eq!(queues.count(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Communicators, numbered from 0 on.
    pub communicators: u32,
    /// Queues of a communicator. A source belongs to the queue of its number modulo this one.
    pub partitions: u32,
    /// Room for messages, and for receives, of each queue.
    pub capacity: u32,
}

impl Queues {
    /// All queues, communicator by communicator.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Queues { communicators: 2, partitions: 16, capacity: 8 }.count(), 32);
    /// ```
    pub fn count(self) -> u32 {
        self.communicators.saturating_mul(self.partitions)
    }
}

/// What is in a queue after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The handles of the receives that were there before the call, in order, each with its message if it got one.
    pub pairs: Vec<(u32, Option<u32>)>,
    /// The messages that wait, in order: envelope bits and handle.
    pub messages: Vec<Entry>,
    /// The receives that wait, in order: pattern bits and handle.
    pub receives: Vec<Entry>,
}

/// Queues of messages and receives in the memory of a GPU, and the kernel that matches them.
///
/// ```
/// use dtc_matching::{Envelope, Matcher, Pattern, Queues, Semantics};
/// use dtc_runtime::{Engine, cuda::Stream};
/// if let Ok(gpu) = Engine::new().gpu(0) {
///     let queues = Queues { communicators: 1, partitions: 1, capacity: 1024 };
///     let mut matcher = Matcher::new(&gpu, Semantics::MPI, false, queues)?;
///     let stream = Stream::new(gpu.device())?;
///     matcher.post(&stream, &[(Pattern::new(None, Some(7), 0)?, 200)])?;
///     matcher.arrive(&stream, &[(Envelope::new(3, 7, 0)?, 100)])?;
///     matcher.enqueue(&stream)?;
///     assert_eq!(matcher.pairs(&stream)?, [(200, 100)]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Matcher {
    // Before the kernel: freeing memory waits for the work on the device, after which the code may be unloaded.
    memory: DeviceBuffer,
    matches: DeviceBuffer,
    function: Function,
    threads: u32,
    semantics: Semantics,
    queues: Queues,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Matcher")
            .field("semantics", &self.semantics)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl Matcher {
    /// Empty queues, with a kernel for these guarantees: from the store, or compiled now. A checked kernel detects broken promises.
    ///
    /// # Errors
    ///
    /// [`MatchError::Partitions`] and [`MatchError::Size`] for the queues; or the kernel cannot be compiled, or the memory is not there.
    ///
    /// ```
    /// # use dtc_matching::{MatchError, Matcher, Queues, Semantics};
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     let queues = Queues { communicators: 1, partitions: 16, capacity: 64 };
    ///     let refused = Matcher::new(&gpu, Semantics::MPI, false, queues).err();
    ///     assert_eq!(refused, Some(MatchError::Partitions { found: 16 }));
    /// }
    /// ```
    pub fn new(gpu: &Gpu, semantics: Semantics, checked: bool, queues: Queues) -> Result<Matcher, MatchError> {
        check(semantics, queues)?;
        let program = matching(semantics, checked, queues.capacity)?;
        let function = gpu.compile(&program.source, &[MATCH_ENTRY])?.pop();
        let function = function.ok_or_else(|| no_kernel(""))?;
        Matcher::with(gpu.device(), function, program.threads, semantics, queues)
    }

    /// Other empty queues, with the same kernel, which is made for the capacity of these: others are matched rightly, and more slowly.
    ///
    /// # Errors
    ///
    /// As [`Matcher::new`].
    pub fn another(&self, queues: Queues) -> Result<Matcher, MatchError> {
        check(self.semantics, queues)?;
        Matcher::with(self.memory.device(), self.function.clone(), self.threads, self.semantics, queues)
    }

    fn with(
        device: &Device,
        function: Function,
        threads: u32,
        semantics: Semantics,
        queues: Queues,
    ) -> Result<Matcher, MatchError> {
        let count = queues.count() as usize;
        let mut memory = DeviceBuffer::new(device, count * queue::stride(queues.capacity))?;
        memory.fill(0)?;
        let matches = DeviceBuffer::new(device, count * 8 * queues.capacity as usize)?;
        Ok(Matcher { memory, matches, function, threads, semantics, queues })
    }

    /// The guarantees that the kernel was generated for.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The queues.
    pub fn queues(&self) -> Queues {
        self.queues
    }

    /// The memory of the queues, as [`queue`] describes it.
    pub fn memory(&self) -> &DeviceBuffer {
        &self.memory
    }

    fn header(&self, queue: u32) -> Result<Header, MatchError> {
        let mut bytes = [0; HEADER_BYTES];
        self.memory.read(queue as usize * queue::stride(self.queues.capacity), &mut bytes)?;
        Ok(Header::of(&bytes))
    }

    /// Waits for `stream`, and adds messages with their handles behind those that are queued.
    ///
    /// # Errors
    ///
    /// [`MatchError::Communicator`] and [`MatchError::Overflow`], and then none was added; or the driver refuses.
    pub fn arrive(&mut self, stream: &Stream, messages: &[(Envelope, u32)]) -> Result<(), MatchError> {
        let mut lists: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for (envelope, handle) in messages {
            let queue = queue_of(self.queues, envelope.communicator(), envelope.source())?;
            lists.entry(queue).or_default().push((envelope.bits(), *handle));
        }
        self.append(stream, &lists, false)
    }

    /// Waits for `stream`, and adds receives with their handles behind those that are posted.
    ///
    /// # Errors
    ///
    /// [`MatchError::Wildcard`], [`MatchError::Communicator`] and [`MatchError::Overflow`], and then none was added; or the driver
    /// refuses.
    pub fn post(&mut self, stream: &Stream, receives: &[(Pattern, u32)]) -> Result<(), MatchError> {
        let mut lists: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for (pattern, handle) in receives {
            let queue = queue_of_receive(self.semantics, self.queues, pattern)?;
            lists.entry(queue).or_default().push((pattern.bits(), *handle));
        }
        self.append(stream, &lists, true)
    }

    fn append(&mut self, stream: &Stream, lists: &BTreeMap<u32, Vec<Entry>>, receives: bool) -> Result<(), MatchError> {
        stream.synchronize()?;
        let capacity = self.queues.capacity;
        let mut headers = Vec::with_capacity(lists.len());
        for (&queue, entries) in lists {
            let header = self.header(queue)?;
            let there = if receives { header.receives } else { header.messages };
            let found = u64::from(there) + entries.len() as u64;
            if found > u64::from(capacity) {
                let list = if receives { "receives" } else { "messages" };
                return Err(MatchError::Overflow { queue, list, capacity, found });
            }
            headers.push((header, there));
        }
        let [messages_at, receives_at, message_handles_at, receive_handles_at] = queue::offsets(capacity);
        let (bits_at, handles_at) =
            if receives { (receives_at, receive_handles_at) } else { (messages_at, message_handles_at) };
        for ((&queue, entries), (mut header, there)) in lists.iter().zip(headers) {
            let base = queue as usize * queue::stride(capacity);
            let bits: Vec<u8> = entries.iter().flat_map(|entry| entry.0.to_ne_bytes()).collect();
            let handles: Vec<u8> = entries.iter().flat_map(|entry| entry.1.to_ne_bytes()).collect();
            self.memory.write(base + bits_at + 8 * there as usize, &bits)?;
            self.memory.write(base + handles_at + 4 * there as usize, &handles)?;
            let total = there + entries.len() as u32;
            *(if receives { &mut header.receives } else { &mut header.messages }) = total;
            self.memory.write(base, &header.to_bytes())?;
        }
        Ok(())
    }

    /// Enqueues one call: every queue is matched by a block of its own.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn enqueue(&self, stream: &Stream) -> Result<(), MatchError> {
        let (mut memory, mut matches) = (self.memory.address(), self.matches.address());
        let (mut unused, mut capacity) = (0_u64, u64::from(self.queues.capacity));
        let mut stride = queue::stride(self.queues.capacity) as u64;
        let mut parameters: [*mut c_void; 5] = [
            (&raw mut memory).cast(),
            (&raw mut matches).cast(),
            (&raw mut unused).cast(),
            (&raw mut capacity).cast(),
            (&raw mut stride).cast(),
        ];
        // SAFETY: the kernel has five parameters of 8 bytes. Block `i` touches queue `i` of `memory`, which has `stride` bytes for each
        // block, and `capacity` pairs of `matches` for each; it checks the lengths of the lists against `capacity`. Both buffers are freed
        // only when the device has done its work.
        unsafe {
            self.function.launch(stream, [self.queues.count(), 1, 1], [self.threads, 1, 1], 0, &mut parameters)?;
        }
        Ok(())
    }

    /// Waits for `stream`, and reads a queue and the pairs of its last call.
    ///
    /// # Errors
    ///
    /// The driver refuses, or a header has more entries than there is room for.
    ///
    /// # Panics
    ///
    /// Never: `queue` beyond the last is [`MatchError::Size`].
    pub fn contents(&self, stream: &Stream, queue: u32) -> Result<Contents, MatchError> {
        let (capacity, count) = (self.queues.capacity, self.queues.count());
        if queue >= count {
            return Err(MatchError::Size { what: "queue", most: count - 1, found: queue });
        }
        stream.synchronize()?;
        let header = self.header(queue)?;
        if header.messages.max(header.receives).max(header.examined) > capacity {
            return Err(MatchError::Overflown { queue, capacity });
        }
        let base = queue as usize * queue::stride(capacity);
        let mut lists = vec![0; queue::stride(capacity)];
        self.memory.read(base, &mut lists)?;
        let [messages, receives] = queue::lists(&lists, capacity, header);
        let mut pairs = vec![0; 8 * header.examined as usize];
        self.matches.read(queue as usize * 8 * capacity as usize, &mut pairs)?;
        let numbers = pairs.as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes));
        let pairs: Vec<u32> = numbers.collect();
        let pair = |&[receive, message]: &[u32; 2]| (receive, (message != queue::NO_MESSAGE).then_some(message));
        Ok(Contents { pairs: pairs.as_chunks::<2>().0.iter().map(pair).collect(), messages, receives })
    }

    /// Waits for `stream`, and returns the pairs of the last call: handles of receives and of their messages, queue by queue, in the
    /// order of the receives.
    ///
    /// # Errors
    ///
    /// What the kernel found wrong; then [`Matcher::contents`] still has all that was matched and all that waits. Or the driver refuses.
    pub fn pairs(&self, stream: &Stream) -> Result<Vec<(u32, u32)>, MatchError> {
        stream.synchronize()?;
        let mut pairs = Vec::new();
        for queue in 0..self.queues.count() {
            let header = self.header(queue)?;
            let error = MatchError::of(header.status, queue, self.queues.capacity, header.messages, self.semantics);
            if let Some(error) = error {
                return Err(error);
            }
            if header.matched != 0 {
                let found = self.contents(stream, queue)?.pairs;
                pairs.extend(found.into_iter().filter_map(|(receive, message)| Some((receive, message?))));
            }
        }
        Ok(pairs)
    }
}

/// The queue of a communicator and a source.
pub(crate) fn queue_of(queues: Queues, communicator: u32, source: u32) -> Result<u32, MatchError> {
    if communicator >= queues.communicators {
        return Err(MatchError::Communicator { communicators: queues.communicators, found: communicator });
    }
    Ok(communicator * queues.partitions + source % queues.partitions)
}

/// The queue of a receive, whose wildcards are checked.
pub(crate) fn queue_of_receive(semantics: Semantics, queues: Queues, pattern: &Pattern) -> Result<u32, MatchError> {
    let wildcards = semantics.wildcards();
    if pattern.source().is_none() && wildcards != Wildcards::SourceAndTag {
        return Err(MatchError::Wildcard { wildcard: "MPI_ANY_SOURCE", semantics });
    }
    if pattern.tag().is_none() && wildcards == Wildcards::None {
        return Err(MatchError::Wildcard { wildcard: "MPI_ANY_TAG", semantics });
    }
    // With wildcards for sources there is one partition.
    queue_of(queues, pattern.communicator(), pattern.source().unwrap_or(0))
}

pub(crate) fn check(semantics: Semantics, queues: Queues) -> Result<(), MatchError> {
    if queues.partitions != 1 && semantics.wildcards() == Wildcards::SourceAndTag {
        return Err(MatchError::Partitions { found: queues.partitions });
    }
    let Queues { communicators, partitions, capacity } = queues;
    for (what, found) in [
        ("communicators", communicators),
        ("partitions", partitions),
        ("queues", queues.count()),
        ("capacity", capacity),
    ] {
        if found == 0 || found > MOST {
            return Err(MatchError::Size { what, most: MOST, found });
        }
    }
    Ok(())
}
