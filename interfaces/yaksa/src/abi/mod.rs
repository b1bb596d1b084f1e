//! The functions that C calls. Their meaning is documented in `include/yaksa.h`.

mod bounds;
mod calls;
mod constructors;
mod flatten;
mod infos;
mod library;
mod requests;
mod vectors;

/// What `yaksa_info_t` is in C.
type InfoHandle = *mut std::ffi::c_void;
