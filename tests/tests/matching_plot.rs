//! The picture of matching rates in docs/matching.md is what the recorded results draw.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const RESULTS: &str = "bench/results/2026-11-23-gpu-matching.md";
const PICTURE: &str = "docs/matching.svg";

/// Size of the picture, and of what is around the curves.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;

/// Ranges of the axes: messages, and millions of pairs per second.
const MESSAGES: [f64; 2] = [16.0, 65536.0];
const RATES: [f64; 2] = [0.1, 10000.0];

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
    curve("Sequential, on the host", "1", "random", "one after the other, on the host", "#111827", false),
    curve("Sequential, on the host", "1", "wildcards", "a quarter with wildcards", "#111827", true),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The points of a curve: messages, and millions of pairs per second.
fn points(results: &str, curve: &Curve) -> Vec<(f64, f64)> {
    let section = results.split("\n## ").find(|part| part.starts_with(&format!("{}\n", curve.section)));
    let section = section.unwrap_or_else(|| panic!("{RESULTS} has no section {}", curve.section));
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let row = rows.iter().find(|row| row[0] == curve.queues && row[1] == curve.case);
    let row = row.unwrap_or_else(|| panic!("{}: no {} of {} queues", curve.section, curve.case, curve.queues));
    let number = |text: &&str| text.parse::<f64>().ok();
    rows[0].iter().zip(row).skip(2).filter_map(|(messages, rate)| Some((number(messages)?, number(rate)?))).collect()
}

/// Where a number lies between two others, on a logarithmic axis.
fn share(number: f64, [low, high]: [f64; 2]) -> f64 {
    (number / low).ln() / (high / low).ln()
}

fn x(messages: f64) -> f64 {
    LEFT + share(messages, MESSAGES) * (WIDTH - LEFT - RIGHT)
}

fn y(rate: f64) -> f64 {
    HEIGHT - BOTTOM - share(rate, RATES) * (HEIGHT - TOP - BOTTOM)
}

/// Writes text into the picture; `anchor` is what lies at the position.
fn label(picture: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    let _ = writeln!(
        picture,
        r##"  <text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="12" fill="#111827">{text}</text>"##
    );
}

fn draw(results: &str) -> String {
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\">\n  \
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    let mut line = |from: [f64; 2], to: [f64; 2]| {
        let ([x, y], [u, v]) = (from, to);
        let _ = writeln!(picture, r##"  <path d="M{x:.1} {y:.1} L{u:.1} {v:.1}" stroke="#e5e7eb"/>"##);
    };
    let decades = || (0..6).map(|power| RATES[0] * 10_f64.powi(power));
    let lengths = || (2..=8).map(|power| 4_f64.powi(power));
    decades().for_each(|rate| line([x(MESSAGES[0]), y(rate)], [x(MESSAGES[1]), y(rate)]));
    lengths().for_each(|messages| line([x(messages), y(RATES[0])], [x(messages), y(RATES[1])]));
    for rate in decades() {
        label(&mut picture, [LEFT - 6.0, y(rate) + 4.0], "end", &format!("{rate}"));
    }
    for messages in lengths() {
        label(&mut picture, [x(messages), HEIGHT - BOTTOM + 18.0], "middle", &format!("{messages}"));
    }
    let middle = x(MESSAGES[0].sqrt() * MESSAGES[1].sqrt());
    label(&mut picture, [middle, HEIGHT - 10.0], "middle", "messages of a call");
    label(&mut picture, [LEFT + 6.0, TOP + 12.0], "start", "millions of pairs per second");
    for (place, curve) in CURVES.iter().enumerate() {
        let (colour, dash) = (curve.colour, if curve.dashed { r#" stroke-dasharray="5 4""# } else { "" });
        let places: Vec<String> = points(results, curve)
            .iter()
            .map(|(messages, rate)| format!("{:.1} {:.1}", x(*messages), y(*rate)))
            .collect();
        let _ = writeln!(
            picture,
            r#"  <path d="M{}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>"#,
            places.join(" L")
        );
        let (left, height) = (WIDTH - RIGHT + 20.0, TOP + 20.0 + 24.0 * place as f64);
        let _ = writeln!(
            picture,
            r#"  <path d="M{left:.1} {height:.1} L{:.1} {height:.1}" stroke="{colour}" stroke-width="2"{dash}/>"#,
            left + 30.0
        );
        label(&mut picture, [left + 38.0, height + 4.0], "start", curve.name);
    }
    picture + "</svg>\n"
}

#[test]
fn picture_of_matching_rates() {
    let drawn = draw(&read(RESULTS));
    if std::env::var_os("DTC_BLESS").is_some() {
        fs::write(path(PICTURE), &drawn).unwrap_or_else(|error| panic!("{PICTURE}: {error}"));
    }
    let hint = "DTC_BLESS=1 cargo test -p dtc-tests --test matching_plot draws it";
    assert_eq!(read(PICTURE), drawn, "{PICTURE} is not of {RESULTS}: {hint}");
}

#[test]
fn curves_have_points() {
    let results = read(RESULTS);
    for curve in &CURVES {
        let points = points(&results, curve);
        assert!(points.len() >= 5, "{}, {}: {} points", curve.section, curve.case, points.len());
        for (messages, rate) in points {
            assert!((0.0..=1.0).contains(&share(messages, MESSAGES)), "{messages} messages are outside of the picture");
            assert!((0.0..=1.0).contains(&share(rate, RATES)), "{rate} M/s are outside of the picture");
        }
    }
}
