//! Prints the hand-written loop of a datatype description.
fn main() {}
