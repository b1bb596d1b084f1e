//! What the library asks of the MPI for itself: PMPI functions, which tools do not count.

use crate::abi::Abi;
use crate::find;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions of the ABI that is bound: one in a process.
static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// What the library asks of the MPI, for the ABI that is bound.
#[inline]
pub fn pmpi<A: Abi>() -> &'static Pmpi<A> {
    // SAFETY: kept for this ABI before anything asks, and never freed.
    unsafe { &*FOUND.load(Ordering::Acquire).cast() }
}

/// Keeps the functions of the ABI that is bound.
pub fn keep<A: Abi>(found: Pmpi<A>) {
    FOUND.store(Box::into_raw(Box::new(found)).cast(), Ordering::Release);
}

/// The callback that copies an attribute.
pub type CopyAttribute<A> =
    unsafe extern "C" fn(<A as Abi>::Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;

/// The callback that deletes an attribute.
pub type DeleteAttribute<A> = unsafe extern "C" fn(<A as Abi>::Handle, c_int, *mut c_void, *mut c_void) -> c_int;

macro_rules! pmpi {
    ($($field:ident $name:literal ($($type:ty),*);)*) => {
        /// PMPI functions by their names; each has the type that MPI 4.1 gives it.
        #[expect(missing_docs, reason = "the functions of MPI")]
        pub struct Pmpi<A: Abi> {
            $(pub $field: unsafe extern "C" fn($($type),*) -> c_int,)*
            pub optional: Optional<A>,
        }

        impl<A: Abi> Pmpi<A> {
            /// Finds the functions, or names one that the MPI lacks.
            pub fn find() -> Result<Pmpi<A>, &'static str> {
                Ok(Pmpi {
                    $($field: {
                        let function = needed($name)?;
                        // SAFETY: the function of this name has this type in every MPI. (MPI 4.1)
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(function) }
                    },)*
                    optional: Optional::find(),
                })
            }
        }
    };
}

macro_rules! optional {
    ($($field:ident $name:literal ($($type:ty),*);)*) => {
        /// PMPI functions that an MPI may lack.
        #[expect(missing_docs, reason = "the functions of MPI")]
        pub struct Optional<A: Abi> {
            $(pub $field: Option<unsafe extern "C" fn($($type),*) -> c_int>,)*
        }

        impl<A: Abi> Optional<A> {
            fn find() -> Optional<A> {
                Optional {
                    $($field: {
                        let function = find::function($name);
                        // SAFETY: the function of this name has this type in every MPI that has it. (MPI 4.1)
                        unsafe {
                            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn($($type),*) -> c_int>>(function)
                        }
                    },)*
                }
            }
        }
    };
}

/// A function, or its name if the MPI lacks it.
fn needed(name: &'static CStr) -> Result<*mut c_void, &'static str> {
    let function = find::function(name);
    if function.is_null() { Err(name.to_str().unwrap_or("")) } else { Ok(function) }
}

pmpi! {
    initialized c"PMPI_Initialized" (*mut c_int);
    query_thread c"PMPI_Query_thread" (*mut c_int);
    finalized c"PMPI_Finalized" (*mut c_int);
    type_get_attr c"PMPI_Type_get_attr" (A::Handle, c_int, *mut c_void, *mut c_int);
    type_set_attr c"PMPI_Type_set_attr" (A::Handle, c_int, *mut c_void);
    type_delete_attr c"PMPI_Type_delete_attr" (A::Handle, c_int);
    type_create_keyval c"PMPI_Type_create_keyval" (CopyAttribute<A>, DeleteAttribute<A>, *mut c_int, *mut c_void);
    type_get_envelope c"PMPI_Type_get_envelope" (A::Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    type_get_contents c"PMPI_Type_get_contents" (A::Handle, c_int, c_int, c_int, *mut c_int, *mut isize, *mut A::Handle);
    type_get_extent_x c"PMPI_Type_get_extent_x" (A::Handle, *mut i64, *mut i64);
    type_get_true_extent_x c"PMPI_Type_get_true_extent_x" (A::Handle, *mut i64, *mut i64);
    type_size_x c"PMPI_Type_size_x" (A::Handle, *mut i64);
    type_free c"PMPI_Type_free" (*mut A::Handle);
    type_commit c"PMPI_Type_commit" (*mut A::Handle);
    type_vector c"PMPI_Type_vector" (c_int, c_int, c_int, A::Handle, *mut A::Handle);
    type_create_struct c"PMPI_Type_create_struct" (c_int, *const c_int, *const isize, *const A::Handle, *mut A::Handle);
    type_create_hindexed c"PMPI_Type_create_hindexed" (c_int, *const c_int, *const isize, A::Handle, *mut A::Handle);
    type_create_resized c"PMPI_Type_create_resized" (A::Handle, isize, isize, *mut A::Handle);
    get_count c"PMPI_Get_count" (*const A::Status, A::Handle, *mut c_int);
    pack_size c"PMPI_Pack_size" (c_int, A::Handle, A::Handle, *mut c_int);
    pack c"PMPI_Pack" (*const c_void, c_int, A::Handle, *mut c_void, c_int, *mut c_int, A::Handle);
    unpack c"PMPI_Unpack" (*const c_void, c_int, *mut c_int, *mut c_void, c_int, A::Handle, A::Handle);
    sendrecv c"PMPI_Sendrecv" (*const c_void, c_int, A::Handle, c_int, c_int, *mut c_void, c_int, A::Handle, c_int, c_int, A::Handle, *mut A::Status);
    send c"PMPI_Send" (*const c_void, c_int, A::Handle, c_int, c_int, A::Handle);
    comm_split c"PMPI_Comm_split" (A::Handle, c_int, c_int, *mut A::Handle);
    comm_free c"PMPI_Comm_free" (*mut A::Handle);
    comm_get_errhandler c"PMPI_Comm_get_errhandler" (A::Handle, *mut A::Handle);
    comm_set_errhandler c"PMPI_Comm_set_errhandler" (A::Handle, A::Handle);
    errhandler_free c"PMPI_Errhandler_free" (*mut A::Handle);
    comm_call_errhandler c"PMPI_Comm_call_errhandler" (A::Handle, c_int);
    test c"PMPI_Test" (*mut A::Handle, *mut c_int, *mut A::Status);
    test_cancelled c"PMPI_Test_cancelled" (*const A::Status, *mut c_int);
    request_get_status c"PMPI_Request_get_status" (A::Handle, *mut c_int, *mut A::Status);
    request_free c"PMPI_Request_free" (*mut A::Handle);
    comm_test_inter c"PMPI_Comm_test_inter" (A::Handle, *mut c_int);
    comm_size c"PMPI_Comm_size" (A::Handle, *mut c_int);
    comm_remote_size c"PMPI_Comm_remote_size" (A::Handle, *mut c_int);
    comm_rank c"PMPI_Comm_rank" (A::Handle, *mut c_int);
    topo_test c"PMPI_Topo_test" (A::Handle, *mut c_int);
    cartdim_get c"PMPI_Cartdim_get" (A::Handle, *mut c_int);
    graph_neighbors_count c"PMPI_Graph_neighbors_count" (A::Handle, c_int, *mut c_int);
    dist_graph_neighbors_count c"PMPI_Dist_graph_neighbors_count" (A::Handle, *mut c_int, *mut c_int, *mut c_int);
    comm_group c"PMPI_Comm_group" (A::Handle, *mut A::Handle);
    group_translate_ranks c"PMPI_Group_translate_ranks" (A::Handle, c_int, *const c_int, A::Handle, *mut c_int);
    group_free c"PMPI_Group_free" (*mut A::Handle);
    comm_create_keyval c"PMPI_Comm_create_keyval" (CopyAttribute<A>, DeleteAttribute<A>, *mut c_int, *mut c_void);
    comm_get_attr c"PMPI_Comm_get_attr" (A::Handle, c_int, *mut c_void, *mut c_int);
    comm_set_attr c"PMPI_Comm_set_attr" (A::Handle, c_int, *mut c_void);
    comm_delete_attr c"PMPI_Comm_delete_attr" (A::Handle, c_int);
    cart_shift c"PMPI_Cart_shift" (A::Handle, c_int, c_int, *mut c_int, *mut c_int);
    graph_neighbors c"PMPI_Graph_neighbors" (A::Handle, c_int, c_int, *mut c_int);
    dist_graph_neighbors c"PMPI_Dist_graph_neighbors" (A::Handle, c_int, *mut c_int, *mut c_int, c_int, *mut c_int, *mut c_int);
    iprobe c"PMPI_Iprobe" (c_int, c_int, A::Handle, *mut c_int, *mut A::Status);
    bcast c"PMPI_Bcast" (*mut c_void, c_int, A::Handle, c_int, A::Handle);
    allgather c"PMPI_Allgather" (*const c_void, c_int, A::Handle, *mut c_void, c_int, A::Handle, A::Handle);
}

optional! {
    type_get_envelope_c c"PMPI_Type_get_envelope_c" (A::Handle, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int);
}
