//! The short form of a type, for lines of a report.

use dtc_compiler::datatype::Datatype;
use std::fmt::Write;

/// Items of a list that are shown.
const SHOWN: usize = 6;

/// The notation of a type in one line, its lists cut.
pub fn abridged(datatype: &Datatype) -> String {
    let text = datatype.to_string();
    let mut short = String::new();
    // Items of each list around a place, and the depth of the list whose rest is left out.
    let (mut lists, mut left_out): (Vec<usize>, Option<usize>) = (Vec::new(), None);
    for character in text.chars() {
        match character {
            '[' => lists.push(1),
            ',' => {
                if let Some(items) = lists.last_mut() {
                    *items += 1;
                    if *items > SHOWN && left_out.is_none() {
                        left_out = Some(lists.len());
                    }
                }
            }
            ']' => {
                if left_out == Some(lists.len()) {
                    left_out = None;
                    let more = lists.last().map_or(0, |items| items - SHOWN);
                    // Writing to a string cannot fail.
                    let _ = write!(short, ", and {more} more");
                }
                lists.pop();
            }
            _ => {}
        }
        if left_out.is_none() {
            short.push(if character == '\n' { ' ' } else { character });
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text::parse;

    #[test]
    fn long_lists_are_cut() {
        let short = |text: &str| abridged(&parse(text).unwrap());
        assert_eq!(short("indexed_block 1 [0, 1, 2, 3, 4, 5] int"), "indexed_block 1 [0, 1, 2, 3, 4, 5] int");
        assert_eq!(
            short("indexed_block 1 [0, 1, 2, 3, 4, 5, 9, 8] int"),
            "indexed_block 1 [0, 1, 2, 3, 4, 5, and 2 more] int"
        );
        let inner = "(indexed [1@0, 1@2, 1@4, 1@6, 1@8, 1@10, 1@12] int)";
        assert_eq!(
            short(&format!("struct [1@0 {inner}, 1@400 double]")),
            "struct [1@0 (indexed [1@0, 1@2, 1@4, 1@6, 1@8, 1@10, and 1 more] int), 1@400 double]"
        );
        let fields: Vec<String> =
            (0..9).map(|field| format!("1@{} (indexed_block 1 [0, 2] int)", 64 * field)).collect();
        let short = short(&format!("struct [{}]", fields.join(", ")));
        assert!(short.ends_with("and 3 more]") && !short.contains('\n'), "{short}");
    }
}
