//! Rules for a library in an application's process: the environment, forked children, signals, threads, locks, and
//! files that another user could have created.
//!
//! Nothing here depends on datatypes or CUDA. Each promise of `SECURITY.md` is kept in one place of this crate.
#![warn(missing_debug_implementations)]

pub mod environment;
pub mod exit;
mod finding;
pub mod fork;
pub mod lock;
pub mod signals;
pub mod thread;
pub mod trust;

pub use finding::{Cause, Finding};
