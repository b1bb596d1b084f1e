//! The matching service: how long a match takes from a kernel's post to the outcome that it sees, and how many entries a second threads
//! post and have matched.

use super::calls::refused;
use dtc_matching::port::{HEADER, Kind, Port};
use dtc_matching::{Outcome, Queues, Semantics, Service, ServiceOptions};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::bench::table::table;
use dtc_measure::failure::Failure;
use dtc_measure::timing::median;
use dtc_runtime::cuda::{DeviceBuffer, Event, Function, Stream};
use serde_json::{Value, json};
use std::ffi::c_void;
use std::io::Write;

/// One thread posts the one side, pauses, posts the other, and waits for its outcome; and many threads post both sides and wait.
const KERNELS: &str = r#"
extern "C" __global__ void __launch_bounds__(1)
ping(dtc_matching_port port, unsigned count, unsigned late, unsigned long long pause, unsigned *ticks, unsigned *wrong)
{
    for (unsigned at = 0; at < count; at++) {
        int status = late ? dtc_matching_send(port, 5, at % 1000, 0, at)
                          : dtc_matching_receive(port, at % 3 ? 5 : DTC_MATCHING_ANY, at % 1000, 0, at);
        *wrong += status != DTC_MATCHING_DONE;
        const unsigned long long now = dtc_matching_now();
        while (dtc_matching_now() - now < pause)
            ;
        const long long start = clock64();
        status = late ? dtc_matching_receive(port, 5, at % 1000, 0, at) : dtc_matching_send(port, 5, at % 1000, 0, at);
        unsigned outcome = 0;
        const unsigned *const place = dtc_matching_outcome_of(port, late ? DTC_MATCHING_MESSAGES : DTC_MATCHING_RECEIVES, at);
        for (unsigned turn = 0; outcome == 0 && turn < 10000000; turn++)
            outcome = dtc_matching_load(place);
        ticks[at] = (unsigned)(clock64() - start);
        *wrong += status != DTC_MATCHING_DONE || outcome != (DTC_MATCHING_MATCHED | at);
    }
}

extern "C" __global__ void __launch_bounds__(1) clock_rate(unsigned long long *rate)
{
    const unsigned long long now = dtc_matching_now();
    const long long start = clock64();
    while (dtc_matching_now() - now < 2000000)
        ;
    rate[0] = (unsigned long long)(clock64() - start);
    rate[1] = dtc_matching_now() - now;
}

extern "C" __global__ void __launch_bounds__(256) flood(dtc_matching_port port, unsigned count, unsigned queues)
{
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count)
        return;
    while (dtc_matching_receive(port, at % 64, at / 64 / queues, at / 64 % queues, at) == DTC_MATCHING_FULL)
        __nanosleep(500);
    while (dtc_matching_send(port, at % 64, at / 64 / queues, at / 64 % queues, at) == DTC_MATCHING_FULL)
        __nanosleep(500);
    unsigned other;
    dtc_matching_wait(port, DTC_MATCHING_RECEIVES, at, 5000000000, &other);
}
"#;

/// Matches of a latency.
const COUNT: u32 = 2000;

/// A latency, or a rate.
pub enum Figure {
    /// Nanoseconds from a post to its outcome.
    Latency { what: String, least: f64, median: f64, most: f64 },
    /// Entries of each side, and microseconds from the launch that posts them to the end of their waits.
    Rate { what: String, count: u32, us: f64 },
}

impl Figure {
    pub fn to_json(&self) -> Value {
        let rounded = |number: f64| (number * 1e3).round() / 1e3;
        match self {
            Figure::Latency { what, least, median, most } => json!({
                "peer": "matching service", "case": what, "least_ns": least.round(), "median_ns": median.round(), "p99_ns": most.round(),
            }),
            Figure::Rate { what, count, us } => json!({
                "peer": "matching service", "case": what, "pairs": count, "us": rounded(*us),
                "million_pairs_per_s": rounded(f64::from(*count) / us),
            }),
        }
    }
}

/// The service with the kernels of the benchmark.
struct Bench {
    service: Service,
    stream: Stream,
    ping: Function,
    rate: Function,
    flood: Function,
    /// Allocated before the service runs, for freeing would wait for it.
    words: DeviceBuffer,
}

impl Bench {
    fn new(arena: &Arena, options: ServiceOptions) -> Result<Bench, Failure> {
        let names = ["ping", "clock_rate", "flood"];
        let functions = arena.gpu.compile(&format!("{HEADER}{KERNELS}"), &names)?;
        let missing = |_| Failure::Data("expected three kernels".to_owned());
        let [ping, rate, flood] = <[Function; 3]>::try_from(functions).map_err(missing)?;
        let mut words = DeviceBuffer::new(arena.gpu.device(), 4 * (COUNT as usize + 16))?;
        words.fill(0)?;
        let service = Service::new(&arena.gpu, Semantics::MPI, options).map_err(refused)?;
        Ok(Bench { service, stream: Stream::new(arena.gpu.device())?, ping, rate, flood, words })
    }

    fn launch(
        &self,
        function: &Function,
        blocks: u32,
        threads: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), Failure> {
        #[expect(unsafe_code, reason = "launches kernels of this file")]
        // SAFETY: the callers pass the parameters of the kernels above. `words` has a word for each match and 16 more, and goes after
        // the work of the device.
        unsafe {
            function.launch(&self.stream, [blocks, 1, 1], [threads, 1, 1], 0, parameters)?;
        }
        Ok(())
    }

    fn words(&self, count: usize) -> Result<Vec<u32>, Failure> {
        self.stream.synchronize()?;
        let mut bytes = vec![0; 4 * count];
        self.words.read(0, &mut bytes)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_ne_bytes(*bytes)).collect())
    }

    /// Ticks of a nanosecond.
    fn clock_rate(&self) -> Result<f64, Failure> {
        let mut words = self.words.address();
        self.launch(&self.rate, 1, 1, &mut [(&raw mut words).cast()])?;
        let words = self.words(4)?;
        Ok(f64::from(words[0]) / f64::from(words[2]))
    }

    /// Sorted nanoseconds of matches; the posts of one side come `pause_us` after those of the other.
    fn latencies(&self, late: bool, pause_us: u64) -> Result<Vec<f64>, Failure> {
        let rate = self.clock_rate()?;
        let (mut port, mut count): (Port, u32) = (self.service.port(), if pause_us > 1000 { 100 } else { COUNT });
        let (mut late, mut pause) = (u32::from(late), pause_us * 1000);
        let mut ticks = self.words.address();
        let mut wrong = ticks + 4 * u64::from(COUNT);
        let mut parameters: [*mut c_void; 6] = [
            (&raw mut port).cast(),
            (&raw mut count).cast(),
            (&raw mut late).cast(),
            (&raw mut pause).cast(),
            (&raw mut ticks).cast(),
            (&raw mut wrong).cast(),
        ];
        self.launch(&self.ping, 1, 1, &mut parameters)?;
        let words = self.words(COUNT as usize + 1)?;
        if words[COUNT as usize] != 0 {
            return Err(Failure::Data(format!("expected {count} matches, found {} wrong", words[COUNT as usize])));
        }
        let mut times: Vec<f64> = words[..count as usize].iter().map(|ticks| f64::from(*ticks) / rate).collect();
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}

/// Measures both.
pub fn measure(arena: &Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    let queues = Queues { communicators: 1, partitions: 1, capacity: 1024 };
    for system in [false, true] {
        let mut bench = Bench::new(arena, ServiceOptions { handles: COUNT, system, ..ServiceOptions::new(queues) })?;
        bench.service.start().map_err(refused)?;
        for (late, side) in [(false, "a message to a receive that waits"), (true, "a receive to a message that waits")]
        {
            for (pause_us, pause) in [(5, "5 us"), (100, "100 us"), (2000, "2 ms")] {
                bench.latencies(late, pause_us)?;
                let times = bench.latencies(late, pause_us)?;
                let scope = if system { ", for others than this GPU too" } else { "" };
                figures.push(Figure::Latency {
                    what: format!("{side}, {pause} later{scope}"),
                    least: times[0],
                    median: median(&times),
                    most: times[times.len() * 99 / 100],
                });
            }
        }
        bench.service.stop().map_err(refused)?;
    }
    for (communicators, blocks) in [(1, 1), (32, 8), (32, 32)] {
        for count in [1024_u32, 16384, 65536] {
            let queues = Queues { communicators, partitions: 1, capacity: count / communicators };
            let options = ServiceOptions { handles: count, blocks, ..ServiceOptions::new(queues) };
            let mut bench = Bench::new(arena, options)?;
            let (start, end) = (Event::timed(arena.gpu.device())?, Event::timed(arena.gpu.device())?);
            bench.service.start().map_err(refused)?;
            let mut times = Vec::new();
            for _ in 0..rounds.clamp(3, 21) {
                let (mut port, mut count, mut queues): (Port, u32, u32) = (bench.service.port(), count, communicators);
                let mut parameters: [*mut c_void; 3] =
                    [(&raw mut port).cast(), (&raw mut count).cast(), (&raw mut queues).cast()];
                start.record(&bench.stream)?;
                bench.launch(&bench.flood, count.div_ceil(256), 256, &mut parameters)?;
                end.record(&bench.stream)?;
                bench.stream.synchronize()?;
                times.push(f64::from(start.elapsed_ms(&end)?) * 1e3);
            }
            bench.service.stop().map_err(refused)?;
            let outcomes = bench.service.outcomes(Kind::Receives, 0..count).map_err(refused)?;
            if !(0..).zip(&outcomes).all(|(handle, outcome)| *outcome == Outcome::Matched(handle)) {
                return Err(Failure::Data("expected each receive to have the message of its number".to_owned()));
            }
            let what = format!("{communicators} queues, {blocks} blocks");
            figures.push(Figure::Rate { what, count, us: median(&times) });
        }
    }
    Ok(figures)
}

/// Prints the figures.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\nThe service: nanoseconds from a kernel's post to the outcome that it sees")?;
    let mut latencies = table(&["what", "least", "median", "99 %"]);
    let mut rates = table(&["what", "pairs", "us", "M/s"]);
    for figure in figures {
        match figure {
            Figure::Latency { what, least, median, most } => {
                let times = [least, median, most].map(|time| format!("{time:.0}"));
                latencies.add_row([what.clone()].into_iter().chain(times));
            }
            Figure::Rate { what, count, us } => {
                let rate = f64::from(*count) / us;
                rates.add_row([what.clone(), count.to_string(), format!("{us:.1}"), format!("{rate:.1}")]);
            }
        }
    }
    writeln!(out, "{latencies}\n\nThreads post both sides and wait: microseconds with the launch\n{rates}")?;
    Ok(())
}
