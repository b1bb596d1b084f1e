//! Packing and unpacking files through memory of a GPU, or of another kind: as many elements at a time as take little of it.

use super::transfer::{Arguments, FRAGMENT_BYTES, Progress, Transfer};
use dtc_compiler::plan::Direction;
use dtc_measure::buffer::{Between, Memory};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_runtime::cuda::{Device, MemoryKind};
use std::ops::Range;

/// Bytes of memory that elements on the device span, unless one element spans more.
const GROUP_BYTES: i128 = 256 << 20;

/// Kernels see the same alignment on the device as the bytes have in the file.
const ALIGNMENT: usize = 256;

/// Elements and packed bytes on their way through the device.
pub struct StagedFile<'a> {
    transfer: &'a Transfer,
    /// Where in the data address 0 of the type is.
    origin: usize,
    /// The first packed byte of the call.
    offset: u64,
    /// Packed bytes of the call.
    wanted: u64,
    /// Elements of a group.
    group: u64,
    memory: Memory,
    packed: Memory,
}

/// A piece of the packed bytes that is in one group of elements.
#[derive(Clone, Copy)]
struct Piece {
    /// The first element of the group.
    element: u64,
    /// Elements of the group.
    count: u64,
    /// The piece's first packed byte, counted from the group's.
    within: u64,
    bytes: u64,
    /// Whether the next piece is in another group.
    last: bool,
}

impl StagedFile<'_> {
    /// Takes memory of the device.
    pub fn new<'a>(
        kinds: [MemoryKind; 2],
        transfer: &'a Transfer,
        arguments: &Arguments,
        wanted: u64,
    ) -> Result<StagedFile<'a>, Failure> {
        let committed = &transfer.committed;
        let one = committed.span(1).map_or(0, |(low, high)| high - low);
        let extent = i128::from(committed.layout().extent()).abs();
        let most = match extent {
            0 => i128::from(transfer.count),
            extent => 1 + (GROUP_BYTES - one).max(0) / extent,
        };
        let group = u64::try_from(most).unwrap_or(u64::MAX).min(transfer.count).max(1);
        let span = committed.span(group).map_or(0, |(low, high)| high - low);
        let fragment = wanted.min(FRAGMENT_BYTES);
        let [memory_bytes, packed_bytes] = [span as usize + ALIGNMENT, fragment as usize];
        let elements = if group == 1 { "an element".to_owned() } else { format!("{group} elements") };
        let needs = if kinds[0] == kinds[1] {
            vec![(kinds[0], memory_bytes + packed_bytes, format!("{elements} and {fragment} packed bytes"))]
        } else {
            vec![(kinds[0], memory_bytes, elements), (kinds[1], packed_bytes, "packed bytes".to_owned())]
        };
        for (kind, needed, what) in needs {
            let MemoryKind::Device(ordinal) = kind else { continue };
            let (free, _) = Device::get(ordinal)?.memory()?;
            if needed > free {
                let expected = format!("{needed} bytes for {what}");
                let found = format!("{} that are free", report::bytes(free as u64));
                return Err(Failure::data(format_args!("memory of GPU {ordinal}"), expected, found));
            }
        }
        Ok(StagedFile {
            transfer,
            origin: arguments.origin,
            offset: arguments.offset,
            wanted,
            group,
            memory: Memory::new(kinds[0], memory_bytes)?,
            packed: Memory::new(kinds[1], packed_bytes)?,
        })
    }

    /// Packs out of the data, piece by piece.
    pub fn pack(&mut self, data: &[u8], mut write: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut fragment = vec![0; self.packed.length()];
        let mut progress = Progress::new(self.wanted);
        let (mut done, mut loaded) = (0, None);
        while done < self.wanted {
            let piece = self.piece(done);
            if loaded != Some(piece.element) {
                let range = self.range(&piece);
                self.memory.write(range.start % ALIGNMENT, &data[range])?;
                loaded = Some(piece.element);
            }
            self.call(Direction::Pack, &piece)?;
            let fragment = &mut fragment[..piece.bytes as usize];
            self.packed.read(0, fragment)?;
            write(fragment)?;
            done += piece.bytes;
            progress.reached(done);
        }
        Ok(())
    }

    /// Unpacks into the data. What is between the elements' bytes comes along to the device and back.
    pub fn unpack(&mut self, packed: &[u8], data: &mut [u8]) -> Result<(), Failure> {
        let mut progress = Progress::new(self.wanted);
        let (mut done, mut loaded) = (0, None);
        while done < self.wanted {
            let piece = self.piece(done);
            let range = self.range(&piece);
            let at = range.start % ALIGNMENT;
            if loaded != Some(piece.element) {
                self.memory.write(at, &data[range.clone()])?;
                loaded = Some(piece.element);
            }
            self.packed.write(0, &packed[done as usize..][..piece.bytes as usize])?;
            self.call(Direction::Unpack, &piece)?;
            if piece.last {
                self.memory.read(at, &mut data[range])?;
            }
            done += piece.bytes;
            progress.reached(done);
        }
        Ok(())
    }

    /// The piece behind the first `done` packed bytes of the call.
    fn piece(&self, done: u64) -> Piece {
        let size = self.transfer.committed.layout().size();
        let (first, position) = (self.offset / size, self.offset + done);
        let element = position / size - (position / size - first) % self.group;
        let count = self.group.min(self.transfer.count - element);
        let within = position - element * size;
        let left = (count * size - within).min(self.wanted - done);
        let bytes = left.min(self.packed.length() as u64);
        Piece { element, count, within, bytes, last: bytes == left }
    }

    /// The bytes of the data that a group spans. It was checked that all elements are in the data.
    fn range(&self, piece: &Piece) -> Range<usize> {
        let (low, high) = self.transfer.committed.span(piece.count).unwrap_or((0, 0));
        let address = self.address(piece);
        (address + low) as usize..(address + high) as usize
    }

    /// Where in the data address 0 of the type is for the first element of a group.
    fn address(&self, piece: &Piece) -> i128 {
        let extent = i128::from(self.transfer.committed.layout().extent());
        self.origin as i128 + i128::from(piece.element) * extent
    }

    fn call(&mut self, direction: Direction, piece: &Piece) -> Result<(), Failure> {
        let range = self.range(piece);
        let moved = (range.start - range.start % ALIGNMENT) as i128;
        let (count, origin) = (piece.count, (self.address(piece) - moved) as i64);
        let StagedFile { transfer, memory, packed, .. } = self;
        let mut call = Between { committed: &transfer.committed, count, memory, origin, packed };
        call.call(direction, piece.within, piece.bytes)?;
        Ok(())
    }
}
