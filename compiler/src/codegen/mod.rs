//! What a plan or a datatype becomes: machine code, and the texts that explain it.

pub mod cranelift;
