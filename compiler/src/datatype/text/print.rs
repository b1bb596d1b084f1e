//! Datatypes in the notation.

use crate::datatype::written::{Names, list, put};
use crate::datatype::{Argument, Constructor, Datatype, Distribution, GivenBounds, Order, Predefined};
use std::fmt;

/// The notation of a datatype; what is shared, except predefined types, is named `t1`, `t2` and so on.
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder, text};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let row = types.contiguous(5, double)?;
/// let face = types.vector(12, 1, 14, row)?;
/// assert_eq!(text::print(&types.finish(face)?), "vector 12 1 14 (contiguous 5 double)");
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
pub fn print(datatype: &Datatype) -> String {
    let names = Names::new(datatype);
    let mut text = String::new();
    for (number, node) in names.shared.iter().enumerate() {
        put(&mut text, format_args!("let t{} = ", number + 1));
        tree(&mut text, node, &names);
        text.push_str(";\n");
    }
    tree(&mut text, datatype, &names);
    text
}

impl fmt::Display for Datatype {
    /// Prints the notation of [`text`](super).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// The name of a predefined type in the notation.
pub(super) fn lower(predefined: Predefined) -> String {
    predefined.name().trim_start_matches("MPI_").to_ascii_lowercase()
}

enum PrintStep<'a> {
    Node(&'a Datatype),
    Close,
    /// Before an entry of a struct: `, ` unless it is the first, blocklength and displacement.
    Entry(bool, i64, i64),
    EndOfStruct,
}

/// Prints what `root` is, and names in place of shared nodes below it. The steps that remain are a list, so that depth
/// costs no stack.
fn tree(text: &mut String, root: &Datatype, names: &Names) {
    let mut steps = vec![PrintStep::Node(root)];
    while let Some(step) = steps.pop() {
        let node = match step {
            PrintStep::Close => {
                text.push(')');
                continue;
            }
            PrintStep::EndOfStruct => {
                text.push(']');
                continue;
            }
            PrintStep::Entry(comma, blocklength, displacement) => {
                text.push_str(if comma { ", " } else { "" });
                put(text, format_args!("{blocklength}@{displacement} "));
                continue;
            }
            PrintStep::Node(node) => node,
        };
        if let Some(name) = names.of(node).filter(|_| !node.is(root)) {
            put(text, format_args!("t{name}"));
            continue;
        }
        let plain = matches!(node.constructor(), Constructor::Named(_)) && node.given().is_none();
        if !node.is(root) && !plain {
            text.push('(');
            steps.push(PrintStep::Close);
        }
        if let Some(GivenBounds { lb, extent }) = node.given() {
            put(text, format_args!("given {lb} {extent} "));
        }
        match node.constructor() {
            Constructor::Named(predefined) => text.push_str(&lower(*predefined)),
            Constructor::Struct { blocklengths, displacements_bytes } => {
                text.push_str("struct [");
                steps.push(PrintStep::EndOfStruct);
                let entries = blocklengths.iter().zip(displacements_bytes.iter()).zip(node.children()).enumerate();
                for (position, ((&blocklength, &displacement), child)) in entries.rev() {
                    steps.push(PrintStep::Node(child));
                    steps.push(PrintStep::Entry(position > 0, blocklength, displacement));
                }
            }
            constructor => {
                text.push_str(constructor.name());
                text.push(' ');
                arguments(text, constructor);
                steps.extend(node.children().iter().map(PrintStep::Node));
            }
        }
    }
}

/// The arguments of a constructor with one child, each followed by a blank. Lists of one length are one list of their items.
fn arguments(text: &mut String, constructor: &Constructor) {
    match constructor {
        Constructor::Subarray { sizes, subsizes, starts, order } => {
            put(text, format_args!("{} ", name_of(*order)));
            list(text, sizes.iter().zip(subsizes.iter()).zip(starts.iter()), |text, ((size, subsize), start)| {
                put(text, format_args!("{subsize}@{start} of {size}"));
            });
        }
        Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
            put(text, format_args!("{} {rank} of {size} ", name_of(*order)));
            list(
                text,
                gsizes.iter().zip(distributions.iter()).zip(psizes.iter()),
                |text, ((elements, distribution), processes)| {
                    match distribution {
                        Distribution::Block(None) => text.push_str("block"),
                        Distribution::Block(Some(length)) => put(text, format_args!("block({length})")),
                        Distribution::Cyclic(None) => text.push_str("cyclic"),
                        Distribution::Cyclic(Some(length)) => put(text, format_args!("cyclic({length})")),
                        Distribution::None => text.push_str("none"),
                    }
                    put(text, format_args!(" {elements} over {processes}"));
                },
            );
        }
        Constructor::Indexed { blocklengths, displacements }
        | Constructor::Hindexed { blocklengths, displacements_bytes: displacements } => {
            list(text, blocklengths.iter().zip(displacements.iter()), |text, (blocklength, displacement)| {
                put(text, format_args!("{blocklength}@{displacement}"));
            });
        }
        others => {
            for (_, argument) in others.arguments() {
                match argument {
                    Argument::Integer(number) | Argument::Address(number) => put(text, format_args!("{number} ")),
                    Argument::Integers(numbers) | Argument::Addresses(numbers) => {
                        list(text, numbers, |text, number| put(text, format_args!("{number}")));
                        text.push(' ');
                    }
                    Argument::Length(_) | Argument::Order(_) | Argument::Distributions(_) => {}
                }
            }
            return;
        }
    }
    text.push(' ');
}

fn name_of(order: Order) -> &'static str {
    match order {
        Order::C => "c",
        Order::Fortran => "fortran",
    }
}
