//! The matching service: what the host and kernels post is matched as the sequential matcher does it, it starts, drains and stops, and
//! every kind of bad input is an error.

use super::drawn::Queue;
use crate::harness::{Outcome as Verdict, Tests, expect, text};
use crate::raw::{Spinner, StreamKind};
use crate::tier::OnTier;
use dtc_matching::port::{HEADER, Kind, Port};
use dtc_matching::workload::{Order, Shape};
use dtc_matching::{
    End, Envelope, MatchError, Outcome, Pattern, Queues, Semantics, Service, ServiceOptions, Wildcards, verify,
};
use dtc_runtime::cuda::{CaptureMode, DeviceBuffer, Function, Stream};
use std::cell::RefCell;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Posts entries: one thread of a block for messages and one of a block for receives, in order; or every thread some of both. Threads
/// that find no free slot try again for a second, if they are told to.
const KERNELS: &str = r#"
struct Entry { unsigned source, tag, communicator, handle; };

__device__ int post(const dtc_matching_port &port, const Entry &entry, unsigned kind, bool again)
{
    const unsigned long long start = dtc_matching_now();
    for (;;) {
        const int status = kind == 0 ? dtc_matching_send(port, entry.source, entry.tag, entry.communicator, entry.handle)
                                     : dtc_matching_receive(port, entry.source, entry.tag, entry.communicator, entry.handle);
        if (status != DTC_MATCHING_FULL || !again || dtc_matching_now() - start > 1000000000)
            return status;
        __nanosleep(500);
    }
}

extern "C" __global__ void __launch_bounds__(256)
post_entries(dtc_matching_port port, const Entry *entries, unsigned messages, unsigned receives, unsigned together, unsigned again,
             int *status)
{
    if (together) {
        const unsigned kind = blockIdx.x % 2, first = kind == 0 ? 0 : messages, count = kind == 0 ? messages : receives;
        if (threadIdx.x != 0 || blockIdx.x > 1)
            return;
        for (unsigned at = 0; at < count; at++)
            status[first + at] = post(port, entries[first + at], kind, again);
    } else {
        for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < messages + receives; at += gridDim.x * blockDim.x)
            status[at] = post(port, entries[at], at < messages ? 0 : 1, again);
    }
}

// Reserves a slot and never fills it.
extern "C" __global__ void __launch_bounds__(1) reserve_only(dtc_matching_port port, int *status)
{
    unsigned ticket;
    dtc_matching_reserve(port, 0, 1, &ticket, status);
}

extern "C" __global__ void __launch_bounds__(1)
wait_for(dtc_matching_port port, unsigned kind, unsigned handle, unsigned long long most, int *status)
{
    unsigned other;
    *status = dtc_matching_wait(port, kind, handle, most, &other);
}
"#;

/// What the header's calls return.
const DONE: i32 = 0;
const FULL: i32 = 1;
const STOPPED: i32 = 2;
const PENDING: i32 = 7;

const ONE_QUEUE: Queues = Queues { communicators: 1, partitions: 1, capacity: 2048 };

pub fn add(tests: &mut Tests, on: &OnTier) {
    for semantics in Semantics::all() {
        let of = on.clone();
        tests.add(format!("matching service: {semantics}: posted by the host"), move || by_host(&of, semantics));
        let of = on.clone();
        tests.add(format!("matching service: {semantics}: posted by kernels"), move || by_kernels(&of, semantics));
    }
    let mut single = |name: &str, test: fn(&OnTier) -> Verdict| {
        let of = on.clone();
        tests.add(format!("matching service: {name}"), move || test(&of));
    };
    single("posted by thousands of threads", by_threads);
    single("stopped and started again", stops);
    single("full rings and lists", overflows);
    single("bad input", bad_input);
    single("ends without work", ends_idle);
    single("beside other kernels", beside_others);
    single("captured into a graph", captured);
    single("a slot that is never filled", abandoned);
}

/// Part of [`add`] for compute-sanitizer.
pub fn add_small(tests: &mut Tests, on: &OnTier) {
    for semantics in [Semantics::MPI, Semantics::MPI.without_ordering()] {
        for (name, shape) in shapes(200) {
            let of = on.clone();
            tests.add(format!("matching service: {semantics}: {name}"), move || {
                Ok(by_kernels_in(&of, semantics, shape, false)?)
            });
        }
    }
}

/// A service, the test's kernels, and a stream for them.
struct Bench {
    service: Service,
    kernels: Vec<Function>,
    stream: Stream,
    /// Buffers of kernels that are done. Freeing them would wait for the service, so they go after it.
    kept: RefCell<Vec<DeviceBuffer>>,
}

impl Bench {
    fn new(on: &OnTier, semantics: Semantics, options: ServiceOptions) -> Result<Bench, String> {
        let names = ["post_entries", "reserve_only", "wait_for"];
        let kernels = on.gpu.compile(&format!("{HEADER}{KERNELS}"), &names).map_err(text)?;
        let service = Service::new(&on.gpu, semantics, options).map_err(text)?;
        Ok(Bench { service, kernels, stream: Stream::new(on.gpu.device()).map_err(text)?, kept: RefCell::default() })
    }

    fn launch(&self, kernel: usize, blocks: u32, threads: u32, others: &mut [*mut c_void]) -> Result<(), String> {
        let mut port: Port = self.service.port();
        let mut parameters = vec![(&raw mut port).cast()];
        parameters.extend_from_slice(others);
        // SAFETY: every kernel of this file has a port first; the callers pass the others, and wait for the stream before their buffers go.
        unsafe { self.kernels[kernel].launch(&self.stream, [blocks, 1, 1], [threads, 1, 1], 0, &mut parameters) }
            .map_err(text)
    }

    /// A kernel posts entries; its statuses, those of messages first.
    fn post(&self, queue: &Queue, together: bool, again: bool, blocks: u32) -> Result<Vec<i32>, String> {
        let mut numbers: Vec<u32> = Vec::new();
        for (envelope, handle) in &queue.messages {
            numbers.extend([envelope.source(), envelope.tag(), envelope.communicator(), *handle]);
        }
        for (pattern, handle) in &queue.receives {
            let any = |number: Option<u32>| number.unwrap_or(1 << 31);
            numbers.extend([any(pattern.source()), any(pattern.tag()), pattern.communicator(), *handle]);
        }
        self.post_numbers(&numbers, queue.messages.len(), together, again, blocks)
    }

    fn post_numbers(
        &self,
        numbers: &[u32],
        messages: usize,
        together: bool,
        again: bool,
        blocks: u32,
    ) -> Result<Vec<i32>, String> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let entries = DeviceBuffer::copy_of(&self.stream, &bytes).map_err(text)?;
        let count = numbers.len() / 4;
        let status = DeviceBuffer::copy_of(&self.stream, &vec![0xee; 4 * count.max(1)]).map_err(text)?;
        let (mut at, mut found) = (entries.address(), status.address());
        let (mut messages, mut receives) = (messages as u32, (count - messages) as u32);
        let (mut together, mut again) = (u32::from(together), u32::from(again));
        let mut others: [*mut c_void; 6] = [
            (&raw mut at).cast(),
            (&raw mut messages).cast(),
            (&raw mut receives).cast(),
            (&raw mut together).cast(),
            (&raw mut again).cast(),
            (&raw mut found).cast(),
        ];
        self.launch(0, blocks, 256, &mut others)?;
        let statuses = self.statuses(&status, count)?;
        self.kept.borrow_mut().extend([entries, status]);
        Ok(statuses)
    }

    fn statuses(&self, buffer: &DeviceBuffer, count: usize) -> Result<Vec<i32>, String> {
        self.stream.synchronize().map_err(text)?;
        let mut bytes = vec![0; 4 * count];
        buffer.read(0, &mut bytes).map_err(text)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect())
    }

    /// The status of a kernel with one thread that has a status as its last parameter.
    fn status(&self, kernel: usize, others: &mut Vec<*mut c_void>) -> Result<i32, String> {
        let status = DeviceBuffer::copy_of(&self.stream, &[0xee; 4]).map_err(text)?;
        let mut found = status.address();
        others.push((&raw mut found).cast());
        self.launch(kernel, 1, 1, others)?;
        let statuses = self.statuses(&status, 1)?;
        self.kept.borrow_mut().push(status);
        Ok(statuses[0])
    }

    fn wait_for(&self, kind: Kind, handle: u32, most: Duration) -> Result<i32, String> {
        let (mut kind, mut handle) = (u32::from(kind == Kind::Receives), handle);
        let mut most = most.as_nanos() as u64;
        self.status(2, &mut vec![(&raw mut kind).cast(), (&raw mut handle).cast(), (&raw mut most).cast()])
    }

    /// Stops the service, and compares outcomes and what is left with the sequential matcher.
    fn check(&mut self, queue: &Queue) -> Result<(), String> {
        self.service.stop().map_err(text)?;
        check(&self.service, queue)
    }
}

fn matched(service: &Service, kind: Kind) -> Result<Vec<(u32, u32)>, String> {
    let outcomes = service.outcomes(kind, 0..service.options().handles).map_err(text)?;
    let pair = |(handle, outcome)| match outcome {
        Outcome::Matched(other) => Ok(Some((handle, other))),
        Outcome::Pending => Ok(None),
        refused => Err(format!("{kind:?} {handle}: {refused:?}")),
    };
    (0..).zip(outcomes).map(pair).filter_map(Result::transpose).collect()
}

fn check(service: &Service, queue: &Queue) -> Result<(), String> {
    let pairs = matched(service, Kind::Receives)?;
    verify(service.semantics(), &queue.messages, &queue.receives, &pairs)?;
    let mut others: Vec<(u32, u32)> =
        matched(service, Kind::Messages)?.into_iter().map(|(message, receive)| (receive, message)).collect();
    others.sort_unstable();
    expect(others == pairs, || "the outcomes of messages differ from those of receives".to_owned())?;
    let (mut left, mut open) = (0, 0);
    for number in 0..service.options().queues.count() {
        let waiting = service.waiting(number).map_err(text)?;
        expect(waiting.messages.is_sorted_by_key(|entry| entry.1), || "messages lost their order".to_owned())?;
        expect(waiting.receives.is_sorted_by_key(|entry| entry.1), || "receives lost their order".to_owned())?;
        left += waiting.messages.len();
        open += waiting.receives.len();
    }
    expect(left + pairs.len() == queue.messages.len(), || format!("{left} messages wait after {} pairs", pairs.len()))?;
    expect(open + pairs.len() == queue.receives.len(), || format!("{open} receives wait after {} pairs", pairs.len()))
}

fn shapes(length: u32) -> [(&'static str, Shape); 4] {
    let random = Shape::random(length);
    [
        ("random", random),
        ("reversed", Shape { order: Order::Reversed, ..random }),
        ("few tuples", Shape { peers: 3, tags: 2, unmatched: 0.3, ..random }),
        ("wildcards", Shape { any_source: 0.2, any_tag: 0.2, unmatched: 0.1, peers: 9, tags: 9, ..random }),
    ]
}

/// Options for queues of a length with several communicators and, where it is allowed, partitions, on fewer blocks.
fn options(semantics: Semantics, length: u32) -> ServiceOptions {
    let partitions = if semantics.wildcards() == Wildcards::SourceAndTag { 1 } else { 4 };
    let queues = Queues { communicators: 3, partitions, capacity: length };
    ServiceOptions { blocks: 2, handles: length, ..ServiceOptions::new(queues) }
}

fn by_host(on: &OnTier, semantics: Semantics) -> Verdict {
    for length in [1, 20, 100, 2000] {
        for (name, shape) in shapes(length) {
            let drawn = Queue::draw(semantics, &Shape { communicators: 3, ..shape }, length.into(), [0, 0]);
            let mut bench = Bench::new(on, semantics, options(semantics, length))?;
            let other = Stream::new(on.gpu.device()).map_err(text)?;
            bench.service.start().map_err(text)?;
            for at in (0..length as usize).step_by(300) {
                let part = |count: usize| at.min(count)..(at + 300).min(count);
                let messages = &drawn.messages[part(drawn.messages.len())];
                bench.service.post(&bench.stream, &drawn.receives[part(drawn.receives.len())]).map_err(text)?;
                bench.service.arrive(&other, messages).map_err(text)?;
            }
            bench.stream.synchronize().map_err(text)?;
            other.synchronize().map_err(text)?;
            bench.check(&drawn).map_err(|fault| format!("{length}, {name}: {fault}"))?;
        }
    }
    Ok(())
}

fn by_kernels(on: &OnTier, semantics: Semantics) -> Verdict {
    by_kernels_of(on, semantics, &[1, 20, 100, 2000])
}

fn by_kernels_of(on: &OnTier, semantics: Semantics, lengths: &[u32]) -> Verdict {
    for &length in lengths {
        for (name, shape) in shapes(length) {
            for system in [false, true] {
                by_kernels_in(on, semantics, shape, system).map_err(|fault| format!("{length}, {name}: {fault}"))?;
            }
        }
    }
    Ok(())
}

fn by_kernels_in(on: &OnTier, semantics: Semantics, shape: Shape, system: bool) -> Result<(), String> {
    let drawn = Queue::draw(semantics, &Shape { communicators: 3, ..shape }, shape.length.into(), [0, 0]);
    // Rings that are shorter than what is posted.
    let options = ServiceOptions { slots: 64, system, ..options(semantics, shape.length) };
    let mut bench = Bench::new(on, semantics, options)?;
    bench.service.start().map_err(text)?;
    let statuses = bench.post(&drawn, true, true, 2)?;
    expect(statuses.iter().all(|status| *status == DONE), || "refused".to_owned())?;
    bench.check(&drawn)
}

/// The order of threads is open, so every tuple differs.
fn by_threads(on: &OnTier) -> Verdict {
    let count = 60_000;
    let queues = Queues { communicators: 1, partitions: 4, capacity: 20_000 };
    let options = ServiceOptions { blocks: 4, handles: count, slots: 1024, ..ServiceOptions::new(queues) };
    let mut bench = Bench::new(on, Semantics::MPI.without_source_wildcard(), options)?;
    let envelope = |handle: u32| Envelope::new(handle % 64, handle / 64, 0).map_err(text);
    let mut queue = Queue::default();
    for handle in 0..count {
        queue.messages.push((envelope(handle)?, handle));
        let other = envelope(handle * 7 % count)?;
        queue.receives.push((Pattern::new(Some(other.source()), Some(other.tag()), 0).map_err(text)?, handle));
    }
    bench.service.start().map_err(text)?;
    let statuses = bench.post(&queue, false, true, 200)?;
    expect(statuses.iter().all(|status| *status == DONE), || "entries were refused".to_owned())?;
    bench.service.stop().map_err(text)?;
    let pairs = matched(&bench.service, Kind::Receives)?;
    Ok(verify(bench.service.semantics(), &queue.messages, &queue.receives, &pairs)?)
}

fn entries(range: std::ops::Range<u32>, message: bool) -> Result<Queue, String> {
    let mut queue = Queue::default();
    for handle in range {
        if message {
            queue.messages.push((Envelope::new(1, handle, 0).map_err(text)?, handle));
        } else {
            queue.receives.push((Pattern::new(Some(1), Some(handle), 0).map_err(text)?, handle));
        }
    }
    Ok(queue)
}

fn stops(on: &OnTier) -> Verdict {
    let mut bench = Bench::new(on, Semantics::MPI, ServiceOptions { handles: 100, ..ServiceOptions::new(ONE_QUEUE) })?;
    let mut all = Queue::default();
    // Nothing is posted before the first start.
    let early = bench.post(&entries(0..3, true)?, true, false, 2)?;
    expect(early == [STOPPED; 3], || format!("before the start: {early:?}"))?;
    let refused = bench.service.arrive(&bench.stream, &entries(0..3, true)?.messages);
    expect(refused == Err(MatchError::Stopped), || format!("{refused:?}"))?;
    for round in 0..4 {
        bench.service.start().map_err(text)?;
        bench.service.start().map_err(text)?;
        expect(bench.service.is_running().map_err(text)?, || "it does not run".to_owned())?;
        // Messages of one round find their receives in the next.
        let more = entries(10 * round..10 * round + 10, round % 2 == 0)?;
        let statuses = bench.post(&more, true, false, 2)?;
        expect(statuses == [DONE; 10], || format!("{statuses:?}"))?;
        let twin = entries(10 * (round ^ 1)..10 * (round ^ 1) + 10, round % 2 == 0)?;
        all.messages.extend(more.messages);
        all.receives.extend(more.receives);
        if round % 2 == 1 {
            bench.service.post(&bench.stream, &twin.receives).map_err(text)?;
            bench.stream.synchronize().map_err(text)?;
            all.receives.extend(twin.receives);
        }
        let end = bench.service.stop().map_err(text)?;
        expect(end == Some(End::Stopped), || format!("{end:?}"))?;
        expect(bench.service.stop() == Ok(None), || "it stopped twice".to_owned())?;
        let late = bench.post(&entries(90..93, true)?, true, false, 2)?;
        expect(late == [STOPPED; 3], || format!("after the stop: {late:?}"))?;
        let waits = bench.wait_for(Kind::Receives, 99, Duration::from_secs(20))?;
        expect(waits == STOPPED, || format!("a wait at a stopped service: {waits}"))?;
        all.messages.sort_by_key(|message| message.1);
        all.receives.sort_by_key(|receive| receive.1);
        let pairs = matched(&bench.service, Kind::Receives)?;
        verify(Semantics::MPI, &all.messages, &all.receives, &pairs)
            .map_err(|fault| format!("round {round}: {fault}"))?;
    }
    Ok(())
}

fn overflows(on: &OnTier) -> Verdict {
    let queues = Queues { communicators: 1, partitions: 1, capacity: 4 };
    let options = ServiceOptions { handles: 200, ..ServiceOptions::new(queues) };
    let mut bench = Bench::new(on, Semantics::MPI, options)?;
    bench.service.start().map_err(text)?;
    let all = entries(0..100, true)?;
    let mut accepted = Queue::default();
    // Some are taken from the ring while others are posted. In the end list and ring are full.
    for _ in 0..20 {
        let statuses = bench.post(&all, true, false, 2)?;
        for (message, status) in all.messages.iter().zip(&statuses) {
            if *status == DONE {
                accepted.messages.push(*message);
            } else {
                expect(*status == FULL, || format!("status {status}"))?;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    expect(accepted.messages.len() == 8, || format!("{} of 8 messages were accepted", accepted.messages.len()))?;
    // The host's launch waits for a second, and says that it found no slot.
    let start = Instant::now();
    bench.service.arrive(&bench.stream, &[(Envelope::new(7, 7, 0).map_err(text)?, 150)]).map_err(text)?;
    bench.stream.synchronize().map_err(text)?;
    let outcome = bench.service.outcomes(Kind::Messages, 150..151).map_err(text)?;
    expect(outcome == [Outcome::Full], || format!("{outcome:?}"))?;
    expect(start.elapsed() < Duration::from_secs(5), || format!("it took {:?}", start.elapsed()))?;
    // Stopped and started, nothing is lost: receives still take all that were accepted, in their order.
    bench.service.stop().map_err(text)?;
    let waiting = bench.service.waiting(0).map_err(text)?.messages;
    let handles = |entries: Vec<u32>| entries;
    let expected = handles(accepted.messages.iter().map(|message| message.1).collect());
    let found = handles(waiting.iter().map(|entry| entry.1).collect());
    expect(found == expected, || format!("expected messages {expected:?}, found {found:?}"))?;
    bench.service.start().map_err(text)?;
    let any = Pattern::new(None, None, 0).map_err(text)?;
    let receives = Queue { messages: Vec::new(), receives: (0..8).map(|handle| (any, handle)).collect() };
    let statuses = bench.post(&receives, true, true, 2)?;
    expect(statuses == [DONE; 8], || format!("{statuses:?}"))?;
    bench.service.stop().map_err(text)?;
    let outcomes = bench.service.outcomes(Kind::Receives, 0..8).map_err(text)?;
    let expected: Vec<Outcome> = expected.into_iter().map(Outcome::Matched).collect();
    Ok(expect(outcomes == expected, || format!("expected {expected:?}, found {outcomes:?}"))?)
}

fn bad_input(on: &OnTier) -> Verdict {
    let semantics = Semantics::MPI.without_source_wildcard();
    let queues = Queues { communicators: 2, partitions: 2, capacity: 64 };
    let mut bench = Bench::new(on, semantics, ServiceOptions { handles: 10, ..ServiceOptions::new(queues) })?;
    bench.service.start().map_err(text)?;
    let any = 1 << 31;
    // Source, tag, communicator, handle: messages, then receives.
    let messages = [[any, 0, 0, 0], [0, any, 0, 0], [0, u32::MAX, 0, 0], [0, 0, 2, 0], [0, 0, 0, 10]];
    let receives = [[any, 0, 0, 0], [any + 1, 0, 0, 0], [0, any + 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, u32::MAX]];
    let numbers: Vec<u32> = messages.into_iter().chain(receives).flatten().collect();
    let statuses = bench.post_numbers(&numbers, messages.len(), true, false, 2)?;
    expect(statuses == [3, 3, 3, 4, 5, 6, 3, 3, 4, 5], || format!("{statuses:?}"))?;
    let one = |source, tag, communicator| Pattern::new(source, tag, communicator).map_err(text);
    for (receive, error) in [
        ((one(None, Some(1), 0)?, 1), MatchError::Wildcard { wildcard: "MPI_ANY_SOURCE", semantics }),
        ((one(Some(1), Some(1), 2)?, 1), MatchError::Communicator { communicators: 2, found: 2 }),
        ((one(Some(1), Some(1), 0)?, 10), MatchError::Handle { handles: 10, found: 10 }),
    ] {
        let refused = bench.service.post(&bench.stream, &[receive]);
        expect(refused == Err(error.clone()), || format!("expected {error}, found {refused:?}"))?;
    }
    let refused = bench.service.outcomes(Kind::Messages, 5..11);
    expect(refused == Err(MatchError::Handle { handles: 10, found: 10 }), || format!("{refused:?}"))?;
    let running = bench.service.waiting(0);
    expect(running == Err(MatchError::Running), || format!("{running:?}"))?;
    let late = bench.wait_for(Kind::Messages, 3, Duration::from_millis(20))?;
    expect(late == PENDING, || format!("a wait for nothing: {late}"))?;
    bench.service.stop().map_err(text)?;
    for queue in 0..4 {
        let waiting = bench.service.waiting(queue).map_err(text)?;
        expect(waiting == dtc_matching::Waiting::default(), || format!("queue {queue}: {waiting:?}"))?;
    }
    let beyond = bench.service.waiting(4);
    Ok(expect(matches!(beyond, Err(MatchError::Size { what: "queue", .. })), || format!("{beyond:?}"))?)
}

/// Without work it ends, and says so to those who come later. Renewed or with work it does not.
fn ends_idle(on: &OnTier) -> Verdict {
    let idle = Duration::from_millis(400);
    let options = ServiceOptions { idle, handles: 100, ..ServiceOptions::new(ONE_QUEUE) };
    let mut bench = Bench::new(on, Semantics::MPI, options)?;
    bench.service.start().map_err(text)?;
    for round in 0..8 {
        std::thread::sleep(idle / 2);
        expect(bench.service.is_running().map_err(text)?, || format!("it ended in round {round}"))?;
        if round % 2 == 0 {
            bench.service.renew().map_err(text)?;
        } else {
            bench.post(&entries(round..round + 1, true)?, true, false, 2)?;
        }
    }
    let start = Instant::now();
    while bench.service.is_running().map_err(text)? {
        expect(start.elapsed() < 10 * idle, || "it never ended".to_owned())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    expect(start.elapsed() > idle / 4, || format!("it ended after {:?}", start.elapsed()))?;
    let late = bench.post(&entries(90..91, true)?, true, false, 2)?;
    expect(late == [STOPPED], || format!("{late:?}"))?;
    let end = bench.service.stop().map_err(text)?;
    expect(end == Some(End::Idle), || format!("{end:?}"))?;
    let waiting = bench.service.waiting(0).map_err(text)?.messages.len();
    expect(waiting == 4, || format!("{waiting} of 4 messages wait"))?;
    // It starts again, and freeing memory waits no longer than until it ends.
    bench.service.start().map_err(text)?;
    let buffer = DeviceBuffer::new(on.gpu.device(), 1 << 20).map_err(text)?;
    drop(buffer);
    bench.service.stop().map_err(text)?;
    Ok(())
}

/// A kernel on many multiprocessors runs beside it, and it matches beside that.
fn beside_others(on: &OnTier) -> Verdict {
    let mut bench = Bench::new(on, Semantics::MPI, ServiceOptions { handles: 1000, ..ServiceOptions::new(ONE_QUEUE) })?;
    // Its code is loaded before the service runs, and unloaded when that has ended: either would wait for it. Half of the
    // multiprocessors are left to others.
    let blocks = on.gpu.device().info().multiprocessors / 2;
    let spinner = Spinner::start(&on.gpu, blocks, StreamKind::NonBlocking)?;
    bench.service.start().map_err(text)?;
    let drawn = Queue::draw(Semantics::MPI, &Shape::random(1000), 5, [0, 0]);
    let statuses = bench.post(&drawn, true, true, 2)?;
    expect(statuses.iter().all(|status| *status == DONE), || "entries were refused".to_owned())?;
    let last = drawn.receives.len() as u32 - 1;
    for handle in [0, last / 2, last] {
        let status = bench.wait_for(Kind::Receives, handle, Duration::from_secs(5))?;
        expect(status == DONE, || format!("receive {handle}: {status}"))?;
    }
    bench.check(&drawn)?;
    Ok(spinner.finish()?)
}

/// Posts and a wait are replayed; outcomes are forgotten when their handles are posted again.
fn captured(on: &OnTier) -> Verdict {
    let mut bench = Bench::new(on, Semantics::MPI, ServiceOptions { handles: 1000, ..ServiceOptions::new(ONE_QUEUE) })?;
    let drawn = Queue::draw(Semantics::MPI, &Shape::random(500), 6, [0, 0]);
    bench.service.start().map_err(text)?;
    bench.stream.begin_capture(CaptureMode::Global).map_err(text)?;
    bench.service.post(&bench.stream, &drawn.receives).map_err(text)?;
    bench.service.arrive(&bench.stream, &drawn.messages).map_err(text)?;
    for handle in 0..500 {
        bench.service.wait(&bench.stream, Kind::Receives, handle, Duration::from_secs(5)).map_err(text)?;
    }
    let executable = bench.stream.end_capture().map_err(text)?.instantiate().map_err(text)?;
    for replay in 0..3 {
        executable.launch(&bench.stream).map_err(text)?;
        bench.stream.synchronize().map_err(text)?;
        let pairs = matched(&bench.service, Kind::Receives)?;
        verify(Semantics::MPI, &drawn.messages, &drawn.receives, &pairs)
            .map_err(|fault| format!("replay {replay}: {fault}"))?;
    }
    bench.check(&drawn)?;
    executable.launch(&bench.stream).map_err(text)?;
    bench.stream.synchronize().map_err(text)?;
    let outcomes = bench.service.outcomes(Kind::Receives, 0..500).map_err(text)?;
    Ok(expect(outcomes.iter().all(|outcome| *outcome == Outcome::Stopped), || "a replay after the stop".to_owned())?)
}

fn abandoned(on: &OnTier) -> Verdict {
    let mut bench = Bench::new(on, Semantics::MPI, ServiceOptions { handles: 100, ..ServiceOptions::new(ONE_QUEUE) })?;
    bench.service.start().map_err(text)?;
    let status = bench.status(1, &mut Vec::new())?;
    expect(status == DONE, || format!("{status}"))?;
    // What is behind the slot is not taken, and not lost.
    let behind = bench.post(&entries(5..8, true)?, true, false, 2)?;
    expect(behind == [DONE; 3], || format!("{behind:?}"))?;
    let start = Instant::now();
    let stopped = bench.service.stop();
    expect(stopped == Err(MatchError::Abandoned { blocks: 1 }), || format!("{stopped:?}"))?;
    expect(start.elapsed() < Duration::from_secs(10), || format!("it took {:?}", start.elapsed()))?;
    let waiting: Vec<u32> = bench.service.waiting(0).map_err(text)?.messages.iter().map(|entry| entry.1).collect();
    Ok(expect(waiting == [5, 6, 7], || format!("{waiting:?}"))?)
}
