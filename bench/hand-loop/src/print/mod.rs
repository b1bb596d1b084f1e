//! Prints the loops of a description as C: one loop per block level, typed by the basic element, an output pointer that
//! runs. What a person would not write is not written: no sorting, no merging across fields, no blocking, no intrinsics.

mod alignment;
mod place;
mod tables;

use crate::description::{Axis, Bytes, Description, Element, Form, Lengths, Node, NodeId};
use alignment::{Alignment, alignments};
use place::{IN_MEMORY, Place, Scope, View};
use std::fmt::Write;
use tables::Tables;

/// Prints C with `pack`, `unpack` and the constants that a driver asks for, all with a prefix to their names. With `files`, long lists
/// are returned, each with the name of its file and symbol, and the C includes the files.
pub fn print(description: &Description, prefix: &str, files: bool) -> (String, Vec<(String, Vec<u8>)>) {
    let alignments = alignments(description);
    let mut tables = Tables::new(prefix, files);
    let mut functions = String::new();
    for direction in [Direction::Pack, Direction::Unpack] {
        let mut printer = Printer {
            description,
            alignments: &alignments,
            direction,
            prefix,
            tables: &mut tables,
            text: String::new(),
        };
        for id in 0..description.nodes.len() {
            if printer.is_function(id) {
                printer.function(id);
            }
        }
        printer.entry();
        functions.push_str(&printer.text);
    }
    let facts = &description.nodes[description.root].facts;
    let mut text = String::new();
    writeln!(text, "/* {} */", description.story.replace("*/", "")).expect(IN_MEMORY);
    text.push_str("#include <string.h>\n\n");
    for (name, value) in [
        ("packed_bytes", facts.size),
        ("extent_bytes", facts.extent()),
        ("true_lower_bytes", facts.true_lower),
        ("true_upper_bytes", facts.true_upper),
    ] {
        writeln!(text, "extern const long {prefix}{name};\nconst long {prefix}{name} = {value};").expect(IN_MEMORY);
    }
    writeln!(text, "void {prefix}pack(const char *memory, char *packed, long count);").expect(IN_MEMORY);
    writeln!(text, "void {prefix}unpack(char *memory, const char *packed, long count);\n").expect(IN_MEMORY);
    text.push_str(&tables.text);
    text.push_str(&functions);
    (text, tables.files)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Pack,
    Unpack,
}

struct Printer<'parts> {
    description: &'parts Description,
    alignments: &'parts [Alignment],
    direction: Direction,
    prefix: &'parts str,
    tables: &'parts mut Tables,
    text: String,
}

impl<'parts> Printer<'parts> {
    fn node_at(&self, id: NodeId) -> &'parts Node {
        &self.description.nodes[id]
    }

    /// Qualifiers of the memory side and of the packed side.
    const fn qualifiers(&self) -> (&'static str, &'static str) {
        match self.direction {
            Direction::Pack => ("const ", ""),
            Direction::Unpack => ("", "const "),
        }
    }

    const fn verb(&self) -> &'static str {
        match self.direction {
            Direction::Pack => "pack",
            Direction::Unpack => "unpack",
        }
    }

    const fn stream(&self) -> &'static str {
        match self.direction {
            Direction::Pack => "out",
            Direction::Unpack => "in",
        }
    }

    /// Whether a node is used in several places and long enough to be a function of its own.
    fn is_function(&self, id: NodeId) -> bool {
        let node = self.node_at(id);
        node.references > 1 && node.facts.dense.is_none() && node.facts.size > 0
    }

    /// The view in which a node can be written wherever it occurs.
    fn view_of(&self, id: NodeId) -> View {
        let facts = &self.node_at(id).facts;
        let alignment = self.alignments[id];
        match facts.element {
            Some(element)
                if element.by_value
                    && facts.step % element.bytes == 0
                    && alignment.memory % element.bytes == 0
                    && alignment.packed % element.bytes == 0 =>
            {
                View::Elements(element)
            }
            _ => View::Bytes,
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        for _ in 0..indent {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn function_name(&self, id: NodeId) -> String {
        let name = self.node_at(id).name.as_deref().unwrap_or("type");
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{}{}_{name}_{id}", self.prefix, self.verb())
    }

    /// A shared node: takes the pointers, returns where the packed bytes go on.
    fn function(&mut self, id: NodeId) {
        let view = self.view_of(id);
        let (memory, packed) = self.qualifiers();
        let (c_type, stream, name) = (view.c_type(), self.stream(), self.function_name(id));
        self.line(
            0,
            &format!(
                "static {packed}{c_type} *{name}({memory}{c_type} *restrict data, {packed}{c_type} *restrict {stream})"
            ),
        );
        self.line(0, "{");
        self.body(id, &Place::default(), Scope { view, data: "data", stream, loops: 0, indent: 1 });
        self.line(1, &format!("return {stream};"));
        self.line(0, "}\n");
    }

    /// `pack` or `unpack` itself.
    fn entry(&mut self) {
        let root = self.description.root;
        let facts = &self.node_at(root).facts;
        let view = self.view_of(root);
        let (memory, packed) = self.qualifiers();
        let (c_type, stream) = (view.c_type(), self.stream());
        let (verb, prefix) = (self.verb(), self.prefix);
        self.line(
            0,
            &format!("void {prefix}{verb}({memory}char *restrict memory, {packed}char *restrict packed, long count)"),
        );
        self.line(0, "{");
        if facts.size == 0 {
            self.line(1, "(void)memory, (void)packed, (void)count;");
            self.line(0, "}\n");
            return;
        }
        let cast = |qualifier: &str, value: &str| match view {
            View::Bytes => value.to_owned(),
            View::Elements(_) => format!("({qualifier}{c_type} *)({value})"),
        };
        self.line(1, &format!("{packed}{c_type} *{stream} = {};", cast(packed, "packed")));
        self.line(1, "for (long e = 0; e < count; e++) {");
        let element = format!("memory + e * {}L", facts.extent());
        self.line(2, &format!("{memory}{c_type} *data = {};", cast(memory, &element)));
        self.node(root, &Place::default(), Scope { view, data: "data", stream, loops: 0, indent: 2 });
        self.line(1, "}");
        self.line(0, "}\n");
    }

    /// A node inside others: called, given pointers of its own type, or written in place.
    fn node(&mut self, id: NodeId, place: &Place, scope: Scope) {
        let facts = &self.node_at(id).facts;
        if facts.size == 0 {
            return;
        }
        if self.is_function(id) {
            self.call(id, place, scope);
            return;
        }
        let view = self.view_of(id);
        // Bytes are never unaligned, and a char view is what they are.
        if scope.view != View::Bytes || view == View::Bytes || view.unit() == 1 {
            self.body(id, place, scope);
            return;
        }
        self.viewed(view, place, scope, |printer, place, scope| printer.body(id, place, scope));
    }

    fn call(&mut self, id: NodeId, place: &Place, scope: Scope) {
        let view = self.view_of(id);
        let (memory, packed) = self.qualifiers();
        let (name, stream) = (self.function_name(id), scope.stream);
        let data = format!("{} + {}", scope.data, place.text(scope.view.unit()));
        let text = if view.c_type() == scope.view.c_type() {
            format!("{stream} = {name}({data}, {stream});")
        } else {
            let (inner, outer) = (view.c_type(), scope.view.c_type());
            format!("{stream} = ({packed}{outer} *){name}(({memory}{inner} *)({data}), ({packed}{inner} *){stream});")
        };
        self.line(scope.indent, &text);
    }

    /// One element, moved.
    fn element(&mut self, element: Element, place: &Place, scope: Scope) {
        let at = place.text(scope.view.unit());
        let Scope { data, stream, indent, .. } = scope;
        if scope.view == View::Bytes && element.bytes > 1 {
            let copy = match self.direction {
                Direction::Pack => format!("memcpy({stream}, {data} + {at}, {});", element.bytes),
                Direction::Unpack => format!("memcpy({data} + {at}, {stream}, {});", element.bytes),
            };
            self.line(indent, &copy);
            self.line(indent, &format!("{stream} += {};", element.bytes));
        } else {
            let assign = match self.direction {
                Direction::Pack => format!("*{stream}++ = {data}[{at}];"),
                Direction::Unpack => format!("{data}[{at}] = *{stream}++;"),
            };
            self.line(indent, &assign);
        }
    }

    /// A run of elements without gaps; `limit` is a number or the text of one.
    fn run(&mut self, element: Element, limit: &str, place: &Place, scope: Scope) {
        if limit == "1" {
            self.element(element, place, scope);
            return;
        }
        self.repeat(limit, element.bytes, place, scope, |printer, place, scope| {
            printer.element(element, place, scope);
        });
    }

    /// A loop from 0 to `limit`, left away where it turns once.
    fn repeat(
        &mut self,
        limit: &str,
        stride: Bytes,
        place: &Place,
        scope: Scope,
        body: impl FnOnce(&mut Self, &Place, Scope),
    ) {
        if limit == "1" {
            body(self, place, scope);
            return;
        }
        let variable = scope.variable();
        self.line(scope.indent, &format!("for (long {variable} = 0; {variable} < {limit}; {variable}++) {{"));
        body(self, &place.with(&variable, stride), scope.inside());
        self.line(scope.indent, "}");
    }

    /// `length` copies of a child, an extent apart; `length` is a number or the text of one.
    fn copies(&mut self, length: &str, child: NodeId, place: &Place, scope: Scope) {
        let facts = &self.node_at(child).facts;
        match (facts.dense, facts.element) {
            (Some(dense), Some(element)) if facts.extent() == facts.size || length == "1" => {
                let limit = match length.parse::<i64>() {
                    Ok(number) => (number * dense).to_string(),
                    Err(_) if dense == 1 => length.to_owned(),
                    Err(_) => format!("{length} * {dense}L"),
                };
                let view = self.view_of(child);
                if scope.view == View::Bytes && view != View::Bytes && view.unit() > 1 {
                    // The run gets a pointer of its own type, once, not one per copy.
                    self.viewed(view, place, scope, |printer, place, scope| printer.run(element, &limit, place, scope));
                } else {
                    self.run(element, &limit, place, scope);
                }
            }
            _ => {
                let extent = facts.extent();
                self.repeat(length, extent, place, scope, |printer, place, scope| printer.node(child, place, scope));
            }
        }
    }

    /// What is inside a view, given pointers of its type.
    fn viewed(&mut self, view: View, place: &Place, scope: Scope, inside: impl FnOnce(&mut Self, &Place, Scope)) {
        let (memory, packed) = self.qualifiers();
        let (c_type, outer, offset) = (view.c_type(), scope.stream, place.text(1));
        self.line(scope.indent, "{");
        let inner = Scope { view, data: "field", stream: "next", indent: scope.indent + 1, ..scope };
        self.line(inner.indent, &format!("{memory}{c_type} *field = ({memory}{c_type} *)({} + {offset});", scope.data));
        self.line(inner.indent, &format!("{packed}{c_type} *next = ({packed}{c_type} *){outer};"));
        inside(self, &Place::default(), inner);
        self.line(inner.indent, &format!("{outer} = ({packed}char *)next;"));
        self.line(scope.indent, "}");
    }

    /// The loops of a node, in the view of the scope.
    fn body(&mut self, id: NodeId, place: &Place, scope: Scope) {
        let node = self.node_at(id);
        if let (Some(dense), Some(element)) = (node.facts.dense, node.facts.element) {
            self.run(element, &dense.to_string(), place, scope);
            return;
        }
        match &node.form {
            Form::Named(parts) => {
                for &(displacement, element, count) in parts {
                    self.run(element, &count.to_string(), &place.plus(displacement), scope);
                }
            }
            Form::Wrapped(child) => self.node(*child, place, scope),
            Form::Repeat { count, blocklength, stride_bytes, child } => {
                let (child, length) = (*child, blocklength.to_string());
                self.repeat(&count.to_string(), *stride_bytes, place, scope, |printer, place, scope| {
                    printer.copies(&length, child, place, scope);
                });
            }
            Form::List { lengths, displacements, unit_bytes, child } => {
                self.list(lengths, displacements, *unit_bytes, *child, place, scope);
            }
            Form::Struct(fields) => {
                for &(length, displacement, child) in fields {
                    if length > 0 && self.node_at(child).facts.size > 0 {
                        self.copies(&length.to_string(), child, &place.plus(displacement), scope);
                    }
                }
            }
            Form::Grid { axes, child } => self.grid(axes, *child, place, scope),
        }
    }

    fn list(
        &mut self,
        lengths: &Lengths,
        displacements: &[i64],
        unit_bytes: Bytes,
        child: NodeId,
        place: &Place,
        scope: Scope,
    ) {
        let equal = match lengths {
            Lengths::Equal(length) => Some(*length),
            Lengths::Each(lengths) => lengths.first().copied().filter(|first| lengths.iter().all(|one| one == first)),
        };
        if let [displacement] = displacements {
            let length = equal.expect("a list of one block has one length").to_string();
            self.copies(&length, child, &place.plus(displacement * unit_bytes), scope);
            return;
        }
        let variable = scope.variable();
        // Byte displacements are listed in the unit of the loop, as indices into the typed array.
        let (values, scale) = if unit_bytes == 1 {
            (displacements.iter().map(|value| value / scope.view.unit()).collect(), scope.view.unit())
        } else {
            (displacements.to_vec(), unit_bytes)
        };
        let table = self.tables.name(values);
        let length = match (equal, lengths) {
            (Some(length), _) => length.to_string(),
            (None, Lengths::Each(lengths)) => {
                format!("{}[{variable}]", self.tables.name(lengths.clone()))
            }
            (None, Lengths::Equal(length)) => length.to_string(),
        };
        let count = displacements.len();
        self.line(scope.indent, &format!("for (long {variable} = 0; {variable} < {count}; {variable}++) {{"));
        let place = place.with(&format!("{table}[{variable}]"), scale);
        self.copies(&length, child, &place, scope.inside());
        self.line(scope.indent, "}");
    }

    fn grid(&mut self, axes: &[Axis], child: NodeId, place: &Place, scope: Scope) {
        let Some((axis, inner)) = axes.split_first() else {
            self.copies("1", child, place, scope);
            return;
        };
        let start = place.plus(axis.first * axis.stride_bytes);
        let facts = &self.node_at(child).facts;
        if axis.is_one_run() {
            let length = (axis.end_of_run() - axis.first).to_string();
            if inner.is_empty() && axis.stride_bytes == facts.extent() {
                self.copies(&length, child, &start, scope);
            } else {
                self.repeat(&length, axis.stride_bytes, &start, scope, |printer, place, scope| {
                    printer.grid(inner, child, place, scope);
                });
            }
            return;
        }
        // Blocks dealt out in turn: the outer loop goes from block to block, the inner one through a block.
        let block = scope.variable();
        let within = scope.inside();
        let index = within.variable();
        let Axis { first, limit, cycle, block: length, .. } = axis;
        self.line(scope.indent, &format!("for (long {block} = {first}; {block} < {limit}; {block} += {cycle}) {{"));
        if *length == 1 {
            self.grid(inner, child, &place.with(&block, axis.stride_bytes), within);
        } else {
            let bounds = format!("{index} < {block} + {length} && {index} < {limit}");
            self.line(within.indent, &format!("for (long {index} = {block}; {bounds}; {index}++) {{"));
            self.grid(inner, child, &place.with(&index, axis.stride_bytes), within.inside());
            self.line(within.indent, "}");
        }
        self.line(scope.indent, "}");
    }
}
