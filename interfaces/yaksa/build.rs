//! Gives the library the name that programs ask the loader for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libyaksa.so.0");
    // A background thread may still run when an MPI library that was opened with `dlopen` is closed.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
