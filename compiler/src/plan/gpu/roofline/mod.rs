//! The roofline of a type: the bytes of DRAM that a transfer must move, and so the least time that it takes.
//!
//! A kernel that keeps everything else out of the way still moves these: a pack reads every granule of memory that it touches
//! and writes the packed bytes; an unpack reads the packed bytes and writes every sector that it touches, and reads those that
//! it writes in part. Each is counted once, since a kernel may move its bytes in any order.

mod footprint;
mod sampled;
mod sectors;

pub use footprint::Footprint;
pub(crate) use sectors::GRANULE;

use super::sizes::SECTOR;
use crate::layout::Layout;
use crate::layout::address_set::{AddressSet, TooComplex};
use crate::plan::Direction;
use sectors::Counts;

impl Footprint {
    /// The footprint of `count` elements, with element 0 at `address`; `None` if their offsets leave 63 bits, or if too many of
    /// them overlap.
    ///
    /// Exact, in time that depends on the nodes and lists of the layout and not on its runs, unless loops or parts interleave so
    /// irregularly that more than 32,768 runs would be written out: then it is estimated. Short descriptions take at most 10 ms.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::Footprint;
    /// let text = "layout lb 0 extent 64 {\n  %0 = dense 8 x byte\n  root %0\n}";
    /// let found = Footprint::of(&Layout::parse(text)?, 1 << 40, 0).unwrap();
    /// assert_eq!((found.granules, found.sectors, found.full_sectors), (1 << 40, 1 << 40, 0));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn of(layout: &Layout, count: u64, address: u64) -> Option<Footprint> {
        const EMPTY: Footprint = Footprint { granules: 0, sectors: 0, full_sectors: 0, error: 0.0 };
        if count == 0 || layout.size() == 0 {
            return Some(EMPTY);
        }
        if !layout.fits_62_bits(count) {
            return None;
        }
        let exact = match AddressSet::of(layout, count) {
            Ok(None) => return Some(EMPTY),
            Ok(Some((low, set, root))) => sectors::touched(&set, root, address.wrapping_add(low as u64)),
            Err(TooComplex) => None,
        };
        match exact {
            Some(Counts { granules, sectors, full }) => {
                Some(Footprint { granules, sectors, full_sectors: full, error: 0.0 })
            }
            None => sampled::footprint(layout, count, address),
        }
    }
}

/// Bytes of DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

impl Traffic {
    /// Both.
    pub fn total(self) -> u64 {
        self.read + self.written
    }
}

/// The least traffic of a transfer in either direction.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::Direction;
/// use dtc_compiler::plan::gpu::{DeviceCopy, Roofline};
/// let text = "layout lb 0 extent 64 {\n  %0 = dense 8 x byte\n  root %0\n}";
/// let roofline = Roofline::of(&Layout::parse(text)?, 1 << 20, 0).unwrap();
/// assert_eq!(roofline.traffic(Direction::Pack).read, 64 << 20);
/// // Each sector is read and written for 8 of its bytes.
/// assert_eq!(roofline.traffic(Direction::Unpack).written, 32 << 20);
/// assert_eq!(roofline.traffic(Direction::Unpack).read, (8 << 20) + (32 << 20));
/// assert!((roofline.copy_share(Direction::Pack) - 16.0 / 72.0).abs() < 1e-6);
/// assert!(DeviceCopy::default().microseconds(roofline.traffic(Direction::Pack)) > 18.0);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    packed: u64,
    footprint: Footprint,
}

impl Roofline {
    /// The roofline of `count` elements, with element 0 at `address`; `None` where there is no [`Footprint`].
    pub fn of(layout: &Layout, count: u64, address: u64) -> Option<Roofline> {
        let footprint = Footprint::of(layout, count, address)?;
        Some(Roofline { packed: layout.size().checked_mul(count)?, footprint })
    }

    /// The roofline of a number of packed bytes and what they touch in memory.
    pub(crate) fn new(packed: u64, footprint: Footprint) -> Roofline {
        Roofline { packed, footprint }
    }

    /// The memory that is touched.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Bytes that must move. The packed bytes begin at a granule.
    pub fn traffic(&self, direction: Direction) -> Traffic {
        let Footprint { granules, sectors, full_sectors, .. } = self.footprint;
        match direction {
            Direction::Pack => Traffic { read: granules * GRANULE, written: self.packed.next_multiple_of(SECTOR) },
            Direction::Unpack => {
                let packed = self.packed.next_multiple_of(GRANULE);
                Traffic { read: packed + (sectors - full_sectors) * SECTOR, written: sectors * SECTOR }
            }
        }
    }

    /// The largest speed, as a share of that of a copy of the packed bytes. Above 1 where packed bytes come from, or go to, the
    /// same memory several times.
    pub fn copy_share(&self, direction: Direction) -> f64 {
        2.0 * self.packed as f64 / self.traffic(direction).total().max(1) as f64
    }
}

/// How fast a device copies its own memory, with its cache emptied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceCopy {
    /// Microseconds of a copy of next to nothing.
    pub latency_us: f64,
    /// Gigabytes of traffic per second, reads and writes together.
    pub gigabytes: f64,
}

impl Default for DeviceCopy {
    /// Of an H200, whose memory has 4,800 GB/s: `bench/results/2026-11-20-gpu.md`.
    fn default() -> DeviceCopy {
        DeviceCopy { latency_us: 2.0, gigabytes: 4_134.0 }
    }
}

impl DeviceCopy {
    /// Microseconds of as much traffic as a copy moves.
    pub fn microseconds(&self, traffic: Traffic) -> f64 {
        self.latency_us + traffic.total() as f64 / (self.gigabytes * 1e3)
    }
}

#[cfg(test)]
mod tests;
