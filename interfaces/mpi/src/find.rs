//! Finds functions and objects of the MPI of the process.

use once_cell::race::OnceBox;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Most libraries that may be an MPI.
const MOST_CANDIDATES: usize = 8;

/// Where the program finds a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provider {
    /// Nowhere.
    Nowhere,
    /// In this library.
    Here,
    /// In another library.
    Elsewhere,
}

/// Adds the path of a library that may be an MPI.
unsafe extern "C" fn add_candidate(info: *mut libc::dl_phdr_info, _size: usize, candidates: *mut c_void) -> c_int {
    // SAFETY: the loader describes a library, whose name ends; `candidates` is the vector of `private_library`, which is used here alone.
    let (path, candidates) = unsafe {
        let name = (*info).dlpi_name;
        if name.is_null() {
            return 0;
        }
        (CStr::from_ptr(name), &mut *candidates.cast::<Vec<CString>>())
    };
    let file = path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if file.starts_with(b"libmpi") {
        candidates.push(path.to_owned());
    }
    (candidates.len() == MOST_CANDIDATES).into()
}

/// A library of an MPI that was opened privately, as mpi4py and other plugins do: its symbols are not in the global scope. The first that
/// finds a symbol, or null.
fn private_library(name: &CStr) -> *mut c_void {
    let mut candidates: Vec<CString> = Vec::new();
    // SAFETY: the function takes what is passed here, during this call.
    unsafe { libc::dl_iterate_phdr(Some(add_candidate), (&raw mut candidates).cast()) };
    for path in candidates {
        // SAFETY: both texts end; nothing is loaded that is not.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        // SAFETY: a library that is open.
        if !handle.is_null() && unsafe { libc::dlsym(handle, name.as_ptr()) }.is_null() {
            // SAFETY: opened above.
            unsafe { libc::dlclose(handle) };
        } else if !handle.is_null() {
            return handle;
        }
    }
    null_mut()
}

/// The library of an MPI that was opened privately, or null.
fn private_mpi() -> *mut c_void {
    static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let known = KNOWN.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = private_library(c"PMPI_Initialized");
    KNOWN.store(found, Ordering::Release);
    found
}

/// A function of the MPI, below this library in the order of the loader; null if there is none.
pub fn function(name: &CStr) -> *mut c_void {
    // The next in the order of the loader, so that tools between this library and the MPI see their calls.
    // SAFETY: the text ends.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found;
    }
    let in_library = |library: *mut c_void| {
        if library.is_null() {
            return null_mut();
        }
        // SAFETY: a library that is open; the text ends.
        unsafe { libc::dlsym(library, name.as_ptr()) }
    };
    let mpi = private_mpi();
    let found = in_library(mpi);
    // Subroutines of Fortran are in a library that needs this one.
    let of_fortran = !mpi.is_null() && name.to_bytes().starts_with(b"mpi_");
    if found.is_null() && of_fortran { in_library(private_library(name)) } else { found }
}

/// An object of the MPI, where the program sees it; null if there is none.
pub fn object(name: &CStr) -> *mut c_void {
    // A program that is not position independent has objects of its libraries copied into itself; then all use the copy.
    // SAFETY: the text ends.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let library = if found.is_null() { private_mpi() } else { null_mut() };
    // SAFETY: a library that is open, and the same text.
    if library.is_null() { found } else { unsafe { libc::dlsym(library, name.as_ptr()) } }
}

/// The library that an address lies in, by where it is loaded; null if it lies in none.
pub fn base_of(address: usize) -> *mut c_void {
    let mut info =
        libc::Dl_info { dli_fname: null_mut(), dli_fbase: null_mut(), dli_sname: null_mut(), dli_saddr: null_mut() };
    // SAFETY: `info` is writable, and any address may be asked about.
    if unsafe { libc::dladdr(address as *const c_void, &mut info) } == 0 { null_mut() } else { info.dli_fbase }
}

/// Where the program finds a function.
pub fn provider(name: &CStr) -> Provider {
    // SAFETY: the text ends.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if function.is_null() {
        return Provider::Nowhere;
    }
    let here = base_of(private_mpi as *const () as usize);
    if !here.is_null() && base_of(function as usize) == here { Provider::Here } else { Provider::Elsewhere }
}

/// Bytes of the longest version of any ABI, and its end.
const VERSION: usize = 8192 + 1;

/// What the MPI says that it is; empty if it says nothing.
pub fn library_version() -> &'static str {
    static KNOWN: OnceBox<String> = OnceBox::new();
    KNOWN.get_or_init(|| Box::new(ask_version().unwrap_or_default()))
}

fn ask_version() -> Option<String> {
    let get = function(c"PMPI_Get_library_version");
    if get.is_null() {
        return None;
    }
    // SAFETY: MPI_Get_library_version has this type in every ABI. (MPI 4.1, 9.1.1)
    let get: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int = unsafe { std::mem::transmute(get) };
    let (mut version, mut length) = (vec![0u8; VERSION], 0);
    // SAFETY: there is room for the longest version.
    if unsafe { get(version.as_mut_ptr().cast(), &mut length) } != 0 {
        return None;
    }
    Some(CStr::from_bytes_until_nul(&version).ok()?.to_string_lossy().into_owned())
}

/// [`function`] for the decoder, which is in C.
#[unsafe(no_mangle)]
unsafe extern "C" fn dtc_mpi_find(name: *const c_char) -> *mut c_void {
    // SAFETY: a text of the decoder, which ends.
    function(unsafe { CStr::from_ptr(name) })
}

/// [`object`] for the decoder.
#[unsafe(no_mangle)]
unsafe extern "C" fn dtc_mpi_find_object(name: *const c_char) -> *mut c_void {
    // SAFETY: a text of the decoder, which ends.
    object(unsafe { CStr::from_ptr(name) })
}
