//! The header of a C file that packs and unpacks a type.

use super::c::{CONTRACT, DIRECTIONS, fragment_head, whole_head};
use super::names::identifier;
use super::outline::{Outline, TooLarge};
use super::remark::remark;
use super::text::{Text, constant};
use crate::pipeline::Pipeline;

/// A header for C and C++ that declares the functions of [`c`](super::c()), and has the size and the bounds of an element as macros.
///
/// # Errors
///
/// Those of [`c`](super::c()).
///
/// ```
/// use dtc_compiler::Pipeline;
/// use dtc_compiler::codegen::source;
/// use dtc_compiler::datatype::text;
/// let columns = Pipeline::new(text::parse("vector 12 5 14 double")?);
/// let header = source::c_header("columns", &columns)?;
/// assert!(header.contains("#define COLUMNS_SIZE 480"));
/// assert!(header.contains("void columns_pack(const void *memory, void *packed, size_t count);"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn c_header(name: &str, pipeline: &Pipeline) -> Result<String, TooLarge> {
    let name = identifier(name);
    let outline = Outline::new(pipeline.layout())?;
    let (upper, layout) = (name.to_uppercase(), outline.layout());
    let mut text = Text::default();
    text.append(&remark(
        &format!("{name}: functions that pack and unpack the datatype"),
        "c",
        pipeline,
        &outline,
        CONTRACT,
    ));
    text.line(format_args!("#ifndef {upper}_H"));
    text.line(format_args!("#define {upper}_H"));
    text.empty_line();
    text.line("#include <stddef.h>");
    text.empty_line();
    text.line("/* Of an element: packed bytes, bytes from one to the next, its first byte and its end in memory. */");
    text.line(format_args!("#define {upper}_SIZE {}", layout.size()));
    let numbers = [("EXTENT", layout.extent()), ("TRUE_LB", layout.true_lb()), ("TRUE_UB", layout.true_ub())];
    for (what, number) in numbers {
        text.line(format_args!("#define {upper}_{what} ({})", constant(number)));
    }
    text.empty_line();
    text.append("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    // C++ has no `restrict`, which is no part of a type that is declared.
    let plain = |head: String| head.replace(" restrict ", " ").replace("*restrict ", "*");
    for direction in DIRECTIONS {
        text.line(format_args!("{};", plain(whole_head(&name, direction))));
    }
    for direction in DIRECTIONS {
        text.line(format_args!("{};", plain(fragment_head(&name, direction))));
    }
    text.append("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    Ok(text.into_string())
}
