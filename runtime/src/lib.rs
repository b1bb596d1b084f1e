//! The runtime of dtc.

pub mod leaves;
