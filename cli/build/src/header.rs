//! The header of the libraries.

use crate::types::BuiltType;
use std::fmt::Write;

/// The header: two functions of each type.
pub fn write(library: &str, types: &[BuiltType]) -> String {
    let guard = format!("{}_H", macro_name(library));
    let mut text = format!(
        "/*\n * Packs and unpacks datatypes, by functions that dtc {} has compiled for each. They need no library but that of C.\n \
         *\n * `memory` is the address of the first of `count` elements, each an extent from the one before; `packed` that of the\n \
         * packed bytes, `count` times the size. Both may have any alignment, and must not overlap. Functions of `pack` write\n \
         * `packed` alone, functions of `unpack` the bytes of the elements alone. Any thread may call them at any time.\n */\n\
         #ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        env!("CARGO_PKG_VERSION")
    );
    for named in types {
        // Writing to a text cannot fail.
        let _ = declarations(&mut text, named);
    }
    text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// The name of a library in macros.
pub fn macro_name(library: &str) -> String {
    library.to_uppercase().replace(['-', '.'], "_")
}

/// The header of functions that launch kernels: two of each type that has them.
pub fn write_cuda(library: &str, names: &[&str]) -> String {
    let guard = format!("{}_CUDA_H", macro_name(library));
    let mut text = format!(
        "/*\n * Packs and unpacks datatypes in memory that a GPU reaches, by kernels that dtc {} has compiled for each. They need the driver of\n \
         * CUDA, 12.0 or later, which the first call opens.\n *\n * Arguments are those of the functions in {library}.h, and a CUstream or \
         cudaStream_t of the current context. A call enqueues\n * its work and returns: 0, or a CUresult. 3 (CUDA_ERROR_NOT_INITIALIZED) is a \
         machine without libcuda.so.1, 500 (CUDA_ERROR_NOT_FOUND)\n * a driver before 12.0, 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) a GPU before \
         those that the kernels are for, 1 (CUDA_ERROR_INVALID_VALUE)\n * too many bytes. The first call of a type on a device loads its \
         kernels. Any thread may call at any time.\n */\n\
         #ifndef {guard}\n#define {guard}\n\n#include \"{library}.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        env!("CARGO_PKG_VERSION")
    );
    for name in names {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "int {name}_pack_cuda(const void *memory, void *packed, size_t count, void *stream);");
        let _ = writeln!(text, "int {name}_unpack_cuda(const void *packed, void *memory, size_t count, void *stream);");
    }
    text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// Longest description of a type in a comment, in bytes.
const DESCRIPTION: usize = 400;

fn declarations(text: &mut String, BuiltType { name, pipeline, .. }: &BuiltType) -> std::fmt::Result {
    let facts = pipeline.datatype().facts();
    let mut description = pipeline.datatype().to_string().replace("*/", "* /");
    if description.len() > DESCRIPTION {
        description.truncate(description.floor_char_boundary(DESCRIPTION));
        description.push_str(" ...");
    }
    let lines = description.lines().map(|line| format!(" *   {line}\n")).collect::<String>();
    let comment = format!(
        "{lines} *\n * Hash {}. {} bytes packed, extent {} bytes, from byte {} to byte {} of an element.",
        pipeline.hash(),
        facts.size,
        facts.extent(),
        facts.true_lb,
        facts.true_ub
    );
    let upper = name.to_uppercase();
    writeln!(
        text,
        "\n/* `{name}`: packed bytes of an element, bytes from element to element, and its first byte and end in memory. */"
    )?;
    writeln!(text, "#define {upper}_SIZE {}\n#define {upper}_EXTENT ({})", facts.size, facts.extent())?;
    writeln!(text, "#define {upper}_TRUE_LB ({})\n#define {upper}_TRUE_UB ({})", facts.true_lb, facts.true_ub)?;
    writeln!(text, "\n/*\n * Packs elements of\n *\n{comment}\n */")?;
    writeln!(text, "void {name}_pack(const void *memory, void *packed, size_t count);")?;
    writeln!(text, "\n/*\n * Unpacks elements of\n *\n{comment}\n */")?;
    writeln!(text, "void {name}_unpack(const void *packed, void *memory, size_t count);")
}
