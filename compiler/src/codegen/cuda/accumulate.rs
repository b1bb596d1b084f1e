//! Kernels that unpack with an operation.

use super::template::{CodegenError, render, word_type};
use crate::operation::{Element, Operation, Reduction};
use crate::plan::gpu::Accumulation;
use minijinja::{Value, context};
use std::fmt::Debug;

/// The name of the generic kernel, which computes every reduction.
pub const GENERIC_ACCUMULATE_ENTRY: &str = "dtc_generic_accumulate";

/// Threads of its blocks; each has an element.
pub const GENERIC_ACCUMULATE_THREADS: u32 = 256;

/// A reduction as the generic kernel reads it: the numbers of operation and element, and the bytes of the element.
pub(super) fn generic_reduction(reduction: Reduction) -> u32 {
    let element = reduction.element();
    reduction.operation() as u32 | (element as u32) << 8 | (element.size() as u32) << 16
}

/// What combines two elements, and the names that it goes by; and what loads single ones, for kernels that do.
pub(super) fn library(cut: bool) -> String {
    let names = |names: Vec<String>| names.join(", ");
    let operations = names(Operation::ALL.iter().map(name).collect());
    let elements = names(Element::ALL.iter().map(name).collect());
    let at_any_address = if cut { dtc_templates::LOAD_VALUE } else { "" };
    format!(
        "\nstruct Operation {{\n    enum {{ {operations} }};\n}};\n\nstruct Element {{\n    enum {{ {elements} }};\n}};\n{}{at_any_address}",
        dtc_templates::COMBINE
    )
}

fn name(value: &impl Debug) -> String {
    format!("{value:?}")
}

/// What the template needs to know beside what all templates do.
pub(super) fn values(chosen: &Accumulation) -> Value {
    let element = chosen.reduction.element();
    let (unit, size) = (chosen.unit(), element.size() as u32);
    context! {
        unit,
        unroll => chosen.shape.unroll,
        parts => unit / chosen.word,
        elements => unit / size,
        operation => name(&chosen.reduction.operation()),
        element => name(&element),
        element_bytes => size,
        element_mask => format!("{:#x}ull", u64::MAX >> (64 - 8 * size.min(8))),
        aligned => chosen.aligned,
        cut => chosen.cut,
        // Halves that are numbers.
        word_type => if chosen.word == 16 { "ulonglong2" } else { word_type(chosen.word) },
    }
}

/// The generic kernel, behind the interpreter.
pub(super) fn generic() -> Result<String, CodegenError> {
    let threads = GENERIC_ACCUMULATE_THREADS;
    let body = render("accumulate_elements", &context! { threads })?;
    let entry = GENERIC_ACCUMULATE_ENTRY;
    let kernel = render(
        "entry",
        &context! { entry, threads, resident => 1, shared => false, capped => false, call => "Program" },
    )?;
    Ok(format!("\nnamespace generic_accumulate {{\n\n{body}\n{kernel}\n}}\n"))
}
