//! A kernel that stays on a GPU and matches what is posted, by the host or by kernels.
#![expect(unsafe_code, reason = "launches kernels")]

use crate::envelope::{Envelope, Pattern};
use crate::error::MatchError;
use crate::kernels::{POSTED_AT_ONCE, SERVICE_ENTRIES, matching_service, no_kernel};
use crate::matcher::{self, Queues};
use crate::port::{self, CLOSED, Kind, Port};
use crate::queue::{self, Entry, HEADER_BYTES, Header};
use crate::semantics::{Semantics, Wildcards};
use dtc_runtime::Gpu;
use dtc_runtime::cuda::{CudaError, DeviceBuffer, Function, Stream};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::time::{Duration, Instant};

/// How long a start waits for the blocks to run.
const START: Duration = Duration::from_secs(10);

/// How long the kernel that posts waits for a free slot, and the service at its end for a slot to be filled.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a [`Service`] is laid out, and when it ends by itself.
///
/// ```
/// use dtc_matching::{Queues, ServiceOptions};
/// let queues = Queues { communicators: 1, partitions: 1, capacity: 1024 };
/// let options = ServiceOptions { handles: 64, ..ServiceOptions::new(queues) };
/// assert_eq!((options.blocks, options.slots), (1, 1024));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOptions {
    /// The queues.
    pub queues: Queues,
    /// Messages, and receives, of a queue that are posted and not yet taken from its ring. Rounded up to a power of two.
    pub slots: u32,
    /// Handles of messages, and of receives: 0 to `handles - 1`.
    pub handles: u32,
    /// Thread blocks, at most one for each queue. A block takes all registers of a multiprocessor: it starts on one that is empty, and no
    /// other block runs there while it does.
    pub blocks: u32,
    /// The service ends after this long without an entry and without [`Service::renew`]: if the host is stuck, its GPU is not.
    pub idle: Duration,
    /// Kernels of other GPUs, or the host through mapped memory, post or wait too.
    pub system: bool,
}

impl ServiceOptions {
    /// One block; as many slots as a queue has entries, and handles for all entries of queues and rings; 5 s; this GPU alone.
    ///
    /// ```
    /// use dtc_matching::{Queues, ServiceOptions};
    /// let queues = Queues { communicators: 2, partitions: 1, capacity: 100 };
    /// assert_eq!(ServiceOptions::new(queues).handles, 2 * (100 + 128));
    /// ```
    pub fn new(queues: Queues) -> ServiceOptions {
        let slots = queues.capacity.min(matcher::MOST).next_power_of_two();
        let handles = queues.count().saturating_mul(queues.capacity.saturating_add(slots));
        let idle = Duration::from_secs(5);
        ServiceOptions { queues, slots, handles: handles.clamp(1, MOST_HANDLES), blocks: 1, idle, system: false }
    }
}

/// Most handles: those that leave room for the bits of an outcome.
const MOST_HANDLES: u32 = 1 << 30;

/// What became of a message or a receive.
///
/// ```
/// assert_ne!(dtc_matching::Outcome::Pending, dtc_matching::Outcome::Matched(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is posted and waits, or was never posted.
    Pending,
    /// It is matched; the handle of the other side.
    Matched(u32),
    /// The host's launch found no free slot within a second, and did not post it.
    Full,
    /// The host's launch found the service stopped, and did not post it.
    Stopped,
}

/// How a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to.
    Stopped,
    /// It had nothing to do for the time of [`ServiceOptions::idle`].
    Idle,
}

/// What waits in a queue while the service is stopped: bits and handles, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Messages without a receive.
    pub messages: Vec<Entry>,
    /// Receives without a message.
    pub receives: Vec<Entry>,
}

/// Queues on a GPU, and a kernel that stays there and matches what kernels and the host post.
///
/// While it runs, loading code and freeing memory wait for it in the whole process, as they do for every kernel: prepare before you start
/// it. It uses only the multiprocessors that its blocks need. A kernel that waits for outcomes must not keep a later start from running:
/// [`Service::start`] returns when the blocks run.
///
/// ```
/// use dtc_matching::{Envelope, Outcome, Pattern, Queues, Semantics, Service, ServiceOptions, port::Kind};
/// use dtc_runtime::{Engine, cuda::Stream};
/// if let Ok(gpu) = Engine::new().gpu(0) {
///     let queues = Queues { communicators: 1, partitions: 1, capacity: 1024 };
///     let mut service = Service::new(&gpu, Semantics::MPI, ServiceOptions::new(queues))?;
///     let stream = Stream::new(gpu.device())?;
///     service.start()?;
///     service.post(&stream, &[(Pattern::new(None, Some(7), 0)?, 200)])?;
///     service.arrive(&stream, &[(Envelope::new(3, 7, 0)?, 100)])?;
///     service.wait(&stream, Kind::Receives, 200, std::time::Duration::from_secs(1))?;
///     stream.synchronize()?;
///     assert_eq!(service.outcomes(Kind::Receives, 200..201)?, [Outcome::Matched(100)]);
///     service.stop()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Service {
    // Before the kernels: freeing memory waits for the work on the device, after which the code may be unloaded.
    queues: DeviceBuffer,
    memory: DeviceBuffer,
    stream: Stream,
    kernels: Kernels,
    semantics: Semantics,
    options: ServiceOptions,
    /// Whether the kernel was launched and not waited for.
    started: bool,
}

struct Kernels {
    serve: Function,
    post: Function,
    wait: Function,
    threads: u32,
}

/// `Serving` of the kernels.
#[repr(C)]
struct Serving {
    pairs: u64,
    idle: u64,
    patience: u64,
}

/// `Batch` of the kernels.
#[repr(C)]
struct Batch {
    ring: u32,
    count: u32,
    patience: u64,
    entries: [[u32; 3]; POSTED_AT_ONCE],
}

impl fmt::Debug for Service {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Service")
            .field("semantics", &self.semantics)
            .field("options", &self.options)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Freeing the memory would wait for a kernel that was never told to end.
        let _ = self.stop();
    }
}

impl Service {
    /// Empty queues, with kernels for these guarantees: from the store, or compiled now. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`MatchError::Partitions`] and [`MatchError::Size`] for the options; or the kernels cannot be compiled, or the memory is not there.
    ///
    /// ```
    /// use dtc_matching::{MatchError, Queues, Semantics, Service, ServiceOptions};
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     let queues = Queues { communicators: 1, partitions: 1, capacity: 64 };
    ///     let options = ServiceOptions { blocks: 2, ..ServiceOptions::new(queues) };
    ///     let refused = Service::new(&gpu, Semantics::MPI, options).err();
    ///     assert_eq!(refused, Some(MatchError::Size { what: "blocks", most: 1, found: 2 }));
    /// }
    /// ```
    pub fn new(gpu: &Gpu, semantics: Semantics, options: ServiceOptions) -> Result<Service, MatchError> {
        matcher::check(semantics, options.queues)?;
        for (what, most, found) in [
            ("slots", matcher::MOST, options.slots),
            ("handles", MOST_HANDLES, options.handles),
            ("blocks", options.queues.count(), options.blocks),
        ] {
            if found == 0 || found > most {
                return Err(MatchError::Size { what, most, found });
            }
        }
        let options = ServiceOptions { slots: options.slots.next_power_of_two(), ..options };
        let program = matching_service(semantics)?;
        let functions = gpu.compile(&program.source, &SERVICE_ENTRIES)?;
        let Ok([serve, post, wait]) = <[Function; 3]>::try_from(functions) else {
            return Err(no_kernel("").into());
        };
        let device = gpu.device();
        let count = options.queues.count() as usize;
        let mut queues = DeviceBuffer::new(device, count * queue::stride(options.queues.capacity))?;
        queues.fill(0)?;
        let mut memory = DeviceBuffer::new(device, port(0, semantics, options).bytes(options.queues))?;
        memory.fill(0)?;
        let (stream, kernels) = (Stream::new(device)?, Kernels { serve, post, wait, threads: program.threads });
        let mut service = Service { queues, memory, stream, kernels, semantics, options, started: false };
        // Until it is started, kernels are told that it is stopped.
        for queue in 0..service.options.queues.count() {
            for kind in [Kind::Messages, Kind::Receives] {
                let at = service.port().ring_at(kind, queue);
                let mut ring = CLOSED.to_ne_bytes().to_vec();
                ring.extend(service.options.slots.to_ne_bytes());
                service.memory.write(at, &ring)?;
            }
        }
        Ok(service)
    }

    /// The guarantees that the kernels were generated for.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The options, with the slots that there are.
    pub fn options(&self) -> ServiceOptions {
        self.options
    }

    /// What kernels need to post: their parameter of the type `dtc_matching_port`. It is the same over starts and stops.
    pub fn port(&self) -> Port {
        port(self.memory.address(), self.semantics, self.options)
    }

    fn word(&self, at: usize) -> Result<u32, CudaError> {
        let mut bytes = [0; 4];
        self.memory.read(at, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// The tickets of a closed ring: those that were taken, and those that there are.
    fn tickets(&self, kind: Kind, queue: u32) -> Result<[u32; 2], CudaError> {
        let mut bytes = [0; 8];
        self.memory.read(self.port().ring_at(kind, queue) + 12, &mut bytes)?;
        let [a, b, c, d, e, f, g, h] = bytes;
        Ok([u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])])
    }

    /// Starts the kernel, and returns when all of its blocks run. What waits since the last stop is served. Does nothing if it runs.
    ///
    /// # Errors
    ///
    /// [`MatchError::NotStarted`]: other kernels kept the blocks from running for 10 s. Or the driver refuses.
    pub fn start(&mut self) -> Result<(), MatchError> {
        if self.started && !self.stream.query()? {
            return Ok(());
        }
        self.memory.write(0, &[0; 16])?;
        for queue in 0..self.options.queues.count() {
            for kind in [Kind::Messages, Kind::Receives] {
                let [_, end] = self.tickets(kind, queue)?;
                self.memory.write(self.port().ring_at(kind, queue), &(u64::from(end) << 32).to_ne_bytes())?;
            }
        }
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut serving = Serving {
            pairs: self.port().pairs_at() as u64,
            idle: nanoseconds(self.options.idle),
            patience: nanoseconds(PATIENCE),
        };
        let blocks = self.options.blocks;
        let (function, threads) = (&self.kernels.serve, self.kernels.threads);
        // SAFETY: `launch` fits the kernel of the service, whose last parameter is a `Serving`. It touches the queues and the memory of
        // the service, which are freed only when it has ended (`drop` stops it, and freeing waits for it).
        unsafe { self.launch(function, &self.stream, blocks, threads, &mut [(&raw mut serving).cast()])? };
        self.started = true;
        let since = Instant::now();
        loop {
            let running = self.word(port::RUNNING_AT)?;
            if running == blocks || self.stream.query()? {
                return Ok(());
            }
            if since.elapsed() > START {
                self.stop()?;
                return Err(MatchError::NotStarted { blocks, running });
            }
        }
    }

    /// Launches a kernel of the service with the parameters that all have, and others behind them.
    ///
    /// # Safety
    ///
    /// `others` has pointers to the other parameters of the kernel. Its accesses are valid until it is done.
    unsafe fn launch(
        &self,
        function: &Function,
        stream: &Stream,
        blocks: u32,
        threads: u32,
        others: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        let (mut queues, mut memory) = (self.queues.address(), self.memory.address());
        let (mut unused, mut capacity) = (0_u64, u64::from(self.options.queues.capacity));
        let mut stride = queue::stride(self.options.queues.capacity) as u64;
        let mut port = self.port();
        let mut parameters: Vec<*mut c_void> = vec![
            (&raw mut queues).cast(),
            (&raw mut memory).cast(),
            (&raw mut unused).cast(),
            (&raw mut capacity).cast(),
            (&raw mut stride).cast(),
            (&raw mut port).cast(),
        ];
        parameters.extend_from_slice(others);
        // SAFETY: every kernel of the service has five parameters of 8 bytes and a port; the others are the caller's (contract of this
        // function).
        unsafe { function.launch(stream, [blocks, 1, 1], [threads, 1, 1], 0, &mut parameters) }
    }

    /// Tells the service to end, and waits for it. It takes what was posted before, matches that, and refuses what is posted later; entries
    /// that are not matched wait for the next start. Returns how it ended; `None` if it was not started.
    ///
    /// # Errors
    ///
    /// [`MatchError::Abandoned`]: a kernel reserved a slot and did not fill it within a second, so that entries behind it were not taken.
    /// Or the driver refuses.
    pub fn stop(&mut self) -> Result<Option<End>, MatchError> {
        if !self.started {
            return Ok(None);
        }
        let before = self.word(port::STOP_AT)?;
        if before == 0 {
            self.memory.write(port::STOP_AT, &1_u32.to_ne_bytes())?;
        }
        self.stream.synchronize()?;
        self.started = false;
        match self.word(port::ABANDONED_AT)? {
            0 => Ok(Some(if before == IDLE { End::Idle } else { End::Stopped })),
            blocks => Err(MatchError::Abandoned { blocks }),
        }
    }

    /// Whether the kernel runs.
    ///
    /// # Errors
    ///
    /// The kernel failed.
    pub fn is_running(&self) -> Result<bool, MatchError> {
        Ok(self.started && !self.stream.query()?)
    }

    /// Starts the time of [`ServiceOptions::idle`] anew.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    pub fn renew(&mut self) -> Result<(), MatchError> {
        let beat = self.word(port::BEAT_AT)?;
        Ok(self.memory.write(port::BEAT_AT, &beat.wrapping_add(1).to_ne_bytes())?)
    }

    /// Enqueues messages with their handles on `stream`, in order. It may be captured. Outcomes of these handles are forgotten.
    ///
    /// # Errors
    ///
    /// [`MatchError::Stopped`], [`MatchError::Communicator`] and [`MatchError::Handle`], and then nothing is enqueued; or the driver
    /// refuses. If the service is stopped or full when the stream reaches a message, its outcome says so.
    pub fn arrive(&self, stream: &Stream, messages: &[(Envelope, u32)]) -> Result<(), MatchError> {
        let mut rings: BTreeMap<u32, Vec<[u32; 3]>> = BTreeMap::new();
        for (envelope, handle) in messages {
            let queue = matcher::queue_of(self.options.queues, envelope.communicator(), envelope.source())?;
            let entry = [envelope.source(), envelope.tag(), *handle];
            rings.entry(Port::ring(Kind::Messages, queue)).or_default().push(entry);
        }
        self.enqueue(stream, rings)
    }

    /// Enqueues receives with their handles on `stream`, in order. It may be captured. Outcomes of these handles are forgotten.
    ///
    /// # Errors
    ///
    /// As [`Service::arrive`]; and [`MatchError::Wildcard`].
    pub fn post(&self, stream: &Stream, receives: &[(Pattern, u32)]) -> Result<(), MatchError> {
        let mut rings: BTreeMap<u32, Vec<[u32; 3]>> = BTreeMap::new();
        for (pattern, handle) in receives {
            let queue = matcher::queue_of_receive(self.semantics, self.options.queues, pattern)?;
            let bits = pattern.bits();
            let entry = [(bits >> 32) as u32, bits as u32, *handle];
            rings.entry(Port::ring(Kind::Receives, queue)).or_default().push(entry);
        }
        self.enqueue(stream, rings)
    }

    fn enqueue(&self, stream: &Stream, rings: BTreeMap<u32, Vec<[u32; 3]>>) -> Result<(), MatchError> {
        let handles = self.options.handles;
        if let Some([.., found]) = rings.values().flatten().find(|[.., handle]| *handle >= handles) {
            return Err(MatchError::Handle { handles, found: *found });
        }
        if !self.is_running()? {
            return Err(MatchError::Stopped);
        }
        for (ring, entries) in rings {
            for part in entries.chunks(POSTED_AT_ONCE) {
                let mut batch = Batch {
                    ring,
                    count: part.len() as u32,
                    patience: PATIENCE.as_nanos() as u64,
                    entries: [[0; 3]; POSTED_AT_ONCE],
                };
                batch.entries[..part.len()].copy_from_slice(part);
                // SAFETY: the last parameter of the kernel is a `Batch`. It touches the memory of the service, which is freed only when
                // the device has done its work; ring and handles are inside it.
                unsafe { self.launch(&self.kernels.post, stream, 1, 32, &mut [(&raw mut batch).cast()])? };
            }
        }
        Ok(())
    }

    /// Enqueues a wait for an entry to be matched: what is behind it on `stream` runs then, or after `most`, or when the service has ended.
    /// It may be captured. Ask for the outcome to know which.
    ///
    /// # Errors
    ///
    /// [`MatchError::Handle`], or the driver refuses.
    pub fn wait(&self, stream: &Stream, kind: Kind, handle: u32, most: Duration) -> Result<(), MatchError> {
        if handle >= self.options.handles {
            return Err(MatchError::Handle { handles: self.options.handles, found: handle });
        }
        let (mut kind, mut handle) = (u32::from(kind == Kind::Receives), handle);
        let mut patience = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let mut others: [*mut c_void; 3] =
            [(&raw mut kind).cast(), (&raw mut handle).cast(), (&raw mut patience).cast()];
        // SAFETY: the last parameters of the kernel are two of 4 bytes and one of 8. It reads the outcome of a handle that there is.
        unsafe { self.launch(&self.kernels.wait, stream, 1, 1, &mut others)? };
        Ok(())
    }

    /// Outcomes by handle, as they are now; about 10 us.
    ///
    /// # Errors
    ///
    /// [`MatchError::Handle`], or the driver refuses.
    pub fn outcomes(&self, kind: Kind, handles: std::ops::Range<u32>) -> Result<Vec<Outcome>, MatchError> {
        if handles.end > self.options.handles {
            return Err(MatchError::Handle { handles: self.options.handles, found: handles.end - 1 });
        }
        let mut bytes = vec![0; 4 * handles.len()];
        self.memory.read(self.port().outcome_at(kind, handles.start), &mut bytes)?;
        let outcome = |bytes: &[u8; 4]| match u32::from_ne_bytes(*bytes) {
            0 => Outcome::Pending,
            matched if matched & port::MATCHED != 0 => Outcome::Matched(matched & !port::MATCHED),
            refused if refused == port::REFUSED | port::FULL => Outcome::Full,
            _ => Outcome::Stopped,
        };
        Ok(bytes.as_chunks::<4>().0.iter().map(outcome).collect())
    }

    /// What waits in a queue, while the service is stopped: in its lists, and behind them in its rings if the lists were full.
    ///
    /// # Errors
    ///
    /// [`MatchError::Running`], [`MatchError::Size`] for a queue that there is not, or the driver refuses.
    pub fn waiting(&self, queue: u32) -> Result<Waiting, MatchError> {
        let Queues { capacity, .. } = self.options.queues;
        let count = self.options.queues.count();
        if queue >= count {
            return Err(MatchError::Size { what: "queue", most: count - 1, found: queue });
        }
        if self.is_running()? {
            return Err(MatchError::Running);
        }
        let base = queue as usize * queue::stride(capacity);
        let mut bytes = vec![0; queue::stride(capacity)];
        self.queues.read(base, &mut bytes)?;
        let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(MatchError::Overflown { queue, capacity })?;
        let header = Header::of(header);
        if header.messages.max(header.receives) > capacity {
            return Err(MatchError::Overflown { queue, capacity });
        }
        let [messages, receives] = queue::lists(&bytes, capacity, header);
        let mut waiting = Waiting { messages, receives };
        for (kind, list) in [(Kind::Messages, &mut waiting.messages), (Kind::Receives, &mut waiting.receives)] {
            let [taken, end] = self.tickets(kind, queue)?;
            for place in 0..end.wrapping_sub(taken) {
                let mut slot = [0; port::SLOT_BYTES];
                let ticket = taken.wrapping_add(place);
                self.memory.read(self.port().slot_at(kind, queue, ticket), &mut slot)?;
                let [source, tag, handle, _] = *slot.as_chunks::<8>().0 else { continue };
                let [source, tag, handle] = [source, tag, handle].map(u64::from_ne_bytes);
                // A slot that was reserved and not filled has no entry.
                if handle >> 32 == u64::from(ticket.wrapping_add(1)) {
                    list.push((source << 32 | tag & u64::from(u32::MAX), handle as u32));
                }
            }
        }
        Ok(waiting)
    }
}

/// Why the control says that a service ends by itself.
const IDLE: u32 = 2;

fn port(memory: u64, semantics: Semantics, options: ServiceOptions) -> Port {
    let refused = match semantics.wildcards() {
        Wildcards::SourceAndTag => 0,
        Wildcards::Tag => 1,
        Wildcards::None => 3,
    };
    let ServiceOptions { queues, slots, handles, system, .. } = options;
    let Queues { communicators, partitions, .. } = queues;
    Port { memory, communicators, partitions, slots, handles, refused, system: system.into() }
}
