//! libdtc moves types with index tables on device memory, and notes an entry beyond the places.

use crate::buffers::{POISON, poisoned_buffer, random_bytes};
use crate::c_interface::{Engine, ok, on_device};
use crate::faces::{address, expect_bytes, holding};
use crate::harness::{Outcome, Tests, expect};
use crate::tier::OnTier;
use dtc::*;
use std::ptr::null_mut;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    tests.add(format!("{}: C: index tables with a report", on.name), move || report(&on));
}

/// Bytes of a page, and pages.
const PAGE: usize = 512;
const PAGES: usize = 64;

struct TypeOfPages(*mut dtc_tabled_type);

impl Drop for TypeOfPages {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference.
        unsafe { dtc_tabled_release(self.0) };
    }
}

fn report(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let mut made = null_mut();
    // SAFETY: a live engine, a text and a place.
    ok(unsafe { dtc_tabled_create(engine.0, c"table 0 64 16 512 (contiguous 64 double)".as_ptr(), &mut made) })?;
    let pages = TypeOfPages(made);
    let contents = random_bytes(PAGES * PAGE, 7);
    let (memory, packed) = (holding(on, &contents)?, poisoned_buffer(&on.gpu, 4 * PAGE)?);
    let entries = [5i32, 64, -1, 63].map(i32::to_ne_bytes).concat();
    let (table, noted) = (holding(on, &entries)?, holding(on, &[0; 24])?);
    let memory_device = on.gpu.device().info().ordinal as i32;
    let table = dtc_index_table {
        entries: address(&table),
        length: 4,
        width: 4,
        memory: DTC_MEMORY_DEVICE,
        memory_device,
        reserved: 0,
    };
    let source = dtc_tabled_elements {
        r#type: pages.0,
        memory: address(&memory),
        tables: &table,
        table_count: 1,
        offset: 0,
        flags: 0,
        report: address(&noted).cast(),
    };
    let (mut done, bytes) = (0, 4 * PAGE as i64);
    // SAFETY: the buffers have the bytes of four entries; the entry beyond the places is not followed.
    ok(unsafe { dtc_tabled_pack(&source, address(&packed), bytes, &mut done, &on_device()) })?;
    expect(done == bytes, || format!("{done} bytes were packed, expected {bytes}"))?;
    let mut expected = vec![POISON; 4 * PAGE];
    expected[..PAGE].copy_from_slice(&contents[5 * PAGE..][..PAGE]);
    expected[3 * PAGE..].copy_from_slice(&contents[63 * PAGE..][..PAGE]);
    expect_bytes("packed bytes", &packed, &expected)?;
    expect_bytes("the report", &noted, &[1u64, 1, 64].map(u64::to_ne_bytes).concat())?;
    Ok(())
}
