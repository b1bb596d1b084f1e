//! Shuffles of thunks: the bytes of an element from one or two vectors into the places where they belong.
//!
//! Loads have masks, so that nothing but the element's bytes is read. Stores end with the packed bytes or with a contiguous element, of
//! which the last may overlap the one before; gaps in memory have masks.

use dtc_compiler::plan::strategy::Permutation;

/// Bytes of a vector.
const VECTOR: usize = 64;

/// A vector that is loaded.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
struct Source {
    at: i32,
    mask: u64,
}

/// A vector that is stored.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
struct Target {
    at: i32,
    bytes: u8,
    /// The bytes that are written; `None` for all.
    mask: Option<u64>,
    /// For each byte, its place in the sources.
    places: [u8; VECTOR],
}

/// The shuffles of an element, and how a call goes on to the next.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
pub(crate) struct Permuted {
    /// Whether memory is read and packed bytes are written.
    pack: bool,
    /// Where the memory of the element begins, in bytes from the address of the type.
    pub(super) offset: i64,
    sources: Vec<Source>,
    targets: Vec<Target>,
    /// Distances of elements in memory and of their packed bytes; `None` for one element.
    next: Option<(i32, i32)>,
}

impl Permuted {
    /// The code for one element whose plan begins at `offset`.
    pub(super) fn one<const PACK: bool>(permutation: &Permutation, offset: i64) -> Permuted {
        let (packed, size) = (permutation.packed(), permutation.places.len());
        let of_packed: Vec<Option<u8>> = permutation.places.iter().copied().map(Some).collect();
        let everything = vec![Some(0); size];
        let (read, written) = if PACK { (&packed, &of_packed) } else { (&everything, &packed) };
        let offset = offset.wrapping_add(permutation.first);
        Permuted { pack: PACK, offset, sources: sources(read), targets: targets(written), next: None }
    }

    /// The code for several elements, if the distance of elements fits an instruction.
    pub(super) fn several<const PACK: bool>(permutation: &Permutation, offset: i64, extent: i64) -> Option<Permuted> {
        let next = (i32::try_from(extent).ok()?, i32::try_from(permutation.places.len()).ok()?);
        Some(Permuted { next: Some(next), ..Permuted::one::<PACK>(permutation, offset) })
    }
}

/// The vectors that have these bytes, with masks of those that are some.
fn sources(bytes: &[Option<u8>]) -> Vec<Source> {
    let vectors = bytes.chunks(VECTOR).enumerate();
    vectors.map(|(at, bytes)| Source { at: (at * VECTOR) as i32, mask: mask_of(bytes) }).collect()
}

fn mask_of(bytes: &[Option<u8>]) -> u64 {
    bytes.iter().enumerate().fold(0, |mask, (at, byte)| mask | u64::from(byte.is_some()) << at)
}

/// The vectors that write these bytes: whole ones, of which the last may overlap, or with masks where there are gaps.
fn targets(bytes: &[Option<u8>]) -> Vec<Target> {
    let target = |at: usize, length: usize, mask: Option<u64>| {
        let mut places = [0; VECTOR];
        for (place, byte) in places.iter_mut().zip(&bytes[at..bytes.len().min(at + length)]) {
            *place = byte.unwrap_or(0);
        }
        Target { at: at as i32, bytes: length as u8, mask, places }
    };
    if bytes.len() < 16 || bytes.iter().any(Option::is_none) {
        let chunks = bytes.chunks(VECTOR).enumerate();
        return chunks.map(|(at, bytes)| target(at * VECTOR, VECTOR, Some(mask_of(bytes)))).collect();
    }
    let widest = [VECTOR, 32, 16].into_iter().find(|&width| width <= bytes.len()).unwrap_or(16);
    let whole = (0..bytes.len() / widest).map(|index| target(index * widest, widest, None));
    let rest = bytes.len() % widest;
    let last = (rest > 0).then(|| rest.next_power_of_two().max(16));
    whole.chain(last.map(|width| target(bytes.len() - width, width, None))).collect()
}

/// What an instruction of the EVEX form is, but for its operands.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Form {
    /// The table of instructions: 1 is 0F, 2 is 0F38.
    table: u8,
    wide: u8,
    prefix: u8,
    operation: u8,
}

#[cfg(target_arch = "x86_64")]
mod encoding {
    use super::super::straight::{RDI, RSI, encode_move};
    use super::{Form, Permuted, VECTOR};

    /// `vmovdqu8`, with a mask, as a load and as a store.
    const LOAD: Form = Form { table: 1, wide: 0, prefix: 3, operation: 0x6f };
    const STORE: Form = Form { operation: 0x7f, ..LOAD };
    /// `vmovdqa64`, between registers.
    const COPY: Form = Form { table: 1, wide: 1, prefix: 1, operation: 0x6f };
    /// `vpermb`: bytes of one vector by the places in another.
    const SHUFFLE: Form = Form { table: 2, wide: 0, prefix: 1, operation: 0x8d };
    /// `vpermt2b`: the same of two vectors, the first of which is overwritten.
    const SHUFFLE_TWO: Form = Form { operation: 0x7d, ..SHUFFLE };

    /// The first registers of the sources, the targets and the places. The upper 16 need no `vzeroupper`.
    const SOURCES: u8 = 16;
    const TARGETS: u8 = 18;
    const PLACES: u8 = 24;

    /// Writes an instruction on vectors of 64 bytes, up to its operands in memory or the last register, which `tail` are.
    fn instruction(code: &mut Vec<u8>, form: Form, (register, second): (u8, u8), mask: (u8, bool), tail: Tail<'_>) {
        let inverted = |register: u8, bit: u8| !register >> bit & 1;
        let last = if let Tail::Register(last) = tail { last } else { 0 };
        let (zeroing, mask) = (u8::from(mask.1), mask.0);
        code.extend([
            0x62,
            inverted(register, 3) << 7
                | inverted(last, 4) << 6
                | inverted(last, 3) << 5
                | inverted(register, 4) << 4
                | form.table,
            form.wide << 7 | (!second & 15) << 3 | 4 | form.prefix,
            zeroing << 7 | 0x40 | inverted(second, 4) << 3 | mask,
            form.operation,
        ]);
        match tail {
            Tail::Register(last) => code.push(0xc0 | (register & 7) << 3 | last & 7),
            Tail::Memory(base, at) => {
                code.push(0x80 | (register & 7) << 3 | base);
                code.extend(i32::to_le_bytes(at));
            }
            Tail::Constant(places) => {
                code.push((register & 7) << 3 | 5);
                places.push(code.len());
                code.extend([0; 4]);
            }
        }
    }

    /// The last operand of an instruction.
    enum Tail<'a> {
        Register(u8),
        /// At a distance from a base.
        Memory(u8, i32),
        /// A constant behind the code: where its distance stands goes into the list.
        Constant(&'a mut Vec<usize>),
    }

    /// Writes a mask into a mask register.
    fn set_mask(code: &mut Vec<u8>, register: u8, mask: u64) {
        code.extend([0x48, 0xb8]); // mov rax, mask
        code.extend(mask.to_le_bytes());
        code.extend([0xc4, 0xe1, 0xfb, 0x92, 0xc0 | register << 3]); // kmovq k, rax
    }

    impl Permuted {
        /// Writes the instructions; memory is in rdi, the packed bytes in rsi, and the number of elements in rdx.
        pub(in super::super) fn encode(&self, code: &mut Vec<u8>) {
            let (from, to) = if self.pack { (RDI, RSI) } else { (RSI, RDI) };
            // Masks 1 and 2 are those of the sources, 3 and 4 of the targets.
            for (at, source) in self.sources.iter().enumerate() {
                set_mask(code, 1 + at as u8, source.mask);
            }
            let mut constants = Vec::new();
            for (at, target) in self.targets.iter().enumerate() {
                if let Some(mask) = target.mask {
                    set_mask(code, 3 + at as u8, mask);
                }
                instruction(code, LOAD, (PLACES + at as u8, 0), (0, false), Tail::Constant(&mut constants));
            }
            let start = code.len();
            for (at, source) in self.sources.iter().enumerate() {
                instruction(code, LOAD, (SOURCES + at as u8, 0), (1 + at as u8, true), Tail::Memory(from, source.at));
            }
            for at in 0..self.targets.len() as u8 {
                let (target, places) = (TARGETS + at, PLACES + at);
                if self.sources.len() == 1 {
                    instruction(code, SHUFFLE, (target, places), (0, false), Tail::Register(SOURCES));
                } else {
                    instruction(code, COPY, (target, 0), (0, false), Tail::Register(SOURCES));
                    instruction(code, SHUFFLE_TWO, (target, places), (0, false), Tail::Register(SOURCES + 1));
                }
            }
            for (at, target) in self.targets.iter().enumerate() {
                let register = TARGETS + at as u8;
                match target.mask {
                    Some(_) => {
                        instruction(code, STORE, (register, 0), (3 + at as u8, false), Tail::Memory(to, target.at));
                    }
                    None => encode_move(code, false, target.bytes, register, (to, target.at)),
                }
            }
            super::super::straight::encode_end(code, start, self.next);
            code.resize(code.len().next_multiple_of(VECTOR), 0);
            for (target, place) in self.targets.iter().zip(constants) {
                let distance = code.len() - (place + 4);
                code[place..place + 4].copy_from_slice(&(distance as i32).to_le_bytes());
                code.extend(target.places);
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::thunk::{Thunk, Thunks};
    use super::*;
    use dtc_compiler::layout::Layout;
    use dtc_compiler::plan::strategy::{self, Level, Strategy};
    use dtc_compiler::plan::{Direction, Plan};

    /// Moves so many elements of these runs by shuffles, and compares every byte of both sides.
    fn check<const PACK: bool>(runs: &[(usize, usize)], extent: i64, count: usize) {
        let list: Vec<String> = runs.iter().map(|(offset, count)| format!("({offset} {count})")).collect();
        let text = format!("layout lb 0 extent {extent} {{\n  %0 = runs [{}] x byte\n  root %0\n}}", list.join(" "));
        let plan = Plan::as_described(&Layout::parse(&text).unwrap());
        // Masked stores of any processor do the same.
        let target = strategy::Target { level: Level::Zen5, ..strategy::Target::default() };
        let direction = if PACK { Direction::Pack } else { Direction::Unpack };
        let permutation = Strategy::new(&plan, &target, 1).permutation(direction).unwrap();
        let size: usize = runs.iter().map(|run| run.1).sum();
        let bytes = |length: usize, seed: usize| (0..length).map(|at| (at * 31 + at / 256 + seed) as u8).collect();
        let (mut memory, mut packed): (Vec<u8>, Vec<u8>) = (bytes(5000, 1), bytes(size * count + 200, 7));
        let (mut memory_after, mut packed_after) = (memory.clone(), packed.clone());
        let mut position = 0;
        for element in 0..count {
            for &(offset, bytes) in runs {
                let at = (1000 + element as i64 * extent) as usize + offset;
                for byte in at..at + bytes {
                    if PACK {
                        packed_after[position] = memory[byte];
                    } else {
                        memory_after[byte] = packed[position];
                    }
                    position += 1;
                }
            }
        }
        let permuted = match count {
            1 => Some(Permuted::one::<PACK>(&permutation, 900)),
            _ => Permuted::several::<PACK>(&permutation, 900, extent),
        };
        let thunks = Thunks::new([permuted.map(Thunk::Permuted), None], [None, None]);
        let thunks = thunks.expect("this machine runs what it writes");
        let [Some(thunk), None] = thunks.of::<true>() else { panic!("one of four") };
        // SAFETY: the thunk takes two addresses and a count, and moves the runs of so many elements, which both buffers have.
        unsafe {
            let thunk = std::mem::transmute::<*const u8, extern "C" fn(*mut u8, *mut u8, usize)>(thunk);
            thunk(memory.as_mut_ptr().add(100), packed.as_mut_ptr(), count);
        }
        assert!(memory == memory_after, "memory of {text} x {count}, pack {PACK}");
        assert!(packed == packed_after, "packed bytes of {text} x {count}, pack {PACK}");
    }

    #[test]
    fn bytes_arrive_where_they_belong_and_gaps_stay() {
        if dtc_microkernels::detect_level().instructions() < Level::Avx512 {
            return;
        }
        for (words, bytes, gap) in
            [(10, 2, 0), (33, 2, 0), (16, 4, 0), (32, 4, 0), (11, 8, 3), (12, 1, 9), (25, 3, 1), (16, 8, 0), (40, 1, 2)]
        {
            // Neighbours do not touch in packed order.
            let places = (0..words).map(|word| word * 7 % words * (bytes + gap));
            let runs: Vec<(usize, usize)> = places.map(|place| (place + 5, bytes)).collect();
            if words % 7 == 0 || words * bytes < 16 {
                continue;
            }
            for (extent, count) in [(words * (bytes + gap), 1), (words * (bytes + gap) + 3, 2), (130, 7)] {
                check::<true>(&runs, extent as i64, count);
                check::<false>(&runs, extent as i64, count);
            }
            check::<true>(&runs, -150, 4);
            check::<false>(&runs, -150, 4);
        }
        // A byte that is written twice is the last.
        let twice: Vec<(usize, usize)> = (0..12).map(|word| (word * 3 % 20, 4)).collect();
        check::<true>(&twice, 64, 2);
        check::<false>(&twice, 64, 2);
    }
}
