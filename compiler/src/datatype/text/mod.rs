//! A short notation for datatypes, for tests, messages and the command line.
//!
//! A type is its constructor, its arguments in MPI's order, and the child:
//!
//! ```text
//! double
//! contiguous 5 double
//! vector 12 1 14 (contiguous 5 double)               # count, blocklength, stride
//! hvector 12 1 560 double
//! indexed [3@0, 1@10] int                            # blocklength@displacement
//! hindexed [3@0, 1@40] int
//! indexed_block 2 [0, 5, 9] int                      # blocklength, displacements
//! hindexed_block 2 [0, 20, 36] int
//! struct [1@0 double, 2@8 int, 1@16 char]            # blocklength@bytes type
//! subarray c [3@1 of 10, 2@4 of 8] float             # subsize@start of size, axis by axis
//! darray fortran 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float
//! resized 0 32 double                                # lower bound, extent
//! dup int
//! table 0 1024 64 65536 (contiguous 8192 double)     # table of the call, places, entries at most, bytes from place to place
//! addresses 1 80 256 (contiguous 8192 double)        # table of the call, entries at most, alignment
//! given 0 24 (struct [1@0 double, 1@16 int])         # the same with lower bound and extent as facts
//! ```
//!
//! `darray ORDER RANK of SIZE` lists for each axis its distribution, its elements and its processes. Predefined types are
//! MPI's names in lower case without `MPI_`; MPI's own spelling is read, too: `MPI_DOUBLE`, `C`, `Fortran`, `MPI_ORDER_C`,
//! `MPI_DISTRIBUTE_BLOCK`. Parentheses may stand around any type. `#` begins a remark. What is used more than once is named
//! first: `let face = vector 12 1 14 double; struct [1@0 face, 1@4096 face]`.
//!
//! # Grammar
//!
//! ```text
//! document     = { "let" name "=" type ";" } type
//! type         = predefined | name | "(" type ")" | "given" integer integer type
//!              | "contiguous" integer type
//!              | ("vector" | "hvector") integer integer integer type
//!              | ("indexed" | "hindexed") "[" [ block { "," block } ] "]" type
//!              | ("indexed_block" | "hindexed_block") integer "[" [ integer { "," integer } ] "]" type
//!              | "struct" "[" [ block type { "," block type } ] "]"
//!              | "subarray" order "[" [ box { "," box } ] "]" type
//!              | "darray" order integer "of" integer "[" [ axis { "," axis } ] "]" type
//!              | "resized" integer integer type
//!              | "table" integer integer integer integer type
//!              | "addresses" integer integer integer type
//!              | "dup" type
//! block        = integer "@" integer
//! box          = integer "@" integer "of" integer
//! axis         = distribution integer "over" integer
//! distribution = "none" | ("block" | "cyclic") [ "(" integer ")" ]    # or MPI_DISTRIBUTE_NONE and so on
//! order        = "c" | "C" | "MPI_ORDER_C" | "fortran" | "Fortran" | "MPI_ORDER_FORTRAN"
//! ```
//!
//! # Example
//!
//! ```
//! use dtc_compiler::datatype::text;
//! let notation = "let row = contiguous 5 double;\nstruct [1@0 row, 3@64 (vector 4 1 2 row)]";
//! let datatype = text::parse(notation)?;
//! assert_eq!(datatype.facts().size, 40 + 3 * 4 * 40);
//! assert_eq!(datatype.to_string(), notation.replace("row", "t1"));
//! # Ok::<(), dtc_compiler::TextError>(())
//! ```

mod parse;
mod print;

pub use parse::{parse, parse_tabled};
pub use print::print;
