//! Instructions that were written as data, made visible to the cores that will run them. x86-64 does so by itself.

/// Brings code from the data cache to where instructions are fetched from. The code may be moved to pages with other rights afterwards,
/// but not to another address.
#[cfg(target_arch = "aarch64")]
pub(super) fn publish(code: &[u8]) {
    use std::arch::asm;
    let (start, end) = (code.as_ptr() as usize, code.as_ptr() as usize + code.len());
    // SAFETY: the instructions read a register that Linux lets programs read, and maintain caches for addresses inside `code`, or in
    // the cache line of one, which are mapped and readable. They change no memory and no other register.
    unsafe {
        let kinds: usize;
        asm!("mrs {}, ctr_el0", out(reg) kinds, options(nomem, nostack, preserves_flags));
        // Binary logarithms of the words of 4 bytes in the smallest line of each cache.
        let (data_line, instruction_line) = (4 << (kinds >> 16 & 15), 4 << (kinds & 15));
        for line in (start & !(data_line - 1)..end).step_by(data_line) {
            asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", options(nostack, preserves_flags));
        for line in (start & !(instruction_line - 1)..end).step_by(instruction_line) {
            asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// Makes the cores of other threads drop instructions that they fetched ahead: code that was freed may have lain at the same address.
/// Linux older than 4.16 cannot do that.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
pub(super) fn synchronise() {
    const REGISTER: libc::c_int = 1 << 6;
    const SYNCHRONISE: libc::c_int = 1 << 5;
    // SAFETY: `membarrier` takes a command and flags; 0 is a valid flag. It touches no memory of this process, and if it refuses, nothing
    // has changed.
    unsafe {
        libc::syscall(libc::SYS_membarrier, REGISTER, 0);
        libc::syscall(libc::SYS_membarrier, SYNCHRONISE, 0);
    }
}

#[cfg(not(target_arch = "aarch64"))]
pub(super) fn publish(_: &[u8]) {}

#[cfg(not(all(target_arch = "aarch64", target_os = "linux")))]
pub(super) fn synchronise() {}
