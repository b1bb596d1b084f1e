use super::*;
use std::collections::BTreeMap;

fn layout(text: &str) -> Layout {
    Layout::parse(&format!("layout lb 0 extent 4096 {{\n{text}\n}}")).unwrap()
}

/// The same, counted byte by byte.
fn counted(layout: &Layout, count: u64, address: u64) -> Footprint {
    let mut sectors: BTreeMap<i64, u32> = BTreeMap::new();
    for element in 0..count as i64 {
        for offset in layout.displacements() {
            let at = offset + element * layout.extent() + address as i64;
            *sectors.entry(at.div_euclid(32)).or_default() |= 1 << at.rem_euclid(32);
        }
    }
    let mut granules: Vec<i64> = sectors.keys().map(|sector| sector.div_euclid(2)).collect();
    granules.dedup();
    Footprint {
        granules: granules.len() as u64,
        sectors: sectors.len() as u64,
        full_sectors: sectors.values().filter(|&&bytes| bytes == u32::MAX).count() as u64,
        error: 0.0,
    }
}

const LAYOUTS: [&str; 19] = [
    "%0 = dense 8 x byte\n root %0",
    "%0 = dense 1000 x byte\n root 17: %0",
    "%0 = dense 8 x byte\n %1 = stream 40 x 64 of %0\n root %1",
    "%0 = dense 12 x byte\n %1 = stream 40 x 24 of %0\n root 60: %1",
    "%0 = dense 17 x byte\n %1 = stream 200 x 24 of %0\n root -5: %1",
    "%0 = dense 3 x byte\n %1 = stream 100 x -7 of %0\n root %1",
    // A transpose.
    "%0 = dense 8 x byte\n %1 = stream 16 x 128 of %0\n %2 = stream 16 x 8 of %1\n root %2",
    // A transpose of three axes with gaps.
    "%0 = dense 4 x byte\n %1 = stream 6 x 512 of %0\n %2 = stream 5 x 72 of %1\n %3 = stream 8 x 8 of %2\n root %3",
    // Copies that continue each other's parts, and copies that overlap.
    "%0 = dense 8 x byte\n %1 = stream 10 x 16 of %0\n %2 = stream 7 x 48 of %1\n root %2",
    "%0 = dense 8 x byte\n %1 = stream 10 x 24 of %0\n %2 = stream 7 x 40 of %1\n root %2",
    "%0 = dense 20 x byte\n %1 = stream 10 x 12 of %0\n %2 = stream 3 x 1 of %1\n root %2",
    "%0 = dense 8 x byte\n %1 = stream 5 x 0 of %0\n root %1",
    // Fields of records, array by array, and arrays, record by record.
    "%0 = dense 8 x byte\n %1 = dense 4 x byte\n %2 = stream 50 x 24 of %0\n %3 = stream 50 x 24 of %1\n
     %4 = record [0: %2, 12: %3, 16: %3]\n root %4",
    "%0 = dense 4 x byte\n %1 = record [0: %0, 500: %0, 1000: %0]\n %2 = stream 90 x 4 of %1\n root %2",
    "%0 = dense 8 x byte\n %1 = dense 4 x byte\n %2 = stream 50 x 24 of %0\n %3 = stream 40 x 20 of %1\n
     %4 = record [0: %2, 12: %3]\n root %4",
    // Lists: runs, runs out of order that overlap, and blocks in any order.
    "%0 = runs [(0 3) (5 9) (20 40) (61 2) (64 64)] x byte\n %1 = stream 9 x 131 of %0\n root %1",
    "%0 = runs [(90 30) (0 3) (5 9) (1 3) (100 64)] x byte\n %1 = stream 9 x 131 of %0\n root %1",
    "%0 = dense 16 x byte\n %1 = indexed [480 0 16 96 32 400 112] of %0\n %2 = stream 5 x 128 of %1\n root %2",
    "%0 = dense 4 x byte\n %1 = stream 30 x 32 of %0\n %2 = indexed [12 0 4 24 1000] of %1\n %3 = record [3: %2, 7: %0]\n root %3",
];

#[test]
fn footprints_are_those_of_the_bytes() {
    for text in LAYOUTS {
        let layout = layout(text);
        for (count, address) in [(1, 0), (1, 64), (1, 37), (3, 0), (2, 5)] {
            let found = Footprint::of(&layout, count, 4096 + address).unwrap();
            assert_eq!(found, counted(&layout, count, 4096 + address), "{count} at {address}: {text}");
        }
    }
}

#[test]
fn estimates_are_as_near_as_they_say() {
    for text in LAYOUTS {
        let layout = layout(text);
        let (exact, found) = (counted(&layout, 40, 5), sampled::footprint(&layout, 40, 5).unwrap());
        assert!(found.error < 0.1, "{found:?}: {text}");
        for (exact, found_count) in [(exact.granules, found.granules), (exact.sectors, found.sectors)] {
            let allowed = 1.0 + 2.0 * found.error * exact as f64;
            assert!(exact.abs_diff(found_count) as f64 <= allowed, "{found:?}, not {exact}: {text}");
        }
    }
}

#[test]
fn a_pack_reads_granules_and_an_unpack_reads_sectors_that_it_writes_in_part() {
    // 12 in 64 bytes: one granule, and one sector in part. 40 in 64 bytes: one sector whole, and one in part.
    for (bytes, sectors, full) in [(12, 1, 0), (32, 1, 1), (40, 2, 1), (63, 2, 1)] {
        let layout = layout(&format!("%0 = dense {bytes} x byte\n %1 = stream 64 x 64 of %0\n root %1"));
        let roofline = Roofline::of(&layout, 1000, 0).unwrap();
        let elements = 64_000;
        assert_eq!(
            roofline.traffic(Direction::Pack),
            Traffic { read: elements * 64, written: elements * bytes },
            "{bytes}"
        );
        let partial = sectors - full;
        assert_eq!(
            roofline.traffic(Direction::Unpack),
            Traffic { read: elements * (bytes + 32 * partial), written: elements * 32 * sectors },
            "{bytes}"
        );
    }
}

#[test]
fn contiguous_and_transposed_bytes_move_as_a_copy_does() {
    for text in [
        "%0 = dense 4096 x byte\n root %0",
        "%0 = dense 8 x byte\n %1 = stream 64 x 64 of %0\n %2 = stream 8 x 8 of %1\n root %2",
    ] {
        let roofline = Roofline::of(&layout(text), 1 << 20, 0).unwrap();
        assert_eq!([Direction::Pack, Direction::Unpack].map(|way| roofline.copy_share(way)), [1.0, 1.0], "{text}");
    }
}

#[test]
fn shares_of_a_copy_are_those_of_the_bytes_that_must_move() {
    // Records of 55 in 120 bytes: all of memory is read, and written in part.
    let record = "%0 = runs [(0 12) (24 12) (48 30) (110 1)] x byte\n root %0";
    let layout = Layout::parse(&format!("layout lb 0 extent 120 {{\n{record}\n}}")).unwrap();
    let roofline = Roofline::of(&layout, 1 << 20, 0).unwrap();
    let share = |direction| roofline.copy_share(direction);
    assert!((share(Direction::Pack) - 110.0 / 175.0).abs() < 0.01, "{}", share(Direction::Pack));
    assert!((share(Direction::Unpack) - 110.0 / 295.0).abs() < 0.01, "{}", share(Direction::Unpack));
}

#[test]
fn nests_of_any_size_are_counted_at_once() {
    let text = "%0 = dense 8 x byte\n %1 = stream 1048576 x 16777216 of %0\n %2 = stream 1048576 x 16 of %1\n root %2";
    let found = Footprint::of(&layout(text), 1, 0).unwrap();
    assert_eq!((found.granules, found.sectors, found.full_sectors, found.error), (1 << 38, 1 << 39, 0, 0.0));
    // Loops that interleave irregularly are estimated.
    // Loops that interleave irregularly, of more runs than are written out: 16 of 24 bytes but for the ends.
    let text = "%0 = dense 8 x byte\n %1 = stream 3000000 x 24 of %0\n %2 = stream 2 x 2408 of %1\n root %2";
    let found = Footprint::of(&layout(text), 1, 0).unwrap();
    assert!(found.error > 0.0 && found.error < 0.01, "{found:?}");
    let expected = 72_000_000.0 / 64.0;
    assert!((found.granules as f64 - expected).abs() < expected * (found.error + 0.001), "{found:?}");
}

#[test]
fn offsets_beyond_63_bits_have_no_footprint() {
    let layout = layout("%0 = dense 8 x byte\n root %0");
    assert_eq!(Footprint::of(&layout, u64::MAX / 4096, 0), None);
    assert_eq!(Footprint::of(&layout, 0, 0).map(|found| found.granules), Some(0));
}

#[test]
fn overlaps_beyond_number_are_not_searched() {
    // Each granule has bytes of some 2^40 copies, of runs that interleave irregularly.
    let text = "%0 = dense 3 x byte\n %1 = stream 103 x 7 of %0\n %2 = stream 1099511627776 x 1 of %1\n
         %3 = record [0: %2, 5: %1]\n %4 = stream 1000 x 1000003 of %3\n root %4";
    assert_eq!(sampled::footprint(&layout(text), 1, 0), None);
    // Copies at one place are counted, and not visited.
    let text = "%0 = dense 3 x byte\n %1 = stream 1000003 x 7 of %0\n %2 = stream 1099511627 x 0 of %1\n root %2";
    let found = sampled::footprint(&layout(text), 1, 0).unwrap();
    assert!(found.granules.abs_diff(1_000_003 * 7 / 64) < 2000, "{found:?}");
}
