//! What the report of the library says where the command looks for it.

/// Of a library that does nothing; why follows.
pub const LEAVES_ALL: &str = "leaves all calls to the MPI";

/// Of calls with a datatype that it did not do; why follows, and the parenthesis ends.
pub const PASSED_ON: &str = "passed on (";
