//! The commands, one a file.

pub mod bench;
pub mod cache;
pub mod calibrate;
mod calibrate_mpi;
pub mod compare;
pub mod demo;
pub mod doctor;
mod doctor_mpi;
pub mod emit;
mod emit_tabled;
pub mod explain;
mod explain_bounds;
mod explain_preload;
mod explain_recorded;
mod explain_roofline;
mod explain_tabled;
mod explain_tables;
pub mod lower;
pub mod pack;
pub mod pages;
mod through_gpu;
mod transfer;
pub mod unpack;
pub mod view;
