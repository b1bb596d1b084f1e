//! Buffers in managed memory, inside allocations, and at absolute addresses.

use crate::buffers::{Buffers, POISON, expect_equal, poisoned_buffer, random_buffer, read};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_compiler::datatype::{Predefined, TypeBuilder};
use dtc_runtime::cuda::DeviceBuffer;
use dtc_runtime::{Memory, Range, TransferError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: {name}", on.name), move || test(&on));
    };
    add(tests, "managed memory on both sides", managed);
    add(tests, "managed memory, packed or elements", half_managed);
    add(tests, "pointers into allocations", inside);
    add(tests, "absolute addresses", absolute);
    add(tests, "absolute addresses in two allocations", two_allocations);
    add(tests, "memory that is refused", refused);
}

/// Both endpoints are managed, and then only the packed one.
fn managed(on: &OnTier) -> Outcome {
    for datatype in [types::listed(81, 2000)?, types::columns(200, 150)?] {
        let committed = on.engine.commit(&datatype);
        let mut buffers = Buffers::of(on.gpu.device(), &committed, 2, 82, DeviceBuffer::managed)?;
        buffers.pack_and_check(&committed)?;
        let total = buffers.expected.len();
        buffers.fragment(&committed, total / 3, total / 2, 5)?;
    }
    Ok(())
}

/// One endpoint is managed and the other on the device.
fn half_managed(on: &OnTier) -> Outcome {
    let device = on.gpu.device();
    let committed = on.engine.commit(&types::listed(83, 2000)?);
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 84)?;
    buffers.packed = DeviceBuffer::managed(device, buffers.expected.len()).map_err(text)?;
    buffers.pack_and_check(&committed).map_err(|fault| format!("packed bytes are managed: {fault}"))?;
    let mut buffers = Buffers::of(device, &committed, 1, 85, DeviceBuffer::managed)?;
    buffers.packed = DeviceBuffer::new(device, buffers.expected.len()).map_err(text)?;
    Ok(buffers.pack_and_check(&committed).map_err(|fault| format!("elements are managed: {fault}"))?)
}

/// Unaligned elements in the middle of an allocation, also of a type with negative displacements.
fn inside(on: &OnTier) -> Outcome {
    let mut types = TypeBuilder::new();
    let short = types.named(Predefined::SHORT);
    let backwards = types.vector(3000, 2, -5, short).map_err(text)?;
    let committed = on.engine.commit(&types.finish(backwards).unwrap());
    let (low, high) = committed.span(1).ok_or("no bytes")?;
    let (low, high) = (low as i64, high as i64);
    let total = committed.packed_size(1).map_err(text)?;
    let (memory, host) = random_buffer(&on.gpu, 1 << 20, 86)?;
    let packed = poisoned_buffer(&on.gpu, 1 << 20)?;
    let mut rng = SmallRng::seed_from_u64(87);
    for _ in 0..50 {
        let origin = rng.random_range(-low..(1 << 20) - high) as usize;
        let at = rng.random_range(0..(1 << 20) - total);
        let mut expected = vec![0u8; total];
        committed.pack(Memory::at(&host, origin), Range::elements(1), &mut expected).map_err(text)?;
        let (source, target) = (memory.address() + origin as u64, packed.address() + at as u64);
        // SAFETY: both ranges are in their buffers.
        let moved = unsafe {
            committed.at(source as *const u8, Range::elements(1).bytes(..total as u64)).pack(target as *mut u8).run()
        };
        expect(moved.clone() == Ok(total), || format!("{moved:?}, expected {total} bytes"))?;
        expect_equal(&format!("origin {origin}, packed at {at}"), &read(&packed, at, total)?, &expected)?;
    }
    Ok(())
}

/// Displacements are addresses on the device, and the base is null.
fn absolute(on: &OnTier) -> Outcome {
    let (memory, host) = random_buffer(&on.gpu, 1 << 20, 88)?;
    let mut rng = SmallRng::seed_from_u64(89);
    let (mut lengths, mut places, mut expected, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while at < (1 << 20) - 4000 {
        let length = rng.random_range(1..2000);
        lengths.push(length as i64);
        places.push(memory.address() as i64 + at as i64);
        expected.extend_from_slice(&host[at..at + length]);
        at += length + rng.random_range(1..1000);
    }
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let type_id = types.hindexed(&lengths, &places, byte).map_err(text)?;
    let committed = on.engine.commit(&types.finish(type_id).unwrap());
    absolute_there_and_back(on, &committed, &expected)?;
    // The unpack has restored the memory.
    Ok(expect_equal("memory", &read(&memory, 0, 1 << 20)?, &host)?)
}

fn absolute_there_and_back(on: &OnTier, committed: &dtc_runtime::Committed, expected: &[u8]) -> Result<(), String> {
    let total = expected.len();
    let packed = poisoned_buffer(&on.gpu, total)?;
    let (base, target) = (std::ptr::null_mut::<u8>(), packed.address() as *mut u8);
    // SAFETY: every displacement is an address in a live buffer, and the packed buffer has `total` bytes.
    let moved = unsafe { committed.at(base, Range::elements(1).bytes(..total as u64)).pack(target).run() };
    expect(moved.clone() == Ok(total), || format!("{moved:?}, expected {total} bytes"))?;
    expect_equal("packed", &read(&packed, 0, total)?, expected)?;
    // SAFETY: every displacement is an address in a live buffer, and the packed buffer has `total` bytes.
    let moved = unsafe { committed.at(base, Range::elements(1).bytes(..total as u64)).unpack(target).run() };
    expect(moved.clone() == Ok(total), || format!("{moved:?}, expected {total} bytes"))
}

/// One type whose bytes are in two allocations, adjacent or far apart.
fn two_allocations(on: &OnTier) -> Outcome {
    let (one, first) = (random_buffer(&on.gpu, 10_000, 90)?, 3..8000);
    let (other, second) = (random_buffer(&on.gpu, 3 << 20, 91)?, 1000..(2 << 20) + 7);
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let lengths = [first.len() as i64, second.len() as i64];
    let places = [one.0.address() as i64 + first.start as i64, other.0.address() as i64 + second.start as i64];
    let type_id = types.hindexed(&lengths, &places, byte).map_err(text)?;
    let committed = on.engine.commit(&types.finish(type_id).unwrap());
    let expected = [&one.1[first], &other.1[second]].concat();
    absolute_there_and_back(on, &committed, &expected)?;
    expect_equal("the first allocation", &read(&one.0, 0, 10_000)?, &one.1)?;
    Ok(expect_equal("the second allocation", &read(&other.0, 0, 3 << 20)?, &other.1)?)
}

/// Calls that cannot work return errors, and touch nothing.
fn refused(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::rows(90)?);
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 92)?;
    buffers.poison()?;
    let total = buffers.expected.len();
    let target = buffers.packed.address() as *mut u8;
    // SAFETY: no byte of either side is touched, since the base is null.
    let moved =
        unsafe { committed.at(std::ptr::null::<u8>(), Range::elements(1).bytes(..total as u64)).pack(target).run() };
    expect(matches!(moved, Err(TransferError::Address { .. })), || format!("a null base: {moved:?}"))?;
    expect_equal("packed bytes of a refused call", &read(&buffers.packed, 0, total)?, &vec![POISON; total])?;
    Ok(buffers.pack_and_check(&committed)?)
}
