//! When machine code is made for a type, and whether it has been.

use std::fmt;

/// When machine code is made for a type.
///
/// The code is a kernel, if the estimate says that the type gains by one, and two thunks. A thunk calls the kernel or a microkernel,
/// and has the counts and strides of the type in its instructions.
///
/// ```
/// use dtc_runtime::datatype::text;
/// use dtc_runtime::{Engine, Policy, Tier};
/// // Kernels for types that are used often, none for the others.
/// let engine = Engine::builder().policy(Policy::Lazy(100)).build();
/// let committed = engine.commit(&text::parse("vector 1000 1 2 double").unwrap());
/// assert_eq!(committed.tier(), Tier::Generic);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// A kernel in the background, once calls have moved the type for about 8 us; until then it is moved as it was described. Thunks
    /// are made with the kernel. For types without a kernel, the call that follows 1,024 packs or unpacks of whole elements makes them.
    #[default]
    Background,
    /// A kernel and thunks at commit, which waits for them.
    Eager,
    /// A kernel in the background, after this many packs and unpacks. Every call is counted, which thunks do not do: none are made.
    Lazy(u32),
    /// As `Eager`, but for every type whose plan is not too large, whether it gains or not: for tests of compiled code.
    Always,
    /// No machine code.
    Off,
}

/// Which code moves the bytes of a type.
///
/// ```
/// assert_eq!(dtc_runtime::Tier::Specialised.to_string(), "specialised");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Microkernels, driven by the plan.
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
