//! The corpus: named types of every constructor and of every edge case of layouts, packs and unpacks.
//!
//! Every engine runs all of them. `edge_cases` holds the numbers of the edge cases that a type covers.

use dtc_compiler::datatype::{
    Datatype, DatatypeError, Distribution, GivenBounds, Order, Predefined, TypeBuilder, TypeId,
};

/// One type of the corpus.
#[derive(Clone, Debug)]
pub struct Case {
    /// Unique name for messages.
    pub name: &'static str,
    /// The edge cases that it covers; empty for plain types.
    pub edge_cases: &'static [u32],
    /// The type.
    pub datatype: Datatype,
}

/// Builds one type.
pub type Build = fn(&mut TypeBuilder) -> Result<TypeId, DatatypeError>;

/// Builds a datatype with one closure.
///
/// # Panics
///
/// The arguments are invalid.
///
/// ```
/// use dtc_compiler::datatype::Predefined;
/// let datatype = dtc_tests::corpus::datatype(|types| {
///     let int = types.named(Predefined::INT);
///     types.vector(3, 1, 2, int)
/// });
/// assert_eq!(datatype.facts().size, 12);
/// ```
pub fn datatype(build: impl FnOnce(&mut TypeBuilder) -> Result<TypeId, DatatypeError>) -> Datatype {
    let mut types = TypeBuilder::new();
    build(&mut types).and_then(|root| types.finish(root)).unwrap_or_else(|error| panic!("an unsound type: {error}"))
}

/// Every type of the corpus.
pub fn all() -> Vec<Case> {
    CASES.iter().map(|&(name, edge_cases, build)| Case { name, edge_cases, datatype: datatype(build) }).collect()
}

const INT: Predefined = Predefined::INT;
const DOUBLE: Predefined = Predefined::DOUBLE;
const CHAR: Predefined = Predefined::CHAR;
const BYTE: Predefined = Predefined::BYTE;
const FLOAT: Predefined = Predefined::FLOAT;

fn with(
    types: &mut TypeBuilder,
    element: Predefined,
    build: impl FnOnce(&mut TypeBuilder, TypeId) -> Result<TypeId, DatatypeError>,
) -> Result<TypeId, DatatypeError> {
    let element = types.named(element);
    build(types, element)
}

fn darray(types: &mut TypeBuilder, rank: i64, order: Order) -> Result<TypeId, DatatypeError> {
    let int = types.named(INT);
    let distributions = [Distribution::Block(None), Distribution::Cyclic(Some(2)), Distribution::None];
    types.darray(6, rank, &[5, 7, 3], &distributions, &[2, 3, 1], order, int)
}

/// A deep tower that alternates vectors of two copies and contiguous types of one.
fn tower(types: &mut TypeBuilder, levels: usize) -> Result<TypeId, DatatypeError> {
    let mut id = types.named(INT);
    for level in 0..levels {
        id = match level % 100 {
            50 => types.hvector(2, 1, 1 << (3 + level / 100), id)?,
            at if at % 3 == 0 => types.contiguous(1, id)?,
            at if at % 3 == 1 => types.structure(&[1], &[if at % 2 == 0 { 4 } else { -4 }], &[id])?,
            _ => types.dup(id)?,
        };
    }
    Ok(id)
}

#[rustfmt::skip]
const CASES: &[(&str, &[u32], Build)] = &[
    ("int", &[], |t| Ok(t.named(INT))),
    ("contiguous", &[], |t| with(t, DOUBLE, |t, d| t.contiguous(1000, d))),
    ("vector", &[], |t| with(t, DOUBLE, |t, d| t.vector(20, 3, 5, d))),
    ("vector of single bytes", &[], |t| with(t, BYTE, |t, b| t.vector(300, 1, 2, b))),
    ("hvector, odd stride", &[21], |t| with(t, FLOAT, |t, f| t.hvector(40, 1, 7, f))),
    ("three axes turned", &[], |t| {
        let i = t.named(INT);
        let far = t.vector(20, 1, 128, i)?;
        let far = t.resized(0, 80, far)?;
        let between = t.contiguous(5, far)?;
        let between = t.resized(0, 4, between)?;
        t.contiguous(18, between)
    }),
    ("reversed rows in planes", &[2], |t| with(t, FLOAT, |t, f| { let row = t.vector(11, 1, -1, f)?; t.hvector(9, 1, 100, row) })),
    ("reversed bytes", &[2], |t| with(t, BYTE, |t, b| t.vector(77, 1, -1, b))),
    ("doubles far apart in planes", &[], |t| with(t, DOUBLE, |t, d| { let row = t.vector(19, 1, 37, d)?; t.hvector(3, 1, 9000, row) })),
    ("listed doubles", &[], |t| with(t, DOUBLE, |t, d| {
        let displacements: Vec<i64> = (0..53).map(|at| at * at % 59 * 3).collect();
        t.indexed_block(1, &displacements, d)
    })),
    ("rows of 17 bytes", &[21], |t| with(t, BYTE, |t, b| t.vector(50, 17, 23, b))),
    ("rows of 4 KiB", &[], |t| with(t, DOUBLE, |t, d| t.vector(12, 512, 1100, d))),
    ("matrix by columns", &[1], |t| with(t, DOUBLE, |t, d| {
        let column = t.vector(16, 1, 16, d)?;
        let column = t.resized(0, 8, column)?;
        t.contiguous(16, column)
    })),
    ("permuted axes", &[1], |t| with(t, INT, |t, i| {
        let inner = t.hvector(5, 1, 4 * 6 * 7, i)?;
        let middle = t.hvector(6, 1, 4, inner)?;
        t.hvector(7, 1, 4 * 6, middle)
    })),
    ("indexed out of order", &[1], |t| with(t, INT, |t, i| t.indexed(&[1, 1, 1], &[4, 0, 2], i))),
    ("indexed", &[], |t| with(t, INT, |t, i| t.indexed(&[3, 1, 0, 4, 2], &[0, 5, 9, 11, 20], i))),
    ("hindexed unaligned", &[21], |t| with(t, FLOAT, |t, f| t.hindexed(&[1, 2, 1], &[1, 10, 31], f))),
    ("indexed_block", &[], |t| with(t, DOUBLE, |t, d| t.indexed_block(2, &[9, 4, 1, 12, 30, 25], d))),
    ("hindexed_block", &[], |t| with(t, DOUBLE, |t, d| t.hindexed_block(1, &[96, 8, 1000, 40], d))),
    ("struct", &[13], |t| {
        let (d, c, i) = (t.named(DOUBLE), t.named(CHAR), t.named(INT));
        t.structure(&[2, 3, 1], &[0, 16, 20], &[d, c, i])
    }),
    ("reversed vector", &[2], |t| with(t, INT, |t, i| t.vector(4, 1, -3, i))),
    ("negative displacements", &[3], |t| with(t, INT, |t, i| t.hindexed(&[1, 2], &[-100, -8], i))),
    ("overlapping vector", &[4], |t| with(t, INT, |t, i| t.vector(3, 4, 2, i))),
    ("stride 0", &[5], |t| with(t, INT, |t, i| t.vector(9, 1, 0, i))),
    ("no copies", &[6], |t| with(t, INT, |t, i| t.contiguous(0, i))),
    ("empty blocks", &[6], |t| with(t, INT, |t, i| t.indexed(&[0, 2, 0, 1, 0], &[-50, 3, 99, 0, 7], i))),
    ("struct of nothing", &[6, 7], |t| {
        let (i, d) = (t.named(INT), t.named(DOUBLE));
        t.structure(&[0, 0], &[400, -8], &[i, d])
    }),
    ("struct without members", &[7], |t| t.structure(&[], &[], &[])),
    ("resized nothing", &[7, 8], |t| with(t, INT, |t, i| {
        let empty = t.contiguous(0, i)?;
        t.resized(-8, 64, empty)
    })),
    ("touching blocks in order", &[9], |t| with(t, INT, |t, i| t.indexed_block(1, &[0, 1, 2], i))),
    ("touching blocks out of order", &[9], |t| with(t, INT, |t, i| t.indexed_block(1, &[1, 0], i))),
    ("interleaved by a small extent", &[10, 24], |t| with(t, DOUBLE, |t, d| {
        let column = t.vector(8, 1, 10, d)?;
        t.resized(0, 8, column)
    })),
    ("extent 0", &[10], |t| with(t, INT, |t, i| {
        let still = t.resized(0, 0, i)?;
        t.contiguous(6, still)
    })),
    ("negative extent", &[10], |t| with(t, INT, |t, i| {
        let back = t.resized(0, -12, i)?;
        t.contiguous(6, back)
    })),
    ("resized with a lower bound", &[11], |t| with(t, INT, |t, i| {
        let moved = t.resized(-20, 24, i)?;
        t.contiguous(5, moved)
    })),
    ("sticky bounds", &[12], |t| {
        let (i, d) = (t.named(INT), t.named(DOUBLE));
        let marked = t.resized(-4, 40, i)?;
        let mixed = t.structure(&[1, 2], &[0, 8], &[marked, d])?;
        t.contiguous(4, mixed)
    }),
    ("sticky negative extent", &[10, 12], |t| {
        let i = t.named(INT);
        let marked = t.resized(0, -16, i)?;
        let mixed = t.structure(&[1, 1], &[0, 4], &[marked, i])?;
        t.contiguous(3, mixed)
    }),
    ("bounds given as facts", &[12], |t| with(t, INT, |t, i| {
        let row = t.hvector(3, 1, 10, i)?;
        t.give_bounds(row, GivenBounds { lb: -2, extent: 50 })?;
        t.contiguous(4, row)
    })),
    ("double and char", &[13], |t| {
        let (d, c) = (t.named(DOUBLE), t.named(CHAR));
        let padded = t.structure(&[1, 1], &[0, 8], &[d, c])?;
        t.contiguous(10, padded)
    }),
    ("char and double", &[13], |t| {
        let (d, c) = (t.named(DOUBLE), t.named(CHAR));
        let padded = t.structure(&[1, 1], &[0, 8], &[c, d])?;
        t.contiguous(10, padded)
    }),
    ("double_int pairs", &[14], |t| with(t, Predefined::DOUBLE_INT, |t, p| t.contiguous(20, p))),
    ("short_int pairs", &[14], |t| with(t, Predefined::SHORT_INT, |t, p| t.vector(20, 2, 3, p))),
    ("long_double_int pairs", &[14], |t| with(t, Predefined::LONG_DOUBLE_INT, |t, p| t.contiguous(7, p))),
    ("subarray in C order", &[16, 22], |t| with(t, DOUBLE, |t, d| {
        t.subarray(&[6, 7, 8], &[2, 3, 4], &[1, 4, 2], Order::C, d)
    })),
    ("subarray in Fortran order", &[16], |t| with(t, DOUBLE, |t, d| {
        t.subarray(&[6, 7, 8], &[2, 3, 4], &[4, 0, 4], Order::Fortran, d)
    })),
    ("whole subarray", &[16], |t| with(t, INT, |t, i| t.subarray(&[4, 5], &[4, 5], &[0, 0], Order::C, i))),
    ("subarray of one element", &[16], |t| with(t, INT, |t, i| t.subarray(&[4, 5], &[1, 1], &[3, 4], Order::C, i))),
    ("subarray of rank 5", &[16], |t| with(t, INT, |t, i| {
        t.subarray(&[3, 4, 3, 2, 5], &[2, 2, 3, 1, 3], &[1, 2, 0, 1, 1], Order::C, i)
    })),
    ("empty subarray", &[6, 16], |t| with(t, INT, |t, i| t.subarray(&[4, 5], &[0, 5], &[2, 0], Order::C, i))),
    ("face of a cube", &[16], |t| with(t, DOUBLE, |t, d| {
        t.subarray(&[34, 34, 34], &[32, 32, 1], &[1, 1, 32], Order::C, d)
    })),
    ("darray, rank 0, C order", &[17], |t| darray(t, 0, Order::C)),
    ("darray, rank 5, C order", &[17], |t| darray(t, 5, Order::C)),
    ("darray, rank 1, Fortran order", &[17], |t| darray(t, 1, Order::Fortran)),
    ("darray, rank 2, Fortran order", &[17], |t| darray(t, 2, Order::Fortran)),
    ("darray that owns nothing", &[17], |t| with(t, INT, |t, i| {
        t.darray(4, 3, &[6], &[Distribution::Block(Some(2))], &[4], Order::C, i)
    })),
    ("dup of dup", &[18], |t| with(t, INT, |t, i| {
        let vector = t.vector(3, 2, 3, i)?;
        let copy = t.dup(vector)?;
        t.dup(copy)
    })),
    ("dup of a named type", &[18], |t| with(t, DOUBLE, |t, d| t.dup(d))),
    ("300 levels", &[19], |t| tower(t, 300)),
    ("long list", &[19], |t| with(t, INT, |t, i| {
        let displacements: Vec<i64> = (0..20_000).map(|at: i64| at * 2 + (at * at) % 2 + at / 97).collect();
        t.indexed_block(1, &displacements, i)
    })),
    ("structs in an array", &[], |t| {
        let (d, i, c) = (t.named(DOUBLE), t.named(INT), t.named(CHAR));
        let particle = t.structure(&[3, 1, 2], &[0, 24, 28], &[d, i, c])?;
        let particle = t.resized(0, 40, particle)?;
        t.vector(30, 2, 5, particle)
    }),
    ("array of structs to struct of arrays", &[1], |t| {
        let (d, i) = (t.named(DOUBLE), t.named(INT));
        let (x, n) = (t.hvector(50, 1, 16, d)?, t.hvector(50, 1, 16, i)?);
        t.structure(&[1, 1], &[0, 8], &[x, n])
    }),
    ("fields of 16 records", &[1], |t| {
        let leaves = [DOUBLE, INT, BYTE].map(|element| t.named(element));
        let fields = [t.hvector(16, 1, 24, leaves[0])?, t.hvector(16, 1, 24, leaves[1])?, t.hvector(16, 1, 24, leaves[2])?];
        t.structure(&[1, 1, 1], &[0, 8, 13], &fields)
    }),
    ("37 records of two fields in planes", &[], |t| {
        let (d, f) = (t.named(DOUBLE), t.named(FLOAT));
        let record = t.structure(&[1, 1], &[0, 12], &[d, f])?;
        let row = t.hvector(37, 1, 40, record)?;
        t.hvector(3, 1, 1600, row)
    }),
    ("4 records of three fields in planes", &[], |t| {
        let (d, c) = (t.named(DOUBLE), t.named(CHAR));
        let record = t.structure(&[1, 3, 1], &[0, 9, 16], &[c, d, c])?;
        let row = t.hvector(4, 1, 48, record)?;
        t.hvector(90, 1, 300, row)
    }),
    ("100 runs of many lengths", &[], |t| with(t, FLOAT, |t, f| {
        let lengths: Vec<i64> = (0..100).map(|at| 1 + at * at % 13 % 5).collect();
        let displacements: Vec<i64> = (0..100).map(|at| at * 8 + at * at % 3).collect();
        t.indexed(&lengths, &displacements, f)
    })),
    ("every other float in short planes", &[], |t| with(t, FLOAT, |t, f| { let row = t.vector(19, 1, 2, f)?; t.hvector(7, 1, 164, row) })),
    ("every other byte in short planes", &[], |t| with(t, BYTE, |t, b| { let row = t.vector(67, 1, 2, b)?; t.hvector(5, 1, 150, row) })),
    ("shared child", &[], |t| {
        let i = t.named(INT);
        let row = t.vector(4, 1, 3, i)?;
        t.structure(&[1, 2, 1], &[0, 100, 333], &[row, row, row])
    }),
    ("wide gaps", &[], |t| with(t, BYTE, |t, b| t.hvector(20, 100, 3 * 4096 + 5, b))),
    ("gaps of a page", &[], |t| with(t, DOUBLE, |t, d| t.hvector(30, 1, 4096, d))),
    ("two allocations", &[23], |t| {
        let i = t.named(INT);
        t.hindexed(&[30, 5], &[1 << 28, (1 << 28) + (1 << 33) + 6], i)
    }),
    ("runs that cross iterations", &[], |t| with(t, BYTE, |t, b| {
        let inner = t.hvector(2, 2, 4, b)?;
        t.hvector(20, 1, 6, inner)
    })),
    ("every predefined type", &[], |t| {
        let all: Vec<TypeId> = Predefined::all().map(|each| t.named(each)).collect();
        let displacements: Vec<i64> = (0..all.len() as i64).map(|at| at * 48 + at % 5).collect();
        t.structure(&vec![1; all.len()], &displacements, &all)
    }),
];
