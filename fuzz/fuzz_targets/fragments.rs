//! Packs and unpacks fragments of small types in both tiers, and compares them with the reference walker.
#![no_main]

use dtc_compiler::datatype::text;
use dtc_compiler::lower;
use dtc_runtime::{Engine, Memory, MemoryMut, Policy, Range};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// Limit on the sizes of types and buffers, in bytes.
const LIMIT: i128 = 1 << 16;

static ENGINES: LazyLock<[Engine; 2]> =
    LazyLock::new(|| [Policy::Off, Policy::Always].map(|policy| Engine::builder().policy(policy).build()));

fuzz_target!(|input: (u8, u16, u16, &str)| {
    let (count, offset, length, notation) = input;
    let Ok(datatype) = text::parse(notation) else { return };
    let count = u64::from(count % 5);
    for engine in ENGINES.iter() {
        let committed = engine.commit(&datatype);
        let Some((low, high)) = committed.span(count) else { return };
        let total = committed.facts().size.saturating_mul(count);
        if high - low > LIMIT || low < -LIMIT || high > LIMIT || i128::from(total) > LIMIT {
            return;
        }
        let origin = (-low).max(0) as usize;
        let memory: Vec<u8> =
            (0..(origin as i128 + high.max(0)) as usize).map(|at| (at * 31 + at / 251) as u8).collect();
        let layout = lower(&datatype);
        let extent = datatype.facts().extent();
        let map: Vec<usize> = (0..count as i64)
            .flat_map(|element| layout.displacements().map(move |at| at + element * extent))
            .map(|at| (at + origin as i64) as usize)
            .collect();
        let (offset, mut packed) = (u64::from(offset), vec![0xa5_u8; length as usize]);
        let range = Range::elements(count).fragment(offset, packed.len() as u64);
        let Ok(written) = committed.pack(Memory::at(&memory, origin), range, &mut packed) else {
            assert!(offset > total);
            continue;
        };
        let expected = map.iter().skip(offset as usize).take(packed.len()).map(|&at| memory[at]);
        assert!(expected.eq(packed[..written].iter().copied()));
        assert!(packed[written..].iter().all(|&byte| byte == 0xa5));
        let mut restored = vec![0x5a_u8; memory.len()];
        committed.unpack(&packed[..written], range, MemoryMut::at(&mut restored, origin)).expect("the same range");
        let mut touched = vec![false; memory.len()];
        map.iter().skip(offset as usize).take(written).for_each(|&at| touched[at] = true);
        for (at, &byte) in restored.iter().enumerate() {
            assert_eq!(byte, if touched[at] { memory[at] } else { 0x5a });
        }
    }
});
