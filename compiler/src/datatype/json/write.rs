//! Datatypes as JSON.

use crate::datatype::written::{Names, list, put};
use crate::datatype::{Argument, Constructor, Datatype, Distribution, Order, TabledDatatype};

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
    let names = Names::new(datatype);
    let mut text = String::new();
    if names.shared.is_empty() {
        tree(&mut text, datatype, &names);
        return text;
    }
    text.push_str("{\"types\": {\n");
    for (number, node) in names.shared.iter().enumerate() {
        put(&mut text, format_args!("  \"t{}\": ", number + 1));
        tree(&mut text, node, &names);
        text.push_str(",\n");
    }
    text.push_str("  \"root\": ");
    tree(&mut text, datatype, &names);
    text.push_str("\n}, \"root\": \"root\"}");
    text
}

/// The description of a type that may have index tables. See [`read_tabled`](super::read_tabled).
pub fn write_tabled(datatype: &TabledDatatype) -> String {
    write(datatype.root())
}

enum WriteStep<'a> {
    Node(&'a Datatype),
    Text(&'static str),
    /// The end of a node, after its children.
    Close(&'a Datatype),
}

/// Writes what `root` is, and names in place of shared nodes below it. The steps that remain are a list, not a stack
/// of calls, so that depth costs no stack.
fn tree(text: &mut String, root: &Datatype, names: &Names) {
    let mut steps = vec![WriteStep::Node(root)];
    while let Some(step) = steps.pop() {
        let node = match step {
            WriteStep::Text(piece) => {
                text.push_str(piece);
                continue;
            }
            WriteStep::Close(node) => {
                if let Some(given) = node.given() {
                    put(text, format_args!(", \"facts\": {{\"lb\": {}, \"extent\": {}}}", given.lb, given.extent));
                }
                text.push('}');
                continue;
            }
            WriteStep::Node(node) => node,
        };
        if let Some(name) = names.of(node).filter(|_| !node.is(root)) {
            put(text, format_args!("{{\"ref\": \"t{name}\"}}"));
            continue;
        }
        put(text, format_args!("{{\"kind\": \"{}\"", node.constructor().name()));
        arguments(text, node.constructor());
        steps.push(WriteStep::Close(node));
        match (node.constructor(), node.children()) {
            (Constructor::Struct { .. }, children) => {
                text.push_str(", \"children\": [");
                steps.push(WriteStep::Text("]"));
                for (position, child) in children.iter().enumerate().rev() {
                    steps.push(WriteStep::Node(child));
                    if position > 0 {
                        steps.push(WriteStep::Text(", "));
                    }
                }
            }
            (_, []) => {}
            (_, children) => {
                text.push_str(", \"child\": ");
                steps.extend(children.iter().map(WriteStep::Node));
            }
        }
    }
}

fn arguments(text: &mut String, constructor: &Constructor) {
    if let Constructor::Named(predefined) = constructor {
        put(text, format_args!(", \"name\": \"{}\"", predefined.name()));
    }
    for (key, argument) in constructor.arguments() {
        if !matches!(argument, Argument::Length(_)) {
            put(text, format_args!(", \"{key}\": "));
        }
        match argument {
            Argument::Length(_) => {}
            Argument::Integer(number) | Argument::Address(number) => put(text, format_args!("{number}")),
            Argument::Integers(numbers) | Argument::Addresses(numbers) => {
                list(text, numbers, |text, number| put(text, format_args!("{number}")));
            }
            Argument::Order(Order::C) => text.push_str("\"C\""),
            Argument::Order(Order::Fortran) => text.push_str("\"Fortran\""),
            Argument::Distributions(distributions) => {
                list(text, distributions, |text, distribution| match distribution {
                    Distribution::Block(None) => text.push_str("\"block\""),
                    Distribution::Block(Some(length)) => put(text, format_args!("{{\"block\": {length}}}")),
                    Distribution::Cyclic(None) => text.push_str("\"cyclic\""),
                    Distribution::Cyclic(Some(length)) => put(text, format_args!("{{\"cyclic\": {length}}}")),
                    Distribution::None => text.push_str("\"none\""),
                })
            }
        }
    }
}
