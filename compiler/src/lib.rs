//! The compiler of dtc.
