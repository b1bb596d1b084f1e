//! What the exported functions call, for each ABI.

use crate::abi::Abi;
use crate::calls::{CALLS, Call, Function, Table, for_each_call};
use crate::collectives::wrappers::{
    alltoallw, alltoallw_init, ialltoallw, ineighbor_alltoallw, neighbor_alltoallw, neighbor_alltoallw_init,
};
use crate::completion::{
    request_free, request_get_status, request_get_status_all, request_get_status_any, request_get_status_some, some,
    test, testall, testany, wait, waitall, waitany,
};
use crate::life::{comm_free, finalize, init, type_commit, type_free};
use crate::nonblocking::{imrecv, irecv, isend, isendrecv, isendrecv_replace};
use crate::pack::{pack, unpack};
use crate::persistent::{recv_init, send_init, start, startall};
use crate::point_to_point::{mrecv, recv, send, sendrecv, sendrecv_replace};
use crate::words::enter;
use std::ffi::c_int;

macro_rules! wrap {
    ($($name:ident $arity:tt $wrapper:ident $count:ty, $arguments:ident;)*) => {
        /// The wrappers for an ABI.
        pub fn wrappers<A: Abi>() -> Table {
            let functions: [Function; CALLS] =
                [$(enter!($name $arity, $wrapper),)*];
            Table(functions)
        }
    };
}

for_each_call!(wrap);
