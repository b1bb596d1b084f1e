//! A CUDA C++ header with which a program's own kernels pack and unpack a type with index tables.

use super::address::Address;
use super::cuda_header::{WORDS, begin_guard, end_guard, move_by_widest};
use super::names::identifier;
use super::outline::TooLarge;
use super::tabled_outline::{TabledOutline, tabled_remark};
use super::tables::ArrayNames;
use super::text::{Text, constant, plus, wrapped};
use crate::datatype::{TableKind, TabledDatatype};
use crate::tabled::{TabledEdge, TabledNode};

/// A CUDA C++ header with a struct of the [`identifier`] of a name: bounds as constants, the structure of the tables, `bytes`, the
/// address function `place`, and `pack` and `unpack`, which all threads of a block call together.
///
/// The header needs no other. Entries of the tables are of any integer type. An entry that is no place of its table is skipped.
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
/// let header = source::tabled_cuda_header("pages", &pages)?;
/// assert!(header.contains("struct pages {"));
/// assert!(header.contains("const Entry *table0;"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tabled_cuda_header(name: &str, datatype: &TabledDatatype) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = TabledOutline::new(datatype)?;
    let layout = outline.layout();
    let mut text = Text::default();
    let first = format!("{name}: device functions that pack and unpack the datatype, with index tables of the call");
    text.append(&tabled_remark(&first, "cuda-header", datatype, &outline, CONTRACT));
    let hash = outline.mark();
    begin_guard(&name, &hash, &mut text);
    let lists: Vec<ArrayNames> = outline
        .fixed()
        .iter()
        .enumerate()
        .map(|(number, fixed)| ArrayNames::write(fixed, &format!("{name}_fixed_{number}"), &WORDS, &mut text))
        .collect();
    for (number, node) in outline.nodes() {
        if let TabledNode::Indexed { offsets, .. } = node {
            let array = format!("{name}_offsets_{number}");
            text.line(format_args!("static __device__ const long long {array}[{}] = {{", offsets.len()));
            text.append(&wrapped(offsets.iter().map(|&offset| format!("{},", constant(offset))), "    ", 110));
            text.line("};");
            text.empty_line();
        }
    }
    text.open(format_args!("struct {name}"));
    text.line(format_args!("static constexpr unsigned long long most_bytes = {};", layout.most_bytes()));
    for (what, number) in [("true_lb", layout.true_lb()), ("true_ub", layout.true_ub())] {
        text.line(format_args!("static constexpr long long {what} = {};", constant(number)));
    }
    text.empty_line();
    let header = TabledHeader { name: &name, outline: &outline };
    header.structure(&mut text);
    header.sizes(&mut text);
    for (number, (fixed, lists)) in outline.fixed().iter().zip(&lists).enumerate() {
        let prefix = format!("fixed_{number}_");
        let address = Address {
            outline: fixed,
            tables: lists,
            signed: "long long",
            index: "unsigned int",
            run: false,
            name: &prefix,
        };
        fixed_places(&address, &mut text);
    }
    for (number, node) in outline.nodes() {
        header.node(number, node, &mut text);
    }
    header.place(&mut text);
    text.append(MOVE);
    header.pack_and_unpack(&mut text);
    text.close("};");
    end_guard(&name, &hash, &mut text);
    Ok(text.into_string())
}

/// What callers promise.
const CONTRACT: &str = "\
most_bytes, true_lb, true_ub   packed bytes with the longest tables; bounds in memory, whatever the tables hold

tables<Entry>   the tables of a call, on the device or readable by it, and how many entries each has, at most as many as
            said above. Entry is any integer type.
bytes(tables)   packed bytes of a call
place(memory, at, tables)   the address of packed byte `at`, or a null pointer if an entry skips it. `at` is an unsigned long
            long, or an unsigned int below 2^31, which costs less.

pack(memory, packed, offset, length, tables)   moves packed bytes `offset` to `offset + length` of the elements at
unpack(memory, packed, offset, length, tables) `memory` to `packed`, or back. All threads of a block call it with equal
            arguments; blocks share a transfer by taking fragments of it. Nothing is waited for: values that other
            threads of the block wrote are there behind __syncthreads().

An entry that is no place of its table, and an address that is 0, is skipped: its bytes stay as they are on both sides.
Memory and packed bytes do not overlap. Words are as wide as the type, the addresses and the fragment allow; offsets that
are multiples of 16 allow most.";

/// What both directions share.
const MOVE: &str = "
    template <typename Word, bool PACK, typename Index, typename Entry>
    static __device__ __forceinline__ void move_words(unsigned char *there, unsigned char *here, Index offset, Index words,
                                                      const tables<Entry> &tables)
    {
        const unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
        const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        for (Index at = thread; at < words; at += threads) {
            Word *const memory = (Word *)place(there, (Index)(offset + at * sizeof(Word)), tables);
            Word *const packed = (Word *)here + at;
            if (memory == nullptr)
                continue;
            if (PACK) {
                *packed = *memory;
            } else {
                *memory = *packed;
            }
        }
    }

    template <typename Word, bool PACK, typename Entry>
    static __device__ __forceinline__ void move(unsigned char *there, unsigned char *here, unsigned long long offset,
                                                unsigned long long length, const tables<Entry> &tables)
    {
        /* Numbers of 32 bits are divided faster. */
        if (offset + length < 0x80000000) {
            move_words<Word, PACK>(there, here, (unsigned int)offset, (unsigned int)(length / sizeof(Word)), tables);
        } else {
            move_words<Word, PACK>(there, here, offset, length / sizeof(Word), tables);
        }
    }
";

/// The address functions of a fixed layout, from packed bytes to bytes from its origin.
fn fixed_places(address: &Address<'_>, text: &mut Text) {
    let mut function = |name: &str, write: &dyn Fn(&mut Text)| {
        text.line("template <typename Index>");
        text.function(format_args!("static __device__ __forceinline__ long long {name}(Index at)"));
        write(text);
        text.close("}");
        text.empty_line();
    };
    for (number, id) in address.outline.functions() {
        function(&address.part(number), &|text| address.node(id, 0, text));
    }
    let (root, origin) = (address.outline.root(), address.outline.origin());
    function(&format!("{}place", address.name), &|text| address.node(root, origin, text));
}

struct TabledHeader<'a> {
    name: &'a str,
    outline: &'a TabledOutline,
}

impl TabledHeader<'_> {
    /// The structure of the tables.
    fn structure(&self, text: &mut Text) {
        text.line("template <typename Entry>");
        text.open("struct tables");
        for (number, kind, bounds) in self.outline.tables() {
            let entries = match kind {
                TableKind::Places(_) => "const Entry *",
                TableKind::Addresses(_) => "void *const *",
            };
            text.line(format_args!("{entries}table{number}; /* {bounds} */"));
            text.line(format_args!("unsigned long long length{number};"));
        }
        text.close("};");
        text.empty_line();
    }

    /// The numbers of packed bytes that depend on the tables, and those of a call.
    fn sizes(&self, text: &mut Text) {
        let nodes = self.outline.layout().nodes().len();
        text.line("/* In 32 bits, a size that no position reaches is one past the last position. */");
        text.line("template <typename Index, typename Entry>");
        text.function("static __device__ __forceinline__ void sizes(const tables<Entry> &tables, Index *sizes)");
        text.line(format_args!("unsigned long long size[{nodes}];"));
        for (number, expression) in self.outline.sizes_by_tables(|table| format!("tables.length{table}")) {
            text.line(format_args!("size[{number}] = {expression};"));
            text.line(format_args!(
                "sizes[{number}] = (Index)(sizeof(Index) < 8 && size[{number}] > 0x80000000 ? 0x80000000 : size[{number}]);"
            ));
        }
        text.close("}");
        text.empty_line();
        text.line("template <typename Entry>");
        text.function("static __device__ __forceinline__ unsigned long long bytes(const tables<Entry> &tables)");
        text.line(format_args!("unsigned long long size[{nodes}];"));
        text.line("sizes(tables, size);");
        text.line(format_args!("return {};", self.outline.size(self.outline.layout().root())));
        text.close("}");
        text.empty_line();
    }

    /// Says where byte `at` of a child is.
    fn child(&self, child: &TabledEdge, text: &mut Text) {
        if child.offset != 0 {
            text.line(format_args!("{};", plus("place", child.offset).replacen(' ', " = place ", 1)));
        }
        text.line(format_args!("return node_{}(base, place, at, tables, size);", child.node.index()));
    }

    /// Leaves the copy of a child that byte `at` is in as `copy`, and the byte within the copy as `at`.
    fn copy(&self, child: &TabledEdge, text: &mut Text) {
        let bytes = self.outline.size(*child);
        text.line(format_args!("const Index copy = at / {bytes};"));
        text.line(format_args!("at -= copy * {bytes};"));
    }

    /// The function of a node: adds to `place` where byte `at` is from `base`, or returns false.
    fn node(&self, number: usize, node: &TabledNode, text: &mut Text) {
        text.line("template <typename Index, typename Entry>");
        let head = format!("static __device__ __forceinline__ bool node_{number}(");
        text.function(format_args!(
            "{head}unsigned char *&base, long long &place, Index at,\n{:indent$}const tables<Entry> &tables, const Index *size)",
            "",
            indent = 4 + head.len()
        ));
        match node {
            TabledNode::Fixed { fixed } => {
                text.line(format_args!("place += fixed_{fixed}_place(at);"));
                text.line("return true;");
            }
            TabledNode::Stream { stride, child, .. } => {
                self.copy(child, text);
                text.line(format_args!("place += (long long)copy * {};", constant(*stride)));
                self.child(child, text);
            }
            TabledNode::Indexed { child, .. } => {
                self.copy(child, text);
                text.line(format_args!("place += {}_offsets_{number}[copy];", self.name));
                self.child(child, text);
            }
            TabledNode::Table { table, places, pitch, child } => {
                self.copy(child, text);
                text.line(format_args!("const long long entry = (long long)tables.table{table}[copy];"));
                text.line(format_args!("if ((unsigned long long)entry >= {places})"));
                text.indent();
                text.line("return false;");
                text.outdent();
                text.line(format_args!("place += entry * {};", constant(*pitch)));
                self.child(child, text);
            }
            TabledNode::Addresses { table, child } => {
                self.copy(child, text);
                text.line(format_args!("base = (unsigned char *)tables.table{table}[copy];"));
                text.line("if (base == nullptr)");
                text.indent();
                text.line("return false;");
                text.outdent();
                self.child(child, text);
            }
            TabledNode::Record { parts } => self.record(parts, text),
        }
        text.close("}");
        text.empty_line();
    }

    /// The part of a record that byte `at` is in, one after the other.
    fn record(&self, parts: &[TabledEdge], text: &mut Text) {
        let Some((last, others)) = parts.split_last() else { return text.line("return false;") };
        for part in others {
            let bytes = self.outline.size(*part);
            text.open(format_args!("if (at < {bytes})"));
            self.child(part, text);
            text.close("}");
            text.line(format_args!("at -= {bytes};"));
        }
        self.child(last, text);
    }

    fn place(&self, text: &mut Text) {
        let layout = self.outline.layout();
        text.line("template <typename Index, typename Entry>");
        text.function(
            "static __device__ __forceinline__ unsigned char *place(unsigned char *memory, Index at, const tables<Entry> &tables)",
        );
        text.line(format_args!("Index size[{}];", layout.nodes().len()));
        text.line("sizes(tables, size);");
        text.line(format_args!("long long place = {};", constant(layout.root().offset)));
        let root = layout.root().node.index();
        text.line(format_args!("return node_{root}(memory, place, at, tables, size) ? memory + place : nullptr;"));
        text.close("}");
    }

    fn pack_and_unpack(&self, text: &mut Text) {
        for direction in ["pack", "unpack"] {
            let is_pack = direction == "pack";
            let sides = if is_pack { "const void *memory, void *packed" } else { "void *memory, const void *packed" };
            let head = format!("static __device__ __forceinline__ void {direction}(");
            text.empty_line();
            text.line("template <typename Entry>");
            text.function(format_args!(
                "{head}{sides}, unsigned long long offset,\n{:indent$}unsigned long long length, const tables<Entry> &tables)",
                "",
                indent = 4 + head.len()
            ));
            let call = |word: &str| format!("move<{word}, {is_pack}>(there, here, offset, length, tables);");
            move_by_widest(self.outline.layout().granularity(), &call, text);
            text.close("}");
        }
    }
}
