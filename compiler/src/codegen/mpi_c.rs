//! Generates C source that builds a datatype with calls of MPI, for bug reports to an MPI, for comparisons with it, and
//! for programs that use the type without its description.

use crate::datatype::{Argument, Constructor, Datatype, Distribution, GivenBounds, Order};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Write};

/// Numbers on one line of an array.
const NUMBERS_IN_A_LINE: usize = 16;

/// Most children of a struct whose list is an initialised local array, on the stack.
const LOCAL_CHILDREN: usize = 1_024;

/// Characters of the longest notation that a comment repeats.
const LONGEST_REMARK: usize = 100;

/// A C file with a function `MPI_Datatype build_type(void)` that returns the datatype, committed.
///
/// Every node is one call, shared by equal nodes. The function frees all types but the returned one, which the caller
/// frees; so a predefined type is returned as a duplicate. Given bounds become `MPI_Type_create_resized`. Arguments
/// that do not fit `int` use the large-count calls of MPI 4, with an `#error` for older versions. Arrays without axes
/// or elements, which MPI does not allow, become an unchanged or empty child with the same bounds.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::mpi_c;
/// use dtc_compiler::datatype::text;
/// let source = mpi_c::emit(&text::parse("vector 12 1 14 (contiguous 5 double)")?);
/// assert_eq!(
///     source,
///     "#include <mpi.h>
///
/// /* vector 12 1 14 (contiguous 5 double) */
/// MPI_Datatype build_type(void)
/// {
///     MPI_Datatype t1;
///     MPI_Type_contiguous(5, MPI_DOUBLE, &t1);
///     MPI_Datatype t2;
///     MPI_Type_vector(12, 1, 14, t1, &t2);
///     MPI_Type_commit(&t2);
///     MPI_Type_free(&t1);
///     return t2;
/// }
/// "
/// );
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub fn emit(datatype: &Datatype) -> String {
    let mut emitter = CallWriter { body: String::new(), built: 0, large: false, inexpressible: false };
    let nodes = datatype.nodes();
    let mut names = vec![String::new(); nodes.len()];
    // Equal nodes share one call, because descriptions often repeat a subtype at each of its places.
    let mut first_equal: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut known = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        let children: Vec<usize> = node.children().iter().map(|child| first_equal[nodes.place(child)]).collect();
        let arguments: Vec<&str> = children.iter().map(|&child| names[child].as_str()).collect();
        first_equal.push(match known.entry((node.constructor(), node.given(), children.clone())) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                names[place] = emitter.node(node, &arguments);
                *new.insert(place)
            }
        });
    }
    let mut root = first_equal.pop().map(|first| std::mem::take(&mut names[first])).unwrap_or_default();
    if emitter.built == 0 {
        // The caller frees the returned type, and predefined types must not be freed.
        root = emitter.call("MPI_Type_dup", &root);
    }
    let CallWriter { body, built, large, inexpressible } = emitter;

    let mut source = "#include <mpi.h>\n\n".to_owned();
    if large {
        source.push_str("#if MPI_VERSION < 4\n#error \"this datatype needs the large counts of MPI 4\"\n#endif\n\n");
    }
    if inexpressible {
        source.push_str("#error \"a block length of a darray does not fit int, and MPI has no call for that\"\n\n");
    }
    if datatype.entries() < LONGEST_REMARK as u64 {
        let notation = datatype.to_string();
        if notation.len() <= LONGEST_REMARK && !notation.contains('\n') {
            put(&mut source, format_args!("/* {notation} */\n"));
        }
    }
    source.push_str("MPI_Datatype build_type(void)\n{\n");
    source.push_str(&body);
    put(&mut source, format_args!("    MPI_Type_commit(&{root});\n"));
    for number in 1..built {
        put(&mut source, format_args!("    MPI_Type_free(&t{number});\n"));
    }
    put(&mut source, format_args!("    return {root};\n}}\n"));
    source
}

struct CallWriter {
    body: String,
    /// Number of types built so far: `t1`, `t2`, ...
    built: usize,
    /// Whether the code uses a call of MPI 4.
    large: bool,
    /// Whether an argument fits no call of MPI.
    inexpressible: bool,
}

/// Whether the numbers, and their count, fit `int`.
fn fit(numbers: &[i64]) -> bool {
    i32::try_from(numbers.len()).is_ok() && numbers.iter().all(|&number| i32::try_from(number).is_ok())
}

impl CallWriter {
    /// Emits the calls for a node, and returns its C name.
    fn node(&mut self, node: &Datatype, children: &[&str]) -> String {
        let name = self.plain(node, children);
        match node.given() {
            Some(GivenBounds { lb, extent }) => self.resized(&name, lb, extent),
            None => name,
        }
    }

    /// Like `node`, without the given bounds.
    fn plain(&mut self, node: &Datatype, children: &[&str]) -> String {
        let constructor = node.constructor();
        let child = children.first().copied().unwrap_or("MPI_DATATYPE_NULL");
        let call = match constructor {
            Constructor::Named(predefined) => return predefined.name().to_owned(),
            Constructor::Resized { lb, extent } => return self.resized(child, *lb, *extent),
            Constructor::Subarray { sizes: axes, subsizes: elements, .. }
            | Constructor::Darray { gsizes: axes @ elements, .. } => {
                if axes.is_empty() {
                    return self.resized(child, 0, node.children().first().map_or(0, |child| child.facts().extent()));
                }
                if elements.contains(&0) {
                    return self.empty_array(node, child);
                }
                "create_"
            }
            Constructor::Contiguous { .. }
            | Constructor::Vector { .. }
            | Constructor::Indexed { .. }
            | Constructor::Dup => "",
            _ => "create_",
        };
        let (call, small) = (format!("MPI_Type_{call}{}", constructor.name()), self.fits(constructor));
        let mut passed: Vec<String> = Vec::new();
        for (name, argument) in constructor.arguments() {
            let name = name.trim_end_matches("_bytes");
            match argument {
                Argument::Length(length) => passed.push(length.to_string()),
                Argument::Integer(number) | Argument::Address(number) => passed.push(Literal(number).to_string()),
                // The processes of a darray are `int` in every call.
                Argument::Integers(numbers) => {
                    let number = if small || name == "psizes" { "int" } else { "MPI_Count" };
                    passed.push(self.array(number, name, numbers));
                }
                Argument::Addresses(numbers) => {
                    passed.push(self.array(if small { "MPI_Aint" } else { "MPI_Count" }, name, numbers));
                }
                Argument::Order(order) => passed.push(order_name(order).to_owned()),
                Argument::Distributions(distributions) => passed.extend(self.distributions(constructor, distributions)),
            }
        }
        passed.push(match constructor {
            Constructor::Struct { .. } => self.children(children),
            _ => child.to_owned(),
        });
        let call = self.sized(&call, small);
        self.call(call, passed.join(", "))
    }

    /// Whether the numbers of a constructor that are not in bytes fit `int`.
    fn fits(&mut self, constructor: &Constructor) -> bool {
        if let Constructor::Darray { size, gsizes, psizes, .. } = constructor {
            // MPI has no large-count call for the number of processes.
            self.inexpressible |= !fit(psizes) || !fit(&[*size]);
            return fit(gsizes);
        }
        constructor.arguments().iter().all(|(_, argument)| match argument {
            Argument::Length(length) => i32::try_from(*length).is_ok(),
            Argument::Integer(number) => fit(&[*number]),
            Argument::Integers(numbers) => fit(numbers),
            _ => true,
        })
    }

    /// Emits the distributions and block lengths of the axes of a darray, and returns the names of the two arrays.
    fn distributions(&mut self, constructor: &Constructor, distributions: &[Distribution]) -> [String; 2] {
        let Constructor::Darray { gsizes, .. } = constructor else { return Default::default() };
        let lengths: Vec<Option<i64>> =
            distributions.iter().zip(gsizes.iter()).map(|(&distribution, &size)| length(distribution, size)).collect();
        self.inexpressible |= !fit(&lengths.iter().flatten().copied().collect::<Vec<_>>());
        let kinds = distributions.iter().map(|distribution| match distribution {
            Distribution::Block(_) => "MPI_DISTRIBUTE_BLOCK".to_owned(),
            Distribution::Cyclic(_) => "MPI_DISTRIBUTE_CYCLIC".to_owned(),
            Distribution::None => "MPI_DISTRIBUTE_NONE".to_owned(),
        });
        let lengths = lengths.into_iter().map(|length| match length {
            Some(length) => Literal(length).to_string(),
            None => "MPI_DISTRIBUTE_DFLT_DARG".to_owned(),
        });
        [self.constants("distributions", kinds), self.constants("lengths", lengths)]
    }

    /// Emits the array of a struct's children, and returns its name.
    fn children(&mut self, children: &[&str]) -> String {
        let name = format!("types{}", self.built + 1);
        if children.len() <= LOCAL_CHILDREN {
            // Handles are not constants in every MPI, so the array is not static.
            put(&mut self.body, format_args!("    MPI_Datatype {name}[] = {{"));
            self.items(if children.is_empty() { &["MPI_DATATYPE_NULL"] } else { children }.iter());
        } else {
            put(&mut self.body, format_args!("    static MPI_Datatype {name}[{}];\n", children.len()));
            for (position, child) in children.iter().enumerate() {
                put(&mut self.body, format_args!("    {name}[{position}] = {child};\n"));
            }
        }
        name
    }

    /// A type without elements that has the bounds of a node, for arrays that MPI does not allow.
    fn empty_array(&mut self, node: &Datatype, child: &str) -> String {
        let empty = self.call("MPI_Type_contiguous", format_args!("0, {child}"));
        self.resized(&empty, node.facts().lb, node.facts().extent())
    }

    fn resized(&mut self, child: &str, lb: i64, extent: i64) -> String {
        self.call("MPI_Type_create_resized", format_args!("{child}, {}, {}", Literal(lb), Literal(extent)))
    }

    /// The name of a call, or of its large-count form.
    fn sized(&mut self, call: &str, small: bool) -> String {
        self.large |= !small;
        format!("{call}{}", if small { "" } else { "_c" })
    }

    /// Emits a call that builds the next type, and returns its name.
    fn call(&mut self, call: impl fmt::Display, arguments: impl fmt::Display) -> String {
        self.built += 1;
        let name = format!("t{}", self.built);
        put(&mut self.body, format_args!("    MPI_Datatype {name};\n    {call}({arguments}, &{name});\n"));
        name
    }

    /// Emits a constant array for the next type, and returns its name. An empty one holds an unused number, because C
    /// has no empty arrays.
    fn array(&mut self, number: &str, what: &str, numbers: &[i64]) -> String {
        let name = format!("{what}{}", self.built + 1);
        put(&mut self.body, format_args!("    static const {number} {name}[] = {{"));
        let numbers = if numbers.is_empty() { &[0] } else { numbers };
        self.items(numbers.iter().map(|&number| Literal(number)));
        name
    }

    /// Emits an array of `int` that are named constants of MPI.
    fn constants(&mut self, what: &str, constants: impl Iterator<Item = String>) -> String {
        let name = format!("{what}{}", self.built + 1);
        put(&mut self.body, format_args!("    static const int {name}[] = {{"));
        self.items(constants);
        name
    }

    /// Emits the items of an array, wrapped onto several lines if they are many, and the closing brace.
    fn items<T: fmt::Display>(&mut self, items: impl Iterator<Item = T>) {
        for (position, item) in items.enumerate() {
            let separator = match position {
                0 => "",
                _ if position % NUMBERS_IN_A_LINE == 0 => ",\n        ",
                _ => ", ",
            };
            put(&mut self.body, format_args!("{separator}{item}"));
        }
        self.body.push_str("};\n");
    }
}

/// The block length for MPI. A length above the size of the axis distributes the same blocks as the size.
fn length(distribution: Distribution, size: i64) -> Option<i64> {
    match distribution {
        Distribution::Block(length) | Distribution::Cyclic(length) => length.map(|length| length.min(size)),
        Distribution::None => None,
    }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::C => "MPI_ORDER_C",
        Order::Fortran => "MPI_ORDER_FORTRAN",
    }
}

/// A number as a C constant.
struct Literal(i64);

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // In C, -N is a minus applied to the constant N, which does not fit here.
            i64::MIN => write!(f, "(-{} - 1)", i64::MAX),
            number => write!(f, "{number}"),
        }
    }
}

/// Writing to a string cannot fail.
fn put(text: &mut String, piece: fmt::Arguments) {
    text.write_fmt(piece).expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::text::parse;

    /// Lines of the function body.
    fn body(notation: &str) -> String {
        let source = emit(&parse(notation).unwrap());
        let (_, body) = source.split_once("{\n").unwrap();
        body.trim_end_matches("}\n").to_owned()
    }

    #[test]
    fn equal_types_are_built_once() {
        let row = "(resized 0 64 (contiguous 5 double))";
        let written_out = body(&format!("struct [1@0 {row}, 2@512 (vector 3 1 2 {row}), 1@4096 (vector 3 1 2 {row})]"));
        let shared = format!("let a = {row}; let b = vector 3 1 2 a; struct [1@0 a, 2@512 b, 1@4096 b]");
        assert_eq!(written_out, body(&shared));
        assert_eq!(written_out.matches("MPI_Type_vector").count(), 1);
        // Given bounds make a node different.
        let given = body("struct [1@0 (dup int), 1@8 (given 0 12 (dup int))]");
        assert_eq!(given.matches("MPI_Type_dup").count(), 2);
    }

    #[test]
    fn shared_types_are_built_once_and_freed_once() {
        let expected = "    MPI_Datatype t1;
    MPI_Type_contiguous(5, MPI_DOUBLE, &t1);
    static const int blocklengths2[] = {1, 2};
    static const MPI_Aint displacements2[] = {0, -64};
    MPI_Datatype types2[] = {t1, t1};
    MPI_Datatype t2;
    MPI_Type_create_struct(2, blocklengths2, displacements2, types2, &t2);
    MPI_Datatype t3;
    MPI_Type_create_resized(t2, 0, 128, &t3);
    MPI_Type_commit(&t3);
    MPI_Type_free(&t1);
    MPI_Type_free(&t2);
    return t3;
";
        assert_eq!(body("let row = contiguous 5 double; given 0 128 (struct [1@0 row, 2@-64 row])"), expected);
    }

    #[test]
    fn empty_lists_and_predefined_roots_are_valid() {
        let expected = "    static const int blocklengths1[] = {0};
    static const MPI_Aint displacements1[] = {0};
    MPI_Datatype types1[] = {MPI_DATATYPE_NULL};
    MPI_Datatype t1;
    MPI_Type_create_struct(0, blocklengths1, displacements1, types1, &t1);
    MPI_Type_commit(&t1);
    return t1;
";
        assert_eq!(body("struct []"), expected);
        let expected = "    MPI_Datatype t1;
    MPI_Type_dup(MPI_2INT, &t1);
    MPI_Type_commit(&t1);
    return t1;
";
        assert_eq!(body("2int"), expected);
    }

    #[test]
    fn large_counts_use_the_calls_of_mpi_4() {
        let source = emit(&parse("indexed [3000000000@0] (hvector 2 1 3000000000 char)").unwrap());
        assert!(source.contains("#if MPI_VERSION < 4\n#error"));
        assert!(source.contains("    MPI_Type_create_hvector(2, 1, 3000000000, MPI_CHAR, &t1);\n"));
        assert!(source.contains("    static const MPI_Count displacements2[] = {0};\n"));
        assert!(source.contains("    MPI_Type_indexed_c(1, blocklengths2, displacements2, t1, &t2);\n"));
        assert!(!emit(&parse("resized -9223372036854775808 0 char").unwrap()).contains("MPI_VERSION"));
    }

    #[test]
    fn arrays_pass_their_axes() {
        let expected = "    static const int gsizes1[] = {10, 20, 7};
    static const int distributions1[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    static const int lengths1[] = {MPI_DISTRIBUTE_DFLT_DARG, 3, MPI_DISTRIBUTE_DFLT_DARG};
    static const int psizes1[] = {2, 3, 1};
    MPI_Datatype t1;
    MPI_Type_create_darray(6, 5, 3, gsizes1, distributions1, lengths1, psizes1, MPI_ORDER_FORTRAN, MPI_FLOAT, &t1);
    MPI_Type_commit(&t1);
    return t1;
";
        assert_eq!(body("darray fortran 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float"), expected);
    }
}
