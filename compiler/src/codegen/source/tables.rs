//! Lists as constant arrays.

use super::outline::{NodeShape, Outline};
use super::text::{Text, constant, wrapped};
use crate::layout::NodeId;
use std::collections::HashMap;

/// Most columns of a line of an array.
const COLUMNS: usize = 110;

/// What the languages differ in.
pub(super) struct Words {
    /// What an array begins with.
    pub(super) array: &'static str,
    /// Signed and unsigned numbers of 32 bits, then of 64.
    pub(super) narrow: [&'static str; 2],
    pub(super) wide: [&'static str; 2],
}

/// The names of the arrays of a text, by node.
pub(super) struct ArrayNames {
    names: HashMap<usize, String>,
}

impl ArrayNames {
    /// Writes every list of an outline once.
    pub(super) fn write(outline: &Outline, name: &str, words: &Words, text: &mut Text) -> ArrayNames {
        let mut names = HashMap::new();
        let lists: Vec<(NodeId, NodeShape)> = outline
            .nodes()
            .map(|id| (id, outline.shape(id)))
            .filter(|(_, shape)| matches!(shape, NodeShape::Listed { .. } | NodeShape::Runs(_)))
            .collect();
        let number = |place: usize| if lists.len() == 1 { String::new() } else { format!("_{}", place + 1) };
        for (place, (id, shape)) in lists.iter().enumerate() {
            let number = number(place);
            names.insert(
                id.index(),
                match shape {
                    NodeShape::Listed { offsets, .. } => {
                        let array = format!("{name}_offsets{number}");
                        let numbers = if narrow(offsets.iter().copied()) { words.narrow } else { words.wide };
                        text.line(format_args!("{} {} {array}[{}] = {{", words.array, numbers[0], offsets.len()));
                        let items = offsets.iter().map(|&offset| format!("{},", constant(offset)));
                        text.append(&wrapped(items, "    ", COLUMNS));
                        text.line("};");
                        array
                    }
                    NodeShape::Runs(runs) => {
                        let array = format!("{name}_runs{number}");
                        let [signed, unsigned] = [0, 1].map(|sign| {
                            let fits = match sign {
                                0 => narrow(runs.iter().map(|run| run.0)),
                                _ => u32::try_from(outline.size(*id)).is_ok(),
                            };
                            if fits { words.narrow[sign] } else { words.wide[sign] }
                        });
                        text.line(
                            "/* Where each run lies in memory and among the packed bytes, and where the last ends. */",
                        );
                        text.line(format_args!(
                            "{} struct {{ {signed} memory; {unsigned} packed; }} {array}[{}] = {{",
                            words.array,
                            runs.len() + 1
                        ));
                        let mut packed = 0;
                        let mut item = |offset: i64, bytes: u64| {
                            packed += bytes;
                            format!("{{{}, {}}},", constant(offset), packed - bytes)
                        };
                        let items: Vec<String> =
                            runs.iter().chain([&(0, 0)]).map(|&(offset, bytes)| item(offset, bytes)).collect();
                        text.append(&wrapped(items.iter(), "    ", COLUMNS));
                        text.line("};");
                        array
                    }
                    _ => continue,
                },
            );
            text.empty_line();
        }
        ArrayNames { names }
    }

    /// The array of a node.
    pub(super) fn name(&self, id: NodeId) -> &str {
        self.names.get(&id.index()).map_or("", String::as_str)
    }
}

fn narrow(mut numbers: impl Iterator<Item = i64>) -> bool {
    numbers.all(|number| i32::try_from(number).is_ok_and(|number| number > i32::MIN))
}
