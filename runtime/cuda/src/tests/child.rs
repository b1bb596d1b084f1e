//! Tests that run in a process of their own.

#[path = "../../tests/stub/child.rs"]
mod process;

pub(super) use process::{Stub, build, passes_in_child};

/// Declares a test that runs in a child.
macro_rules! in_child {
    ($($(#[$doc:meta])* fn $name:ident(driver: $driver:expr, nvrtc: $nvrtc:expr) $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            if !$crate::tests::child::passes_in_child(name, $driver, $nvrtc) {
                $body
            }
        }
    )*};
}

pub(super) use in_child;
