//! Tests of dtc.
