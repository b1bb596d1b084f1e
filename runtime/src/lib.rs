//! The runtime of dtc.
