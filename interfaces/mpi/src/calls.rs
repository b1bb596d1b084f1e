//! The calls that are interposed.
//!
//! From one table come the exported functions, the pointers to those of the MPI, and the wrappers.

use crate::find;
use dtc_mpi_table::Use;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of any type; its caller knows which.
pub type Function = *mut c_void;

/// What stands in the arguments of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// Memory, elements, datatype, rank, tag and communicator of what is sent.
    Send,
    /// The same of what is received.
    Receive,
    /// The same of a message that another call completes.
    BeginSend,
    /// See there.
    BeginReceive,
    /// The same of a persistent request.
    InitSend,
    /// See there.
    InitReceive,
    /// Memory, elements and datatype of a matched message that is received.
    Matched,
    /// The same of one that another call completes.
    BeginMatched,
    /// Memory, elements and datatype of what is packed.
    Pack,
    /// From the fourth on, those of what is unpacked.
    Unpack,
    /// The first five of what is sent, and then as many of what is received.
    Exchange,
    /// Memory, elements and datatype of both, rank and tag of what is sent, and then of what is received.
    Replace,
    /// Several datatypes, or none.
    Other,
}

/// Elements among the arguments of a call: memory, count and datatype follow each other.
#[derive(Clone, Copy)]
pub struct ElementArguments {
    /// The place of their memory.
    pub first: usize,
    /// That of the rank that they go to or come from.
    pub rank: Option<usize>,
    /// That of the communicator.
    pub communicator: usize,
    /// What is done with them.
    pub of: Use,
    /// Whether they are sent.
    pub sends: bool,
}

impl Arguments {
    /// The elements of a call: two of an exchange, none of calls with several datatypes or none.
    pub const fn elements(self) -> [Option<ElementArguments>; 2] {
        const fn one(first: usize, rank: Option<usize>, of: Use, sends: bool) -> Option<ElementArguments> {
            Some(ElementArguments { first, rank, communicator: 5, of, sends })
        }
        const fn half(first: usize, rank: usize, communicator: usize, sends: bool) -> Option<ElementArguments> {
            Some(ElementArguments { first, rank: Some(rank), communicator, of: Use::Exchange, sends })
        }
        match self {
            Arguments::Send => [one(0, Some(3), Use::Message, true), None],
            Arguments::Receive => [one(0, Some(3), Use::Message, false), None],
            Arguments::BeginSend | Arguments::InitSend => [one(0, Some(3), Use::Exchange, true), None],
            Arguments::BeginReceive | Arguments::InitReceive => [one(0, Some(3), Use::Exchange, false), None],
            Arguments::Matched => [one(0, None, Use::Message, false), None],
            Arguments::BeginMatched => [one(0, None, Use::Exchange, false), None],
            Arguments::Pack => {
                [Some(ElementArguments { first: 0, rank: None, communicator: 6, of: Use::Pack, sends: false }), None]
            }
            Arguments::Unpack => {
                [Some(ElementArguments { first: 3, rank: None, communicator: 6, of: Use::Unpack, sends: false }), None]
            }
            Arguments::Exchange => [half(0, 3, 10, true), half(5, 8, 10, false)],
            Arguments::Replace => [half(0, 3, 7, true), half(0, 5, 7, false)],
            Arguments::Other => [None, None],
        }
    }

    /// Whether the MPI does a call for certain whose elements, each for itself, it moves as fast: not one that begins a persistent request, or whose
    /// elements do not name a communicator.
    pub const fn may_be_passed(self) -> bool {
        !matches!(
            self,
            Arguments::InitSend
                | Arguments::InitReceive
                | Arguments::Matched
                | Arguments::BeginMatched
                | Arguments::Replace
                | Arguments::Other
        )
    }
}

/// Calls a macro with the table: each line is a call, the number of its arguments, its wrapper, the type of its counts, and what stands in its
/// arguments.
macro_rules! for_each_call {
    ($with:ident) => {
        $with! {
            MPI_Init 2 init c_int, Other;
            MPI_Init_thread 4 init c_int, Other;
            MPI_Finalize 0 finalize c_int, Other;
            MPI_Type_commit 1 type_commit c_int, Other;
            MPI_Type_free 1 type_free c_int, Other;
            MPI_Comm_free 1 comm_free c_int, Other;
            MPI_Comm_disconnect 1 comm_free c_int, Other;
            MPI_Pack 7 pack c_int, Pack;
            MPI_Pack_c 7 pack i64, Pack;
            MPI_Unpack 7 unpack c_int, Unpack;
            MPI_Unpack_c 7 unpack i64, Unpack;
            MPI_Send 6 send c_int, Send;
            MPI_Send_c 6 send i64, Send;
            MPI_Bsend 6 send c_int, Send;
            MPI_Bsend_c 6 send i64, Send;
            MPI_Ssend 6 send c_int, Send;
            MPI_Ssend_c 6 send i64, Send;
            MPI_Rsend 6 send c_int, Send;
            MPI_Rsend_c 6 send i64, Send;
            MPI_Recv 7 recv c_int, Receive;
            MPI_Recv_c 7 recv i64, Receive;
            MPI_Mrecv 5 mrecv c_int, Matched;
            MPI_Mrecv_c 5 mrecv i64, Matched;
            MPI_Sendrecv 12 sendrecv c_int, Exchange;
            MPI_Sendrecv_c 12 sendrecv i64, Exchange;
            MPI_Sendrecv_replace 9 sendrecv_replace c_int, Replace;
            MPI_Sendrecv_replace_c 9 sendrecv_replace i64, Replace;
            MPI_Isend 7 isend c_int, BeginSend;
            MPI_Isend_c 7 isend i64, BeginSend;
            MPI_Ibsend 7 isend c_int, BeginSend;
            MPI_Ibsend_c 7 isend i64, BeginSend;
            MPI_Issend 7 isend c_int, BeginSend;
            MPI_Issend_c 7 isend i64, BeginSend;
            MPI_Irsend 7 isend c_int, BeginSend;
            MPI_Irsend_c 7 isend i64, BeginSend;
            MPI_Irecv 7 irecv c_int, BeginReceive;
            MPI_Irecv_c 7 irecv i64, BeginReceive;
            MPI_Imrecv 5 imrecv c_int, BeginMatched;
            MPI_Imrecv_c 5 imrecv i64, BeginMatched;
            MPI_Isendrecv 12 isendrecv c_int, Exchange;
            MPI_Isendrecv_c 12 isendrecv i64, Exchange;
            MPI_Isendrecv_replace 9 isendrecv_replace c_int, Replace;
            MPI_Isendrecv_replace_c 9 isendrecv_replace i64, Replace;
            MPI_Send_init 7 send_init c_int, InitSend;
            MPI_Send_init_c 7 send_init i64, InitSend;
            MPI_Bsend_init 7 send_init c_int, InitSend;
            MPI_Bsend_init_c 7 send_init i64, InitSend;
            MPI_Ssend_init 7 send_init c_int, InitSend;
            MPI_Ssend_init_c 7 send_init i64, InitSend;
            MPI_Rsend_init 7 send_init c_int, InitSend;
            MPI_Rsend_init_c 7 send_init i64, InitSend;
            MPI_Recv_init 7 recv_init c_int, InitReceive;
            MPI_Recv_init_c 7 recv_init i64, InitReceive;
            MPI_Start 1 start c_int, Other;
            MPI_Startall 2 startall c_int, Other;
            MPI_Wait 2 wait c_int, Other;
            MPI_Test 3 test c_int, Other;
            MPI_Waitall 3 waitall c_int, Other;
            MPI_Testall 4 testall c_int, Other;
            MPI_Waitany 4 waitany c_int, Other;
            MPI_Testany 5 testany c_int, Other;
            MPI_Waitsome 5 some c_int, Other;
            MPI_Testsome 5 some c_int, Other;
            MPI_Request_get_status 3 request_get_status c_int, Other;
            MPI_Request_get_status_all 4 request_get_status_all c_int, Other;
            MPI_Request_get_status_any 5 request_get_status_any c_int, Other;
            MPI_Request_get_status_some 5 request_get_status_some c_int, Other;
            MPI_Request_free 1 request_free c_int, Other;
            MPI_Alltoallw 9 collective c_int, Other;
            MPI_Alltoallw_c 9 collective i64, Other;
            MPI_Ialltoallw 10 collective c_int, Other;
            MPI_Ialltoallw_c 10 collective i64, Other;
            MPI_Neighbor_alltoallw 9 collective c_int, Other;
            MPI_Neighbor_alltoallw_c 9 collective i64, Other;
            MPI_Ineighbor_alltoallw 10 collective c_int, Other;
            MPI_Ineighbor_alltoallw_c 10 collective i64, Other;
            MPI_Alltoallw_init 11 collective c_int, Other;
            MPI_Alltoallw_init_c 11 collective i64, Other;
            MPI_Neighbor_alltoallw_init 11 collective c_int, Other;
            MPI_Neighbor_alltoallw_init_c 11 collective i64, Other;
        }
    };
}
pub(crate) use for_each_call;

macro_rules! define {
    ($($name:ident $arity:literal $wrapper:ident $count:ty, $arguments:ident;)*) => {
        /// The interposed calls.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[expect(non_camel_case_types, missing_docs, reason = "the names of MPI")]
        #[repr(usize)]
        pub enum Call {
            $($name,)*
        }

        /// Their names.
        pub const NAMES: &[&CStr] = &[$(
            // SAFETY: one byte 0, at the end.
            unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) },
        )*];

        /// What stands in their arguments, and how many there are.
        pub const SHAPES: &[(Arguments, usize, bool)] =
            &[$((Arguments::$arguments, $arity, size_of::<$count>() == size_of::<i64>()),)*];
    };
}

/// The number of calls.
pub const CALLS: usize = NAMES.len();

/// Whether a collective is one of neighbors.
pub fn is_of_neighbors(call: Call) -> bool {
    use Call::*;
    matches!(
        call,
        MPI_Neighbor_alltoallw | MPI_Neighbor_alltoallw_c | MPI_Ineighbor_alltoallw | MPI_Ineighbor_alltoallw_c
    ) || matches!(call, MPI_Neighbor_alltoallw_init | MPI_Neighbor_alltoallw_init_c)
}

/// A function for each call.
#[derive(Clone, Copy)]
pub struct Table(pub [Function; CALLS]);

impl Table {
    /// The functions of the MPI, as this library finds them; null for those that it lacks.
    pub fn of_mpi() -> Table {
        let mut table = Table([null_mut(); CALLS]);
        for (place, name) in table.0.iter_mut().zip(NAMES) {
            *place = find::function(name);
        }
        table
    }

    /// The place of a call.
    pub fn place(&mut self, call: Call) -> &mut Function {
        &mut self.0[call as usize]
    }
}

for_each_call!(define);

/// The functions of the MPI, or what stands for those that it lacks.
static MPI: [AtomicPtr<c_void>; CALLS] = [const { AtomicPtr::new(null_mut()) }; CALLS];

/// Keeps the functions that wrappers go on to.
pub fn keep(table: &Table) {
    for (place, function) in MPI.iter().zip(table.0) {
        place.store(function, Ordering::Release);
    }
}

/// The function that a wrapper goes on to.
///
/// # Safety
///
/// `F` is the type of the call's function, and the functions are kept.
pub unsafe fn next<F: Copy>(call: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<Function>()) };
    let function = MPI[call].load(Ordering::Relaxed);
    // SAFETY: as large as a function; the caller knows its type.
    unsafe { std::mem::transmute_copy(&function) }
}

/// Whether the MPI, or what stands for it, has a call.
pub fn has(call: usize) -> bool {
    !MPI[call].load(Ordering::Relaxed).is_null()
}
