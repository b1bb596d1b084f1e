//! Messages with and without libdtc_mpi, by length of block, under four MPIs.

use super::HOW;
use dtc_tests::plot::{self, Panel, Stroke};

const RESULTS: &str = "bench/results/2026-11-23-mpi.md";
const PICTURE: &str = "docs/pictures/messages.svg";

/// The sections of the results, a panel each.
const SECTIONS: [&str; 4] =
    ["MPICH 4.0.2 (Debian)", "MPICH 5.0.2 (PyPI)", "Open MPI 4.1.4 (Debian)", "Open MPI 5.0.11 (PyPI)"];

/// Bytes of a message, as the results write them, with their colours.
const SIZES: [(&str, &str); 4] =
    [("4,096", "#8b949e"), ("8,192", "#16a34a"), ("65,536", "#0891b2"), ("1,048,576", "#dc2626")];

/// The columns of the results that are drawn, and whether dashed.
const COLUMNS: [(usize, &str, bool); 2] = [(2, "message", false), (3, "exchange", true)];

const WIDTH: f64 = 1060.0;
const HEIGHT: f64 = 610.0;

fn panel(place: usize) -> Panel {
    Panel {
        left: 50.0 + (place % 2) as f64 * 390.0,
        top: 30.0 + (place / 2) as f64 * 300.0,
        width: 340.0,
        height: 220.0,
        across: [8.0, 1024.0],
        up: [0.15, 200.0],
    }
}

/// Lengths of a block, and how many times the speed is with the library of that without.
fn points(results: &str, section: &str, bytes: &str, column: usize) -> Vec<(f64, f64)> {
    let rows = plot::rows(results, section);
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    rows.iter()
        .filter(|row| row[1] == bytes)
        .filter_map(|row| {
            let (without, with) = row[column].split_once(" to ")?;
            Some((number(row[0])?, number(without)? / number(with)?))
        })
        .collect()
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(WIDTH, HEIGHT);
    for (place, section) in SECTIONS.iter().enumerate() {
        let panel = panel(place);
        panel.grid(
            &mut picture,
            &[8.0, 32.0, 64.0, 128.0, 512.0, 1024.0],
            &[0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 200.0],
        );
        plot::label(&mut picture, [panel.left, panel.top - 10.0], "start", section);
        for (bytes, colour) in SIZES {
            for (column, _, dashed) in COLUMNS {
                panel.curve(&mut picture, &points(results, section, bytes, column), Stroke { colour, dashed });
            }
        }
        let below = [panel.left + panel.width / 2.0, panel.top + panel.height + 36.0];
        plot::label(&mut picture, below, "middle", "bytes of a block");
    }
    let mut place = 0;
    for (bytes, colour) in SIZES {
        for (_, what, dashed) in COLUMNS {
            let at = [840.0, 50.0 + 22.0 * place as f64];
            plot::legend(&mut picture, at, &format!("{what}, {bytes} bytes"), Stroke { colour, dashed });
            place += 1;
        }
    }
    plot::label(
        &mut picture,
        [840.0, 50.0 + 22.0 * place as f64 + 6.0],
        "start",
        "times the speed without the library",
    );
    plot::end(picture)
}

#[test]
fn picture_of_messages() {
    plot::expect_picture(PICTURE, &draw(&plot::read(RESULTS)), RESULTS, HOW);
}

#[test]
fn curves_have_points() {
    let results = plot::read(RESULTS);
    for (place, section) in SECTIONS.iter().enumerate() {
        for (bytes, _) in SIZES {
            for (column, what, _) in COLUMNS {
                let points = points(&results, section, bytes, column);
                assert_eq!(points.len(), 6, "{section}, {bytes}, {what}");
                for point in points {
                    assert!(
                        panel(place).contains(point),
                        "{section}, {bytes}, {what}: {point:?} is outside of the picture"
                    );
                }
            }
        }
    }
}
