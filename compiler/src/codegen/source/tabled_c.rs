//! A C11 file that packs and unpacks a type with index tables, and its header.

use super::c::{DIRECTIONS, File};
use super::names::identifier;
use super::outline::TooLarge;
use super::tabled_outline::{TabledOutline, tabled_remark};
use super::text::{Text, constant, plus};
use crate::datatype::{TableKind, TabledDatatype};
use crate::plan::Direction;
use crate::tabled::{TabledEdge, TabledNode};

/// A C11 file with five functions that take the tables of a call: `NAME_size`, `NAME_pack`, `NAME_unpack`, `NAME_pack_fragment` and
/// `NAME_unpack_fragment`, where `NAME` is the [`identifier`] of a name.
///
/// The tables are members of a structure, with their lengths. Entries are `int32_t`, or what the macro `NAME_ENTRY` is. An entry that is no
/// place of its table is skipped: neither side is touched.
///
/// # Errors
///
/// [`TooLarge`] when the layout has more nodes or list entries than a compiler takes.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::source;
/// let pages = "table 0 2048 512 32768 (contiguous 32768 byte)".parse()?;
/// let file = source::tabled_c("pages", &pages)?;
/// assert!(file.contains("size_t pages_size(const struct pages_tables *tables);"));
/// assert!(file.contains("const int64_t entry = tables->table0[copy];"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tabled_c(name: &str, datatype: &TabledDatatype) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = TabledOutline::new(datatype)?;
    let mut text = Text::default();
    let first = format!("{name}: packs and unpacks the datatype, with index tables of the call");
    text.append(&tabled_remark(&first, "c", datatype, &outline, CONTRACT));
    text.append("#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n");
    let file = TabledFile { name: &name, outline: &outline };
    file.structure(&mut text);
    for head in file.heads() {
        text.line(format_args!("{head};"));
    }
    text.empty_line();
    text.line("_Static_assert(sizeof(ptrdiff_t) >= 8, \"places need addresses of 64 bits\");");
    text.empty_line();
    for (number, fixed) in outline.fixed().iter().enumerate() {
        let name = format!("{name}_fixed_{number}");
        File { name: &name, outline: fixed, linkage: "static " }.functions(&mut text);
        text.empty_line();
    }
    for (number, node) in outline.nodes() {
        if let TabledNode::Indexed { offsets, .. } = node {
            file.list(number, offsets, &mut text);
        }
    }
    file.sizes(&mut text);
    for direction in DIRECTIONS {
        let moves = Moves { file: &file, direction };
        for (number, node) in outline.nodes() {
            moves.node(number, node, &mut text);
        }
    }
    for (place, direction) in DIRECTIONS.into_iter().enumerate() {
        Moves { file: &file, direction }.entries(&mut text);
        if place == 0 {
            text.empty_line();
        }
    }
    Ok(text.into_string())
}

/// A header for C and C++ that declares the functions of [`tabled_c`] and the structure of the tables, and has the bounds of the type as macros.
///
/// # Errors
///
/// Those of [`tabled_c`].
///
/// ```
/// use dtc_compiler::codegen::source;
/// let pages = "table 0 2048 512 32768 (contiguous 32768 byte)".parse()?;
/// let header = source::tabled_c_header("pages", &pages)?;
/// assert!(header.contains("#define PAGES_MOST_BYTES 16777216"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tabled_c_header(name: &str, datatype: &TabledDatatype) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = TabledOutline::new(datatype)?;
    let (upper, layout) = (name.to_uppercase(), outline.layout());
    let mut text = Text::default();
    let first = format!("{name}: functions that pack and unpack the datatype, with index tables of the call");
    text.append(&tabled_remark(&first, "c", datatype, &outline, CONTRACT));
    text.line(format_args!("#ifndef {upper}_H"));
    text.line(format_args!("#define {upper}_H"));
    text.append("\n#include <stddef.h>\n#include <stdint.h>\n\n");
    text.line(
        "/* Packed bytes with the longest tables; the first byte of memory and its end, whatever the tables hold. */",
    );
    text.line(format_args!("#define {upper}_MOST_BYTES {}", layout.most_bytes()));
    for (what, number) in [("TRUE_LB", layout.true_lb()), ("TRUE_UB", layout.true_ub())] {
        text.line(format_args!("#define {upper}_{what} ({})", constant(number)));
    }
    text.append("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    let file = TabledFile { name: &name, outline: &outline };
    file.structure(&mut text);
    for head in file.heads() {
        // C++ has no `restrict`, which is no part of a type that is declared.
        text.line(format_args!("{};", head.replace("*restrict ", "*")));
    }
    text.append("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    Ok(text.into_string())
}

/// What callers promise.
const CONTRACT: &str = "\
memory   address of the type
packed   the packed bytes; in a fragment, those from `offset` on
tables   the index tables and how many entries each has, at most as many as said above
offset   in bytes, from the first packed byte
length   packed bytes to move; a fragment may begin and end inside of any element

An entry that is no place of its table, and an address that is NULL, is skipped: its bytes stay as they are on both
sides. Memory and packed bytes do not overlap, and may have any alignment. No other byte is read or written.";

/// What functions of nodes have beside memory and packed bytes.
const REST: &str = "size_t first, size_t last, const TABLES *tables, const size_t *size";

struct TabledFile<'a> {
    name: &'a str,
    outline: &'a TabledOutline,
}

impl TabledFile<'_> {
    /// The structure of the tables.
    fn structure(&self, text: &mut Text) {
        let (name, upper) = (self.name, self.name.to_uppercase());
        let indices = |kind: &TableKind| matches!(kind, TableKind::Places(_));
        if self.outline.tables().any(|(_, kind, _)| indices(&kind)) {
            text.line(format_args!("/* The type of entries: signed, of 32 or 64 bits. */\n#ifndef {upper}_ENTRY"));
            text.line(format_args!("#define {upper}_ENTRY int32_t\n#endif"));
            text.empty_line();
        }
        text.open(format_args!("struct {name}_tables"));
        for (number, kind, bounds) in self.outline.tables() {
            let entries = match kind {
                TableKind::Places(_) => format!("const {upper}_ENTRY *"),
                TableKind::Addresses(_) => "void *const *".to_owned(),
            };
            text.line(format_args!("{entries}table{number}; /* {bounds} */"));
            text.line(format_args!("size_t length{number};"));
        }
        text.close("};");
        text.empty_line();
    }

    /// The heads of the functions that the file is for.
    fn heads(&self) -> Vec<String> {
        let mut heads = vec![format!("size_t {0}_size(const struct {0}_tables *tables)", self.name)];
        heads.extend(DIRECTIONS.map(|direction| self.head(direction, false)));
        heads.extend(DIRECTIONS.map(|direction| self.head(direction, true)));
        heads
    }

    fn head(&self, direction: Direction, fragment: bool) -> String {
        let name = self.name;
        let sides = match direction {
            Direction::Pack => "const void *restrict memory, void *restrict packed",
            Direction::Unpack => "const void *restrict packed, void *restrict memory",
        };
        let (suffix, part) = if fragment { ("_fragment", "size_t offset, size_t length, ") } else { ("", "") };
        format!("void {name}_{direction}{suffix}({sides}, {part}const struct {name}_tables *tables)")
    }

    fn list(&self, number: usize, offsets: &[i64], text: &mut Text) {
        text.line(format_args!("static const int64_t {}_offsets_{number}[{}] = {{", self.name, offsets.len()));
        for offset in offsets {
            text.line(format_args!("    {},", constant(*offset)));
        }
        text.line("};");
        text.empty_line();
    }

    /// The function that says how many packed bytes the nodes have.
    fn sizes(&self, text: &mut Text) {
        let (name, nodes) = (self.name, self.outline.layout().nodes().len());
        text.line("/* Packed bytes of the parts that have index tables. */");
        text.function(format_args!("static void {name}_sizes(const struct {name}_tables *tables, size_t *size)"));
        let sizes = self.outline.sizes_by_tables(|table| format!("tables->length{table}"));
        for (number, expression) in &sizes {
            text.line(format_args!("size[{number}] = {expression};"));
        }
        text.close("}");
        text.empty_line();
        text.function(format_args!("size_t {name}_size(const struct {name}_tables *tables)"));
        text.line(format_args!("size_t size[{nodes}];"));
        text.line(format_args!("{name}_sizes(tables, size);"));
        text.line(format_args!("return {};", self.outline.size(self.outline.layout().root())));
        text.close("}");
        text.empty_line();
    }
}

/// The functions that move the bytes of nodes in one direction.
struct Moves<'a> {
    file: &'a TabledFile<'a>,
    direction: Direction,
}

impl Moves<'_> {
    fn name(&self, number: usize) -> String {
        format!("{}_{}_node_{number}", self.file.name, self.direction)
    }

    /// A call that moves a range of a child's packed bytes.
    fn child(&self, child: &TabledEdge, displacement: &str, range: &str) -> String {
        let place = if displacement.is_empty() { "place".to_owned() } else { format!("place + {displacement}") };
        let place = plus(&place, child.offset);
        format!("{}(memory, {place}, packed, {range}, tables, size);", self.name(child.node.index()))
    }

    /// The function that moves packed bytes `first` to `last` of a node. Byte `first` is at `packed`.
    fn node(&self, number: usize, node: &TabledNode, text: &mut Text) {
        let sides = match self.direction {
            Direction::Pack => "const unsigned char *memory, ptrdiff_t place, unsigned char *packed",
            Direction::Unpack => "unsigned char *memory, ptrdiff_t place, const unsigned char *packed",
        };
        let rest = REST.replace("TABLES", &format!("struct {}_tables", self.file.name));
        let head = format!("static void {}(", self.name(number));
        text.function(format_args!("{head}{sides},\n{:indent$}{rest})", "", indent = head.len()));
        match node {
            TabledNode::Fixed { fixed } => self.fixed(*fixed, text),
            TabledNode::Stream { stride, child, .. } => {
                self.copies(child, text);
                text.line(self.child(child, &format!("(ptrdiff_t)copy * {}", constant(*stride)), "begin, end"));
                self.next_copy(text);
            }
            TabledNode::Indexed { child, .. } => {
                self.copies(child, text);
                let list = format!("{}_offsets_{number}[copy]", self.file.name);
                text.line(self.child(child, &list, "begin, end"));
                self.next_copy(text);
            }
            TabledNode::Table { table, places, pitch, child } => {
                self.copies(child, text);
                text.line(format_args!("const int64_t entry = tables->table{table}[copy];"));
                text.line(format_args!("if (entry >= 0 && entry < {places})"));
                text.indent();
                text.line(self.child(child, &format!("(ptrdiff_t)entry * {}", constant(*pitch)), "begin, end"));
                text.outdent();
                self.next_copy(text);
            }
            TabledNode::Addresses { table, child } => {
                text.line("(void)memory;");
                self.copies(child, text);
                let constant = if self.direction == Direction::Pack { "const " } else { "" };
                text.line(format_args!("{constant}unsigned char *const address = tables->table{table}[copy];"));
                text.line("if (address != NULL)");
                text.indent();
                text.line(self.child(child, "", "begin, end").replacen("memory", "address", 1));
                text.outdent();
                self.next_copy(text);
            }
            TabledNode::Record { parts } => self.record(parts, text),
        }
        text.close("}");
        text.empty_line();
    }

    fn fixed(&self, fixed: usize, text: &mut Text) {
        let (name, direction) = (self.file.name, self.direction);
        let size = self.file.outline.layout().fixed_layouts()[fixed].size();
        let sides = match direction {
            Direction::Pack => "memory + place, packed",
            Direction::Unpack => "packed, memory + place",
        };
        text.line("(void)tables;");
        text.line("(void)size;");
        text.open(format_args!("if (last - first == {size})"));
        text.line(format_args!("{name}_fixed_{fixed}_{direction}({sides}, 1);"));
        text.close("} else {");
        text.indent();
        text.line(format_args!("{name}_fixed_{fixed}_{direction}_fragment({sides}, first, last - first);"));
        text.close("}");
    }

    /// Begins a loop over copies of a child: `begin` to `end` are the packed bytes to move of the copy with the number `copy`.
    fn copies(&self, child: &TabledEdge, text: &mut Text) {
        text.line(format_args!("const size_t bytes = {};", self.file.outline.size(*child)));
        text.empty_line();
        text.open("for (size_t copy = first < last ? first / bytes : 0; copy * bytes < last; copy++)");
        text.line("const size_t start = copy * bytes;");
        text.line("const size_t begin = start < first ? first - start : 0;");
        text.line("const size_t end = last - start < bytes ? last - start : bytes;");
    }

    fn next_copy(&self, text: &mut Text) {
        text.line("packed += end - begin;");
        text.close("}");
    }

    /// The parts of a record that a range reaches, one after the other.
    fn record(&self, parts: &[TabledEdge], text: &mut Text) {
        if parts.is_empty() {
            for parameter in ["memory", "place", "packed", "first", "last", "tables", "size"] {
                text.line(format_args!("(void){parameter};"));
            }
            return;
        }
        text.line("size_t start = 0, bytes;");
        for part in parts {
            text.empty_line();
            text.line(format_args!("bytes = {};", self.file.outline.size(*part)));
            text.open("if (first < start + bytes && start < last)");
            text.line("const size_t begin = start < first ? first - start : 0;");
            text.line("const size_t end = last - start < bytes ? last - start : bytes;");
            text.line(self.child(part, "", "begin, end"));
            text.line("packed += end - begin;");
            text.close("}");
            text.line("start += bytes;");
        }
    }

    /// The functions for all packed bytes and for a fragment of them.
    fn entries(&self, text: &mut Text) {
        let (file, direction) = (self.file, self.direction);
        let layout = file.outline.layout();
        let (root, nodes) = (layout.root(), layout.nodes().len());
        for (fragment, range) in
            [(false, ("0", file.outline.size(root))), (true, ("offset", "offset + length".to_owned()))]
        {
            text.function(file.head(direction, fragment));
            text.line(format_args!("size_t size[{nodes}];"));
            text.line(format_args!("{}_sizes(tables, size);", file.name));
            let (first, last) = range;
            let place = constant(root.offset);
            text.line(format_args!(
                "{}(memory, {place}, packed, {first}, {last}, tables, size);",
                self.name(root.node.index())
            ));
            text.close("}");
            if !fragment {
                text.empty_line();
            }
        }
    }
}
