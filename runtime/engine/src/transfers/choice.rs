//! The choice of a transfer path: a pure function of the kinds of memory, the layout, the bytes and a model of the machine.

use super::path::TransferPath;
use crate::device::{MeasuredPath, TransferModel};
use dtc_compiler::plan::Direction;
use dtc_cuda::MemoryKind;

/// What a choice is made by.
///
/// ```
/// use dtc_runtime::plan::Direction;
/// use dtc_runtime::{TransferCase, TransferModel, TransferPath, cuda::MemoryKind};
/// let case = TransferCase {
///     direction: Direction::Pack,
///     memory: MemoryKind::Device(0),
///     packed: MemoryKind::Pageable,
///     peers: false,
///     shares_page_tables: false,
///     waits: false,
///     run_bytes: 8,
///     bytes: 1 << 20,
/// };
/// let choice = case.choose(&TransferModel::default());
/// assert_eq!((choice.path, choice.device), (TransferPath::Ring, Some(0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferCase {
    /// Which side is read.
    pub direction: Direction,
    /// Where the elements lie.
    pub memory: MemoryKind,
    /// Where the packed bytes lie.
    pub packed: MemoryKind,
    /// Whether the device of the elements reaches the memory of the packed bytes' device. Of no matter otherwise.
    pub peers: bool,
    /// Whether the device follows the page tables of the host, so that its kernels reach pageable memory at full speed.
    pub shares_page_tables: bool,
    /// Whether the caller waits for the bytes: copies of the driver from and to pageable memory hold the caller up.
    pub waits: bool,
    /// The mean length of the runs of the layout, in bytes.
    pub run_bytes: u64,
    /// Packed bytes to move.
    pub bytes: u64,
}

/// A transfer path, and why it is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The transfer path.
    pub path: TransferPath,
    /// The device that takes part, if one does.
    pub device: Option<u32>,
    /// Why.
    pub reason: &'static str,
}

impl TransferCase {
    /// The transfer path for this case. See [`TransferCase`] for an example.
    pub fn choose(&self, model: &TransferModel) -> Choice {
        use MemoryKind::{Device, Managed, Pageable, Pinned};
        let on = |device, path, reason| Choice { path, device: Some(device), reason };
        match (self.memory, self.packed) {
            (Device(one), Device(other)) if one == other => on(one, TransferPath::Kernel, "both sides are there"),
            (Device(one), Device(_)) if self.peers => {
                on(one, TransferPath::Kernel, "scattered accesses stay on the device, contiguous ones cross the link")
            }
            (Device(one), Device(_)) => on(one, TransferPath::Staged, "the devices do not reach each other's memory"),
            (Device(one), Managed) | (Managed, Device(one)) => {
                on(one, TransferPath::Kernel, "managed memory moves to the device of the other side")
            }
            (Device(one), Pageable) | (Pageable, Device(one)) if self.shares_page_tables => {
                on(one, TransferPath::Kernel, "the device follows the page tables of the host")
            }
            (Device(one), Pinned) => {
                self.faster(model, one, [(MeasuredPath::OneShot, REACHED), (MeasuredPath::Staged, UNREACHED)])
            }
            (Device(one), Pageable) if self.waits => {
                let copied = "the device does not reach pageable memory, and the model expects the driver's copies to be faster \
                              than the processor's";
                self.faster(model, one, [(MeasuredPath::Ring, PAGEABLE), (MeasuredPath::StagedPageable, copied)])
            }
            (Device(one), Pageable) => on(one, TransferPath::Ring, PAGEABLE),
            (Pinned, Device(one)) => {
                self.faster(model, one, [(MeasuredPath::Mapped, REACHED), (MeasuredPath::HostPacked, UNREACHED)])
            }
            (Pageable, Device(one)) => on(one, TransferPath::HostPacked, PAGEABLE),
            (Pageable | Pinned | Managed, Pageable | Pinned | Managed) => {
                Choice { path: TransferPath::Processor, device: None, reason: "both sides are the processor's to use" }
            }
        }
    }

    /// The path for which the model expects the shorter time.
    fn faster(&self, model: &TransferModel, device: u32, paths: [(MeasuredPath, &'static str); 2]) -> Choice {
        let [one, other] = paths.map(|(path, _)| model.microseconds(path, self.direction, self.run_bytes, self.bytes));
        let (path, reason) = paths[usize::from(one > other)];
        Choice { path: path.into(), device: Some(device), reason }
    }
}

const REACHED: &str = "the device reaches pinned memory, and the model expects that to be fastest";
const UNREACHED: &str = "the model expects it to be faster than a kernel that reaches over the link";
const PAGEABLE: &str = "the device does not reach pageable memory";

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryKind::{Device, Managed, Pageable, Pinned};

    fn choose(direction: Direction, memory: MemoryKind, packed: MemoryKind, run_bytes: u64, bytes: u64) -> Choice {
        let (peers, shares_page_tables, waits) = (true, false, false);
        let case = TransferCase { direction, memory, packed, peers, shares_page_tables, waits, run_bytes, bytes };
        case.choose(&TransferModel::default())
    }

    #[test]
    fn every_pair_has_a_way() {
        let host = [Pageable, Pinned, Managed];
        for direction in [Direction::Pack, Direction::Unpack] {
            for memory in host {
                for packed in host {
                    let choice = choose(direction, memory, packed, 64, 1 << 20);
                    assert_eq!((choice.path, choice.device), (TransferPath::Processor, None), "{memory}, {packed}");
                }
            }
            let expected = [
                (Device(1), Device(1), TransferPath::Kernel, 1),
                (Device(1), Managed, TransferPath::Kernel, 1),
                (Managed, Device(1), TransferPath::Kernel, 1),
                (Device(1), Device(0), TransferPath::Kernel, 1),
                (Device(1), Pinned, TransferPath::Kernel, 1),
                (Device(1), Pageable, TransferPath::Ring, 1),
                (Pageable, Device(1), TransferPath::HostPacked, 1),
                (Pinned, Device(1), TransferPath::Kernel, 1),
            ];
            for (memory, packed, path, device) in expected {
                let choice = choose(direction, memory, packed, 4096, 1 << 20);
                assert_eq!((choice.path, choice.device), (path, Some(device)), "{direction} {memory}, {packed}");
            }
        }
    }

    #[test]
    fn what_the_devices_can_do_counts() {
        let case = TransferCase {
            direction: Direction::Pack,
            memory: Device(0),
            packed: Device(1),
            peers: false,
            shares_page_tables: true,
            waits: false,
            run_bytes: 64,
            bytes: 1 << 20,
        };
        let model = TransferModel::default();
        assert_eq!(case.choose(&model).path, TransferPath::Staged);
        assert_eq!(TransferCase { packed: Pageable, ..case }.choose(&model).path, TransferPath::Kernel);
        assert_eq!(TransferCase { memory: Pageable, packed: Device(3), ..case }.choose(&model).device, Some(3));
    }

    #[test]
    fn the_model_decides_where_two_ways_are_open() {
        let one_shot = TransferModel::default();
        let mut lines = [[*one_shot.line(MeasuredPath::OneShot, Direction::Pack); 2]; MeasuredPath::ALL.len()];
        let rates = [
            (MeasuredPath::OneShot, 10.0),
            (MeasuredPath::Staged, 20.0),
            (MeasuredPath::Mapped, 1.0),
            (MeasuredPath::HostPacked, 2.0),
            (MeasuredPath::Ring, 3.0),
            (MeasuredPath::StagedPageable, 4.0),
        ];
        for (path, rate) in rates {
            lines[path as usize].iter_mut().for_each(|line| {
                line.rates = [rate; 8];
                line.latency_us = rate;
            });
        }
        let model = TransferModel::new(lines, one_shot.copies(), one_shot.device_copy());
        for direction in [Direction::Pack, Direction::Unpack] {
            let case = TransferCase {
                direction,
                memory: Device(0),
                packed: Pinned,
                peers: false,
                shares_page_tables: false,
                waits: true,
                run_bytes: 8,
                bytes: 1 << 20,
            };
            let pageable = TransferCase { packed: Pageable, ..case };
            assert_eq!(pageable.choose(&model).path, TransferPath::Staged);
            assert_eq!(TransferCase { bytes: 64, ..pageable }.choose(&model).path, TransferPath::Ring);
            assert_eq!(TransferCase { waits: false, ..pageable }.choose(&model).path, TransferPath::Ring);
            let reversed = TransferCase { memory: Pinned, packed: Device(0), ..case };
            assert_eq!(case.choose(&model).path, TransferPath::Staged);
            assert_eq!(reversed.choose(&model).path, TransferPath::HostPacked);
            // Little is moved soonest where the latency is less.
            assert_eq!(TransferCase { bytes: 64, ..case }.choose(&model).path, TransferPath::Kernel);
            assert_eq!(TransferCase { bytes: 64, ..reversed }.choose(&model).path, TransferPath::Kernel);
        }
    }
}
