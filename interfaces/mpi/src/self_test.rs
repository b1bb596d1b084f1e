//! Whether bytes mean to the MPI what they mean to dtc: its packed data are the bytes of the type map and no more, and a message of
//! packed bytes is received into elements. It is asked on a communicator of this process alone.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::plan::{decode_unplanned, query};
use crate::pmpi::pmpi;
use crate::types::Type;
use std::ffi::{c_int, c_void};
use std::ptr::null;

const BYTES: usize = 4096;
const COUNT: i64 = 3;
const TAG: c_int = 7;

/// Makes the datatypes of the test: a vector, the same resized, and a structure; none if the MPI fails.
fn datatypes<A: Abi>(made: &mut Vec<A::Handle>) -> Option<()> {
    let (pmpi, handles) = (pmpi::<A>(), A::handles());
    let (lengths, places): ([c_int; 3], [isize; 3]) = ([1, 2, 1], [40, 0, 56]);
    let parts = [handles.int, handles.double, handles.short];
    let mut keep = |told: c_int, datatype: A::Handle| (told == MPI_SUCCESS).then(|| made.push(datatype));
    let mut datatype = handles.datatype_null;
    // SAFETY: three parts, and `datatype` is writable.
    unsafe {
        keep((pmpi.type_vector)(7, 2, 3, handles.int, &mut datatype), datatype)?;
        let vector = datatype;
        keep((pmpi.type_create_resized)(vector, 0, 96, &mut datatype), datatype)?;
        let (lengths, places) = (lengths.as_ptr(), places.as_ptr());
        keep((pmpi.type_create_struct)(3, lengths, places, parts.as_ptr(), &mut datatype), datatype)
    }
}

/// Packs by dtc; none unless all bytes are packed.
fn pack(r#type: &Type, memory: &[u8; BYTES], packed: &mut [u8; BYTES], bytes: usize) -> Option<()> {
    let mut done = 0;
    let (from, into): (*const c_void, *mut c_void) = (memory.as_ptr().cast(), packed.as_mut_ptr().cast());
    // SAFETY: the elements lie in `memory`, and there is room for their bytes.
    let told = unsafe { dtc::dtc_pack(r#type.get(), from, COUNT, 0, into, BYTES as i64, &mut done, null()) };
    (told == dtc::DTC_OK && done == bytes as i64).then_some(())
}

/// A message to this process itself; none unless as many elements have come as were sent.
fn exchange<A: Abi>(
    sent: (&[u8; BYTES], c_int, A::Handle),
    received: (&mut [u8; BYTES], c_int, A::Handle),
    communicator: A::Handle,
) -> Option<()> {
    let pmpi = pmpi::<A>();
    let (mut status, mut counted) = (A::new_status(), 0);
    let (from, into): (*const c_void, *mut c_void) = (sent.0.as_ptr().cast(), received.0.as_mut_ptr().cast());
    // SAFETY: the elements lie in their memory.
    unsafe {
        let told = (pmpi.sendrecv)(
            from,
            sent.1,
            sent.2,
            0,
            TAG,
            into,
            received.1,
            received.2,
            0,
            TAG,
            communicator,
            &mut status,
        );
        let told = told == MPI_SUCCESS && (pmpi.get_count)(&status, received.2, &mut counted) == MPI_SUCCESS;
        (told && counted == received.1).then_some(())
    }
}

/// Whether the MPI packs, sends and receives elements of a datatype as dtc does.
fn agrees<A: Abi>(datatype: A::Handle, communicator: A::Handle) -> Option<()> {
    let (pmpi, packed_type) = (pmpi::<A>(), A::handles().packed);
    let mut committed = datatype;
    // SAFETY: a datatype of this test.
    if unsafe { (pmpi.type_commit)(&mut committed) } != MPI_SUCCESS {
        return None;
    }
    let r#type = decode_unplanned::<A>(datatype)?;
    let bytes = usize::try_from(COUNT * query(&r#type)?.packed_size).ok()?;
    let memory: [u8; BYTES] = std::array::from_fn(|at| (at * 167 + (at >> 5)) as u8);
    let (mut found, mut expected, mut back) = ([0; BYTES], [0; BYTES], [0; BYTES]);
    pack(&r#type, &memory, &mut found, bytes)?;
    let (from, into): (*const c_void, *mut c_void) = (memory.as_ptr().cast(), expected.as_mut_ptr().cast());
    let (count, mut position) = (COUNT as c_int, 0);
    // SAFETY: the elements lie in `memory`, and there is room for their bytes.
    let told = unsafe { (pmpi.pack)(from, count, datatype, into, BYTES as c_int, &mut position, communicator) };
    let same = |expected: &[u8; BYTES], found: &[u8; BYTES]| (expected[..bytes] == found[..bytes]).then_some(());
    if told != MPI_SUCCESS || position != bytes as c_int {
        return None;
    }
    same(&expected, &found)?;
    exchange::<A>((&found, bytes as c_int, packed_type), (&mut back, count, datatype), communicator)?;
    pack(&r#type, &back, &mut expected, bytes)?;
    same(&expected, &found)?;
    let mut received = [0; BYTES];
    exchange::<A>((&memory, count, datatype), (&mut received, bytes as c_int, packed_type), communicator)?;
    same(&expected, &received)
}

/// Whether the MPI and dtc agree.
pub fn passes<A: Abi>() -> bool {
    let pmpi = pmpi::<A>();
    let mut communicator = A::handles().comm_null;
    // Messages on MPI_COMM_SELF itself could meet receives of the program.
    // SAFETY: a communicator of the MPI, and `communicator` is writable.
    if unsafe { (pmpi.comm_split)(A::handles().comm_self, 0, 0, &mut communicator) } != MPI_SUCCESS {
        return false;
    }
    let mut made = Vec::new();
    let all = datatypes::<A>(&mut made).is_some();
    let agrees = all && made.iter().all(|datatype| agrees::<A>(*datatype, communicator).is_some());
    // SAFETY: made above.
    unsafe {
        for mut datatype in made {
            (pmpi.type_free)(&mut datatype);
        }
        (pmpi.comm_free)(&mut communicator);
    }
    agrees
}
