//! A C11 file that packs and unpacks a type.

use super::address::Address;
use super::loops::Loops;
use super::names::identifier;
use super::outline::{NodeShape, Outline, TooLarge};
use super::remark::remark;
use super::tables::{ArrayNames, Words};
use super::text::{Text, plus, plus_product};
use crate::pipeline::Pipeline;
use crate::plan::Direction;

const WORDS: Words = Words { array: "static const", narrow: ["int32_t", "uint32_t"], wide: ["int64_t", "uint64_t"] };

/// A C11 file with four functions: `NAME_pack`, `NAME_unpack`, `NAME_pack_fragment` and `NAME_unpack_fragment`, where `NAME` is the
/// [`identifier`] of a name.
///
/// The file needs no other than headers of the standard library, and says above the functions what they expect. The loops are those of
/// the canonical layout, so that equal types have equal code. A type without bytes has functions that do nothing.
///
/// # Errors
///
/// [`TooLarge`] when the layout has more nodes or list entries than a compiler takes.
///
/// # Example
///
/// ```
/// use dtc_compiler::Pipeline;
/// use dtc_compiler::codegen::source;
/// use dtc_compiler::datatype::text;
/// let columns = Pipeline::new(text::parse("vector 12 5 14 double")?);
/// let file = source::c("columns", &columns)?;
/// assert!(file.contains("memcpy(packed, memory + i * 112, 40);"));
/// assert!(file.contains("void columns_unpack(const void *restrict packed, void *restrict memory, size_t count)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn c(name: &str, pipeline: &Pipeline) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = Outline::new(pipeline.layout())?;
    let mut text = Text::default();
    text.append(&remark(&format!("{name}: packs and unpacks the datatype"), "c", pipeline, &outline, CONTRACT));
    text.line("#include <stddef.h>");
    text.line("#include <stdint.h>");
    text.line("#include <string.h>");
    text.empty_line();
    for direction in DIRECTIONS {
        text.line(format_args!("{};", whole_head(&name, direction)));
    }
    for direction in DIRECTIONS {
        text.line(format_args!("{};", fragment_head(&name, direction)));
    }
    text.empty_line();
    File { name: &name, outline: &outline, linkage: "" }.functions(&mut text);
    Ok(text.into_string())
}

pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Pack, Direction::Unpack];

/// What callers promise.
pub(super) const CONTRACT: &str = "\
memory   address of the type: byte 0 of its first element
packed   the packed bytes, one element after the other; in a fragment, those from `offset` on
count    elements
offset   in bytes, from the first packed byte of the first element
length   packed bytes to move; a fragment may begin and end inside of an element

Memory and packed bytes do not overlap, and may have any alignment. No other byte is read or written.";

/// The head of a function that moves whole elements.
pub(super) fn whole_head(name: &str, direction: Direction) -> String {
    match direction {
        Direction::Pack => {
            format!("void {name}_pack(const void *restrict memory, void *restrict packed, size_t count)")
        }
        Direction::Unpack => {
            format!("void {name}_unpack(const void *restrict packed, void *restrict memory, size_t count)")
        }
    }
}

/// The head of a function that moves a fragment.
pub(super) fn fragment_head(name: &str, direction: Direction) -> String {
    let parameters = match direction {
        Direction::Pack => "const void *restrict memory, void *restrict packed",
        Direction::Unpack => "const void *restrict packed, void *restrict memory",
    };
    format!("void {name}_{direction}_fragment({parameters}, size_t offset, size_t length)")
}

/// The functions of a type.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) outline: &'a Outline,
    /// What the heads of the four functions begin with: nothing, or `static` and a space.
    pub(super) linkage: &'static str,
}

/// What the functions for whole elements and for fragments call: the outermost loop or a part of it, or an element.
enum Helper {
    Loop {
        count: u64,
        bytes: u64,
    },
    Element,
    /// An element is one run.
    None,
}

impl File<'_> {
    /// Writes the four functions and those that they call.
    pub(super) fn functions(&self, text: &mut Text) {
        let (name, outline) = (self.name, self.outline);
        let layout = outline.layout();
        if layout.size() == 0 {
            return nothing(name, text);
        }
        let reach = [layout.true_lb(), layout.true_ub(), layout.extent(), layout.size() as i64];
        if reach.iter().any(|&number| i32::try_from(number).is_err()) {
            text.line("_Static_assert(sizeof(ptrdiff_t) >= 8, \"the type needs addresses of 64 bits\");");
            text.empty_line();
        }
        let tables = ArrayNames::write(outline, name, &WORDS, text);
        let prefix = format!("{name}_");
        let address =
            Address { outline, tables: &tables, signed: "ptrdiff_t", index: "size_t", run: true, name: &prefix };
        let continues = layout.contiguous().is_some() && layout.extent() as u64 == layout.size();
        for direction in DIRECTIONS {
            let loops = Loops { outline, tables: &tables, name, direction };
            if continues {
                self.contiguous(&loops, text);
            } else {
                self.whole(&loops, text);
            }
        }
        if continues {
            return;
        }
        self.place(&address, text);
        for (last, direction) in [(false, Direction::Pack), (true, Direction::Unpack)] {
            let loops = Loops { outline, tables: &tables, name, direction };
            self.fragment(&loops, text);
            if !last {
                text.empty_line();
            }
        }
    }

    fn helper(&self) -> Helper {
        let root = self.outline.root();
        match self.outline.shape(root) {
            NodeShape::Bytes(_) | NodeShape::Empty => Helper::None,
            NodeShape::Repeat { count, child, .. } => Helper::Loop { count, bytes: self.outline.size(child) },
            NodeShape::Listed { offsets, child } => {
                Helper::Loop { count: offsets.len() as u64, bytes: self.outline.size(child) }
            }
            NodeShape::Runs(_) | NodeShape::Parts(_) => Helper::Element,
        }
    }

    /// The functions of nodes, the helper, and the function for whole elements.
    fn whole(&self, loops: &Loops<'_>, text: &mut Text) {
        let (name, direction, root) = (self.name, loops.direction, self.outline.root());
        let parameters = loops.parameters();
        for (number, id) in self.outline.functions() {
            text.function(format_args!("static void {}({parameters})", loops.part(number)));
            loops.whole(id, text);
            text.close("}");
            text.empty_line();
        }
        let helper = self.helper();
        match helper {
            Helper::Loop { .. } => {
                text.line("/* Iterations of the outermost loop, from `first` on and without `last`. */");
                text.function(format_args!(
                    "static void {name}_{direction}_loop({parameters},\n{:indent$}ptrdiff_t first, ptrdiff_t last)",
                    "",
                    indent = format!("static void {name}_{direction}_loop(").len()
                ));
                loops.iterations(root, text);
            }
            Helper::Element => {
                text.function(format_args!("static void {name}_{direction}_element({parameters})"));
                loops.whole(root, text);
            }
            Helper::None => {}
        }
        if !matches!(helper, Helper::None) {
            text.close("}");
            text.empty_line();
        }
        let layout = self.outline.layout();
        text.function(format_args!("{}{}", self.linkage, whole_head(name, direction)));
        self.pointers(direction, self.outline.origin(), text);
        text.empty_line();
        text.open("for (size_t element = 0; element < count; element++)");
        let (extent, size) = (layout.extent(), layout.size());
        let at = |pointer: &str, is_memory: bool| match is_memory {
            true => plus_product(pointer, "(ptrdiff_t)element", extent),
            false if size == 1 => format!("{pointer} + element"),
            false => format!("{pointer} + element * {size}"),
        };
        let (memory, packed) = match direction {
            Direction::Pack => (at("from", true), at("to", false)),
            Direction::Unpack => (at("to", true), at("from", false)),
        };
        text.line(match helper {
            Helper::Loop { count, .. } => format!("{name}_{direction}_loop({memory}, {packed}, 0, {count});"),
            Helper::Element => format!("{name}_{direction}_element({memory}, {packed});"),
            Helper::None => loops.copy(&memory, &packed, &size.to_string()),
        });
        text.close("}");
        text.close("}");
        text.empty_line();
    }

    /// The pointers to bytes; that to memory is displaced.
    fn pointers(&self, direction: Direction, origin: i64, text: &mut Text) {
        let displaced = |kind: &str| match origin {
            0 => "memory".to_owned(),
            _ => plus(&format!("({kind}unsigned char *)memory"), origin),
        };
        match direction {
            Direction::Pack => {
                text.line(format_args!("const unsigned char *from = {};", displaced("const ")));
                text.line("unsigned char *to = packed;");
            }
            Direction::Unpack => {
                text.line("const unsigned char *from = packed;");
                text.line(format_args!("unsigned char *to = {};", displaced("")));
            }
        }
    }

    /// Both functions of a type all of whose elements are one run.
    fn contiguous(&self, loops: &Loops<'_>, text: &mut Text) {
        let (name, direction, size) = (self.name, loops.direction, self.outline.layout().size());
        let constant = if direction == Direction::Pack { "const " } else { "" };
        let origin = self.outline.origin();
        let memory = match origin {
            0 => "memory".to_owned(),
            _ => plus(&format!("({constant}unsigned char *)memory"), origin),
        };
        text.function(format_args!("{}{}", self.linkage, whole_head(name, direction)));
        text.line(loops.copy(
            &memory,
            "packed",
            &if size == 1 { "count".to_owned() } else { format!("count * {size}") },
        ));
        text.close("}");
        text.empty_line();
        text.function(format_args!("{}{}", self.linkage, fragment_head(name, direction)));
        let memory = format!("{} + offset", plus(&format!("({constant}unsigned char *)memory"), origin));
        text.line(loops.copy(&memory, "packed", "length"));
        text.close("}");
        if direction == Direction::Pack {
            text.empty_line();
        }
    }

    fn place(&self, address: &Address<'_>, text: &mut Text) {
        for (number, id) in self.outline.functions() {
            text.function(format_args!("static ptrdiff_t {}(size_t at, size_t *run)", address.part(number)));
            address.node(id, 0, text);
            text.close("}");
            text.empty_line();
        }
        text.line("/* Where in memory packed byte `at` of an element lies; `run` packed bytes lie there in a row. */");
        text.function(format_args!("static ptrdiff_t {}_place(size_t at, size_t *run)", self.name));
        address.node(self.outline.root(), self.outline.origin(), text);
        text.close("}");
        text.empty_line();
    }

    fn fragment(&self, loops: &Loops<'_>, text: &mut Text) {
        let (name, direction, layout) = (self.name, loops.direction, self.outline.layout());
        let (size, origin) = (layout.size(), self.outline.origin());
        text.function(format_args!("{}{}", self.linkage, fragment_head(name, direction)));
        self.pointers(direction, 0, text);
        text.empty_line();
        text.open("while (length > 0)");
        let (constant, memory, packed) = match direction {
            Direction::Pack => ("const ", "from", "to"),
            Direction::Unpack => ("", "to", "from"),
        };
        let number = if size == 1 { "offset".to_owned() } else { format!("(offset / {size})") };
        let element = plus_product(memory, &format!("(ptrdiff_t){number}"), layout.extent());
        text.line(format_args!("{constant}unsigned char *element = {element};"));
        let rest = if size == 1 { "0".to_owned() } else { format!("offset % {size}") };
        text.line(format_args!("const size_t at = {rest};"));
        text.line("size_t moved;");
        text.empty_line();
        let memory = plus("element", origin);
        match self.helper() {
            Helper::Loop { count, bytes } => {
                let (boundary, first, whole) = match bytes {
                    1 => (String::new(), "at".to_owned(), "length".to_owned()),
                    _ => (format!("at % {bytes} == 0 && "), format!("at / {bytes}"), format!("length / {bytes}")),
                };
                text.open(format_args!("if ({boundary}length >= {bytes})"));
                text.line(format_args!("const size_t first = {first};"));
                text.line(format_args!(
                    "const size_t iterations = {whole} < {count} - first ? {whole} : {count} - first;"
                ));
                text.line(format_args!(
                    "{name}_{direction}_loop({memory}, {packed}, (ptrdiff_t)first, (ptrdiff_t)(first + iterations));"
                ));
                text.line(match bytes {
                    1 => "moved = iterations;".to_owned(),
                    _ => format!("moved = iterations * {bytes};"),
                });
                text.close("} else {");
                text.indent();
            }
            Helper::Element => {
                text.open(format_args!("if (at == 0 && length >= {size})"));
                text.line(format_args!("{name}_{direction}_element({memory}, {packed});"));
                text.line(format_args!("moved = {size};"));
                text.close("} else {");
                text.indent();
            }
            Helper::None => {}
        }
        text.line(format_args!("const ptrdiff_t place = {name}_place(at, &moved);"));
        text.open("if (moved > length)");
        text.line("moved = length;");
        text.close("}");
        text.line(loops.copy("element + place", packed, "moved"));
        if !matches!(self.helper(), Helper::None) {
            text.close("}");
        }
        text.line(format_args!("{packed} += moved;"));
        text.line("offset += moved;");
        text.line("length -= moved;");
        text.close("}");
        text.close("}");
    }
}

/// The functions of a type without bytes.
fn nothing(name: &str, text: &mut Text) {
    let heads = DIRECTIONS.map(|direction| (whole_head(name, direction), &["count"][..]));
    let fragments = DIRECTIONS.map(|direction| (fragment_head(name, direction), &["offset", "length"][..]));
    for (place, (head, unused)) in heads.into_iter().chain(fragments).enumerate() {
        if place > 0 {
            text.empty_line();
        }
        text.function(head);
        for parameter in ["memory", "packed"].iter().chain(unused) {
            text.line(format_args!("(void){parameter};"));
        }
        text.close("}");
    }
}
