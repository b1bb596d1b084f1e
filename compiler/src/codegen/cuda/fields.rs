//! What the template of records and their fields needs to know.

use super::template::word_type;
use crate::plan::gpu::Fields;
use minijinja::{Value, context};

/// Words that a thread loads before it stores the first: more of them cost registers, and so threads.
const GROUP: usize = 16;

/// For alignments of element 0 and of packed byte 0, and the shared memory of a batch or none.
pub(super) fn values(fields: &Fields, memory: u32, packed: u32, pool: &str) -> Value {
    let words: Vec<Value> = fields
        .words(memory, packed)
        .iter()
        .enumerate()
        .map(|(number, word)| {
            let part = |at: u32| {
                context! { packed => word.packed + u64::from(at), shift => 8 * at, type => word_type(word.part) }
            };
            let parts: Vec<Value> = (0..word.bytes).step_by(word.part as usize).map(part).collect();
            let divided = parts.len() > 1;
            context! { number, divided, offset => super::place::signed(word.offset), type => word_type(word.bytes), parts }
        })
        .collect();
    let groups: Vec<&[Value]> = words.chunks(GROUP).collect();
    let (records, shared, permuted) = (fields.tile_records(), fields.shared_bytes(), fields.crowded());
    context! { size => fields.size, records, shared, permuted, groups, pool }
}
