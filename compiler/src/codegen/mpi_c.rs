//! C source that builds a datatype with calls of MPI: for reports to an MPI, for comparisons with it, and for programs
//! that want the type without a description.

use crate::datatype::{Constructor, Datatype, Distribution, GivenBounds, Order, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Write};

/// Numbers in one line of an array.
const NUMBERS_IN_A_LINE: usize = 16;

/// Children of a struct up to which their list is an initialised local array, on the stack.
const LOCAL_CHILDREN: usize = 1_024;

/// The longest notation that is repeated in a remark.
const LONGEST_REMARK: usize = 100;

/// A C file with a function `MPI_Datatype build_type(void)` that returns the datatype, committed.
///
/// Every node is one call, and nodes that are equal share it; all types but the returned one are freed. Given bounds become
/// `MPI_Type_create_resized`. Arguments that do not fit `int` go through the large-count calls of MPI 4, with an
/// `#error` for older versions. The caller frees the type, so a predefined one is returned as a duplicate. Arrays with
/// no axes or no elements, which MPI does not admit, become an empty or unchanged child with the same bounds.
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
/// # Ok::<(), text::TextError>(())
/// ```
pub fn emit(datatype: &Datatype) -> String {
    let mut emitter = Emitter { body: String::new(), built: 0, large: false, inexpressible: false };
    let mut names = vec![String::new(); datatype.root().index() + 1];
    // Equal nodes are built by one call: descriptions often write the same subtype out at each of its places.
    let mut first_equal: Vec<usize> = vec![0; names.len()];
    let mut known = HashMap::new();
    for id in datatype.nodes() {
        let children: Vec<usize> =
            datatype.own_children(id).into_iter().map(|child| first_equal[child.index()]).collect();
        let node = datatype.own(id);
        let arguments: Vec<&str> = children.iter().map(|&child| names[child].as_str()).collect();
        first_equal[id.index()] = match known.entry((&node.constructor, node.given, children.clone())) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                names[id.index()] = emitter.node(datatype, id, &arguments);
                *new.insert(id.index())
            }
        };
    }
    let mut root = std::mem::take(&mut names[first_equal[datatype.root().index()]]);
    if emitter.built == 0 {
        // The caller frees what it gets, and predefined types must not be freed.
        root = emitter.call("MPI_Type_dup", &root);
    }
    let Emitter { body, built, large, inexpressible } = emitter;

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

struct Emitter {
    body: String,
    /// Types built so far: `t1` to that number.
    built: usize,
    /// Whether a call of MPI 4 is used.
    large: bool,
    /// Whether an argument fits no call.
    inexpressible: bool,
}

/// Whether numbers, and how many there are, can be passed as `int`.
fn fit(numbers: &[i64]) -> bool {
    i32::try_from(numbers.len()).is_ok() && numbers.iter().all(|&number| i32::try_from(number).is_ok())
}

impl Emitter {
    /// Emits what builds a node, and returns its name in C.
    fn node(&mut self, datatype: &Datatype, id: TypeId, children: &[&str]) -> String {
        let node = datatype.own(id);
        let mut name = match &node.constructor {
            Constructor::Named(predefined) => predefined.name().to_owned(),
            Constructor::Struct { blocklengths, displacements_bytes } => {
                self.structure(blocklengths, displacements_bytes, children)
            }
            constructor => self.with_child(constructor, datatype, id, children.first().unwrap_or(&"MPI_DATATYPE_NULL")),
        };
        if let Some(GivenBounds { lb, extent }) = node.given {
            name = self.resized(&name, lb, extent);
        }
        name
    }

    fn with_child(&mut self, constructor: &Constructor, datatype: &Datatype, id: TypeId, child: &str) -> String {
        let extent = datatype.child(id).map_or(0, |child| datatype.own(child).facts.extent());
        match constructor {
            Constructor::Contiguous { count } => {
                let call = self.sized("MPI_Type_contiguous", fit(&[*count]));
                self.call(call, format_args!("{}, {child}", Literal(*count)))
            }
            Constructor::Vector { count, blocklength, stride } => {
                let call = self.sized("MPI_Type_vector", fit(&[*count, *blocklength, *stride]));
                self.strided(call, *count, *blocklength, *stride, child)
            }
            Constructor::Hvector { count, blocklength, stride_bytes } => {
                let call = self.sized("MPI_Type_create_hvector", fit(&[*count, *blocklength]));
                self.strided(call, *count, *blocklength, *stride_bytes, child)
            }
            Constructor::Indexed { blocklengths, displacements } => {
                let small = fit(blocklengths) && fit(displacements);
                let displacements_type = if small { "int" } else { "MPI_Count" };
                self.indexed("MPI_Type_indexed", blocklengths, displacements, displacements_type, small, child)
            }
            Constructor::Hindexed { blocklengths, displacements_bytes } => {
                let small = fit(blocklengths);
                let displacements_type = if small { "MPI_Aint" } else { "MPI_Count" };
                let call = "MPI_Type_create_hindexed";
                self.indexed(call, blocklengths, displacements_bytes, displacements_type, small, child)
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                let small = fit(&[*blocklength]) && fit(displacements);
                let displacements_type = if small { "int" } else { "MPI_Count" };
                let call = "MPI_Type_create_indexed_block";
                self.blocks(call, *blocklength, displacements, displacements_type, small, child)
            }
            Constructor::HindexedBlock { blocklength, displacements_bytes } => {
                let small = fit(&[*blocklength]) && i32::try_from(displacements_bytes.len()).is_ok();
                let displacements_type = if small { "MPI_Aint" } else { "MPI_Count" };
                let call = "MPI_Type_create_hindexed_block";
                self.blocks(call, *blocklength, displacements_bytes, displacements_type, small, child)
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                if sizes.is_empty() {
                    return self.resized(child, 0, extent);
                }
                if subsizes.contains(&0) {
                    return self.empty_array(datatype, id, child);
                }
                let small = fit(sizes) && fit(subsizes) && fit(starts);
                let number = if small { "int" } else { "MPI_Count" };
                let sizes_name = self.array(number, "sizes", sizes);
                let subsizes_name = self.array(number, "subsizes", subsizes);
                let starts_name = self.array(number, "starts", starts);
                let call = self.sized("MPI_Type_create_subarray", small);
                let (axes, order) = (sizes.len(), order_name(*order));
                self.call(call, format_args!("{axes}, {sizes_name}, {subsizes_name}, {starts_name}, {order}, {child}"))
            }
            Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
                if gsizes.is_empty() {
                    return self.resized(child, 0, extent);
                }
                if gsizes.contains(&0) {
                    return self.empty_array(datatype, id, child);
                }
                let lengths: Vec<Option<i64>> =
                    distributions.iter().zip(gsizes).map(|(&distribution, &size)| length(distribution, size)).collect();
                self.inexpressible |= !fit(&lengths.iter().flatten().copied().collect::<Vec<_>>());
                self.inexpressible |= !fit(psizes) || !fit(&[*size]);
                let small = fit(gsizes);
                let gsizes_name = self.array(if small { "int" } else { "MPI_Count" }, "gsizes", gsizes);
                let kinds = distributions.iter().map(|distribution| match distribution {
                    Distribution::Block(_) => "MPI_DISTRIBUTE_BLOCK".to_owned(),
                    Distribution::Cyclic(_) => "MPI_DISTRIBUTE_CYCLIC".to_owned(),
                    Distribution::None => "MPI_DISTRIBUTE_NONE".to_owned(),
                });
                let kinds_name = self.constants("distributions", kinds);
                let lengths = lengths.into_iter().map(|length| match length {
                    Some(length) => Literal(length).to_string(),
                    None => "MPI_DISTRIBUTE_DFLT_DARG".to_owned(),
                });
                let lengths_name = self.constants("lengths", lengths);
                let psizes_name = self.array("int", "psizes", psizes);
                let call = self.sized("MPI_Type_create_darray", small);
                let (axes, order) = (gsizes.len(), order_name(*order));
                self.call(
                    call,
                    format_args!(
                        "{size}, {rank}, {axes}, {gsizes_name}, {kinds_name}, {lengths_name}, {psizes_name}, {order}, {child}"
                    ),
                )
            }
            Constructor::Resized { lb, extent } => self.resized(child, *lb, *extent),
            Constructor::Dup => self.call("MPI_Type_dup", child),
            Constructor::Named(_) | Constructor::Struct { .. } => unreachable!("they have no only child"),
        }
    }

    /// A type without elements with the bounds of a node, for arrays that MPI does not admit.
    fn empty_array(&mut self, datatype: &Datatype, id: TypeId, child: &str) -> String {
        let empty = self.call("MPI_Type_contiguous", format_args!("0, {child}"));
        let facts = &datatype.own(id).facts;
        self.resized(&empty, facts.lb, facts.extent())
    }

    fn resized(&mut self, child: &str, lb: i64, extent: i64) -> String {
        self.call("MPI_Type_create_resized", format_args!("{child}, {}, {}", Literal(lb), Literal(extent)))
    }

    fn strided(&mut self, call: String, count: i64, blocklength: i64, stride: i64, child: &str) -> String {
        let (count, blocklength, stride) = (Literal(count), Literal(blocklength), Literal(stride));
        self.call(call, format_args!("{count}, {blocklength}, {stride}, {child}"))
    }

    fn indexed(
        &mut self,
        call: &str,
        blocklengths: &[i64],
        displacements: &[i64],
        displacements_type: &str,
        small: bool,
        child: &str,
    ) -> String {
        let lengths_name = self.array(if small { "int" } else { "MPI_Count" }, "blocklengths", blocklengths);
        let displacements_name = self.array(displacements_type, "displacements", displacements);
        let call = self.sized(call, small);
        self.call(call, format_args!("{}, {lengths_name}, {displacements_name}, {child}", blocklengths.len()))
    }

    fn blocks(
        &mut self,
        call: &str,
        blocklength: i64,
        displacements: &[i64],
        displacements_type: &str,
        small: bool,
        child: &str,
    ) -> String {
        let displacements_name = self.array(displacements_type, "displacements", displacements);
        let call = self.sized(call, small);
        let blocklength = Literal(blocklength);
        self.call(call, format_args!("{}, {blocklength}, {displacements_name}, {child}", displacements.len()))
    }

    fn structure(&mut self, blocklengths: &[i64], displacements_bytes: &[i64], children: &[&str]) -> String {
        let small = fit(blocklengths);
        let lengths_name = self.array(if small { "int" } else { "MPI_Count" }, "blocklengths", blocklengths);
        let displacements_type = if small { "MPI_Aint" } else { "MPI_Count" };
        let displacements_name = self.array(displacements_type, "displacements", displacements_bytes);
        let types_name = format!("types{}", self.built + 1);
        if children.len() <= LOCAL_CHILDREN {
            // Handles are no constants in every MPI, so this array is not static.
            put(&mut self.body, format_args!("    MPI_Datatype {types_name}[] = {{"));
            self.items(if children.is_empty() { &["MPI_DATATYPE_NULL"] } else { children }.iter());
        } else {
            put(&mut self.body, format_args!("    static MPI_Datatype {types_name}[{}];\n", children.len()));
            for (position, child) in children.iter().enumerate() {
                put(&mut self.body, format_args!("    {types_name}[{position}] = {child};\n"));
            }
        }
        let call = self.sized("MPI_Type_create_struct", small);
        self.call(call, format_args!("{}, {lengths_name}, {displacements_name}, {types_name}", children.len()))
    }

    /// The call, or its large-count form.
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

    /// Emits a constant array of the next type, and returns its name. An empty one holds a number that is not used, for
    /// C has no empty arrays.
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

    /// Emits the items of an array, wrapped when they are many, and its end.
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

/// The block length that is passed to MPI. One above the size of the axis deals the same blocks as the size.
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
            // A minus sign is no part of a constant, and the constant behind it would not fit.
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

    /// The lines of the function.
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
        // Bounds that are given make a difference.
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
