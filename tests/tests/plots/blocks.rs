//! `MPI_Pack` of vectors on a CPU, by length of block: four MPIs, and dtc.

use super::HOW;
use dtc_tests::plot::{self, DTC, PEERS, Panel, Stroke, number};

const RESULTS: &str = "bench/results/2026-11-23-mpi.md";
const PICTURE: &str = "docs/pictures/cpu-blocks.svg";

/// The sections of the results with the name of each MPI.
const MPIS: [(&str, &str); 4] = [
    ("MPICH 4.0.2 (Debian)", "MPICH 4.0.2"),
    ("MPICH 5.0.2 (PyPI)", "MPICH 5.0.2"),
    ("Open MPI 4.1.4 (Debian)", "Open MPI 4.1.4"),
    ("Open MPI 5.0.11 (PyPI)", "Open MPI 5.0.11"),
];

/// Packed bytes of the messages, as the results write them, and in words.
const SIZES: [(&str, &str); 2] = [("65,536", "64 KiB packed"), ("1,048,576", "1 MiB packed")];

fn panel(place: usize) -> Panel {
    Panel {
        left: 50.0 + 370.0 * place as f64,
        top: 40.0,
        width: 320.0,
        height: 260.0,
        across: [8.0, 1024.0],
        up: [4.0, 100.0],
    }
}

/// Lengths of a block, and GB/s: of the MPI alone, or with the library.
fn points(results: &str, section: &str, bytes: &str, with: bool) -> Vec<(f64, f64)> {
    let rows = plot::rows(results, section);
    let of_size = rows.iter().filter(|row| row.len() > 4 && row[1] == bytes);
    let point = |row: &Vec<&str>| {
        let (alone, library) = row[4].split_once(" to ").expect("both times");
        let microseconds = number(if with { library } else { alone });
        (number(row[0]), number(bytes) / microseconds / 1e3)
    };
    of_size.map(point).collect()
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(960.0, 360.0);
    for (place, (bytes, name)) in SIZES.iter().enumerate() {
        let panel = panel(place);
        panel.grid(&mut picture, &[8.0, 32.0, 128.0, 512.0], &[5.0, 10.0, 20.0, 50.0, 100.0]);
        plot::label(&mut picture, [panel.left, 24.0], "start", &format!("GB/s, {name}"));
        let below = [panel.left + panel.width / 2.0, panel.top + panel.height + 40.0];
        plot::label(&mut picture, below, "middle", "bytes of a block");
        for ((section, _), colour) in MPIS.iter().zip(PEERS) {
            panel.curve(&mut picture, &points(results, section, bytes, false), Stroke { colour, dashed: false });
        }
        for (section, _) in &MPIS[..1] {
            panel.curve(&mut picture, &points(results, section, bytes, true), Stroke { colour: DTC, dashed: false });
        }
    }
    for (place, ((_, name), colour)) in MPIS.iter().zip(PEERS).enumerate() {
        plot::legend(&mut picture, [790.0, 60.0 + 24.0 * place as f64], name, Stroke { colour, dashed: false });
    }
    plot::legend(&mut picture, [790.0, 156.0], "dtc in MPICH 4.0.2", Stroke { colour: DTC, dashed: false });
    plot::end(picture)
}

#[test]
fn picture_of_blocks_on_a_cpu() {
    let results = plot::read(RESULTS);
    for (section, _) in MPIS {
        for (place, (bytes, _)) in SIZES.iter().enumerate() {
            for point in points(&results, section, bytes, false) {
                assert!(panel(place).contains(point), "{section}, {bytes}: {point:?} is outside of the picture");
            }
            assert_eq!(points(&results, section, bytes, true).len(), 6, "{section}, {bytes}");
        }
    }
    plot::expect_picture(PICTURE, &draw(&results), RESULTS, HOW);
}
