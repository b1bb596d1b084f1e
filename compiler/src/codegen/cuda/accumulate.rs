//! Kernels that unpack with an operation.

use super::template::{TemplateError, render};
use crate::operation::{Element, Operation, Reduction};
use minijinja::context;

/// The name of the generic kernel, which computes every reduction.
pub const GENERIC_ACCUMULATE_ENTRY: &str = "dtc_generic_accumulate";

/// Threads of its blocks; each has an element.
pub const GENERIC_ACCUMULATE_THREADS: u32 = 256;

/// A reduction as the generic kernel reads it: the numbers of operation and element, and the bytes of the element.
pub(super) fn generic_reduction(reduction: Reduction) -> u32 {
    let element = reduction.element();
    reduction.operation() as u32 | (element as u32) << 8 | (element.size() as u32) << 16
}

/// What combines two elements, and the names that it goes by.
pub(super) fn library() -> String {
    let names = |names: Vec<String>| names.join(", ");
    let operations = names(Operation::ALL.iter().map(|operation| format!("{operation:?}")).collect());
    let elements = names(Element::ALL.iter().map(|element| format!("{element:?}")).collect());
    format!(
        "\nstruct Operation {{\n    enum {{ {operations} }};\n}};\n\nstruct Element {{\n    enum {{ {elements} }};\n}};\n{}",
        dtc_templates::COMBINE
    )
}

/// The generic kernel, behind the interpreter.
pub(super) fn generic() -> Result<String, TemplateError> {
    let threads = GENERIC_ACCUMULATE_THREADS;
    let body = render("accumulate_elements", &context! { threads })?;
    let entry = GENERIC_ACCUMULATE_ENTRY;
    let kernel = render(
        "entry",
        &context! { entry, threads, resident => 1, shared => false, capped => false, call => "Program" },
    )?;
    Ok(format!("\nnamespace generic_accumulate {{\n\n{body}\n{kernel}\n}}\n"))
}
