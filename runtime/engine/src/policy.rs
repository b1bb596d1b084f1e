//! When machine code is made for a type, and whether it has been.

use std::fmt;

/// When machine code is made for a type: a kernel, if it would gain by one, and thunks, which call the kernel, or the routine that
/// moves the type, with the numbers of the type in their instructions.
///
/// ```
/// use dtc_runtime::{Engine, Policy};
/// // Kernels for types that are used often, none for the others.
/// let engine = Engine::builder().policy(Policy::Lazy(100)).build();
/// # drop(engine);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// A kernel in the background, once the type has been used for about 8 us: until then it is moved as it was described, and costs
    /// no more than that. Thunks with the kernel; for types without one, after 1,024 packs or unpacks of one element, by the call
    /// that comes next.
    #[default]
    Background,
    /// At commit, which waits.
    Eager,
    /// In the background, after so many packs and unpacks. Calls are counted on, so thunks are not used.
    Lazy(u32),
    /// At commit, for every type whose plan is not too large, whether it gains or not: for tests of compiled code.
    Always,
    /// Never.
    Off,
}

/// Which code moves the bytes of a type.
///
/// ```
/// assert_eq!(dtc_runtime::Tier::Specialised.to_string(), "specialised");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Leaves driven by the plan.
    Generic,
    /// A kernel compiled for the type.
    Specialised,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Generic => "generic",
            Tier::Specialised => "specialised",
        })
    }
}
