//! `libyaksa.so.0`: the interface of Yaksa, the datatype engine of MPICH, on the engine of dtc.
//!
//! An MPICH that was configured with `--with-yaksa=PREFIX` packs and unpacks every datatype with dtc, unmodified.
//! `include/yaksa.h` is the interface; `docs/integrate/mpich.md` says how to build and test an MPICH on it. This is an independent
//! implementation of that interface, and not affiliated with the Yaksa project.
//!
//! Types are cheap to create: a node of the tree, with its size, bounds and number of segments, and no more. MPICH creates
//! a type for every intermediate step and gives no commit event, so its first packs move it as it was
//! made, and it is handed to the compiler once they have cost as much as that takes.
//!
//! # Handles
//!
//! | handle | what it is |
//! | --- | --- |
//! | type | a number up to 56 for a builtin type, otherwise the address of a reference counted node |
//! | request | 0 for a call that is done, otherwise the address of a call under way |
//! | info | the address of what was appended |
//!
//! As in C, a handle that was freed or never given out must not be used. Other mistakes are answered with a status.

mod abi;
mod accumulate;
mod border;
mod builtin;
mod commit;
mod construct;
mod described;
mod info;
mod iov;
mod known;
mod library;
mod memory;
mod operation;
mod pack;
mod segmented;
mod shape;
mod status;
mod types;
mod wire;
