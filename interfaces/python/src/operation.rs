//! The operations of an unpack that combines.

use crate::dtype;
use crate::errors::mismatch;
use dtc_runtime::operation::{Element, Operation, Reduction};
use pyo3::prelude::*;

/// The names of operations.
const OPERATIONS: [(&str, Operation); 10] = [
    ("sum", Operation::Sum),
    ("prod", Operation::Product),
    ("min", Operation::Min),
    ("max", Operation::Max),
    ("land", Operation::LogicalAnd),
    ("lor", Operation::LogicalOr),
    ("lxor", Operation::LogicalXor),
    ("band", Operation::BitwiseAnd),
    ("bor", Operation::BitwiseOr),
    ("bxor", Operation::BitwiseXor),
];

/// The names of types of elements.
const ELEMENTS: [(&str, Element); 15] = [
    ("int8", Element::I8),
    ("int16", Element::I16),
    ("int32", Element::I32),
    ("int64", Element::I64),
    ("uint8", Element::U8),
    ("uint16", Element::U16),
    ("uint32", Element::U32),
    ("uint64", Element::U64),
    ("float16", Element::F16),
    ("bfloat16", Element::Bf16),
    ("float32", Element::F32),
    ("float64", Element::F64),
    ("complex64", Element::C64),
    ("complex128", Element::C128),
    ("bool", Element::B8),
];

/// The reduction of an operation on elements of a type.
pub fn reduction(py: Python<'_>, op: &str, element: &dtype::Element) -> PyResult<Reduction> {
    let name = element.name(py);
    let Some((_, operation)) = OPERATIONS.iter().find(|(known, _)| *known == op) else {
        let known: Vec<&str> = OPERATIONS.iter().map(|(known, _)| *known).collect();
        return Err(mismatch("op", format_args!("one of {}", known.join(", ")), format_args!("{op:?}")));
    };
    let Some((_, element)) = ELEMENTS.iter().find(|(known, _)| *known == name) else {
        return Err(mismatch("op", "elements that are numbers in the order of this machine", name));
    };
    Reduction::new(*operation, *element).map_err(|error| mismatch("op", format_args!("an operation on {name}"), error))
}
