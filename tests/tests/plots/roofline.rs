//! The share of its roofline that each class of layouts reaches on a GPU, and how fast it is beside the best peer.

use super::HOW;
use dtc_tests::plot::{self, DTC, Group, PEERS, Panel, number};

const RESULTS: &str = "bench/results/2026-11-29-gpu-words-of-boxes.md";
const PICTURE: &str = "docs/pictures/gpu-classes.svg";

/// The panels: what they show, and the column.
const PANELS: [(&str, usize); 2] = [("share of the roofline", 5), ("times as fast as the best peer", 3)];

fn panel(place: usize) -> Panel {
    Panel {
        left: 170.0 + 380.0 * place as f64,
        top: 40.0,
        width: 250.0,
        height: 330.0,
        across: if place == 0 { [0.4, 1.2] } else { [0.5, 2.0] },
        up: [1.0, 10.0],
    }
}

/// The classes, with packs and unpacks.
fn classes(results: &str, column: usize) -> Vec<Group> {
    let rows: Vec<Vec<&str>> = results
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .take_while(|row: &Vec<&str>| row[0] != "layout")
        .filter(|row: &Vec<&str>| row.len() == 6 && matches!(row[1], "pack" | "unpack"))
        .collect();
    let bar = |row: &Vec<&str>, colour| {
        let mean = number(row[column]);
        (mean, colour, format!("{mean:.2}"))
    };
    let both = rows
        .chunks(2)
        .map(|pair| Group { name: pair[0][0].to_owned(), bars: vec![bar(&pair[0], DTC), bar(&pair[1], PEERS[0])] });
    both.collect()
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(960.0, 420.0);
    for (place, (name, column)) in PANELS.iter().enumerate() {
        let panel = panel(place);
        let across: &[f64] = if place == 0 { &[0.4, 0.6, 0.8, 1.0, 1.2] } else { &[0.5, 1.0, 2.0] };
        let mut groups = classes(results, *column);
        if place == 1 {
            groups.iter_mut().for_each(|group| group.name.clear());
        }
        panel.bars(&mut picture, &groups, across);
        plot::label(&mut picture, [panel.left, 24.0], "start", name);
    }
    for (place, (name, colour)) in [("pack", DTC), ("unpack", PEERS[0])].into_iter().enumerate() {
        plot::key(&mut picture, [880.0, 60.0 + 22.0 * place as f64], name, colour);
    }
    plot::end(picture)
}

#[test]
fn picture_of_classes_on_a_gpu() {
    let results = plot::read(RESULTS);
    for (place, (name, column)) in PANELS.iter().enumerate() {
        let groups = classes(&results, *column);
        assert_eq!(groups.len(), 6, "{name}");
        for (number, ..) in groups.iter().flat_map(|group| &group.bars) {
            assert!(panel(place).contains((*number, 1.0)), "{name}: {number} is outside of the picture");
        }
    }
    plot::expect_picture(PICTURE, &draw(&results), RESULTS, HOW);
}
