//! The short notation: what is read, what is printed, and what is refused.

mod common;

use common::{nest, on_a_small_stack, shape};
use dtc_compiler::datatype::json;
use dtc_compiler::datatype::text::{parse, print};

#[test]
fn the_notation_round_trips() {
    let canonical = [
        "double",
        "2int",
        "contiguous 5 double",
        "vector 12 1 14 (contiguous 5 double)",
        "hvector 12 1 -560 long_double_int",
        "indexed [3@0, 1@-10] int",
        "hindexed [] int",
        "indexed_block 2 [0, 5, 9] int",
        "hindexed_block 2 [0, 20, 70368744177664] int",
        "struct [1@0 double, 2@8 int, 1@16 char]",
        "struct []",
        "subarray c [3@1 of 10, 2@4 of 8] float",
        "subarray fortran [] float",
        "darray fortran 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float",
        "darray c 1 of 4 [block(6) 10 over 2, cyclic 20 over 2] float",
        "resized -8 0 double",
        "dup (dup int)",
        "given 0 24 struct [1@0 double, 1@16 (given 0 12 int)]",
        "let t1 = contiguous 5 double;\nlet t2 = dup t1;\nstruct [1@0 t1, 1@64 t2, 1@128 (vector 2 1 3 t2)]",
    ];
    for notation in canonical {
        let datatype = parse(notation).unwrap_or_else(|error| panic!("{notation}: {error}"));
        assert_eq!(print(&datatype), notation);
        assert_eq!(shape(&parse(&print(&datatype)).unwrap()), shape(&datatype));
    }
}

#[test]
fn blanks_remarks_and_parentheses_are_free() {
    let datatype = parse("# a face\nlet row=((contiguous 5(double)));\n\tvector 12 1 14 # rows\n row").unwrap();
    assert_eq!(print(&datatype), "vector 12 1 14 (contiguous 5 double)");
    assert_eq!(
        print(&parse("dup dup contiguous 2 given 0 9 (int)").unwrap()),
        "dup (dup (contiguous 2 (given 0 9 int)))"
    );
}

#[test]
fn the_names_of_mpi_are_read() {
    for (notation, own) in [
        ("MPI_DOUBLE", "double"),
        ("contiguous 2 MPI_2INT", "contiguous 2 2int"),
        ("subarray C [3@1 of 10] MPI_LONG_DOUBLE_INT", "subarray c [3@1 of 10] long_double_int"),
        ("subarray Fortran [3@1 of 10] int", "subarray fortran [3@1 of 10] int"),
        (
            "darray MPI_ORDER_FORTRAN 5 of 6 [MPI_DISTRIBUTE_BLOCK 10 over 2, MPI_DISTRIBUTE_CYCLIC(3) 20 over 3, \
             MPI_DISTRIBUTE_NONE 7 over 1] MPI_FLOAT",
            "darray fortran 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float",
        ),
        ("subarray MPI_ORDER_C [1@0 of 2] int", "subarray c [1@0 of 2] int"),
    ] {
        let datatype = parse(notation).unwrap_or_else(|error| panic!("{notation}: {error}"));
        assert_eq!(print(&datatype), own);
    }
}

/// Blocks between fences that are marked with a word.
fn fenced<'a>(document: &'a str, mark: &str) -> Vec<&'a str> {
    let start = format!("```{mark}\n");
    document.split(&start).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_guide_shows_what_is_read() {
    let guide = include_str!("../../docs/reference/type-descriptions.md");
    let (notations, documents) = (fenced(guide, "dtc"), fenced(guide, "json"));
    assert!(notations.len() >= 4 && documents.len() >= 2);
    for notation in notations {
        // A block holds one type, or one to a line with what it is.
        let whole = parse(notation).map(drop);
        let lines = || notation.lines().filter(|line| !line.is_empty()).try_for_each(|line| parse(line).map(drop));
        whole.or_else(|_| lines()).unwrap_or_else(|error| panic!("{notation}: {error}"));
    }
    for document in documents {
        json::read(document).unwrap_or_else(|error| panic!("{document}: {error}"));
    }
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("", (1, 1), "a type", "the end"),
        ("dup", (1, 4), "a type", "the end"),
        ("duble", (1, 1), "a type (perhaps double)", "`duble`"),
        ("DOUBLE", (1, 1), "a type (perhaps double)", "`DOUBLE`"),
        ("mpi_double", (1, 1), "a type (perhaps double)", "`mpi_double`"),
        ("MPI_INTT", (1, 1), "a type (perhaps int)", "`MPI_INTT`"),
        ("MPI_Type_vector 3 1 2 int", (1, 1), "a type (perhaps vector)", "`MPI_Type_vector`"),
        ("MPI_Type_create_struct [1@0 int]", (1, 1), "a type (perhaps struct)", "`MPI_Type_create_struct`"),
        ("let MPI_INT = dup int; MPI_INT", (1, 5), "a new name", "`MPI_INT`"),
        ("dup int int", (1, 9), "the end", "`int`"),
        ("dup (int", (1, 9), "`)`", "the end"),
        ("contiguous 1.5 int", (1, 13), "a type", "`.`"),
        ("contiguous 9223372036854775808 int", (1, 12), "an integer (count)", "`9223372036854775808`"),
        ("\ncontiguous 9223372036854775807 int", (2, 1), "contiguous: sizes", "an overflow"),
        ("indexed [1@2, 3] int", (1, 16), "`@`", "`]`"),
        ("indexed [1@2,] int", (1, 14), "an integer (length)", "`]`"),
        ("indexed [1@2 3@4] int", (1, 14), "`,` or `]`", "`3`"),
        ("struct [1@0 int, -1@8 int]", (1, 1), "struct.blocklengths[1]: a count", "-1"),
        ("subarray row [] int", (1, 10), "c or fortran", "`row`"),
        ("darray c 0 of 1 [blocks 3 over 1] int", (1, 18), "block, cyclic or none", "`blocks`"),
        ("let int = dup int; int", (1, 5), "a new name", "`int`"),
        ("let a = int; let a = int; a", (1, 18), "a new name", "`a`"),
        ("let 3 = int; 3", (1, 5), "a name", "`3`"),
        ("let a = int a", (1, 13), "`;`", "`a`"),
        ("let a = dup int; given 0 8 a", (1, 18), "bounds given where a type is made", "a finished type"),
        ("é", (1, 1), "a type", "`é`"),
        ("dup é", (1, 5), "a type", "`é`"),
    ];
    for (notation, position, expected, found) in cases {
        let error = parse(notation).err().unwrap_or_else(|| panic!("{notation} was accepted"));
        assert_eq!((error.line(), error.column()), position, "{notation}: {error}");
        assert!(error.expected().starts_with(expected), "{notation}: {error}");
        assert_eq!(error.found(), found, "{notation}: {error}");
    }
}

#[test]
fn depth_costs_no_stack() {
    on_a_small_stack(|| {
        let deep = nest(10_000);
        assert_eq!(shape(&parse(&print(&deep)).unwrap()), shape(&deep));
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"struct [1@0 ".repeat(100_000)).is_err());
    });
}
