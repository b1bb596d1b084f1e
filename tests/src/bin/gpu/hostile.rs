//! Flattened types that are made to be expensive: a part of their packed bytes, at once, and right.

use crate::buffers::{expect_equal, poisoned_buffer, random_buffer, read};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc_compiler::layout::Layout;
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::{lower, raise};
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{Endpoint, Range};
use dtc_tests::generate::hostile;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::time::{Duration, Instant};

/// Types that are drawn. `DTC_HOSTILE` says another number.
const DRAWN: u64 = 300;

/// Packed bytes of a call at most.
const BYTES: u64 = 256;

/// Bytes of memory that the elements of a call may span, to be allocated.
const SPAN: usize = 1 << 20;

/// Longest time of a commit and the first pack, planning included. The kernels of the emulator take some of it.
const LIMIT: Duration = Duration::from_secs(2);

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    tests.add(format!("{}: hostile flattened types", on.name), move || packed(&on));
}

fn packed(on: &OnTier) -> Outcome {
    let drawn = std::env::var("DTC_HOSTILE").ok().and_then(|number| number.parse().ok()).unwrap_or(DRAWN);
    let (memory, host) = random_buffer(&on.gpu, SPAN, 95)?;
    let mut moved = 0;
    for seed in 0..drawn {
        let flattened = lower(&hostile::description(&mut SmallRng::seed_from_u64(seed)).datatype).to_bytes();
        let layout = Layout::from_bytes(&flattened).map_err(text)?;
        let datatype = raise(&layout).map_err(text)?;
        let positions = Positions::new(&layout);
        let start = Instant::now();
        let committed = on.engine.commit(&datatype);
        for first in [0, layout.size() / 3, layout.size().saturating_sub(BYTES)] {
            let last = first.saturating_add(BYTES).min(layout.size());
            let places: Option<Vec<i64>> = (first..last).map(|at| positions.memory_of(at)).collect();
            let places = places.ok_or("a position beyond the type")?;
            let (Some(low), Some(high)) = (places.iter().min(), places.iter().max()) else { continue };
            if high.abs_diff(*low) >= SPAN as u64 {
                continue;
            }
            let expected: Vec<u8> = places.iter().map(|place| host[place.abs_diff(*low) as usize]).collect();
            let target = poisoned_buffer(&on.gpu, expected.len())?;
            // The element may begin outside of every allocation, where the driver knows no kind of memory.
            let element = memory.address().wrapping_sub(*low as u64) as *const u8;
            let element = Endpoint::of_kind(MemoryKind::Device(on.gpu.device().info().ordinal), element);
            let range = Range::elements(1).bytes(first..last);
            // SAFETY: all bytes of the range are inside of `memory`, from its first byte on; `target` has room for them.
            let found = unsafe { committed.at(element, range).pack(&target).run() };
            expect(found == Ok(expected.len()), || format!("seed {seed}, bytes {first} to {last}: {found:?}"))?;
            let what = format!("seed {seed}, bytes {first} to {last}");
            expect_equal(&what, &read(&target, 0, expected.len())?, &expected)?;
            moved += 1;
        }
        let took = start.elapsed();
        expect(took < LIMIT, || format!("seed {seed}: commit and first packs took {took:.1?}"))?;
    }
    Ok(expect(moved > drawn / 2, || format!("{moved} calls of {drawn} types were within {SPAN} bytes"))?)
}
