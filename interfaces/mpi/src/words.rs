//! The arguments of a call as machine words.
//!
//! Each argument of the interposed calls is an integer or an address. On Linux, the calling conventions of x86-64 (System V) and AArch64
//! (AAPCS64) pass each of them in a register or in 8 bytes of the stack, an `int` in the lower half. So a call that is taken and passed on
//! as words is the call of the program, whatever its types are.

use crate::abi::{Abi, Handle};
use crate::calls::{Arguments, Call, SHAPES, next};
use crate::staged::{Buffer, Message, Staged};
use dtc_mpi_table::Use;
use std::ffi::{c_int, c_void};

/// A call, and its arguments as they are now.
pub struct Words<'a> {
    call: Call,
    words: &'a mut [usize],
}

impl<'a> Words<'a> {
    /// The arguments of a call.
    #[inline(always)]
    pub fn new(call: Call, words: &'a mut [usize]) -> Words<'a> {
        Words { call, words }
    }

    /// All arguments as they are now.
    pub fn all(&self) -> &[usize] {
        self.words
    }

    /// The call.
    pub fn call(&self) -> Call {
        self.call
    }

    /// An argument, from 0 on.
    #[inline(always)]
    pub fn word(&self, at: usize) -> usize {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Replaces an argument.
    #[inline(always)]
    pub fn put(&mut self, at: usize, word: usize) {
        if let Some(place) = self.words.get_mut(at) {
            *place = word;
        }
    }

    /// An `int`.
    #[inline(always)]
    pub fn int(&self, at: usize) -> c_int {
        self.word(at) as c_int
    }

    /// What stands in the arguments.
    #[inline(always)]
    pub fn arguments(&self) -> Arguments {
        SHAPES[self.call as usize].0
    }

    /// Whether counts have 64 bits: in the large-count forms.
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        SHAPES[self.call as usize].2
    }

    /// A count: an `int`, or an `MPI_Count` in the large-count forms.
    #[inline(always)]
    pub fn count(&self, at: usize) -> i64 {
        if self.is_wide() { self.word(at) as i64 } else { self.int(at).into() }
    }

    /// A handle.
    #[inline(always)]
    pub fn handle<A: Abi>(&self, at: usize) -> A::Handle {
        A::Handle::of(self.word(at))
    }

    /// An address.
    #[inline(always)]
    pub fn address<T>(&self, at: usize) -> *mut T {
        self.word(at) as *mut T
    }

    /// Address, count and datatype of elements, which follow each other.
    #[inline(always)]
    pub fn buffer<A: Abi>(&self, first: usize) -> Buffer<A> {
        Buffer { memory: self.address(first), elements: self.count(first + 1), datatype: self.handle::<A>(first + 2) }
    }

    /// The elements at `first`, followed by the rank of the other process, and the communicator at `communicator`.
    #[inline(always)]
    pub fn message<A: Abi>(&self, first: usize, communicator: usize, of: Use) -> Message<A> {
        let (buffer, peer) = (self.buffer::<A>(first), self.int(first + 3));
        Message { buffer, peer, communicator: self.handle::<A>(communicator), of, uses: 1 }
    }

    /// Puts staged elements in the place of those of the program, if there are some.
    pub fn give<A: Abi>(&mut self, first: usize, staged: Option<&Staged<A>>) {
        if let Some(Staged { given: Buffer { memory, elements, datatype }, .. }) = staged {
            self.put(first, *memory as usize);
            self.put(first + 1, *elements as usize);
            self.put(first + 2, datatype.word());
        }
    }

    /// The status of the program, or `own` if the program ignores it, which stands in its place then.
    pub fn status<A: Abi>(&mut self, at: usize, own: &mut A::Status) -> *mut A::Status {
        let given: *mut A::Status = self.address(at);
        if !std::ptr::eq(given, A::STATUS_IGNORE) {
            return given;
        }
        let own: *mut A::Status = own;
        self.put(at, own as usize);
        own
    }

    /// Has the MPI do the call.
    ///
    /// # Safety
    ///
    /// The arguments are those of the call, and lead where MPI says.
    #[inline(always)]
    pub unsafe fn mpi(&self) -> c_int {
        // SAFETY: as the caller says; a wrapper has as many words as its call has arguments.
        unsafe { pass(next(self.call as usize), self.words) }
    }
}

/// Goes on to the macro `$then` with names of so many words, and what follows.
macro_rules! with_words {
    (0 $then:ident! $($rest:tt)*) => { $then! { () $($rest)* } };
    (1 $then:ident! $($rest:tt)*) => { $then! { (a) $($rest)* } };
    (2 $then:ident! $($rest:tt)*) => { $then! { (a b) $($rest)* } };
    (3 $then:ident! $($rest:tt)*) => { $then! { (a b c) $($rest)* } };
    (4 $then:ident! $($rest:tt)*) => { $then! { (a b c d) $($rest)* } };
    (5 $then:ident! $($rest:tt)*) => { $then! { (a b c d e) $($rest)* } };
    (6 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f) $($rest)* } };
    (7 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f g) $($rest)* } };
    (9 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f g h i) $($rest)* } };
    (10 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f g h i j) $($rest)* } };
    (11 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f g h i j k) $($rest)* } };
    (12 $then:ident! $($rest:tt)*) => { $then! { (a b c d e f g h i j k l) $($rest)* } };
}
pub(crate) use with_words;

/// Defines a function `taken` that C calls with words, of which `$words` is a slice in its body.
macro_rules! taken {
    (($($word:ident)*) [$($generic:tt)*] $words:ident $body:block) => {
        unsafe extern "C" fn taken<$($generic)*>($($word: usize),*) -> c_int {
            let $words: &mut [usize] = &mut [$($word),*];
            $body
        }
    };
}
pub(crate) use taken;

/// The type of a function for C with these words.
macro_rules! function_of {
    ($($word:ident)*) => { unsafe extern "C" fn($($crate::words::function_of!(@word $word)),*) -> c_int };
    (@word $word:ident) => { usize };
}
pub(crate) use function_of;

/// The address of a function for C that has a wrapper do a call of so many arguments, for the ABI `A`.
macro_rules! enter {
    ($name:ident $arity:tt, $wrapper:path) => {{
        with_words!($arity taken! [A: Abi] words {
            // SAFETY: the program's arguments.
            unsafe { $wrapper(&mut Words::new(Call::$name, words)) }
        });
        taken::<A> as *const () as Function
    }};
}
pub(crate) use enter;

/// Calls a function with as many words as it has arguments, at most 12.
///
/// # Safety
///
/// It is a function of as many integers and addresses, which may be called with them.
#[inline(always)]
pub unsafe fn pass(function: *mut c_void, words: &[usize]) -> c_int {
    macro_rules! pass {
        ($($word:ident)*) => {{
            // SAFETY: as the caller says.
            let function: function_of!($($word)*) = unsafe { std::mem::transmute(function) };
            // SAFETY: as the caller says.
            unsafe { function($($word),*) }
        }};
    }
    match *words {
        [] => pass!(),
        [a] => pass!(a),
        [a, b] => pass!(a b),
        [a, b, c] => pass!(a b c),
        [a, b, c, d] => pass!(a b c d),
        [a, b, c, d, e] => pass!(a b c d e),
        [a, b, c, d, e, f] => pass!(a b c d e f),
        [a, b, c, d, e, f, g] => pass!(a b c d e f g),
        [a, b, c, d, e, f, g, h, i] => pass!(a b c d e f g h i),
        [a, b, c, d, e, f, g, h, i, j] => pass!(a b c d e f g h i j),
        [a, b, c, d, e, f, g, h, i, j, k] => pass!(a b c d e f g h i j k),
        [a, b, c, d, e, f, g, h, i, j, k, l] => pass!(a b c d e f g h i j k l),
        // No call has so many arguments: `taken` would not compile.
        _ => -1,
    }
}
