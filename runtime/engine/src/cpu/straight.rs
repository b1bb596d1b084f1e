//! Straight code of thunks: every load and store of an element as one instruction, with vectors of up to 64 bytes.
//!
//! Intel's manual, volume 2: registers 16 to 31 need no `vzeroupper` behind them, so none is written.

use dtc_compiler::plan::strategy::{WIDTHS, WordGroup};

/// The words of an element, and how a call goes on to the next.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
pub(crate) struct Straight {
    /// Whether memory is read and packed bytes are written.
    pack: bool,
    /// Where the element begins, in bytes from the address of the type.
    pub(super) offset: i64,
    /// In packed order.
    words: Vec<Wide>,
    /// Distances of elements in memory and of their packed bytes; `None` for one element.
    next: Option<(i32, i32)>,
}

/// A word, at distances from both addresses.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
struct Wide {
    memory: i32,
    packed: i32,
    bytes: u8,
}

impl Straight {
    /// The code for one element.
    pub(super) fn one<const PACK: bool>(group: &WordGroup, offset: i64) -> Option<Straight> {
        i32::try_from(group.bytes()).ok()?;
        let widths = WIDTHS.into_iter().zip(group.counts());
        let widths = widths.flat_map(|(width, count)| std::iter::repeat_n(width as u8, count.into()));
        let word = |(word, bytes): (&dtc_compiler::plan::strategy::Word, u8)| Wide {
            memory: word.memory,
            packed: word.packed as i32,
            bytes,
        };
        let mut words: Vec<Wide> = group.words().iter().zip(widths).map(word).collect();
        words.sort_by_key(|word| word.packed);
        Some(Straight { pack: PACK, offset, words, next: None })
    }

    /// The code for several elements, if the distance of elements fits an instruction.
    pub(super) fn several<const PACK: bool>(group: &WordGroup, offset: i64, extent: i64) -> Option<Straight> {
        let next = (i32::try_from(extent).ok()?, i32::try_from(group.bytes()).ok()?);
        Some(Straight { next: Some(next), ..Straight::one::<PACK>(group, offset)? })
    }

    /// Writes the instructions; memory is in rdi, the packed bytes in rsi, and the number of elements in rdx.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn encode(&self, code: &mut Vec<u8>) {
        let start = code.len();
        let mut left = &self.words[..];
        while !left.is_empty() {
            let batch = batch(left);
            left = &left[batch.len()..];
            for loads in [true, false] {
                for &(word, register) in &batch {
                    let (base, at) = if loads == self.pack { (RDI, word.memory) } else { (RSI, word.packed) };
                    encode_move(code, loads, word.bytes, register, (base, at));
                }
            }
        }
        encode_end(code, start, self.next);
    }
}

/// Writes the end of a function: the step to the next element and a jump to `start`, if there is another element, and the return.
#[cfg(target_arch = "x86_64")]
pub(super) fn encode_end(code: &mut Vec<u8>, start: usize, next: Option<(i32, i32)>) {
    if let Some((extent, size)) = next {
        code.extend([0x48, 0x81, 0xc7]); // add rdi, extent
        code.extend(extent.to_le_bytes());
        code.extend([0x48, 0x81, 0xc6]); // add rsi, size
        code.extend(size.to_le_bytes());
        code.extend([0x48, 0xff, 0xca]); // dec rdx
        code.extend([0x0f, 0x85]); // jnz start
        let back = start as i64 - (code.len() as i64 + 4);
        code.extend((back as i32).to_le_bytes());
    }
    code.push(0xc3); // ret
}

/// Numbers of registers.
#[cfg(target_arch = "x86_64")]
pub(super) const RDI: u8 = 7;
#[cfg(target_arch = "x86_64")]
pub(super) const RSI: u8 = 6;

/// The general registers that a function may change, but for the arguments.
#[cfg(target_arch = "x86_64")]
const GENERAL: [u8; 6] = [0, 1, 8, 9, 10, 11];

/// The first vector register, and how many there are.
#[cfg(target_arch = "x86_64")]
const FIRST_VECTOR: u8 = 16;
#[cfg(target_arch = "x86_64")]
const VECTORS: u8 = 16;

/// The first words, each with a register of its own: all are loaded before the first is stored, since a load behind a store to the same
/// place within a page waits for it.
#[cfg(target_arch = "x86_64")]
fn batch(words: &[Wide]) -> Vec<(Wide, u8)> {
    let (mut general, mut vectors) = (GENERAL.into_iter(), FIRST_VECTOR..FIRST_VECTOR + VECTORS);
    let register = |&word: &Wide| Some((word, if word.bytes > 8 { vectors.next() } else { general.next() }?));
    words.iter().map_while(register).collect()
}

/// Writes the load or the store of a word at a distance from a base.
#[cfg(target_arch = "x86_64")]
pub(super) fn encode_move(code: &mut Vec<u8>, loads: bool, bytes: u8, register: u8, (base, at): (u8, i32)) {
    let upper = u8::from(register & 8 != 0);
    if bytes > 8 {
        // vmovdqu64 of 16, 32 or 64 bytes, EVEX.F3.0F.W1 6F and 7F: bit 3 of the register is inverted, bit 4 set by the form.
        let length = (bytes / 32) << 5;
        code.extend([0x62, 0x61 | (1 - upper) << 7, 0xfe, 0x08 | length, if loads { 0x6f } else { 0x7f }]);
    } else {
        if bytes == 2 && !loads {
            code.push(0x66);
        }
        let prefix = 0x40 | u8::from(bytes == 8) << 3 | upper << 2;
        code.extend((prefix != 0x40).then_some(prefix));
        match (bytes, loads) {
            (1, true) => code.extend([0x0f, 0xb6]), // movzx
            (2, true) => code.extend([0x0f, 0xb7]),
            (_, true) => code.push(0x8b),
            (1, false) => code.push(0x88),
            (_, false) => code.push(0x89),
        }
    }
    // A distance of one byte counts vectors where these are moved.
    let scale = if bytes > 8 { i32::from(bytes) } else { 1 };
    let operand = (register & 7) << 3 | base;
    match i8::try_from(at / scale) {
        Ok(0) if at == 0 => code.push(operand),
        Ok(scaled) if at % scale == 0 => code.extend([0x40 | operand, scaled.cast_unsigned()]),
        _ => {
            code.push(0x80 | operand);
            code.extend(at.to_le_bytes());
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::thunk::{Thunk, Thunks};
    use super::*;
    use dtc_compiler::layout::{Layout, Run};
    use dtc_compiler::plan::Plan;

    /// Moves so many elements of these runs by straight code, and compares every byte of both sides.
    fn check<const PACK: bool>(runs: &[Run], extent: i64, count: usize) {
        let list: Vec<String> = runs.iter().map(|run| format!("({} {})", run.offset, run.count)).collect();
        let text = format!("layout lb 0 extent {extent} {{\n  %0 = runs [{}] x byte\n  root %0\n}}", list.join(" "));
        let plan = Plan::as_described(&Layout::parse(&text).unwrap());
        let group = WordGroup::of(&plan, plan.root().step).unwrap();
        let size: usize = runs.iter().map(|run| run.count as usize).sum();
        let span = extent as usize * count + 100_000;
        let bytes = |length: usize, seed: usize| (0..length).map(|at| (at * 31 + at / 256 + seed) as u8).collect();
        let (mut memory, mut packed): (Vec<u8>, Vec<u8>) = (bytes(span, 1), bytes(size * count + 64, 7));
        let (mut memory_after, mut packed_after) = (memory.clone(), packed.clone());
        let mut position = 0;
        for element in 0..count {
            for run in runs {
                let at = 8_000 + element * extent as usize + run.offset as usize;
                for byte in 0..run.count as usize {
                    if PACK {
                        packed_after[position] = memory[at + byte]
                    } else {
                        memory_after[at + byte] = packed[position]
                    }
                    position += 1;
                }
            }
        }
        let straight = match count {
            1 => Straight::one::<PACK>(&group, 7_990),
            _ => Straight::several::<PACK>(&group, 7_990, extent),
        };
        let straight = straight.map(Thunk::Straight);
        let thunks = Thunks::new([straight, None], [None, None]).expect("this machine runs what it writes");
        let [Some(thunk), None] = thunks.of::<true>() else { panic!("one of four") };
        // SAFETY: the thunk takes two addresses and a count, and moves the runs of so many elements, which both buffers have.
        unsafe {
            let thunk = std::mem::transmute::<*const u8, extern "C" fn(*mut u8, *mut u8, usize)>(thunk);
            thunk(memory.as_mut_ptr().add(10), packed.as_mut_ptr(), count);
        }
        assert!(memory == memory_after && packed == packed_after, "{text} x {count}, pack {PACK}");
    }

    #[test]
    fn words_of_all_widths_and_distances_arrive() {
        if dtc_microkernels::detect_level().instructions() < dtc_compiler::plan::Level::Avx512 {
            return;
        }
        for gap in [0, 1, 63, 64, 128, 1000, 8192] {
            for counts in [
                &[1, 2, 3, 4, 5, 7, 8, 9][..],
                &[16, 17, 32, 33, 40, 56, 64, 65],
                &[64; 20],
                &[8; 20],
                &[148, 300, 512, 1],
                &[1, 64, 2, 32, 4, 16, 8],
            ] {
                if counts.len() as i64 * (gap + 64) > 90_000 {
                    continue;
                }
                let mut offset = 0;
                let runs: Vec<Run> = (counts.iter().copied())
                    .map(|count| {
                        let run = Run { offset, count };
                        offset += count as i64 + gap;
                        run
                    })
                    .collect();
                for count in [1, 2, 5] {
                    check::<true>(&runs, offset + 3, count);
                    check::<false>(&runs, offset + 3, count);
                }
            }
        }
    }
}
