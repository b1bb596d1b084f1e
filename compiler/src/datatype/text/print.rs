//! Datatypes in the notation.

use crate::datatype::{Constructor, Datatype, Distribution, GivenBounds, Order, Predefined, TypeId};
use std::fmt::{self, Write};

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
    let shared = datatype.shared();
    let mut names = vec![None; datatype.root().index() + 1];
    for (number, id) in shared.iter().enumerate() {
        names[id.index()] = Some(number + 1);
    }
    let mut text = String::new();
    for (number, &id) in shared.iter().enumerate() {
        put(&mut text, format_args!("let t{} = ", number + 1));
        tree(&mut text, datatype, id, &names);
        text.push_str(";\n");
    }
    tree(&mut text, datatype, datatype.root(), &names);
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

enum Step {
    Node(TypeId),
    Close,
    /// Before an entry of a struct: `, ` unless it is the first, blocklength and displacement.
    Entry(bool, i64, i64),
    EndOfStruct,
}

/// Prints what `root` is, and names in place of shared nodes below it. The steps that remain are a list, so that depth
/// costs no stack.
fn tree(text: &mut String, datatype: &Datatype, root: TypeId, names: &[Option<usize>]) {
    let mut steps = vec![Step::Node(root)];
    while let Some(step) = steps.pop() {
        let id = match step {
            Step::Close => {
                text.push(')');
                continue;
            }
            Step::EndOfStruct => {
                text.push(']');
                continue;
            }
            Step::Entry(comma, blocklength, displacement) => {
                text.push_str(if comma { ", " } else { "" });
                put(text, format_args!("{blocklength}@{displacement} "));
                continue;
            }
            Step::Node(id) => id,
        };
        if let Some(name) = names[id.index()].filter(|_| id != root) {
            put(text, format_args!("t{name}"));
            continue;
        }
        let node = datatype.own(id);
        let plain = matches!(node.constructor, Constructor::Named(_)) && node.given.is_none();
        if id != root && !plain {
            text.push('(');
            steps.push(Step::Close);
        }
        if let Some(GivenBounds { lb, extent }) = node.given {
            put(text, format_args!("given {lb} {extent} "));
        }
        let children = datatype.own_children(id);
        match &node.constructor {
            Constructor::Named(predefined) => text.push_str(&lower(*predefined)),
            Constructor::Struct { blocklengths, displacements_bytes } => {
                text.push_str("struct [");
                steps.push(Step::EndOfStruct);
                let entries = blocklengths.iter().zip(displacements_bytes).zip(children).enumerate();
                for (position, ((&blocklength, &displacement), child)) in entries.rev() {
                    steps.push(Step::Node(child));
                    steps.push(Step::Entry(position > 0, blocklength, displacement));
                }
            }
            constructor => {
                text.push_str(constructor.name());
                text.push(' ');
                arguments(text, constructor);
                steps.extend(children.into_iter().map(Step::Node));
            }
        }
    }
}

/// The arguments of a constructor with one child, each followed by a blank.
fn arguments(text: &mut String, constructor: &Constructor) {
    match constructor {
        Constructor::Named(_) | Constructor::Struct { .. } | Constructor::Dup => {}
        Constructor::Contiguous { count } => put(text, format_args!("{count} ")),
        Constructor::Vector { count, blocklength, stride }
        | Constructor::Hvector { count, blocklength, stride_bytes: stride } => {
            put(text, format_args!("{count} {blocklength} {stride} "));
        }
        Constructor::Indexed { blocklengths, displacements }
        | Constructor::Hindexed { blocklengths, displacements_bytes: displacements } => {
            list(text, blocklengths.iter().zip(displacements), |text, (blocklength, displacement)| {
                put(text, format_args!("{blocklength}@{displacement}"));
            });
        }
        Constructor::IndexedBlock { blocklength, displacements }
        | Constructor::HindexedBlock { blocklength, displacements_bytes: displacements } => {
            put(text, format_args!("{blocklength} "));
            list(text, displacements, |text, displacement| put(text, format_args!("{displacement}")));
        }
        Constructor::Subarray { sizes, subsizes, starts, order } => {
            put(text, format_args!("{} ", name_of(*order)));
            list(text, sizes.iter().zip(subsizes).zip(starts), |text, ((size, subsize), start)| {
                put(text, format_args!("{subsize}@{start} of {size}"));
            });
        }
        Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
            put(text, format_args!("{} {rank} of {size} ", name_of(*order)));
            list(text, gsizes.iter().zip(distributions).zip(psizes), |text, ((elements, distribution), processes)| {
                match distribution {
                    Distribution::Block(None) => text.push_str("block"),
                    Distribution::Block(Some(length)) => put(text, format_args!("block({length})")),
                    Distribution::Cyclic(None) => text.push_str("cyclic"),
                    Distribution::Cyclic(Some(length)) => put(text, format_args!("cyclic({length})")),
                    Distribution::None => text.push_str("none"),
                }
                put(text, format_args!(" {elements} over {processes}"));
            });
        }
        Constructor::Resized { lb, extent } => put(text, format_args!("{lb} {extent} ")),
    }
}

fn name_of(order: Order) -> &'static str {
    match order {
        Order::C => "c",
        Order::Fortran => "fortran",
    }
}

fn list<T>(text: &mut String, items: impl IntoIterator<Item = T>, print: impl Fn(&mut String, T)) {
    text.push('[');
    for (position, item) in items.into_iter().enumerate() {
        text.push_str(if position > 0 { ", " } else { "" });
        print(text, item);
    }
    text.push_str("] ");
}

/// Writing to a string cannot fail.
fn put(text: &mut String, piece: fmt::Arguments) {
    text.write_fmt(piece).expect("a string takes every text");
}
