//! The picture of matching rates in docs/reference/matching.md is what the recorded results draw.

use dtc_tests::plot::{self, Panel, Stroke};

const RESULTS: &str = "bench/results/2026-11-23-gpu-matching.md";
const PICTURE: &str = "docs/pictures/matching.svg";

/// Size of the picture, and of what is around the curves.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;

/// A curve: the section, queues and case of its row; its name and colour; dashed where no message is unexpected.
struct Curve {
    section: &'static str,
    queues: &'static str,
    case: &'static str,
    name: &'static str,
    colour: &'static str,
    dashed: bool,
}

const fn curve(
    section: &'static str,
    queues: &'static str,
    case: &'static str,
    name: &'static str,
    colour: &'static str,
    dashed: bool,
) -> Curve {
    Curve { section, queues, case, name, colour, dashed }
}

const CURVES: [Curve; 11] = [
    curve("No wildcards, unexpected messages, unordered", "16", "random", "unordered, 16 queues", "#16a34a", false),
    curve("No wildcards, none unexpected, unordered", "16", "random", "none unexpected", "#16a34a", true),
    curve("No wildcards, unexpected messages, ordered", "16", "random", "no wildcards, 16 queues", "#0891b2", false),
    curve("No wildcards, none unexpected, ordered", "16", "random", "none unexpected", "#0891b2", true),
    curve("Any tag, unexpected messages, ordered", "16", "random", "any tag, 16 queues", "#7c3aed", false),
    curve("Any tag, none unexpected, ordered", "16", "random", "none unexpected", "#7c3aed", true),
    curve(
        "Any source and tag, unexpected messages, ordered",
        "1",
        "random",
        "MPI, no wildcard in the queue",
        "#dc2626",
        false,
    ),
    curve("Any source and tag, none unexpected, ordered", "1", "random", "none unexpected", "#dc2626", true),
    curve(
        "Any source and tag, unexpected messages, ordered",
        "1",
        "wildcards",
        "MPI, a quarter with wildcards",
        "#ea580c",
        false,
    ),
    curve("Sequential, on the host", "1", "random", "one after the other, on the host", "#8b949e", false),
    curve("Sequential, on the host", "1", "wildcards", "a quarter with wildcards", "#8b949e", true),
];

/// Where the curves are.
const PANEL: Panel = Panel {
    left: LEFT,
    top: TOP,
    width: WIDTH - LEFT - RIGHT,
    height: HEIGHT - TOP - BOTTOM,
    across: [16.0, 65536.0],
    up: [0.1, 10000.0],
};

/// The points of a curve: messages, and millions of pairs per second.
fn points(results: &str, curve: &Curve) -> Vec<(f64, f64)> {
    let rows = plot::rows(results, curve.section);
    let row = rows.iter().find(|row| row[0] == curve.queues && row[1] == curve.case);
    let row = row.unwrap_or_else(|| panic!("{}: no {} of {} queues", curve.section, curve.case, curve.queues));
    let number = |text: &&str| text.parse::<f64>().ok();
    rows[0].iter().zip(row).skip(2).filter_map(|(messages, rate)| Some((number(messages)?, number(rate)?))).collect()
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(WIDTH, HEIGHT);
    let lengths: Vec<f64> = (2..=8).map(|power| 4_f64.powi(power)).collect();
    let decades: Vec<f64> = (0..6).map(|power| PANEL.up[0] * 10_f64.powi(power)).collect();
    PANEL.grid(&mut picture, &lengths, &decades);
    let middle = PANEL.left + PANEL.width / 2.0;
    plot::label(&mut picture, [middle, HEIGHT - 10.0], "middle", "messages of a call");
    plot::label(&mut picture, [LEFT + 6.0, TOP + 12.0], "start", "millions of pairs per second");
    for (place, curve) in CURVES.iter().enumerate() {
        let stroke = Stroke { colour: curve.colour, dashed: curve.dashed };
        PANEL.curve(&mut picture, &points(results, curve), stroke);
        plot::legend(&mut picture, [WIDTH - RIGHT + 20.0, TOP + 20.0 + 24.0 * place as f64], curve.name, stroke);
    }
    plot::end(picture)
}

#[test]
fn picture_of_matching_rates() {
    plot::expect_picture(PICTURE, &draw(&plot::read(RESULTS)), RESULTS, "plot -p dtc-matching");
}

#[test]
fn curves_have_points() {
    let results = plot::read(RESULTS);
    for curve in &CURVES {
        let points = points(&results, curve);
        assert!(points.len() >= 5, "{}, {}: {} points", curve.section, curve.case, points.len());
        for point in points {
            assert!(PANEL.contains(point), "{point:?} is outside of the picture");
        }
    }
}
