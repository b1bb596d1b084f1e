//! What a library minds as a guest in someone else's process: the environment, forked children, signals, threads, locks, and files
//! that another user could have put in its way.
//!
//! Nothing here knows of datatypes or of CUDA. The crates of the runtime use it so that each promise of `SECURITY.md` has one place.

pub mod environment;
mod finding;
pub mod fork;
pub mod lock;
pub mod signals;
pub mod thread;
pub mod trust;

pub use finding::{Cause, Finding};
