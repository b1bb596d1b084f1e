//! Shared by the tests of texts: cutting long lists, differences of texts, and the meaning of a plan.
#![allow(dead_code, reason = "every test binary uses a part")]

use dtc_compiler::layout::Layout;
use dtc_compiler::plan::{Plan, Step, StepId};
use std::fmt::Write;
use std::path::PathBuf;

/// A folder beside the crates.
pub fn workspace(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}

/// A hash of the text that was cut. It only has to change with the text.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Most entries of a list.
const ENTRIES: usize = 16;

/// A bracketed list whose end was not reached yet.
#[derive(Default)]
struct List {
    items: Vec<String>,
    item: String,
    parentheses: usize,
}

impl List {
    fn close(mut self) -> String {
        if !self.item.is_empty() {
            self.items.push(self.item);
        }
        // Lists are separated by commas, or by blanks if no entry contains one.
        let commas = self.items.iter().any(|item| item.ends_with(','));
        let items = if commas {
            let mut joined: Vec<String> = vec![String::new()];
            for item in &self.items {
                let last = joined.len() - 1;
                let blank = if joined[last].is_empty() { "" } else { " " };
                match item.strip_suffix(',') {
                    Some(item) => {
                        write!(joined[last], "{blank}{item}").unwrap();
                        joined.push(String::new());
                    }
                    None => write!(joined[last], "{blank}{item}").unwrap(),
                }
            }
            joined
        } else {
            self.items
        };
        let separator = if commas { ", " } else { " " };
        if items.len() <= ENTRIES {
            return format!("[{}]", items.join(separator));
        }
        let (shown, rest) = items.split_at(ENTRIES);
        let rest = format!("... and {} more, {:016x}", rest.len(), digest(&rest.join(separator)));
        format!("[{}{separator}{rest}]", shown.join(separator))
    }
}

/// The text with every bracketed list cut after its first entries, and a digest of the rest.
pub fn cut_lists(text: &str) -> String {
    let mut open: Vec<List> = vec![List::default()];
    for letter in text.chars() {
        let depth = open.len();
        let list = &mut open[depth - 1];
        match letter {
            '[' => open.push(List::default()),
            ']' if depth > 1 => {
                let closed = open.pop().unwrap_or_default().close();
                open[depth - 2].item.push_str(&closed);
            }
            ' ' if depth > 1 && list.parentheses == 0 => list.items.push(std::mem::take(&mut list.item)),
            _ => {
                match letter {
                    '(' => list.parentheses += 1,
                    ')' => list.parentheses = list.parentheses.saturating_sub(1),
                    _ => {}
                }
                list.item.push(letter);
            }
        }
    }
    open.swap_remove(0).item
}

/// The first lines of a text, and a digest of the rest.
pub fn cut_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= most {
        return lines.join("\n");
    }
    let (shown, rest) = lines.split_at(most);
    format!("{}\n... and {} more lines, {:016x}", shown.join("\n"), rest.len(), digest(&rest.join("\n")))
}

/// Two texts line by line: ` ` in both, `-` only expected, `+` only found.
pub fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    // Lengths of the longest common tails.
    let mut common = vec![vec![0u32; found.len() + 1]; expected.len() + 1];
    for left in (0..expected.len()).rev() {
        for right in (0..found.len()).rev() {
            common[left][right] = if expected[left] == found[right] {
                common[left + 1][right + 1] + 1
            } else {
                common[left + 1][right].max(common[left][right + 1])
            };
        }
    }
    let (mut left, mut right, mut text) = (0, 0, String::new());
    while left < expected.len() || right < found.len() {
        if left < expected.len() && right < found.len() && expected[left] == found[right] {
            writeln!(text, "    {}", expected[left]).unwrap();
            (left, right) = (left + 1, right + 1);
        } else if right == found.len() || left < expected.len() && common[left + 1][right] >= common[left][right + 1] {
            writeln!(text, "  - {}", expected[left]).unwrap();
            left += 1;
        } else {
            writeln!(text, "  + {}", found[right]).unwrap();
            right += 1;
        }
    }
    text
}

/// The displacement of every packed byte in the order in which the steps of a plan move it. It follows only the
/// documentation of the steps.
pub fn moved(plan: &Plan) -> Vec<i64> {
    let mut bytes = vec![i64::MIN; plan.size() as usize];
    let root = plan.root();
    step(plan, root.step, root.offset, root.position as usize, &mut bytes);
    bytes
}

fn step(plan: &Plan, id: StepId, memory: i64, packed: usize, bytes: &mut [i64]) {
    let copy = |bytes: &mut [i64], memory: i64, packed: usize, length: u64| {
        for (byte, offset) in bytes[packed..packed + length as usize].iter_mut().zip(memory..) {
            assert_eq!(*byte, i64::MIN, "a packed byte is moved twice");
            *byte = offset;
        }
    };
    match plan.step(id) {
        Step::Nothing => {}
        Step::Copy { bytes: length } => copy(bytes, memory, packed, *length),
        Step::Rows { rows, stride, bytes: length } => {
            for row in 0..*rows {
                copy(bytes, memory + row as i64 * stride, packed + (row * length) as usize, *length);
            }
        }
        Step::Planes { planes, plane_stride, rows, stride, bytes: length } => {
            for plane in 0..*planes {
                for row in 0..*rows {
                    let offset = plane as i64 * plane_stride + row as i64 * stride;
                    copy(bytes, memory + offset, packed + ((plane * rows + row) * length) as usize, *length);
                }
            }
        }
        Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes: length } => {
            let mut position = packed;
            for plane in 0..*planes as i64 {
                for layer in 0..*layers as i64 {
                    for row in 0..*rows as i64 {
                        let offset = plane * plane_stride + layer * layer_stride + row * stride;
                        copy(bytes, memory + offset, position, *length);
                        position += *length as usize;
                    }
                }
            }
        }
        Step::List { offsets, bytes: length } => {
            for entry in 0..offsets.len() {
                copy(bytes, memory + offsets.get(entry), packed + entry * *length as usize, *length);
            }
        }
        Step::Runs(table) => {
            for (run, position) in table.runs.iter().zip(table.positions.iter()) {
                copy(bytes, memory + run.offset, packed + *position as usize, run.count);
            }
        }
        Step::Repeat { count, stride, body } => {
            for copy in 0..*count {
                let position = packed + (copy * plan.size_of(*body)) as usize;
                step(plan, *body, memory + copy as i64 * stride, position, bytes);
            }
        }
        Step::Scatter { offsets, body } => {
            for entry in 0..offsets.len() {
                let position = packed + entry * plan.size_of(*body) as usize;
                step(plan, *body, memory + offsets.get(entry), position, bytes);
            }
        }
        Step::Sequence { parts } => {
            for part in parts.iter() {
                step(plan, part.step, memory + part.offset, packed + part.position as usize, bytes);
            }
        }
    }
}

/// Whether two layouts have the same bytes in the same order: by their walks if those are short, otherwise by
/// fingerprints.
pub fn same_bytes(one: &Layout, other: &Layout) -> bool {
    if one.size() != other.size() || (one.lb(), one.extent()) != (other.lb(), other.extent()) {
        return false;
    }
    if one.size() <= WALKED_BYTES {
        one.displacements().eq(other.displacements())
    } else {
        one.type_hash() == other.type_hash()
    }
}

/// Most bytes of sequences that are compared byte by byte.
pub const WALKED_BYTES: u64 = 1 << 21;
