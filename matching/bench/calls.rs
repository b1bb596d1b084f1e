//! Messages matched to receives: pairs per second for each [`Semantics`], over lengths and shapes, beside the sequential matcher on the
//! host. The pairs of every case are compared with those of the sequential matcher.

use dtc_matching::workload::{Order, Shape};
use dtc_matching::{
    Envelope, MatchError, Matcher, Pattern, Queues, Semantics, SequentialMatcher, Wildcards, expected_pairs, verify,
};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::bench::table::table;
use dtc_measure::device::copy;
use dtc_measure::failure::Failure;
use dtc_measure::timing::median;
use dtc_runtime::cuda::{CaptureMode, Device, DeviceBuffer, Event, Stream};
use serde_json::{Value, json};
use std::ffi::c_void;
use std::io::Write;
use std::time::Instant;

/// Entries of a queue, or of all queues of a communicator.
const LENGTHS: [u32; 13] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// The longest lists that have a kernel for short ones.
const SHORT: u32 = 256;

/// Calls in a row, each on queues of its own.
const ROW: usize = 16;

/// Calls of more than this are made alone, in milliseconds.
const LONG_MS: f64 = 5.0;

/// The longest list that the sequential matcher is measured with where most of it has to be searched: minutes, beyond.
const LONGEST_SEARCH: u32 = 16384;

/// How the queues are laid out.
#[derive(Clone, Copy, PartialEq)]
struct Layout {
    communicators: u32,
    partitions: u32,
}

/// The name of the sequential matcher's figures.
const SEQUENTIAL: &str = "sequential, on the host";

/// A case that was measured.
pub struct Figure {
    semantics: String,
    shape: &'static str,
    /// Queues that are matched in one call, and the messages of all of them.
    queues: u32,
    messages: u32,
    pairs: u32,
    /// Microseconds of a call: of several in a row, of one alone, and of several in a graph.
    in_a_row: f64,
    alone: Option<f64>,
    in_a_graph: Option<f64>,
}

impl Figure {
    /// Millions of pairs per second.
    fn rate(&self) -> f64 {
        f64::from(self.pairs) / self.in_a_row
    }

    pub fn to_json(&self) -> Value {
        let rounded = |time: f64| (time * 1e3).round() / 1e3;
        json!({
            "peer": self.semantics,
            "case": self.shape,
            "queues": self.queues,
            "messages": self.messages,
            "pairs": self.pairs,
            "us": rounded(self.in_a_row),
            "alone_us": self.alone.map(rounded),
            "graph_us": self.in_a_graph.map(rounded),
            "million_pairs_per_s": rounded(self.rate()),
        })
    }
}

/// The shapes: random tuples as in the paper's benchmarks, and what it names as adverse.
fn shapes(length: u32) -> [(&'static str, Shape); 11] {
    let random = Shape::random(length);
    let wildcards = Shape { any_source: 0.125, any_tag: 0.125, peers: 64, tags: 64, ..random };
    [
        ("random", random),
        ("reversed", Shape { order: Order::Reversed, ..random }),
        ("same order", Shape { order: Order::Same, ..random }),
        ("few tuples", Shape { peers: 16, tags: 2, ..random }),
        ("half unmatched", Shape { unmatched: 0.5, ..random }),
        ("wildcards", wildcards),
        ("wildcards, few tuples", Shape { peers: 16, tags: 2, ..wildcards }),
        ("wildcards, many tuples", Shape { any_source: 0.125, any_tag: 0.125, ..random }),
        ("wildcards, half unmatched", Shape { unmatched: 0.5, ..wildcards }),
        ("one tag, half of any source", Shape { any_source: 0.5, tags: 1, ..random }),
        ("one tuple, half of each wildcard", Shape { any_source: 0.5, any_tag: 0.5, peers: 1, tags: 1, ..random }),
    ]
}

/// The shape where these guarantees allow it.
fn allowed(semantics: Semantics, shape: Shape) -> Option<Shape> {
    let shape = match semantics.wildcards() {
        Wildcards::SourceAndTag => shape,
        Wildcards::Tag | Wildcards::None if shape.any_source > 0.0 && shape.any_tag == 0.0 => return None,
        Wildcards::Tag => Shape { any_source: 0.0, ..shape },
        Wildcards::None if shape.any_tag > 0.0 => return None,
        Wildcards::None => Shape { any_source: 0.0, ..shape },
    };
    (semantics.unexpected() || shape.unmatched == 0.0).then_some(shape)
}

/// The layouts that are measured.
fn layouts(semantics: Semantics) -> Vec<Layout> {
    let mut layouts = vec![Layout { communicators: 1, partitions: 1 }];
    if semantics.wildcards() != Wildcards::SourceAndTag {
        layouts.push(Layout { communicators: 1, partitions: 16 });
    }
    // Each communicator has queues of the full length.
    layouts.push(Layout { communicators: 32, partitions: 1 });
    layouts
}

/// An error of matching as one of the benchmark.
pub fn refused(error: MatchError) -> Failure {
    match error {
        MatchError::Cuda(error) => error.into(),
        error => Failure::Data(error.to_string()),
    }
}

/// Measures the cases whose names contain `only`.
pub fn measure(arena: &Arena, rounds: usize, only: &str, tell: impl Fn(&str)) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for length in LENGTHS {
        for (name, shape) in shapes(length) {
            let title = format!("sequential, {name}, {length}");
            let searches = shape.order != Order::Same;
            if title.contains(only) && (length <= LONGEST_SEARCH || !searches) {
                tell(&title);
                figures.push(sequential(name, &shape));
            }
        }
    }
    if "a launch without work".contains(only) {
        figures.extend(idle_launches(arena, rounds)?);
    }
    for semantics in Semantics::all() {
        let kernels = [SHORT, SHORT + 1].map(|capacity| {
            let queues = Queues { communicators: 1, partitions: 1, capacity };
            Matcher::new(&arena.gpu, semantics, false, queues).map_err(refused)
        });
        let [short, long] = kernels;
        let kernels = [short?, long?];
        for layout in layouts(semantics) {
            let queues = layout.communicators * layout.partitions;
            for length in LENGTHS {
                for (name, shape) in shapes(length) {
                    let title = format!("{semantics}, {name}, {queues} queues, {length}");
                    let Some(shape) = allowed(semantics, shape) else { continue };
                    if length < layout.partitions || !title.contains(only) || large(layout, name, length) {
                        continue;
                    }
                    tell(&title);
                    let figure = on_device(arena, &kernels, layout, name, shape, rounds);
                    figures.push(figure.map_err(|failure| match failure {
                        Failure::Data(text) => Failure::Data(format!("{title}: {text}")),
                        other => other,
                    })?);
                }
            }
        }
    }
    Ok(figures)
}

/// Cases that would take minutes and say nothing new: several communicators beyond the random tuples, and long queues with wildcards in
/// other shapes than the first, whose pairs the sequential matcher finds slowly.
fn large(layout: Layout, name: &str, length: u32) -> bool {
    let communicators = layout.communicators > 1 && (name != "random" || length > 8192);
    let long = length > LONGEST_SEARCH && name != "wildcards";
    communicators || (long && (name.contains("wildcard") || name.contains("any source")))
}

type Entries = (Vec<(Envelope, u32)>, Vec<(Pattern, u32)>);

/// Messages and receives of each communicator.
fn draw(communicators: u32, shape: &Shape) -> Entries {
    let whole = Shape { communicators, length: shape.length * communicators, ..*shape };
    let workload = whole.draw(u64::from(shape.length));
    (workload.messages.into_iter().zip(0..).collect(), workload.receives.into_iter().zip(1 << 30..).collect())
}

/// The sequential matcher: all receives are posted before the first message comes.
fn sequential(name: &'static str, shape: &Shape) -> Figure {
    let (messages, receives) = draw(1, shape);
    let least = if shape.length <= 1024 { 21 } else { 1 };
    let mut times = Vec::new();
    let mut pairs = 0;
    for _ in 0..least {
        let mut matcher = SequentialMatcher::default();
        let start = Instant::now();
        for (pattern, handle) in &receives {
            matcher.post(*pattern, *handle);
        }
        pairs = messages.iter().filter(|(envelope, handle)| matcher.arrive(*envelope, *handle).is_some()).count();
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    Figure {
        semantics: SEQUENTIAL.to_owned(),
        shape: name,
        queues: 1,
        messages: shape.length,
        pairs: pairs as u32,
        in_a_row: median(&times),
        alone: None,
        in_a_graph: None,
    }
}

/// Times of work on a stream.
struct Clock {
    stream: Stream,
    start: Event,
    end: Event,
}

impl Clock {
    fn new(device: &Device) -> Result<Clock, Failure> {
        Ok(Clock { stream: Stream::new(device)?, start: Event::timed(device)?, end: Event::timed(device)? })
    }

    /// Microseconds of what `work` enqueues.
    fn time(&self, work: impl FnOnce(&Stream) -> Result<(), Failure>) -> Result<f64, Failure> {
        self.start.record(&self.stream)?;
        work(&self.stream)?;
        self.end.record(&self.stream)?;
        self.stream.synchronize()?;
        Ok(f64::from(self.start.elapsed_ms(&self.end)?) * 1e3)
    }

    /// The median time of a call of several in a row and in a graph, which begin with `restore`.
    fn rows(
        &self,
        rounds: usize,
        restore: impl Fn() -> Result<(), Failure>,
        calls: impl Fn(&Stream) -> Result<(), Failure>,
    ) -> Result<[f64; 2], Failure> {
        self.stream.begin_capture(CaptureMode::ThreadLocal)?;
        let captured = calls(&self.stream);
        let graph = self.stream.end_capture()?;
        captured?;
        let graph = graph.instantiate()?;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            restore()?;
            times[1].push(self.time(|stream| Ok(graph.launch(stream)?))? / ROW as f64);
            restore()?;
            times[0].push(self.time(&calls)? / ROW as f64);
        }
        Ok(times.map(|times| median(&times)))
    }
}

/// A kernel with the parameters, the threads and the shared memory of one that matches, which does nothing.
const IDLE: &str = r#"
extern "C" __global__ void __launch_bounds__(1024)
idle(unsigned char *memory, unsigned char *, const unsigned char *, unsigned long long capacity, unsigned long long)
{
    __shared__ unsigned char shared[47 * 1024];
    if (capacity == 0) {
        shared[threadIdx.x] = memory[threadIdx.x];
        __syncthreads();
        memory[threadIdx.x] = shared[threadIdx.x ^ 1];
    }
}
"#;

/// What launches take, which every call has to.
fn idle_launches(arena: &Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let device = arena.gpu.device();
    let clock = Clock::new(device)?;
    let memory = DeviceBuffer::new(device, 1024)?;
    let kernels = arena.gpu.compile(IDLE, &["idle"])?;
    let launches = |queues: u32, count: usize, stream: &Stream| {
        let (mut address, mut unused, mut capacity) = (memory.address(), 0_u64, 1_u64);
        let mut parameters: [*mut c_void; 5] = [
            (&raw mut address).cast(),
            (&raw mut unused).cast(),
            (&raw mut unused).cast(),
            (&raw mut capacity).cast(),
            (&raw mut unused).cast(),
        ];
        for _ in 0..count {
            #[expect(unsafe_code, reason = "launches the kernel of this file")]
            // SAFETY: the kernel has five parameters of 8 bytes; with a capacity of 1 it touches no memory.
            unsafe {
                kernels[0].launch(stream, [queues, 1, 1], [1024, 1, 1], 0, &mut parameters)?;
            }
        }
        Ok(())
    };
    [1, 16, 32]
        .map(|queues| {
            let alone = (0..rounds).map(|_| clock.time(|stream| launches(queues, 1, stream)));
            let alone = alone.collect::<Result<Vec<f64>, Failure>>()?;
            let [in_a_row, in_a_graph] = clock.rows(rounds, || Ok(()), |stream| launches(queues, ROW, stream))?;
            let (messages, pairs) = (0, 0);
            Ok(Figure {
                semantics: "a launch without work".to_owned(),
                shape: "nothing",
                queues,
                messages,
                pairs,
                in_a_row,
                alone: Some(median(&alone)),
                in_a_graph: Some(in_a_graph),
            })
        })
        .into_iter()
        .collect()
}

fn on_device(
    arena: &Arena,
    kernels: &[Matcher; 2],
    layout: Layout,
    name: &'static str,
    shape: Shape,
    rounds: usize,
) -> Result<Figure, Failure> {
    let device = arena.gpu.device();
    let Layout { communicators, partitions } = layout;
    let (mut messages, receives) = draw(communicators, &shape);
    let semantics = kernels[0].semantics();
    if !semantics.unexpected() {
        let pairs = expected_pairs(&messages, &receives);
        let taken: std::collections::HashSet<u32> = pairs.into_iter().map(|(_, message)| message).collect();
        messages.retain(|(_, handle)| taken.contains(handle));
    }
    // The longest list of all queues.
    let mut lengths = vec![0; (communicators * partitions) as usize];
    let mut others = lengths.clone();
    let queue = |communicator: u32, source: u32| (communicator * partitions + source % partitions) as usize;
    messages.iter().for_each(|(envelope, _)| lengths[queue(envelope.communicator(), envelope.source())] += 1);
    receives.iter().for_each(|(pattern, _)| others[queue(pattern.communicator(), pattern.source().unwrap_or(0))] += 1);
    let capacity = lengths.iter().chain(&others).max().copied().unwrap_or(1).max(1);
    let queues = Queues { communicators, partitions, capacity };
    let kernel = &kernels[usize::from(capacity > SHORT)];

    let clock = Clock::new(device)?;
    let stream = &clock.stream;
    let mut first = kernel.another(queues).map_err(refused)?;
    first.post(stream, &receives).map_err(refused)?;
    first.arrive(stream, &messages).map_err(refused)?;
    let bytes = first.memory().len() as u64;
    let pristine = DeviceBuffer::new(device, first.memory().len())?;
    copy(stream, &pristine, 0, first.memory(), 0, bytes)?;
    let restore = |matcher: &Matcher| copy(stream, matcher.memory(), 0, &pristine, 0, bytes);
    let call = || {
        restore(&first)?;
        clock.time(|stream| first.enqueue(stream).map_err(refused))
    };
    call()?;
    let pairs = first.pairs(stream).map_err(refused)?;
    verify(semantics, &messages, &receives, &pairs).map_err(Failure::Data)?;
    let long = call()? > LONG_MS * 1e3;
    let rounds = if long { 2 } else { rounds };
    let alone = (0..rounds).map(|_| call()).collect::<Result<Vec<f64>, Failure>>()?;
    let (in_a_row, in_a_graph) = if long {
        (median(&alone), None)
    } else {
        let row = (0..ROW).map(|_| kernel.another(queues).map_err(refused)).collect::<Result<Vec<_>, Failure>>()?;
        let [in_a_row, in_a_graph] = clock.rows(
            rounds,
            || Ok(row.iter().try_for_each(restore)?),
            |stream| row.iter().try_for_each(|matcher| matcher.enqueue(stream).map_err(refused)),
        )?;
        // The last one is that of a call, too.
        let again = row[ROW - 1].pairs(stream).map_err(refused)?;
        if again != pairs && semantics.ordering() {
            return Err(Failure::Data("expected the pairs of the first call, found others".to_owned()));
        }
        (in_a_row, Some(in_a_graph))
    };
    Ok(Figure {
        semantics: semantics.to_string(),
        shape: name,
        queues: communicators * partitions,
        messages: messages.len() as u32,
        pairs: pairs.len() as u32,
        in_a_row,
        alone: Some(median(&alone)),
        in_a_graph,
    })
}

/// The length from which on a kernel takes less time in one call than the sequential matcher, on a line between the lengths that were measured.
fn break_even(figures: &[Figure], semantics: &str, shape: &str) -> Option<f64> {
    let of = |peer: &str| {
        let mine = |figure: &&Figure| figure.semantics == peer && figure.shape == shape && figure.queues == 1;
        figures.iter().filter(mine).collect::<Vec<_>>()
    };
    let (host, device) = (of(SEQUENTIAL), of(semantics));
    let gain = |(host, device): (&&Figure, &&Figure)| {
        Some((f64::from(host.messages).log2(), (host.in_a_row / device.alone?).log2()))
    };
    let gains = host.iter().zip(&device).map(gain).collect::<Option<Vec<_>>>()?;
    let crossed = gains.windows(2).find(|pair| pair[0].1 <= 0.0 && pair[1].1 > 0.0)?;
    let [(left, low), (right, high)] = [crossed[0], crossed[1]];
    Some((left + (right - left) * low / (low - high)).exp2())
}

/// Prints the figures, one table for each of the guarantees.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    let time = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.2}"));
    for part in figures.chunk_by(|one, other| one.semantics == other.semantics) {
        writeln!(
            out,
            "\n{}: microseconds of a call, in a row, alone and in a graph, and millions of pairs per second",
            part[0].semantics
        )?;
        let mut rows = table(&["shape", "queues", "messages", "pairs", "us", "alone", "graph", "M/s"]);
        for figure in part {
            rows.add_row([
                figure.shape.to_owned(),
                figure.queues.to_string(),
                figure.messages.to_string(),
                figure.pairs.to_string(),
                format!("{:.2}", figure.in_a_row),
                time(figure.alone),
                time(figure.in_a_graph),
                format!("{:.2}", figure.rate()),
            ]);
        }
        writeln!(out, "{rows}")?;
        for (shape, _) in shapes(1) {
            if let Some(length) = break_even(figures, &part[0].semantics, shape) {
                writeln!(out, "{shape}: one call takes less than the sequential matcher from {length:.0} messages on")?;
            }
        }
    }
    Ok(())
}
