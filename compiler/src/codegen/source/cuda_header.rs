//! A CUDA C++ header with which a program's own kernels pack and unpack a type.

use super::address::Address;
use super::names::identifier;
use super::nest::LoopNest;
use super::outline::{Outline, TooLarge};
use super::remark::remark;
use super::tables::{ArrayNames, Words};
use super::text::{Text, constant};
use crate::pipeline::Pipeline;
use crate::plan::gpu::Granularity;

/// How CUDA C++ writes lists.
pub(super) const WORDS: Words = Words {
    array: "static __device__ const",
    narrow: ["int", "unsigned int"],
    wide: ["long long", "unsigned long long"],
};

/// A CUDA C++ header with a struct of the [`identifier`] of a name: sizes as constants, the address function `place`, and `pack` and
/// `unpack`, which all threads of a block call together.
///
/// The header needs no other, so NVRTC compiles it too. The functions are static members, so that a kernel may take the struct as a
/// template argument. Two types of one name in a program are an `#error`. The functions of a type without bytes do nothing.
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
/// let header = source::cuda_header("columns", &columns)?;
/// assert!(header.contains("struct columns {"));
/// assert!(header.contains("static __device__ __forceinline__ long long place(Index at)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cuda_header(name: &str, pipeline: &Pipeline) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = Outline::new(pipeline.layout())?;
    let layout = outline.layout();
    let mut text = Text::default();
    let first = format!("{name}: device functions that pack and unpack the datatype");
    let nest = LoopNest::of(&outline);
    let contract = CONTRACT.replace("POSITION", if nest.is_some() { POSITION } else { "" });
    text.append(&remark(&first, "cuda-header", pipeline, &outline, &contract));
    let hash: String = pipeline.hash().as_bytes().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    begin_guard(&name, &hash, &mut text);
    let tables = ArrayNames::write(&outline, &name, &WORDS, &mut text);
    text.open(format_args!("struct {name}"));
    for (kind, what, number) in [
        ("unsigned long long", "size", layout.size() as i64),
        ("long long", "extent", layout.extent()),
        ("long long", "true_lb", layout.true_lb()),
        ("long long", "true_ub", layout.true_ub()),
    ] {
        text.line(format_args!("static constexpr {kind} {what} = {};", constant(number)));
    }
    text.empty_line();
    if layout.size() == 0 {
        text.append(NOTHING);
    } else {
        let address = Address {
            outline: &outline,
            tables: &tables,
            signed: "long long",
            index: "unsigned int",
            run: false,
            name: "",
        };
        functions(&address, nest.as_ref(), &mut text);
    }
    text.close("};");
    end_guard(&name, &hash, &mut text);
    Ok(text.into_string())
}

/// Begins what a program has once, also if it includes the header twice. `hash` are digits of the hash of the type.
pub(super) fn begin_guard(name: &str, hash: &str, text: &mut Text) {
    text.line(format_args!("#ifndef DTC_TYPE_{name}"));
    text.line(format_args!("#define DTC_TYPE_{name} 0x{hash}"));
    text.empty_line();
}

/// Ends it, and refuses a second type of the name.
pub(super) fn end_guard(name: &str, hash: &str, text: &mut Text) {
    text.empty_line();
    text.line(format_args!("#elif DTC_TYPE_{name} != 0x{hash}"));
    text.line(format_args!(
        "#error \"two types are named {name}: give the file of one another name, and emit it again\""
    ));
    text.line("#endif");
}

/// What callers promise.
const CONTRACT: &str = "\
size, extent, true_lb, true_ub   of an element, in bytes

place(at)   where packed byte `at` lies, in bytes from the address of the type; element i is at i * extent. Beyond the
            first element too. Any integer is taken; unsigned int costs less than unsigned long long.
POSITION
pack(memory, packed, offset, length)   moves packed bytes `offset` to `offset + length` of the elements at `memory` to
unpack(memory, packed, offset, length) `packed`, or back. All threads of a block call it with equal arguments; blocks
            share a transfer by taking fragments of it. Nothing is waited for: values that other threads of the block
            wrote are there behind __syncthreads().

Memory and packed bytes do not overlap. Words are as wide as the type, the addresses and the fragment allow; offsets that
are multiples of 16 allow most.";

/// The same of the function that only some types have.
const POSITION: &str = "
position(place)   which packed byte lies there: `at`, if `place` is place(at). For places of the type alone. By it a thread
            stores what it has computed into the packed bytes, without reading it again.
";

/// The functions of a type without bytes.
const NOTHING: &str = "    template <typename Index>
    static __device__ __forceinline__ long long place(Index)
    {
        return 0;
    }

    static __device__ __forceinline__ void pack(const void *, void *, unsigned long long, unsigned long long) {}

    static __device__ __forceinline__ void unpack(void *, const void *, unsigned long long, unsigned long long) {}
";

fn functions(address: &Address<'_>, nest: Option<&LoopNest>, text: &mut Text) {
    let outline = address.outline;
    let mut function = |name: &str, root: bool, write: &dyn Fn(&mut Text)| {
        text.line("template <typename Index>");
        text.function(format_args!("static __device__ __forceinline__ long long {name}(Index at)"));
        write(text);
        text.close("}");
        if !root {
            text.empty_line();
        }
    };
    for (number, id) in outline.functions() {
        function(&address.part(number), false, &|text| address.node(id, 0, text));
    }
    function("place", true, &|text| address.elements(text));
    if let Some(nest) = nest {
        text.empty_line();
        nest.position(text);
    }
    text.append(PACK);
    for direction in ["pack", "unpack"] {
        let is_pack = direction == "pack";
        let sides = if is_pack { "const void *memory, void *packed" } else { "void *memory, const void *packed" };
        let head = format!("static __device__ __forceinline__ void {direction}(");
        text.empty_line();
        text.function(format_args!(
            "{head}{sides}, unsigned long long offset,\n{:indent$}unsigned long long length)",
            "",
            indent = FUNCTIONS_INDENT + head.len()
        ));
        let call = |word: &str| format!("move<{word}, {is_pack}>(there, here, offset, length);");
        move_by_widest(Granularity::of(outline.layout()).word(), &call, text);
        text.close("}");
    }
}

/// Statements that move a fragment by the widest words that its type and its addresses allow. `call` moves it by words of a type.
pub(super) fn move_by_widest(widest: u32, call: &dyn Fn(&str) -> String, text: &mut Text) {
    text.line("unsigned char *const there = (unsigned char *)memory, *const here = (unsigned char *)packed;");
    let widths = words(widest);
    if widths.len() > 1 {
        text.line("/* Words are as wide as the lowest bit that is set in any of these allows. */");
        text.line(
            "const unsigned long long bits = (unsigned long long)there | (unsigned long long)here | offset | length;",
        );
    }
    for (place, (bytes, word)) in widths.iter().enumerate() {
        match (place, *bytes) {
            (0, 1) => text.line(call(word)),
            (0, _) => {
                text.open(format_args!("if (bits % {bytes} == 0)"));
                text.line(call(word));
            }
            (_, 1) => {
                text.close("} else {");
                text.indent();
                text.line(call(word));
                text.close("}");
            }
            _ => {
                text.close(&format!("}} else if (bits % {bytes} == 0) {{"));
                text.indent();
                text.line(call(word));
            }
        }
    }
}

/// Columns that functions of the structure are indented by.
const FUNCTIONS_INDENT: usize = 4;

/// The words that a fragment may be moved in: the widest, one of 4 bytes, a byte.
fn words(widest: u32) -> Vec<(u32, &'static str)> {
    let all =
        [(16, "uint4"), (8, "unsigned long long"), (4, "unsigned int"), (2, "unsigned short"), (1, "unsigned char")];
    all.into_iter().filter(|&(bytes, _)| bytes == widest || bytes < widest && matches!(bytes, 1 | 4)).collect()
}

/// What both directions share.
const PACK: &str = "
    template <typename Word, bool PACK, typename Index>
    static __device__ __forceinline__ void move_words(unsigned char *there, unsigned char *here, Index offset, Index words)
    {
        const unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
        const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        for (Index at = thread; at < words; at += threads) {
            Word *const memory = (Word *)(there + place((Index)(offset + at * sizeof(Word))));
            Word *const packed = (Word *)here + at;
            if (PACK) {
                *packed = *memory;
            } else {
                *memory = *packed;
            }
        }
    }

    template <typename Word, bool PACK>
    static __device__ __forceinline__ void move(unsigned char *there, unsigned char *here, unsigned long long offset,
                                                unsigned long long length)
    {
        /* Numbers of 32 bits are divided faster. */
        if (offset + length < 0x80000000) {
            move_words<Word, PACK>(there, here, (unsigned int)offset, (unsigned int)(length / sizeof(Word)));
        } else {
            move_words<Word, PACK>(there, here, offset, length / sizeof(Word));
        }
    }
";
