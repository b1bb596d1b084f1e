//! What the template of small groups needs to know.

use super::template::word_type;
use crate::plan::Direction;
use crate::plan::gpu::Groups;
use minijinja::{Value, context};

/// Words that a thread loads before it stores the first: more of them cost registers, and so threads.
const MOST_ROUNDS: u64 = 8;

/// The words of a group as kernels read them: the offset of each in memory; and where it is packed, with its length from bit 16 on. A pack has the
/// offset of the aligned word around it, its length in bytes, and from bit 24 on where it begins in that word; an unpack has the logarithm of
/// its length.
pub(super) fn entries(groups: &Groups, direction: Direction, memory: u32, packed: u32) -> Vec<(i64, u64)> {
    let word = i64::from(groups.loaded(memory, packed));
    let entry = |its: &crate::plan::gpu::FieldWord| match direction {
        Direction::Pack => {
            let ahead = its.offset & (word - 1);
            (its.offset - ahead, its.packed | u64::from(its.bytes) << 16 | (ahead as u64) << 24)
        }
        Direction::Unpack => (its.offset, its.packed | u64::from(its.bytes.ilog2()) << 16),
    };
    groups.words(direction, memory, packed).iter().map(entry).collect()
}

/// For alignments of element 0 and of packed byte 0, the list of the words of a group, and the shared memory of a batch or none.
pub(super) fn values(
    groups: &Groups,
    direction: Direction,
    [memory, packed]: [u32; 2],
    threads: u32,
    list: u64,
    pool: &str,
) -> Value {
    let words = groups.words(direction, memory, packed);
    let tile_groups = groups.tile_groups(direction);
    let mut widths: Vec<u32> = words.iter().map(|word| word.bytes).collect();
    widths.sort_unstable_by_key(|width| std::cmp::Reverse(*width));
    widths.dedup();
    let part = words.first().map_or(1, |word| word.part);
    let widest = match direction {
        Direction::Pack => groups.loaded(memory, packed),
        Direction::Unpack => widths.first().copied().unwrap_or(1),
    };
    let mixed = widths.iter().any(|&width| width != widest);
    let common = context! {
        size => groups.size,
        groups => tile_groups,
        words => words.len(),
        list,
        mixed,
        widest,
        part,
        part_type => word_type(part),
        stage_bytes => groups.stage_bytes(direction),
        shared => groups.shared_bytes(direction, memory, packed),
        pool,
    };
    let threads = u64::from(threads);
    match direction {
        Direction::Pack => {
            let rounds = (tile_groups * words.len() as u64).div_ceil(threads);
            // Rounds of one length.
            let rounds = rounds.div_ceil(rounds.div_ceil(MOST_ROUNDS));
            let shifts = words.iter().any(|word| word.offset as u64 & u64::from(widest - 1) != 0);
            let parts: Vec<Value> =
                (0..widest).step_by(part as usize).map(|at| context! { at, shift => 8 * at }).collect();
            let checked = groups.reaches_out(memory, packed);
            context! { rounds, shifts, divided => part < widest, parts, checked, word_type => word_type(widest), ..common }
        }
        Direction::Unpack => {
            let rounds = (tile_groups * groups.size + 30).div_ceil(16).div_ceil(threads);
            let widths: Vec<Value> =
                widths.iter().map(|width| context! { log => width.ilog2(), type => word_type(*width) }).collect();
            // Words of several widths are shifted out of the widest scalar.
            let own = if part < widest { word_type(widest.max(4)) } else { word_type(widest) };
            context! { rounds, widths, word_type => own, ..common }
        }
    }
}
