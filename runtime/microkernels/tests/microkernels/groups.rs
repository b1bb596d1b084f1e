//! Groups of words at strided and listed places.

use super::{Bench, Blocks, Random, levels};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use dtc_microkernels::{Places, WordGroup, select_pack_groups, select_unpack_groups};

/// A group of random pieces, which do not touch, and its blocks.
fn drawn(random: &mut Random) -> (WordGroup, Blocks) {
    let (mut pieces, mut at) = (Blocks::new(), 0);
    for _ in 0..1 + random.below(6) {
        let longest = [20, 40, 150][random.below(3)];
        let bytes = 1 + random.below(longest);
        pieces.push((at, bytes));
        at += (bytes + 1 + random.below(20)) as isize;
    }
    let runs: Vec<String> = pieces.iter().map(|(at, bytes)| format!("({at} {bytes})")).collect();
    let text = format!("layout lb 0 extent 2048 {{\n  %0 = runs [{}] x byte\n  root %0\n}}", runs.join(" "));
    let plan = Plan::as_described(&Layout::parse(&text).unwrap());
    (WordGroup::of(&plan, plan.root().step).unwrap(), pieces)
}

#[test]
fn groups_at_any_places() {
    let mut bench = Bench::new(1 << 19, 1 << 18);
    let mut random = Random(6);
    for _ in 0..60 {
        let (group, pieces) = drawn(&mut random);
        // Around the length of a strip of listed groups.
        for count in [1, 2, 15, 16, 17, 63, 64, 65, 200] {
            let stride = (1020 + random.below(100)) as isize * if random.below(2) == 0 { 1 } else { -1 };
            let mut offsets: Vec<i64> = (0..count).map(|at| at as i64 * 1070 + random.below(50) as i64).collect();
            if random.below(2) == 0 {
                for at in (1..count).rev() {
                    offsets.swap(at, random.below(at + 1));
                }
            }
            let narrow: Vec<i32> = offsets.iter().map(|&at| at as i32).collect();
            let strided: Vec<i64> = (0..count as i64).map(|at| at * stride as i64).collect();
            let cases = [
                (Places::Strided { count, stride }, &strided),
                (Places::Narrow(&narrow), &offsets),
                (Places::Wide(&offsets), &offsets),
            ];
            for (places, at) in cases {
                let of_group = |&place: &i64| pieces.iter().map(move |&(at, bytes)| (place as isize + at, bytes));
                let blocks: Blocks = at.iter().flat_map(of_group).collect();
                for (level, pack) in levels().flat_map(|level| [(level, true), (level, false)]) {
                    let groups = if pack { select_pack_groups(level) } else { select_unpack_groups(level) };
                    bench.check(pack, &blocks, &|| format!("{level} {places:?} {pieces:?}"), &|memory, packed| {
                        // SAFETY: `check` has sized both buffers for the blocks, and the CPU has the level.
                        unsafe { groups(memory, packed, places, &group) }
                    });
                }
            }
        }
    }
}
