//! A datatype as the calls of MPI's constructors that build it, for the peers that read it: `bench/calls.c`.

use dtc_compiler::datatype::{Argument, Constructor, Datatype, Distribution, GivenBounds, Order};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;

/// The lines of a file that is written call by call.
#[derive(Default)]
struct Calls {
    text: String,
    lines: usize,
}

/// A file of calls, one a line: the constructor, its arguments in MPI's order, and the numbers of the lines that built its children.
/// `None` where a count does not fit an `int`, which the calls of MPI 3 take.
///
/// Equal nodes are built once. Given bounds become a resized type. Arrays without axes or elements, which MPI does not allow, become an
/// unchanged or empty child with the same bounds.
pub fn text(datatype: &Datatype) -> Option<String> {
    let nodes = datatype.nodes();
    let mut calls = Calls::default();
    let mut first_equal: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut lines: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut known = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let children: Vec<usize> = node.children().iter().map(|child| first_equal[nodes.place(child)]).collect();
        let built: Vec<usize> = children.iter().map(|&child| lines[child]).collect();
        let (first, line) = match known.entry((node.constructor(), node.given(), children)) {
            Entry::Occupied(known) => (*known.get(), lines[*known.get()]),
            Entry::Vacant(new) => {
                new.insert(place);
                (place, calls.node(node, &built)?)
            }
        };
        first_equal.push(first);
        lines.push(line);
    }
    Some(calls.text)
}

impl Calls {
    /// Writes a line and returns its number.
    fn line(&mut self, name: &str, arguments: &[i64], children: &[usize]) -> usize {
        self.text.push_str(name);
        for number in arguments {
            // Writing to a string cannot fail.
            let _ = write!(self.text, " {number}");
        }
        for child in children {
            let _ = write!(self.text, " {child}");
        }
        self.text.push('\n');
        self.lines += 1;
        self.lines - 1
    }

    fn node(&mut self, node: &Datatype, children: &[usize]) -> Option<usize> {
        let line = self.plain(node, children)?;
        Some(match node.given() {
            Some(GivenBounds { lb, extent }) => self.line("resized", &[lb, extent], &[line]),
            None => line,
        })
    }

    /// Like `node`, without the given bounds.
    fn plain(&mut self, node: &Datatype, children: &[usize]) -> Option<usize> {
        let constructor = node.constructor();
        match constructor {
            Constructor::Named(predefined) => {
                return Some(self.line(&format!("named {}", predefined.name()), &[], &[]));
            }
            Constructor::Subarray { sizes: axes, subsizes: elements, .. }
            | Constructor::Darray { gsizes: axes @ elements, .. }
                if axes.is_empty() || elements.contains(&0) =>
            {
                let facts = node.facts();
                let child = if axes.is_empty() { children[0] } else { self.line("contiguous", &[0], children) };
                return Some(self.line("resized", &[facts.lb, facts.extent()], &[child]));
            }
            _ => {}
        }
        let mut numbers: Vec<i64> = Vec::new();
        for (_, argument) in constructor.arguments() {
            let start = numbers.len();
            match argument {
                Argument::Length(length) => numbers.push(i64::try_from(length).ok()?),
                Argument::Integer(number) => numbers.push(number),
                Argument::Integers(list) => numbers.extend_from_slice(list),
                Argument::Order(order) => numbers.push((order == Order::Fortran).into()),
                Argument::Distributions(distributions) => numbers.extend(dealt(constructor, distributions)),
                // Of any size, unlike the others.
                Argument::Address(number) => {
                    numbers.push(number);
                    continue;
                }
                Argument::Addresses(list) => {
                    numbers.extend_from_slice(list);
                    continue;
                }
            }
            if numbers[start..].iter().any(|&number| i32::try_from(number).is_err()) {
                return None;
            }
        }
        Some(self.line(constructor.name(), &numbers, children))
    }
}

/// The distributions of the axes of a darray, then their block lengths, of which -1 is the default. A length above the size of the axis
/// deals the same blocks as the size.
fn dealt(constructor: &Constructor, distributions: &[Distribution]) -> Vec<i64> {
    let sizes: &[i64] = if let Constructor::Darray { gsizes, .. } = constructor { gsizes } else { &[] };
    let kinds = distributions.iter().map(|distribution| match distribution {
        Distribution::Block(_) => 0,
        Distribution::Cyclic(_) => 1,
        Distribution::None => 2,
    });
    let lengths = distributions.iter().zip(sizes).map(|(distribution, &size)| match distribution {
        Distribution::Block(Some(length)) | Distribution::Cyclic(Some(length)) => *length.min(&size),
        _ => -1,
    });
    kinds.chain(lengths).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text::parse;

    fn calls(notation: &str) -> Option<String> {
        text(&parse(notation).unwrap())
    }

    #[test]
    fn equal_nodes_are_one_line() {
        let row = "(resized 0 64 (contiguous 5 double))";
        let expected = "named MPI_DOUBLE\ncontiguous 5 0\nresized 0 64 1\nvector 3 1 2 2\nstruct 2 1 2 0 -512 2 3\nresized 0 8 4\n";
        let notation = format!("given 0 8 (struct [1@0 {row}, 2@-512 (vector 3 1 2 {row})])");
        assert_eq!(calls(&notation).as_deref(), Some(expected));
        assert_eq!(calls("double").as_deref(), Some("named MPI_DOUBLE\n"));
    }

    #[test]
    fn arguments_are_in_the_order_of_the_calls() {
        for (notation, last) in [
            ("indexed [3@0, 1@10] int", "indexed 2 3 1 0 10 0"),
            ("hindexed_block 2 [0, 20] int", "hindexed_block 2 2 0 20 0"),
            ("hvector 3 1 5000000000 int", "hvector 3 1 5000000000 0"),
            ("subarray fortran [3@1 of 10, 2@4 of 8] float", "subarray 2 10 8 3 2 1 4 1 0"),
            (
                "darray c 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float",
                "darray 6 5 3 10 20 7 0 1 2 -1 3 -1 2 3 1 0 0",
            ),
            ("subarray c [0@1 of 10] float", "resized 0 40 1"),
        ] {
            let calls = calls(notation).unwrap();
            assert_eq!(calls.lines().last(), Some(last), "{notation}");
        }
        assert_eq!(calls("vector 3000000000 1 0 int"), None);
    }
}
