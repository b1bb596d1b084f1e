//! Footprints of types of every shape, counted byte by byte over the oracle's runs.

use dtc_compiler::plan::gpu::Footprint;
use dtc_compiler::{canonicalise, lower};
use dtc_tests::generate::algebra::Huge;
use dtc_tests::generate::random::{Limits, datatype};
use dtc_tests::type_map::TypeMap;
use dtc_tests::watch::each_seed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::Duration;

const TYPES: u64 = 4_000;
const HUGE_TYPES: u64 = 1_000;
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn footprints_are_those_of_the_oracle() {
    each_seed(0..TYPES, LIMIT, |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = datatype(&mut rng, &Limits::SMALL);
        let (count, address) = (rng.random_range(1..4), (1 << 40) + rng.random_range(0..128));
        let map = TypeMap::new(&datatype);
        let mut sectors: HashMap<i64, u32> = HashMap::new();
        for element in 0..count as i64 {
            let origin = address as i64 + element * map.bounds().extent();
            map.for_each_run(|run| {
                let begin = origin + run.displacement;
                for at in begin..begin + run.length as i64 {
                    *sectors.entry(at.div_euclid(32)).or_default() |= 1 << at.rem_euclid(32);
                }
            });
        }
        let mut granules: Vec<i64> = sectors.keys().map(|sector| sector.div_euclid(2)).collect();
        granules.sort_unstable();
        granules.dedup();
        let expected = Footprint {
            granules: granules.len() as u64,
            sectors: sectors.len() as u64,
            full_sectors: sectors.values().filter(|&&bytes| bytes == u32::MAX).count() as u64,
            error: 0.0,
        };
        let lowered = lower(&datatype);
        let distinct = sectors.values().map(|bytes| u64::from(bytes.count_ones())).sum();
        assert_eq!(lowered.distinct_bytes(count), Some(distinct), "seed {seed}: {count} of {datatype:?}");
        assert_eq!(Footprint::of(&lowered, count, address), Some(expected), "seed {seed}: {count} of {datatype:?}");
        let canonical = canonicalise(&lowered).layout;
        assert_eq!(Footprint::of(&canonical, count, address), Some(expected), "seed {seed}, canonical: {datatype:?}");
    });
}

#[test]
fn the_time_of_a_footprint_does_not_grow_with_counts() {
    each_seed(0..HUGE_TYPES, LIMIT, |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let layout = canonicalise(&lower(&Huge::draw(&mut rng).datatype(&mut rng))).layout;
        let found = Footprint::of(&layout, 1, 0).unwrap();
        // Bytes may repeat, so packed bytes are only an upper bound of the footprint.
        assert!(found.sectors <= 2 * found.granules && found.full_sectors <= found.sectors, "seed {seed}: {found:?}");
        assert!(found.granules >= 1 && found.full_sectors * 32 <= layout.size(), "seed {seed}: {found:?}");
        assert!(found.error < 0.5, "seed {seed}: {found:?}");
    });
}
