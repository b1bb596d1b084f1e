//! libdtc tells kinds of memory, allocates some, and moves a batch at once.

use crate::buffers::{POISON, expect_equal, poisoned_buffer};
use crate::c_interface::{Engine, Type, ok};
use crate::faces::{Data, Form, address, expect_bytes};
use crate::harness::{Outcome, Tests, expect};
use crate::tier::OnTier;
use dtc::*;
use dtc_runtime::cuda::DeviceBuffer;
use std::ffi::c_void;
use std::ptr::null_mut;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    tests.add(format!("{}: C: memory and a batch at once", on.name), move || memory(&on));
}

/// Memory of the C interface.
struct Memory {
    address: *mut c_void,
    handle: *mut dtc_memory,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it, and this value is its only owner.
        unsafe { dtc_memory_free(self.handle) };
    }
}

impl Memory {
    fn new(engine: &Engine, kind: i32, bytes: usize) -> Result<Memory, String> {
        let mut made = Memory { address: null_mut(), handle: null_mut() };
        // SAFETY: a live engine, and places for both results.
        ok(unsafe { dtc_memory_allocate(engine.0, kind, 0, bytes as i64, &mut made.address, &mut made.handle) })?;
        Ok(made)
    }
}

fn kind(address: *const c_void) -> Result<(i32, i32), String> {
    let (mut kind, mut device) = (-1, -1);
    // SAFETY: places for both results.
    ok(unsafe { dtc_memory_kind(address, &mut kind, &mut device) })?;
    Ok((kind, device))
}

/// Packs all forms into pinned memory and into memory of the device, and unpacks them from there.
fn memory(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let gpu = on.gpu.device();
    let managed = DeviceBuffer::managed(gpu, 64).map_err(crate::harness::text)?;
    let there = poisoned_buffer(&on.gpu, 64)?;
    let ordinal = gpu.info().ordinal as i32;
    let number = 7;
    for (at, expected) in [
        (address(&there).wrapping_byte_add(63).cast_const(), (DTC_MEMORY_DEVICE, ordinal)),
        (address(&managed).cast_const(), (DTC_MEMORY_MANAGED, 0)),
        ((&raw const number).cast(), (DTC_MEMORY_HOST, 0)),
    ] {
        let found = kind(at)?;
        expect(found == expected, || format!("kind {found:?}, expected {expected:?}"))?;
    }
    let mut all = Vec::new();
    for (_, form) in Form::all() {
        all.push((engine.build(&form)?, Data::new(on, &form, 81)?));
    }
    let total: usize = all.iter().map(|(_, data)| data.packed.len()).sum();
    for (wanted, found) in
        [(DTC_MEMORY_PINNED, (DTC_MEMORY_PINNED, 0)), (DTC_MEMORY_DEVICE, (DTC_MEMORY_DEVICE, ordinal))]
    {
        let packed = Memory::new(&engine, wanted, total)?;
        expect(kind(packed.address)? == found, || format!("kind {:?}, expected {found:?}", kind(packed.address)))?;
        let unpacked: Result<Vec<DeviceBuffer>, String> =
            all.iter().map(|(_, data)| poisoned_buffer(&on.gpu, data.host.len())).collect();
        let unpacked = unpacked?;
        let run = |direction| {
            let mut at = 0;
            let call = |((made, data), unpacked): (&(Type, Data), &DeviceBuffer)| {
                at += data.packed.len();
                let elements =
                    if direction == DTC_DIRECTION_PACK { data.source().cast_mut() } else { address(unpacked) };
                dtc_batch_call {
                    r#type: made.0,
                    memory: elements,
                    packed: packed.address.wrapping_byte_add(at - data.packed.len()),
                    count: 1,
                    offset: 0,
                    max: data.packed.len() as i64,
                    direction,
                    reserved: 0,
                }
            };
            let calls: Vec<dtc_batch_call> = all.iter().zip(&unpacked).map(call).collect();
            let mut done = -1;
            // SAFETY: a live engine, and calls of live types whose buffers hold all bytes.
            ok(unsafe { dtc_batch_run(engine.0, 0, calls.as_ptr(), calls.len() as i64, &mut done) })?;
            expect(done == total as i64, || format!("{done} of {total} bytes"))
        };
        run(DTC_DIRECTION_PACK)?;
        if wanted == DTC_MEMORY_PINNED {
            // SAFETY: the memory has `total` bytes, and no work uses it now.
            let found = unsafe { std::slice::from_raw_parts(packed.address.cast::<u8>(), total) };
            let expected: Vec<u8> = all.iter().flat_map(|(_, data)| data.packed.iter().copied()).collect();
            expect_equal("packed", found, &expected)?;
        }
        run(DTC_DIRECTION_UNPACK)?;
        for ((_, data), unpacked) in all.iter().zip(&unpacked) {
            expect_bytes("unpacked", unpacked, &data.unpacked(0, &data.packed))?;
        }
    }
    // Calls that are refused write nothing.
    let (made, data) = &all[0];
    let untouched = poisoned_buffer(&on.gpu, data.packed.len())?;
    let wrong = dtc_batch_call {
        r#type: made.0,
        memory: data.source().cast_mut(),
        packed: address(&untouched),
        count: 1,
        offset: 0,
        max: data.packed.len() as i64,
        direction: 2,
        reserved: 0,
    };
    // SAFETY: a live engine and a call of a live type.
    let status = unsafe { dtc_batch_run(engine.0, 0, &wrong, 1, null_mut()) };
    expect(status == DTC_ERROR_ARGUMENT, || format!("status {status}"))?;
    Ok(expect_bytes("refused", &untouched, &vec![POISON; data.packed.len()])?)
}
