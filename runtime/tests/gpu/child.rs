//! Runs a test in a process that finds the libraries it should.

use std::ffi::{CString, c_char, c_int, c_long};
use std::path::{Path, PathBuf};
use std::process::Command;

use libloading::os::unix::Library;

/// Which library a test finds.
#[derive(Clone, Copy)]
pub enum Stub {
    /// None.
    Absent,
    /// One built from `runtime/tests/stub` with these definitions.
    Built(&'static [&'static str]),
}

/// Set in the child, to the name of the test.
const CHILD: &str = "DTC_TEST_CHILD";

/// Runs the test of this name in a child, and says so; or says that this is the child.
pub fn passes_in_child(test: &str, driver: Stub, nvrtc: Stub) -> bool {
    // The harness names tests without the crate.
    let (_, test) = test.split_once("::").unwrap();
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        return false;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, test).env("DTC_CACHE_DIR", "off");
    child.env("DTC_CUDA_DRIVER", build(folder.path(), "driver", driver));
    child.env("DTC_NVRTC", build(folder.path(), "nvrtc", nvrtc));
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}{:?}", output.status);
    true
}

fn build(folder: &Path, name: &str, stub: Stub) -> PathBuf {
    let library = folder.join(format!("lib{name}.so"));
    if let Stub::Built(definitions) = stub {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub").join(name).with_extension("c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&library).arg(source);
        compiler.args(definitions.iter().map(|definition| format!("-D{definition}")));
        assert!(compiler.status().expect("the C compiler cc").success());
    }
    library
}

/// Declares tests that run in a child.
macro_rules! in_child {
    ($(fn $name:ident(driver: $driver:expr, nvrtc: $nvrtc:expr) $body:block)*) => {$(
        #[test]
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            if !$crate::child::passes_in_child(name, $driver, $nvrtc) {
                $body
            }
        }
    )*};
}

pub(crate) use in_child;

/// The stub of the driver itself, to ask what was called and to say what fails.
fn stub() -> Library {
    // SAFETY: the stub has no constructors.
    unsafe { Library::new(std::env::var_os("DTC_CUDA_DRIVER").unwrap()).unwrap() }
}

/// How often a function was called.
pub fn calls(function: &str) -> c_long {
    let name = CString::new(function).unwrap();
    // SAFETY: the type is that of the declaration in the stub.
    unsafe { stub().get::<unsafe extern "C" fn(*const c_char) -> c_long>("stub_calls").unwrap()(name.as_ptr()) }
}

/// How many things of the driver are alive.
pub fn alive() -> c_long {
    // SAFETY: the type is that of the declaration in the stub, which only this thread uses.
    unsafe { **stub().get::<*const c_long>("stub_alive").unwrap() }
}

/// How many more allocations succeed; below zero, all.
pub fn let_allocate(left: c_long) {
    // SAFETY: as above.
    unsafe { **stub().get::<*mut c_long>("stub_allocations_left").unwrap() = left }
}

/// What launches return.
pub fn let_launches_return(status: c_int) {
    // SAFETY: as above.
    unsafe { **stub().get::<*mut c_int>("stub_launch_status").unwrap() = status }
}
