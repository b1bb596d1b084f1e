//! Packs and unpacks of blocks at a stride of 512 bytes on a GPU: dtc, the best of its peers, and what the memory allows.

use super::HOW;
use dtc_tests::plot::{self, DTC, PEERS, Panel, Stroke, number};

const RESULTS: &str = "bench/results/2026-11-20-gpu.md";
const PICTURE: &str = "docs/pictures/gpu-blocks.svg";

/// Lengths of a block that were measured at this stride.
const LENGTHS: [&str; 5] = ["8", "16", "32", "64", "128"];

fn panel(place: usize) -> Panel {
    Panel {
        left: 60.0 + 370.0 * place as f64,
        top: 40.0,
        width: 310.0,
        height: 260.0,
        across: [8.0, 128.0],
        up: [100.0, 2500.0],
    }
}

/// GB/s by length of block: of dtc, and of its best peer.
fn points(results: &str, section: &str) -> [Vec<(f64, f64)>; 2] {
    let rows = plot::rows(results, section);
    let row = |length: &str| {
        let case = format!("strided {length}/512");
        rows.iter().find(|row| row[0] == case).unwrap_or_else(|| panic!("{section}: no {case}"))
    };
    let dtc = LENGTHS.iter().map(|length| (number(length), number(row(length)[2])));
    let peer = LENGTHS.iter().map(|length| (number(length), number(row(length)[2]) / number(row(length)[7])));
    [dtc.collect(), peer.collect()]
}

/// What the memory allows for packs, in GB/s by length of block.
fn limits(results: &str) -> Vec<(f64, f64)> {
    let rows = plot::rows(results, "What limits sparse layouts");
    let of_length = |length: &str| {
        let case = format!("strided {length}/512");
        let row = rows.iter().find(|row| row[0] == case).unwrap_or_else(|| panic!("no limit of {case}"));
        (number(length), number(row[2]))
    };
    LENGTHS.map(of_length).to_vec()
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(960.0, 360.0);
    for (place, (section, name)) in [("Pack", "pack"), ("Unpack", "unpack")].into_iter().enumerate() {
        let panel = panel(place);
        panel.grid(&mut picture, &[8.0, 16.0, 32.0, 64.0, 128.0], &[100.0, 200.0, 500.0, 1000.0, 2000.0]);
        plot::label(&mut picture, [panel.left, 24.0], "start", &format!("GB/s, {name}, blocks 512 bytes apart"));
        let below = [panel.left + panel.width / 2.0, panel.top + panel.height + 40.0];
        plot::label(&mut picture, below, "middle", "bytes of a block");
        let [dtc, peer] = points(results, section);
        if place == 0 {
            panel.curve(&mut picture, &limits(results), Stroke { colour: PEERS[4], dashed: true });
        }
        panel.curve(&mut picture, &peer, Stroke { colour: PEERS[0], dashed: false });
        panel.curve(&mut picture, &dtc, Stroke { colour: DTC, dashed: false });
    }
    for (place, (name, colour, dashed)) in
        [("dtc", DTC, false), ("PyTorch's copy_", PEERS[0], false), ("limit of the memory", PEERS[4], true)]
            .into_iter()
            .enumerate()
    {
        plot::legend(&mut picture, [780.0, 60.0 + 24.0 * place as f64], name, Stroke { colour, dashed });
    }
    plot::end(picture)
}

#[test]
fn picture_of_blocks_on_a_gpu() {
    let results = plot::read(RESULTS);
    for (place, section) in ["Pack", "Unpack"].into_iter().enumerate() {
        for point in points(&results, section).concat() {
            assert!(panel(place).contains(point), "{section}: {point:?} is outside of the picture");
        }
    }
    plot::expect_picture(PICTURE, &draw(&results), RESULTS, HOW);
}
