//! The command dtc.
fn main() {}
