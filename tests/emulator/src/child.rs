//! Runs a test in a process of its own, because libraries are loaded once per process.

use super::FOLDER;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that a test finds.
#[derive(Clone, Copy, Debug)]
pub enum Stub {
    /// No library.
    Absent,
    /// A library built from `stub/` with these definitions.
    Built(&'static [&'static str]),
}

/// Set in the child, to the name of the test.
const CHILD: &str = "DTC_TEST_CHILD";

/// Runs the test `test` in a child that finds the given libraries, and returns true. Returns false in that child.
pub fn passes_in_child(test: &str, driver: Stub, nvrtc: Stub) -> bool {
    // The harness names tests without the crate.
    let (_, test) = test.split_once("::").unwrap();
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, test).env("DTC_CACHE_DIR", "off");
    child.env("DTC_CUDA_DRIVER", build_stub(folder.path(), "driver", driver));
    child.env("DTC_NVRTC", build_stub(folder.path(), "nvrtc", nvrtc));
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}{:?}",
        String::from_utf8_lossy(&output.stderr),
        output.status
    );
    true
}

/// Builds the stub of `driver` or `nvrtc` in a folder; of an absent one, returns only its path.
pub fn build_stub(folder: &Path, name: &str, stub: Stub) -> PathBuf {
    let library = folder.join(format!("lib{name}.so"));
    if let Stub::Built(definitions) = stub {
        let source = Path::new(FOLDER).join("stub").join(name).with_extension("c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&library).arg(source);
        compiler.args(definitions.iter().map(|definition| format!("-D{definition}")));
        assert!(compiler.status().expect("the C compiler cc").success());
        // The engine opens no library that a group may write, so the mode must not depend on this process's mask.
        std::fs::set_permissions(&library, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    library
}

/// Declares tests that run in a process of their own, which finds the stubs.
#[macro_export]
macro_rules! in_child {
    ($($(#[$doc:meta])* fn $name:ident(driver: $driver:expr, nvrtc: $nvrtc:expr) $body:block)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            if !$crate::passes_in_child(name, $driver, $nvrtc) {
                $body
            }
        }
    )*};
}
