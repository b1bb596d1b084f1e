//! Index lists, as text or as files.

use super::place::IN_MEMORY;
use std::collections::HashMap;
use std::fmt::Write;

/// Entries of the longest list that is printed where lists may be files: a compiler reads 1,000 numbers in a millisecond, and a million
/// in a second.
const LONGEST_PRINTED: usize = 1_000;

/// Index lists as constant arrays, each there once however many fields use it.
pub(super) struct Tables {
    prefix: String,
    /// Entries of the longest list that is printed.
    longest: usize,
    pub(super) text: String,
    names: HashMap<Vec<i64>, String>,
    /// The longer ones: names, and bytes as the machine has them.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

impl Tables {
    /// Without lists. The names of those to come have a prefix; with `files`, the longer ones are no text.
    pub(super) fn new(prefix: &str, files: bool) -> Tables {
        let longest = if files { LONGEST_PRINTED } else { usize::MAX };
        Tables { prefix: prefix.to_owned(), longest, text: String::new(), names: HashMap::new(), files: Vec::new() }
    }

    /// The name of the array with these values.
    pub(super) fn name(&mut self, values: Vec<i64>) -> String {
        if let Some(name) = self.names.get(&values) {
            return name.clone();
        }
        let name = format!("{}list_{}", self.prefix, self.names.len());
        let are_ints = values.iter().all(|&value| i32::try_from(value).is_ok());
        let c_type = if are_ints { "int" } else { "long" };
        if values.len() > self.longest {
            let text = &mut self.text;
            writeln!(text, "__asm__(\".section .rodata\\n.balign 64\\n.globl {name}\\n.hidden {name}\\n{name}:\\n\"")
                .expect(IN_MEMORY);
            writeln!(text, "        \".incbin \\\"{name}\\\"\\n.previous\");").expect(IN_MEMORY);
            writeln!(text, "extern const {c_type} {name}[{}] __attribute__((visibility(\"hidden\")));\n", values.len())
                .expect(IN_MEMORY);
            let bytes = if are_ints {
                values.iter().flat_map(|&value| (value as i32).to_ne_bytes()).collect()
            } else {
                values.iter().flat_map(|value| value.to_ne_bytes()).collect()
            };
            self.files.push((name.clone(), bytes));
            self.names.insert(values, name.clone());
            return name;
        }
        write!(self.text, "static const {c_type} {name}[{}] = {{", values.len()).expect(IN_MEMORY);
        for (index, value) in values.iter().enumerate() {
            let before = if index % 16 == 0 { "\n    " } else { " " };
            write!(self.text, "{before}{value},").expect(IN_MEMORY);
        }
        self.text.push_str("\n};\n\n");
        self.names.insert(values, name.clone());
        name
    }
}
