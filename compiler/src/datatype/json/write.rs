//! Datatypes as JSON.

use crate::datatype::{Constructor, Datatype, Distribution, Order, TypeId};
use std::fmt::Write;

/// The description of a datatype: a tree, or named trees if a node other than a predefined type is shared.
///
/// Reading it again gives the same type with the same sharing, except that equal predefined types become one node.
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder, json};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let row = types.contiguous(5, double)?;
/// let face = types.finish(row)?;
/// let text = r#"{"kind": "contiguous", "count": 5, "child": {"kind": "named", "name": "MPI_DOUBLE"}}"#;
/// assert_eq!(json::write(&face), text);
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
pub fn write(datatype: &Datatype) -> String {
    let shared = datatype.shared();
    let mut names = vec![None; datatype.root().index() + 1];
    for (number, id) in shared.iter().enumerate() {
        names[id.index()] = Some(number + 1);
    }
    let mut text = String::new();
    if shared.is_empty() {
        tree(&mut text, datatype, datatype.root(), &names);
        return text;
    }
    text.push_str("{\"types\": {\n");
    for (number, &id) in shared.iter().enumerate() {
        put(&mut text, format_args!("  \"t{}\": ", number + 1));
        tree(&mut text, datatype, id, &names);
        text.push_str(",\n");
    }
    text.push_str("  \"root\": ");
    tree(&mut text, datatype, datatype.root(), &names);
    text.push_str("\n}, \"root\": \"root\"}");
    text
}

enum Step {
    Node(TypeId),
    Text(&'static str),
    /// The end of a node, after its children.
    Close(TypeId),
}

/// Writes what `root` is, and names in place of shared nodes below it. The steps that remain are a list, not a stack
/// of calls, so that depth costs no stack.
fn tree(text: &mut String, datatype: &Datatype, root: TypeId, names: &[Option<usize>]) {
    let mut steps = vec![Step::Node(root)];
    while let Some(step) = steps.pop() {
        let id = match step {
            Step::Text(piece) => {
                text.push_str(piece);
                continue;
            }
            Step::Close(id) => {
                if let Some(given) = datatype.own(id).given {
                    put(text, format_args!(", \"facts\": {{\"lb\": {}, \"extent\": {}}}", given.lb, given.extent));
                }
                text.push('}');
                continue;
            }
            Step::Node(id) => id,
        };
        if let Some(name) = names[id.index()].filter(|_| id != root) {
            put(text, format_args!("{{\"ref\": \"t{name}\"}}"));
            continue;
        }
        let constructor = &datatype.own(id).constructor;
        put(text, format_args!("{{\"kind\": \"{}\"", constructor.name()));
        arguments(text, constructor);
        steps.push(Step::Close(id));
        let children = datatype.own_children(id);
        match constructor {
            Constructor::Named(_) => {}
            Constructor::Struct { .. } => {
                text.push_str(", \"children\": [");
                steps.push(Step::Text("]"));
                for (position, &child) in children.iter().enumerate().rev() {
                    steps.push(Step::Node(child));
                    if position > 0 {
                        steps.push(Step::Text(", "));
                    }
                }
            }
            _ => {
                text.push_str(", \"child\": ");
                steps.extend(children.into_iter().map(Step::Node));
            }
        }
    }
}

fn arguments(text: &mut String, constructor: &Constructor) {
    match constructor {
        Constructor::Named(predefined) => put(text, format_args!(", \"name\": \"{}\"", predefined.name())),
        Constructor::Contiguous { count } => number(text, "count", *count),
        Constructor::Vector { count, blocklength, stride } => {
            number(text, "count", *count);
            number(text, "blocklength", *blocklength);
            number(text, "stride", *stride);
        }
        Constructor::Hvector { count, blocklength, stride_bytes } => {
            number(text, "count", *count);
            number(text, "blocklength", *blocklength);
            number(text, "stride_bytes", *stride_bytes);
        }
        Constructor::Indexed { blocklengths, displacements } => {
            numbers(text, "blocklengths", blocklengths);
            numbers(text, "displacements", displacements);
        }
        Constructor::Hindexed { blocklengths, displacements_bytes }
        | Constructor::Struct { blocklengths, displacements_bytes } => {
            numbers(text, "blocklengths", blocklengths);
            numbers(text, "displacements_bytes", displacements_bytes);
        }
        Constructor::IndexedBlock { blocklength, displacements } => {
            number(text, "blocklength", *blocklength);
            numbers(text, "displacements", displacements);
        }
        Constructor::HindexedBlock { blocklength, displacements_bytes } => {
            number(text, "blocklength", *blocklength);
            numbers(text, "displacements_bytes", displacements_bytes);
        }
        Constructor::Subarray { sizes, subsizes, starts, order } => {
            numbers(text, "sizes", sizes);
            numbers(text, "subsizes", subsizes);
            numbers(text, "starts", starts);
            write_order(text, *order);
        }
        Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
            number(text, "size", *size);
            number(text, "rank", *rank);
            numbers(text, "gsizes", gsizes);
            text.push_str(", \"distributions\": [");
            for (position, distribution) in distributions.iter().enumerate() {
                text.push_str(if position > 0 { ", " } else { "" });
                match distribution {
                    Distribution::Block(None) => text.push_str("\"block\""),
                    Distribution::Block(Some(length)) => put(text, format_args!("{{\"block\": {length}}}")),
                    Distribution::Cyclic(None) => text.push_str("\"cyclic\""),
                    Distribution::Cyclic(Some(length)) => put(text, format_args!("{{\"cyclic\": {length}}}")),
                    Distribution::None => text.push_str("\"none\""),
                }
            }
            text.push(']');
            numbers(text, "psizes", psizes);
            write_order(text, *order);
        }
        Constructor::Resized { lb, extent } => {
            number(text, "lb", *lb);
            number(text, "extent", *extent);
        }
        Constructor::Dup => {}
    }
}

fn write_order(text: &mut String, order: Order) {
    text.push_str(match order {
        Order::C => ", \"order\": \"C\"",
        Order::Fortran => ", \"order\": \"Fortran\"",
    });
}

fn number(text: &mut String, key: &str, number: i64) {
    put(text, format_args!(", \"{key}\": {number}"));
}

fn numbers(text: &mut String, key: &str, numbers: &[i64]) {
    put(text, format_args!(", \"{key}\": ["));
    for (position, number) in numbers.iter().enumerate() {
        text.push_str(if position > 0 { ", " } else { "" });
        put(text, format_args!("{number}"));
    }
    text.push(']');
}

/// Writing to a string cannot fail.
fn put(text: &mut String, piece: std::fmt::Arguments) {
    text.write_fmt(piece).expect("a string takes every text");
}
