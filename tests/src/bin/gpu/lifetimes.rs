//! Types that are committed and dropped: device memory does not grow, and nothing in use is freed.

use crate::buffers::{POISON, expect_equal, poisoned_buffer, random_buffer, read};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::Stream;
use dtc_runtime::{Engine, Gpu, Range};

/// Bytes of the slot that a type packs into.
const SLOT: usize = 64 << 10;
/// Number of slots, and so of types whose packs may be in progress at once.
const SLOTS: u64 = 100;
/// Bytes by which the free memory may shrink. A module takes more than lists, and some of it waits to be freed.
const GROWTH: [usize; 2] = [8 << 20, 16 << 20];

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    // Compiling takes a thousand times as long as all else.
    let number = if on.is_compiled() { 150 } else { 3000 };
    tests.add(format!("{}: {number} types come and go", on.name), move || come_and_go(&on, number));
}

fn free_bytes(gpu: &Gpu) -> Result<usize, String> {
    gpu.device().synchronize().map_err(text)?;
    gpu.device().memory().map(|(free, _)| free).map_err(text)
}

/// Types are committed, used once without waiting, and dropped; the engine keeps few of them.
fn come_and_go(on: &OnTier, number: u64) -> Outcome {
    let engine = Engine::builder().policy(on.policy).cache_caps(32, 64 << 20).build();
    let gpu = engine.gpu(0).map_err(text)?;
    gpu.load().map_err(text)?;
    let (memory, host) = random_buffer(&gpu, SLOT * 4, 1)?;
    let mut packed = poisoned_buffer(&gpu, SLOT * SLOTS as usize)?;
    let streams = (0..4).map(|_| Stream::new(gpu.device())).collect::<Result<Vec<_>, _>>().map_err(text)?;
    let mut before = None;
    let mut expected: Vec<Vec<u8>> = Vec::new();
    for seed in 0..number {
        // 512 runs take at least 8 KiB of lists: 24 MiB if none were freed.
        let committed = engine.commit(&types::listed(10_000 + seed, 512)?);
        let total = committed.packed_size(1).map_err(text)?;
        let span = committed.span(1).map_or(0, |(_, high)| high as usize);
        expect(total <= SLOT && span <= host.len(), || format!("type {seed} is too large for the test"))?;
        let slot = (seed % SLOTS) as usize;
        let stream = &streams[seed as usize % streams.len()];
        // SAFETY: the elements are in the memory, and the packed bytes in their slot; both outlive the work.
        let moved = unsafe {
            let target = (packed.address() as usize + slot * SLOT) as *mut u8;
            committed
                .at(memory.address() as *const u8, Range::elements(1).bytes(..total as u64))
                .pack(target)
                .enqueue(stream)
        };
        expect(moved == Ok(total), || format!("type {seed}: {moved:?}, expected {total} bytes"))?;
        let mut bytes = vec![0u8; total];
        committed.pack(&host, Range::elements(1), &mut bytes).map_err(text)?;
        expected.push(bytes);
        drop(committed);
        if seed + 1 == number || slot + 1 == SLOTS as usize {
            for stream in &streams {
                stream.synchronize().map_err(text)?;
            }
            let found = read(&packed, 0, packed.len())?;
            for (slot, expected) in expected.iter().enumerate() {
                let found = &found[slot * SLOT..slot * SLOT + expected.len()];
                expect_equal(&format!("slot {slot} of the types up to {seed}"), found, expected)?;
            }
            expected.clear();
            packed.fill(POISON).map_err(text)?;
            // Later rounds reuse allocations of the first round.
            if before.is_none() {
                before = Some(free_bytes(&gpu)?);
            }
        }
    }
    engine.compile_pending(std::time::Duration::from_secs(5));
    let (before, after) = (before.unwrap_or_default(), free_bytes(&gpu)?);
    let kept = before.saturating_sub(after);
    println!("  {kept} bytes of the device more than after the first {SLOTS} types");
    let most = GROWTH[usize::from(on.is_compiled())];
    Ok(expect(kept <= most, || format!("{kept} bytes are not freed, expected at most {most}"))?)
}
