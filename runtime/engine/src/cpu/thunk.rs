//! Thunks: the calls that move one element and several, as machine code with every number of the type in it.
//!
//! A microkernel whose numbers were loaded from memory cannot begin before they arrive, and those loads wait behind the last
//! stores of the call before. Why the instructions are written here and not by Cranelift is in
//! `docs/decisions/0021-thunks-are-encoded-by-hand.md`.

use super::memory::Code;
use super::permuted::Permuted;
use super::straight::Straight;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Types that have thunks at a time, at most. Each takes a page, or two with straight code: 32 MiB in all.
const MOST: usize = 4096;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Number of types that have thunks.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A call of a function for whole elements, complete but for the addresses of memory and packed bytes, and how many there are.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no thunks"))]
pub(crate) struct Call {
    /// The address of a function of the C calling convention.
    function: usize,
    /// Where the element begins, in bytes from the address of the type.
    offset: i64,
    /// Whether the packed side is the first argument and not the second.
    packed_first: bool,
    /// What the argument behind the two addresses is; `None` where it is the first of `arguments`.
    per_element: Option<i32>,
    /// The arguments behind.
    arguments: SmallVec<[u64; 5]>,
}

impl Call {
    /// A function of memory, packed bytes, and these arguments, for one element.
    pub(super) fn new(function: usize, offset: i64, arguments: impl IntoIterator<Item = u64>) -> Call {
        let arguments = arguments.into_iter().collect();
        Call { function, offset, packed_first: false, per_element: None, arguments }
    }

    /// A copy of `bytes` bytes, from memory to the packed bytes or back.
    pub(super) fn copy<const PACK: bool>(function: usize, offset: i64, bytes: u64) -> Call {
        Call { packed_first: PACK, ..Call::new(function, offset, [bytes]) }
    }

    /// A function of memory, packed bytes, `per_element` for each element, and these arguments.
    pub(super) fn of_several(
        function: usize,
        offset: i64,
        per_element: u64,
        arguments: impl IntoIterator<Item = u64>,
    ) -> Option<Call> {
        let per_element = Some(i32::try_from(per_element).ok()?);
        Some(Call { per_element, ..Call::new(function, offset, arguments) })
    }

    /// A copy of `per_element` bytes for each element.
    pub(super) fn copy_of_several<const PACK: bool>(function: usize, offset: i64, per_element: u64) -> Option<Call> {
        Some(Call { packed_first: PACK, ..Call::of_several(function, offset, per_element, [])? })
    }
}

/// What a thunk does.
pub(crate) enum Thunk {
    /// It goes to a function.
    Call(Call),
    /// It moves the elements word by word.
    Straight(Straight),
    /// It shuffles them.
    Permuted(Permuted),
}

/// The thunks of a type in one direction: for one element, and for several. Each may be missing.
pub(crate) type Calls = [Option<Thunk>; 2];

/// The thunks of a type: functions of memory, packed bytes and a count of elements, in both directions.
pub(crate) struct Thunks {
    code: Code,
    pack: [Option<usize>; 2],
    unpack: [Option<usize>; 2],
}

impl Thunks {
    /// Makes thunks of calls; `None` where this machine or its policy does not allow it, or there are no calls.
    pub(crate) fn new(pack: Calls, unpack: Calls) -> Option<Thunks> {
        /// Thunks begin with a line, and those of different types are spread over the sets of the instruction cache.
        const LINE: usize = 64;
        const LINES: usize = PAGE / LINE;
        // Four thunks are eight lines at most, without straight code.
        let place = LIVE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |live| (live < MOST).then_some(live + 1));
        let first = place.ok()? * 8 % LINES * LINE;
        let make = || {
            let mut code = vec![0; first];
            let mut thunk = |thunk: Option<Thunk>| {
                let start = code.len().next_multiple_of(LINE);
                code.resize(start, 0);
                match thunk? {
                    Thunk::Call(call) => encode(&call, &mut code)?,
                    Thunk::Straight(straight) => encode_straight(&straight, &mut code)?,
                    Thunk::Permuted(permuted) => encode_permuted(&permuted, &mut code)?,
                }
                Some(start)
            };
            let (pack, unpack) = (pack.map(&mut thunk), unpack.map(&mut thunk));
            let is_any = pack.iter().chain(&unpack).any(Option::is_some);
            is_any.then(|| Some(Thunks { code: Code::new(&code).ok()?, pack, unpack }))?
        };
        let thunks = make();
        if thunks.is_none() {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
        thunks
    }

    /// The addresses of the thunks of a direction, of the C calling convention: for one element, and for several. The first takes
    /// memory and packed bytes, the second also how many elements there are.
    pub(crate) fn of<const PACK: bool>(&self) -> [Option<*const u8>; 2] {
        let starts = if PACK { self.pack } else { self.unpack };
        starts.map(|start| Some(self.code.start().wrapping_add(start?)))
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
    encode_offset(call.offset, code);
    if call.packed_first {
        code.extend([0x48, 0x89, 0xf8]); // mov rax, rdi
        code.extend([0x48, 0x89, 0xf7]); // mov rdi, rsi
        code.extend([0x48, 0x89, 0xc6]); // mov rsi, rax
    }
    // Whether a register is one of the upper eight, and its number there. The number of elements is in rdx.
    let mut registers = &[(0, 2), (0, 1), (1, 0), (1, 1)][..];
    if let Some(per_element) = call.per_element {
        if per_element != 1 {
            code.extend([0x48, 0x69, 0xd2]); // imul rdx, rdx, per_element
            code.extend(per_element.to_le_bytes());
        }
        registers = &registers[1..];
    }
    let (in_registers, on_stack) = call.arguments.split_at(call.arguments.len().min(registers.len()));
    for (&argument, &(upper, register)) in in_registers.iter().zip(registers) {
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

/// Moves the address of memory, in rdi, by constant bytes.
#[cfg(target_arch = "x86_64")]
fn encode_offset(offset: i64, code: &mut Vec<u8>) {
    match i32::try_from(offset) {
        Ok(0) => {}
        Ok(offset) => {
            code.extend([0x48, 0x8d, 0xbf]); // lea rdi, [rdi + offset]
            code.extend(offset.to_le_bytes());
        }
        Err(_) => {
            code.extend([0x48, 0xb8]); // mov rax, offset
            code.extend(offset.to_le_bytes());
            code.extend([0x48, 0x01, 0xc7]); // add rdi, rax
        }
    }
}

/// Writes the instructions of straight code, position-independent.
#[cfg(target_arch = "x86_64")]
fn encode_straight(straight: &Straight, code: &mut Vec<u8>) -> Option<()> {
    encode_offset(straight.offset, code);
    straight.encode(code);
    Some(())
}

/// Writes the instructions of shuffles, position-independent.
#[cfg(target_arch = "x86_64")]
fn encode_permuted(permuted: &Permuted, code: &mut Vec<u8>) -> Option<()> {
    encode_offset(permuted.offset, code);
    permuted.encode(code);
    Some(())
}

/// Other processors have no thunks.
#[cfg(not(target_arch = "x86_64"))]
fn encode_permuted(_: &Permuted, _: &mut Vec<u8>) -> Option<()> {
    None
}

/// Other processors have no thunks.
#[cfg(not(target_arch = "x86_64"))]
fn encode_straight(_: &Straight, _: &mut Vec<u8>) -> Option<()> {
    None
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

    const RECORD: extern "C" fn(u64, u64, u64, u64, u64, u64, u64) = record;

    /// The arguments that `record` gets from a thunk of this call, for three elements.
    fn seen(call: Call) -> Seen {
        let thunks =
            Thunks::new([None, Some(Thunk::Call(call))], [None, None]).expect("this machine runs what it writes");
        let [None, Some(thunk)] = thunks.of::<true>() else { panic!("one of four") };
        assert_eq!(thunks.of::<false>(), [None; 2]);
        // SAFETY: the thunk calls `record`, which takes any integers.
        let thunk = unsafe { std::mem::transmute::<*const u8, extern "C" fn(u64, u64, u64)>(thunk) };
        thunk(1000, 2000, 3);
        SEEN.get()
    }

    #[test]
    fn every_argument_arrives() {
        let values = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 32, u64::MAX, (-5i64).cast_unsigned(), 1 << 63];
        for first in values {
            for second in values {
                let call = Call::new(RECORD as usize, 0, [first, second, second, first]);
                assert_eq!(seen(call)[..6], [1000, 2000, first, second, second, first]);
                let call = Call::new(RECORD as usize, 0, [first, second, first, second, 77]);
                assert_eq!(seen(call), [1000, 2000, first, second, first, second, 77]);
            }
        }
    }

    #[test]
    fn memory_is_displaced() {
        for offset in [0, 1, -1000, 127, 128, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 31, -(1 << 40), i64::MIN] {
            let memory = 1000i64.wrapping_add(offset).cast_unsigned();
            assert_eq!(seen(Call::new(RECORD as usize, offset, [3]))[..3], [memory, 2000, 3]);
            let pack = Call::copy::<true>(RECORD as usize, offset, 480);
            assert_eq!(seen(pack)[..3], [2000, memory, 480]);
            let unpack = Call::copy::<false>(RECORD as usize, offset, 480);
            assert_eq!(seen(unpack)[..3], [memory, 2000, 480]);
        }
    }

    #[test]
    fn a_count_arrives_as_what_the_elements_have() {
        for per_element in [1, 2, 480, i32::MAX as u64] {
            let call = Call::of_several(RECORD as usize, 0, per_element, [7, u64::MAX, 8, 9]).unwrap();
            assert_eq!(seen(call), [1000, 2000, 3 * per_element, 7, u64::MAX, 8, 9]);
            let pack = Call::copy_of_several::<true>(RECORD as usize, 16, per_element).unwrap();
            assert_eq!(seen(pack)[..3], [2000, 1016, 3 * per_element]);
        }
        assert!(Call::of_several(RECORD as usize, 0, 1 << 31, []).is_none());
    }

    #[test]
    fn what_does_not_fit_has_no_thunk() {
        let call = Call::new(RECORD as usize, 0, [1, 2, 3, 4, 1 << 31]);
        assert!(Thunks::new([Some(Thunk::Call(call)), None], [None, None]).is_none());
        let call = Call::new(RECORD as usize, 0, [1, 2, 3, 4, 5, 6]);
        assert!(Thunks::new([Some(Thunk::Call(call)), None], [None, None]).is_none());
    }
}
