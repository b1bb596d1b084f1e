//! Asks the stubs what was called, and says what fails.

use std::ffi::{CString, c_char, c_int, c_long};
use std::sync::atomic::{AtomicI32, Ordering};

use libloading::os::unix::Library;

/// The stub of the driver itself, to ask what was called and to say what fails.
fn stub() -> Library {
    // SAFETY: the stub has no constructors.
    unsafe { Library::new(std::env::var_os("DTC_CUDA_DRIVER").unwrap()).unwrap() }
}

/// How many compilations began.
pub fn compiling() -> c_int {
    number_of_nvrtc("stub_compiling").load(Ordering::SeqCst)
}

/// Lets compilations end that wait.
pub fn let_compilations_end() {
    number_of_nvrtc("stub_may_end").store(1, Ordering::SeqCst);
}

fn number_of_nvrtc(name: &str) -> &'static AtomicI32 {
    let name = CString::new(name).unwrap();
    // SAFETY: the stub has no constructors; it declares an atomic int of that name, and is never closed.
    unsafe {
        let library = Box::leak(Box::new(Library::new(std::env::var_os("DTC_NVRTC").unwrap()).unwrap()));
        &**library.get::<*const AtomicI32>(name.as_bytes_with_nul()).unwrap()
    }
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
    // SAFETY: the stub declares a `long` of this name, which only this thread uses.
    unsafe { **stub().get::<*mut c_long>("stub_allocations_left").unwrap() = left }
}

/// What launches return.
pub fn let_launches_return(status: c_int) {
    // SAFETY: the stub declares an `int` of this name, which only this thread uses.
    unsafe { **stub().get::<*mut c_int>("stub_launch_status").unwrap() = status }
}

/// What copies return.
pub fn let_copies_return(status: c_int) {
    // SAFETY: the stub declares an `int` of this name, which only this thread uses.
    unsafe { **stub().get::<*mut c_int>("stub_copy_status").unwrap() = status }
}

/// Whether devices reach each other (1), do not (0) or refuse in the end (2).
pub fn let_peers_be(peers: c_int) {
    // SAFETY: the stub declares an `int` of this name, which only this thread uses.
    unsafe { **stub().get::<*mut c_int>("stub_peers").unwrap() = peers }
}
