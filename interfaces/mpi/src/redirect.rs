//! Has the Fortran libraries of Open MPI call this library. Their subroutines convert handles and arguments, and call PMPI functions
//! through entries of their global offset tables, like any library. The entries of functions that are interposed get the address of the
//! function here instead: the MPI's own conversions stay, for mpif.h and both modules.

use crate::calls::{CALLS, NAMES};
use crate::exported::Exported;
use crate::find::{Provider, base_of, function, provider};
use crate::report::say;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Relocations that hold the address of a function: for calls by linkage, and by address; none on other processors.
#[cfg(target_arch = "x86_64")]
const CALLS_BY: Option<[u32; 2]> = Some([7, 6]);
#[cfg(target_arch = "aarch64")]
const CALLS_BY: Option<[u32; 2]> = Some([1026, 1025]);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLS_BY: Option<[u32; 2]> = None;

/// Tags of the dynamic section (ELF).
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// The tables of a library that is loaded.
#[derive(Default)]
struct Library {
    base: usize,
    /// What the loader has made read-only.
    read_only: std::ops::Range<usize>,
    dynamic: usize,
}

impl Library {
    /// A number of the dynamic section, or 0.
    unsafe fn number(&self, tag: i64) -> u64 {
        let mut entry = self.dynamic as *const Dynamic;
        // SAFETY: the section ends with `DT_NULL`.
        unsafe {
            while (*entry).tag != DT_NULL {
                if (*entry).tag == tag {
                    return (*entry).value;
                }
                entry = entry.add(1);
            }
        }
        0
    }

    /// An address of the dynamic section, which glibc has relocated and other loaders have not; or 0.
    unsafe fn address(&self, tag: i64) -> usize {
        // SAFETY: as the caller says.
        let value = unsafe { self.number(tag) } as usize;
        if value != 0 && value < self.base { self.base + value } else { value }
    }

    /// Writes an entry, which may lie in pages that the loader has made read-only; false if it cannot be written.
    unsafe fn put(&self, entry: *const AtomicUsize, function: usize) -> bool {
        // SAFETY: it cannot fail.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let (place, page) = (entry as usize, entry as usize & !(page_size - 1));
        let length = place + size_of::<usize>() - page;
        let closed = self.read_only.contains(&place);
        let protect = |access| {
            // SAFETY: pages of this library, whose entry is written alone.
            unsafe { libc::mprotect(page as *mut c_void, length, access) == 0 }
        };
        if closed && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        // SAFETY: an entry of the table, which is writable now.
        unsafe { (*entry).store(function, Ordering::Release) };
        if closed {
            protect(libc::PROT_READ);
        }
        true
    }

    /// Redirects the calls in one table of relocations; false if an entry cannot be written.
    unsafe fn redirect(&self, table: usize, bytes: u64, exported: &[Exported; CALLS]) -> bool {
        // SAFETY: the tables of a library that is loaded.
        unsafe {
            let (symbols, names) = (self.address(DT_SYMTAB), self.address(DT_STRTAB));
            let Some(kinds) = CALLS_BY.filter(|_| symbols != 0 && names != 0 && table != 0) else { return true };
            let count = bytes as usize / size_of::<Relocation>();
            let relocations = std::slice::from_raw_parts(table as *const Relocation, count);
            for relocation in relocations.iter().filter(|relocation| kinds.contains(&(relocation.info as u32))) {
                let symbol = &*(symbols as *const libc::Elf64_Sym).add((relocation.info >> 32) as usize);
                let name = CStr::from_ptr((names as *const c_char).add(symbol.st_name as usize)).to_bytes();
                let Some(name) = name.strip_prefix(b"P") else { continue };
                let Some(call) = NAMES.iter().position(|known| known.to_bytes() == name) else { continue };
                let entry = (self.base + relocation.offset as usize) as *const AtomicUsize;
                if !self.put(entry, exported[call].0 as usize) {
                    return false;
                }
            }
        }
        true
    }
}

/// What is done with each library, and whether it worked so far.
struct Work<'a> {
    exported: &'a [Exported; CALLS],
    all: bool,
}

unsafe extern "C" fn redirect_library(info: *mut libc::dl_phdr_info, _size: usize, work: *mut c_void) -> c_int {
    // SAFETY: the loader describes a library, whose name ends; `work` is that of `redirect`.
    unsafe {
        let (info, work) = (&*info, &mut *work.cast::<Work>());
        if info.dlpi_name.is_null() {
            return 0;
        }
        let path = CStr::from_ptr(info.dlpi_name).to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if !file.starts_with(b"libmpi_mpifh.") && !file.starts_with(b"libmpi_usempi") {
            return 0;
        }
        let mut library = Library { base: info.dlpi_addr as usize, ..Library::default() };
        for segment in std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) {
            let place = library.base + segment.p_vaddr as usize;
            match segment.p_type {
                libc::PT_DYNAMIC => library.dynamic = place,
                libc::PT_GNU_RELRO => library.read_only = place..place + segment.p_memsz as usize,
                _ => (),
            }
        }
        if library.dynamic != 0 {
            let by_linkage = (library.address(DT_JMPREL), library.number(DT_PLTRELSZ));
            let by_address = (library.address(DT_RELA), library.number(DT_RELASZ));
            for (table, bytes) in [by_linkage, by_address] {
                work.all = work.all && library.redirect(table, bytes, work.exported);
            }
        }
    }
    0
}

/// Whether the function that follows here in the order of the loader is the MPI's own: a tool that lies between counts what comes from
/// Fortran by itself.
fn is_next_the_mpi() -> bool {
    let (next, profiled) = (function(c"MPI_Send"), function(c"PMPI_Send"));
    let base = |function: *mut c_void| base_of(function as usize);
    !next.is_null() && !profiled.is_null() && !base(next).is_null() && base(next) == base(profiled)
}

static REDIRECTED: AtomicBool = AtomicBool::new(false);

/// Has the Fortran libraries of the MPI call the exported functions.
pub fn redirect(exported: &[Exported; CALLS]) {
    let mut work =
        Work { exported, all: CALLS_BY.is_some() && provider(c"MPI_Send") == Provider::Here && is_next_the_mpi() };
    if work.all {
        // SAFETY: the function takes what is passed here, during this call.
        unsafe { libc::dl_iterate_phdr(Some(redirect_library), (&raw mut work).cast()) };
    }
    if !work.all {
        say("leaves Fortran to the MPI", "a tool is between them, or the tables of the MPI cannot be written");
    }
    REDIRECTED.store(work.all, Ordering::Release);
}

/// Whether they do.
pub fn is_redirected() -> bool {
    REDIRECTED.load(Ordering::Acquire)
}
