//! Thunks: the call that moves one element, as machine code with every number in it.
//!
//! A microkernel whose numbers were loaded from memory cannot begin before they arrive, and those loads wait behind the last
//! stores of the call before. Why the instructions are written here and not by Cranelift is in
//! `docs/decisions/0021-thunks-are-encoded-by-hand.md`.

use super::memory::Code;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Types that have thunks at a time, at most. Each takes a page: 16 MiB in all.
const MOST: usize = 4096;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Number of types that have thunks.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A call of a function for one element, complete but for the addresses of memory and packed bytes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
pub(crate) struct Call {
    /// The address of a function of the C calling convention.
    function: usize,
    /// Where the element begins, in bytes from the address of the type.
    offset: i64,
    /// Whether the packed side is the first argument and not the second.
    packed_first: bool,
    /// The arguments behind the two addresses.
    arguments: SmallVec<[u64; 5]>,
}

impl Call {
    /// A function of memory, packed bytes, and these arguments.
    pub(super) fn new(function: usize, offset: i64, arguments: impl IntoIterator<Item = u64>) -> Call {
        Call { function, offset, packed_first: false, arguments: arguments.into_iter().collect() }
    }

    /// A copy of `bytes` bytes, from memory to the packed bytes or back.
    pub(super) fn copy<const PACK: bool>(function: usize, offset: i64, bytes: u64) -> Call {
        Call { function, offset, packed_first: PACK, arguments: smallvec![bytes] }
    }
}

/// The thunks of a type: functions of memory and packed bytes, in both directions.
pub(crate) struct Thunks {
    code: Code,
    pack: usize,
    unpack: usize,
}

impl Thunks {
    /// Makes thunks of calls; `None` where this machine or its policy does not allow it.
    pub(crate) fn new(pack: &Call, unpack: &Call) -> Option<Thunks> {
        /// Thunks begin with a line, and those of different types are spread over the sets of the instruction cache.
        const LINE: usize = 64;
        const LINES: usize = PAGE / LINE;
        // Two thunks are four lines at most.
        let place = LIVE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |live| (live < MOST).then_some(live + 1));
        let first = place.ok()? * 4 % LINES * LINE;
        let make = || {
            let mut code = vec![0; first];
            encode(pack, &mut code)?;
            let second = code.len().next_multiple_of(LINE);
            code.resize(second, 0);
            encode(unpack, &mut code)?;
            Some(Thunks { code: Code::new(&code).ok()?, pack: first, unpack: second })
        };
        let thunks = make();
        if thunks.is_none() {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
        thunks
    }

    /// The address of the thunk of a direction, of the C calling convention. It uses no argument but the first two.
    pub(crate) fn address<const PACK: bool>(&self) -> *const u8 {
        self.code.start().wrapping_add(if PACK { self.pack } else { self.unpack })
    }
}

impl Drop for Thunks {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes the instructions of a call, position-independent.
///
/// System V ABI, x86-64 supplement, 3.2.3: integers are passed in rdi, rsi, rdx, rcx, r8 and r9, then on the stack.
#[cfg(target_arch = "x86_64")]
fn encode(call: &Call, code: &mut Vec<u8>) -> Option<()> {
    match i32::try_from(call.offset) {
        Ok(0) => {}
        Ok(offset) => {
            code.extend([0x48, 0x8d, 0xbf]); // lea rdi, [rdi + offset]
            code.extend(offset.to_le_bytes());
        }
        Err(_) => {
            code.extend([0x48, 0xb8]); // mov rax, offset
            code.extend(call.offset.to_le_bytes());
            code.extend([0x48, 0x01, 0xc7]); // add rdi, rax
        }
    }
    if call.packed_first {
        code.extend([0x48, 0x89, 0xf8]); // mov rax, rdi
        code.extend([0x48, 0x89, 0xf7]); // mov rdi, rsi
        code.extend([0x48, 0x89, 0xc6]); // mov rsi, rax
    }
    let (in_registers, on_stack) = call.arguments.split_at(call.arguments.len().min(4));
    // Whether a register is one of the upper eight, and its number there.
    for (&argument, (upper, register)) in in_registers.iter().zip([(0, 2), (0, 1), (1, 0), (1, 1)]) {
        if let Ok(argument) = u32::try_from(argument) {
            code.extend(if upper == 1 { &[0x41][..] } else { &[] });
            code.push(0xb8 + register); // mov r32, argument
            code.extend(argument.to_le_bytes());
        } else if let Ok(argument) = i32::try_from(argument.cast_signed()) {
            code.extend([0x48 + upper, 0xc7, 0xc0 + register]); // mov r64, argument, with its sign
            code.extend(argument.to_le_bytes());
        } else {
            code.extend([0x48 + upper, 0xb8 + register]); // mov r64, argument
            code.extend(argument.to_le_bytes());
        }
    }
    let pushed = match on_stack {
        [] => None,
        // It also aligns the stack, which the return address has taken off its boundary.
        [argument] => Some(i32::try_from(*argument).ok()?),
        _ => return None,
    };
    if let Some(argument) = pushed {
        code.push(0x68); // push argument
        code.extend(argument.to_le_bytes());
    }
    code.extend([0x48, 0xb8]); // mov rax, function
    code.extend((call.function as u64).to_le_bytes());
    match pushed {
        None => code.extend([0xff, 0xe0]), // jmp rax
        // call rax; add rsp, 8; ret
        Some(_) => code.extend([0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3]),
    }
    Some(())
}

/// Other processors have no thunks.
#[cfg(not(target_arch = "x86_64"))]
fn encode(_: &Call, _: &mut Vec<u8>) -> Option<()> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::cell::Cell;

    type Seen = [u64; 7];

    thread_local! {
        static SEEN: Cell<Seen> = const { Cell::new([0; 7]) };
    }

    /// A function that records what it was called with, and whether the stack was aligned.
    extern "C" fn record(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) {
        let aligned = 0u128;
        assert_eq!(std::hint::black_box(&raw const aligned as usize) % 16, 0);
        SEEN.set([a, b, c, d, e, f, g]);
    }

    /// The arguments that `record` gets from a thunk of this call.
    fn seen(call: &Call) -> Seen {
        let thunks = Thunks::new(call, call).expect("this machine runs what it writes");
        // SAFETY: the thunk calls `record`, which takes any integers.
        let thunk = unsafe { std::mem::transmute::<*const u8, extern "C" fn(u64, u64)>(thunks.address::<true>()) };
        thunk(1000, 2000);
        SEEN.get()
    }

    #[test]
    fn every_argument_arrives() {
        let values = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 32, u64::MAX, (-5i64).cast_unsigned(), 1 << 63];
        for first in values {
            for second in values {
                let call = Call::new(record as *const () as usize, 0, [first, second, second, first]);
                assert_eq!(seen(&call)[..6], [1000, 2000, first, second, second, first]);
                let call = Call::new(record as *const () as usize, 0, [first, second, first, second, 77]);
                assert_eq!(seen(&call), [1000, 2000, first, second, first, second, 77]);
            }
        }
    }

    #[test]
    fn memory_is_displaced() {
        for offset in [0, 1, -1000, 127, 128, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 31, -(1 << 40), i64::MIN] {
            let memory = 1000i64.wrapping_add(offset).cast_unsigned();
            assert_eq!(seen(&Call::new(record as *const () as usize, offset, [3]))[..3], [memory, 2000, 3]);
            let pack = Call::copy::<true>(record as *const () as usize, offset, 480);
            assert_eq!(seen(&pack)[..3], [2000, memory, 480]);
            let unpack = Call::copy::<false>(record as *const () as usize, offset, 480);
            assert_eq!(seen(&unpack)[..3], [memory, 2000, 480]);
        }
    }

    #[test]
    fn what_does_not_fit_has_no_thunk() {
        let call = Call::new(record as *const () as usize, 0, [1, 2, 3, 4, 1 << 31]);
        assert!(Thunks::new(&call, &call).is_none());
        let call = Call::new(record as *const () as usize, 0, [1, 2, 3, 4, 5, 6]);
        assert!(Thunks::new(&call, &call).is_none());
    }
}
