//! The speed of each transfer path on a machine: the input of the choice between paths.

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::DeviceCopy;
use dtc_cuda::{DeviceInfo, Driver};
use dtc_store::{Key, Store};
use std::fmt::Write;

/// Lengths of runs, in bytes, that a [`PathCost`] has rates for.
pub(crate) const RUNS: [u64; 8] = [1, 4, 8, 16, 64, 256, 1024, 4096];

/// The first line of what is stored. Another number, and what an older dtc stored is not found.
const HEADER: &str = "dtc transfer model 3";

/// The cost of a path between two kinds of memory, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathCost {
    /// Microseconds of a call that moves next to nothing.
    pub(crate) latency_us: f64,
    /// Gigabytes of packed bytes per second of large calls, by the length of runs: [`RUNS`].
    pub(crate) rates: [f64; RUNS.len()],
}

impl PathCost {
    /// Gigabytes per second for runs of a mean length: a straight line over the logarithm between two measured lengths.
    pub(crate) fn rate(&self, run_bytes: u64) -> f64 {
        let run = run_bytes.clamp(RUNS[0], RUNS[RUNS.len() - 1]);
        let above = RUNS.partition_point(|&length| length < run);
        if above == 0 {
            return self.rates[0];
        }
        let (low, high) = (RUNS[above - 1] as f64, RUNS[above] as f64);
        let share = (run as f64 / low).ln() / (high / low).ln();
        self.rates[above - 1] + share * (self.rates[above] - self.rates[above - 1])
    }

    fn microseconds(&self, run_bytes: u64, bytes: u64) -> f64 {
        self.latency_us + bytes as f64 / (self.rate(run_bytes) * 1e3)
    }
}

/// A transfer path as it is measured: with the place of the elements, which the device may read across the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredPath {
    /// Elements on a device, packed bytes in pinned memory, by one kernel.
    OneShot,
    /// The same through memory of the device.
    Staged,
    /// Elements on a device, packed bytes in pageable memory.
    Ring,
    /// The same through memory of the device.
    StagedPageable,
    /// Elements in pinned memory, packed bytes on a device, by one kernel.
    Mapped,
    /// The same by the processor, through pinned buffers.
    HostPacked,
}

impl MeasuredPath {
    pub(crate) const ALL: [MeasuredPath; 6] = [
        MeasuredPath::OneShot,
        MeasuredPath::Staged,
        MeasuredPath::Ring,
        MeasuredPath::StagedPageable,
        MeasuredPath::Mapped,
        MeasuredPath::HostPacked,
    ];

    fn name(self) -> &'static str {
        match self {
            MeasuredPath::OneShot => "one-shot",
            MeasuredPath::Staged => "staged",
            MeasuredPath::Ring => "ring",
            MeasuredPath::StagedPageable => "staged-pageable",
            MeasuredPath::Mapped => "mapped",
            MeasuredPath::HostPacked => "host-packed",
        }
    }
}

/// What transfers cost on a machine.
///
/// The default is what an H200 on PCIe 5 was measured to have, beside one core of a Sapphire Rapids. `dtc calibrate`, or
/// [`Gpu::calibrate`](crate::Gpu::calibrate), measures the machine it runs on.
///
/// # Example
///
/// ```
/// use dtc_runtime::TransferModel;
/// let model = TransferModel::default();
/// assert_eq!(TransferModel::parse(&model.to_string()), Some(model));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TransferModel {
    /// By [`MeasuredPath::ALL`], then pack and unpack.
    lines: [[PathCost; 2]; MeasuredPath::ALL.len()],
    /// Gigabytes per second of copies of the driver out of the device: to pinned and to pageable memory; then into it.
    copies: [f64; 4],
    /// Copies within the device.
    device: DeviceCopy,
}

impl Default for TransferModel {
    fn default() -> TransferModel {
        let line = |latency_us, rates| PathCost { latency_us, rates };
        TransferModel {
            lines: [
                [
                    line(10.7, [46.8, 51.1, 50.7, 50.6, 50.8, 50.8, 51.1, 50.7]),
                    line(9.8, [43.9, 49.2, 49.6, 49.4, 49.3, 49.6, 49.3, 49.5]),
                ],
                [
                    line(14.1, [50.2, 50.6, 51.0, 51.2, 51.4, 51.5, 51.3, 51.5]),
                    line(14.0, [50.8, 50.7, 50.6, 51.4, 51.4, 50.9, 51.0, 51.1]),
                ],
                [line(11.1, [16.0; RUNS.len()]), line(13.4, [9.5; RUNS.len()])],
                [line(22.0, [17.0; RUNS.len()]), line(22.0, [10.5; RUNS.len()])],
                [
                    line(11.2, [24.6, 25.1, 25.1, 25.1, 37.5, 49.5, 49.6, 49.5]),
                    line(10.4, [2.0, 2.0, 4.0, 7.9, 43.9, 51.0, 50.9, 50.8]),
                ],
                [
                    line(9.7, [7.1, 7.5, 7.4, 7.3, 7.3, 9.4, 9.6, 10.6]),
                    line(10.3, [6.5, 6.7, 6.8, 6.8, 7.2, 10.4, 10.5, 11.0]),
                ],
            ],
            copies: [53.7, 18.0, 53.7, 11.0],
            device: DeviceCopy::default(),
        }
    }
}

impl TransferModel {
    pub(crate) fn new(
        lines: [[PathCost; 2]; MeasuredPath::ALL.len()],
        copies: [f64; 4],
        device: DeviceCopy,
    ) -> TransferModel {
        TransferModel { lines, copies, device }
    }

    pub(crate) fn line(&self, path: MeasuredPath, direction: Direction) -> &PathCost {
        &self.lines[path as usize][direction as usize]
    }

    pub(crate) fn microseconds(&self, path: MeasuredPath, direction: Direction, run_bytes: u64, bytes: u64) -> f64 {
        self.line(path, direction).microseconds(run_bytes, bytes)
    }

    /// What [`TransferModel::to_string`](ToString::to_string) wrote; nothing if it is not whole.
    ///
    /// ```
    /// use dtc_runtime::TransferModel;
    /// assert_eq!(TransferModel::parse("one-shot pack 9"), None);
    /// ```
    pub fn parse(text: &str) -> Option<TransferModel> {
        let mut lines = text.lines();
        if lines.next()? != HEADER {
            return None;
        }
        fn numbers<const N: usize>(line: &str, name: &str) -> Option<[f64; N]> {
            let rest = line.strip_prefix(name)?;
            let parse = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
            let found: Option<Vec<f64>> = rest.split_whitespace().map(parse).collect();
            found?.try_into().ok()
        }
        let mut model = TransferModel::default();
        for path in MeasuredPath::ALL {
            for direction in [Direction::Pack, Direction::Unpack] {
                let name = format!("{} {direction}", path.name());
                let [latency_us, rates @ ..] = numbers::<{ 1 + RUNS.len() }>(lines.next()?, &name)?;
                model.lines[path as usize][direction as usize] = PathCost { latency_us, rates };
            }
        }
        model.copies = numbers(lines.next()?, "copies")?;
        let [latency_us, gigabytes] = numbers(lines.next()?, "device copy")?;
        model.device = DeviceCopy { latency_us, gigabytes };
        lines.next().is_none().then_some(model)
    }

    /// The model that was stored for a device, if there is one. What is damaged is a warning of the store.
    ///
    /// ```
    /// use dtc_runtime::{TransferModel, cuda::Device, store::{Config, Store}};
    /// for info in Device::list().unwrap_or_default() {
    ///     assert_eq!(TransferModel::stored(&Store::open(Config::none()), &info), None);
    /// }
    /// ```
    pub fn stored(store: &Store, info: &DeviceInfo) -> Option<TransferModel> {
        TransferModel::parse(std::str::from_utf8(&store.get(&key(info))?).ok()?)
    }

    /// Keeps the model for a device; says whether that could be done.
    ///
    /// ```
    /// use dtc_runtime::{TransferModel, cuda::Device, store::{Config, Store}};
    /// for info in Device::list().unwrap_or_default() {
    ///     assert!(!TransferModel::default().store(&Store::open(Config::none()), &info));
    /// }
    /// ```
    pub fn store(&self, store: &Store, info: &DeviceInfo) -> bool {
        store.put(&key(info), self.to_string().as_bytes())
    }

    /// What copies of the driver reach, in gigabytes per second: out of the device into pinned and into pageable memory, then
    /// into the device.
    ///
    /// ```
    /// assert!(dtc_runtime::TransferModel::default().copies().iter().all(|&rate| rate > 0.0));
    /// ```
    pub fn copies(&self) -> [f64; 4] {
        self.copies
    }

    /// How fast the device copies its own memory: what the roofline of a type is reckoned by.
    ///
    /// ```
    /// assert!(dtc_runtime::TransferModel::default().device_copy().gigabytes > 0.0);
    /// ```
    pub fn device_copy(&self) -> DeviceCopy {
        self.device
    }
}

/// A device and a driver: after another driver was installed it is measured again.
fn key(info: &DeviceInfo) -> Key {
    let version = Driver::get().map_or_else(|_| String::new(), |driver| driver.version().to_string());
    Key::of(&[HEADER.as_bytes(), &info.uuid, version.as_bytes()])
}

impl std::fmt::Display for TransferModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = format!("{HEADER}\n");
        for path in MeasuredPath::ALL {
            for direction in [Direction::Pack, Direction::Unpack] {
                let PathCost { latency_us, rates } = self.line(path, direction);
                write!(text, "{} {direction} {latency_us:.2}", path.name())?;
                rates.iter().try_for_each(|rate| write!(text, " {rate:.3}"))?;
                text.push('\n');
            }
        }
        text.push_str("copies");
        self.copies.iter().try_for_each(|rate| write!(text, " {rate:.3}"))?;
        let DeviceCopy { latency_us, gigabytes } = self.device;
        write!(text, "\ndevice copy {latency_us:.3} {gigabytes:.3}\n")?;
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_between_measured_lengths_lie_between_theirs() {
        let line = PathCost { latency_us: 2.0, rates: [1.0, 2.0, 4.0, 8.0, 10.0, 20.0, 30.0, 40.0] };
        for (run, rate) in [(0, 1.0), (1, 1.0), (2, 1.5), (8, 4.0), (32, 9.0), (4096, 40.0), (u64::MAX, 40.0)] {
            assert!((line.rate(run) - rate).abs() < 1e-9, "{run}: {}", line.rate(run));
        }
        assert!((line.microseconds(8, 8000) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_whole_is_not_believed() {
        let text = TransferModel::default().to_string();
        assert_eq!(TransferModel::parse(&text), Some(TransferModel::default()));
        let broken = [
            String::new(),
            text.replace("model 3", "model 2"),
            text.replace("copies", "copy"),
            text.replacen("51.100", "nan", 1),
            text.replacen("51.100", "-1", 1),
            text.replacen("51.100", "0", 1),
            text.replacen(" 51.100", " ", 1),
            text.lines().take(5).collect::<Vec<_>>().join("\n"),
            format!("{text}more"),
        ];
        for text in broken {
            assert_eq!(TransferModel::parse(&text), None, "{text}");
        }
    }
}
