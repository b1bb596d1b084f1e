//! Exchanges of applications with and without libdtc_mpi: on a CPU under four MPIs, and between two GPUs.

use super::HOW;
use dtc_tests::plot::{self, DTC, Group, PEERS, Panel, number};

const ON_CPUS: &str = "bench/results/2026-11-23-mpi-applications.md";
const ON_GPUS: &str = "bench/results/2026-11-24-mpi-two-gpus.md";
const PICTURE: &str = "docs/pictures/exchanges.svg";

const MPIS: [&str; 4] = ["MPICH 4.0.2", "MPICH 5.0.2", "Open MPI 4.1.4", "Open MPI 5.0.11"];

const HOST: Panel =
    Panel { left: 190.0, top: 40.0, width: 240.0, height: 330.0, across: [8.0, 1000.0], up: [1.0, 10.0] };
const DEVICE: Panel =
    Panel { left: 620.0, top: 40.0, width: 220.0, height: 130.0, across: [10.0, 1e8], up: [1.0, 10.0] };

/// The lower of two runs: `197, 203`.
fn least(cell: &str) -> f64 {
    cell.split(',').map(str::trim).map(number).fold(f64::INFINITY, f64::min)
}

/// A pair of bars: alone, and with the library.
fn pair(name: String, alone: f64, with: f64, text: impl Fn(f64) -> String) -> Group {
    Group { name, bars: vec![(alone, PEERS[0], text(alone)), (with, DTC, text(with))] }
}

/// The halo as messages, and the stencil.
fn on_cpus(results: &str) -> Vec<Group> {
    let rows: Vec<Vec<&str>> = results
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let row = |mpi: &str| rows.iter().find(|row| row[0] == mpi).unwrap_or_else(|| panic!("{ON_CPUS}: no {mpi}"));
    let mut groups = Vec::new();
    for (what, column) in [("halo", 3), ("stencil", 5)] {
        for mpi in MPIS {
            let row = row(mpi);
            let text = |time: f64| format!("{time}");
            groups.push(pair(format!("{what}, {mpi}"), least(row[column]), least(row[column + 1]), text));
        }
    }
    groups
}

/// The halo of 512^3 doubles under Open MPI, as messages and as a collective.
fn on_gpus(results: &str) -> Vec<Group> {
    let heading = "The halo of 512^3, `applications halo 512 device halo.cubin`";
    let rows = plot::rows(results, heading);
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{ON_GPUS}: no {name}"));
    let (alone, with) = (row("Open MPI alone"), row("Open MPI, and told through shared memory"));
    let text = |time: f64| {
        if time < 1e3 {
            format!("{time} us")
        } else if time < 1e6 {
            format!("{:.1} ms", time / 1e3)
        } else {
            format!("{:.1} s", time / 1e6)
        }
    };
    let messages = pair("halo as messages".to_owned(), number(alone[1]), cells(with[1]), text);
    let neighbors = pair("halo as a collective".to_owned(), number(alone[2]), cells(with[2]), text);
    vec![messages, neighbors]
}

/// The lower of two times with commas in them: `1,744, 1,754`.
fn cells(cell: &str) -> f64 {
    cell.split(", ").map(number).fold(f64::INFINITY, f64::min)
}

fn draw(on_cpus: &[Group], on_gpus: &[Group]) -> String {
    let mut picture = plot::begin(960.0, 420.0);
    HOST.bars(&mut picture, on_cpus, &[10.0, 100.0, 1000.0]);
    plot::label(&mut picture, [HOST.left, 24.0], "start", "microseconds on a CPU, 2 processes");
    DEVICE.bars(&mut picture, on_gpus, &[10.0, 1e4, 1e7]);
    plot::label(&mut picture, [DEVICE.left, 24.0], "start", "microseconds, two H200, Open MPI 5.0.7");
    plot::key(&mut picture, [620.0, 240.0], "the MPI alone", PEERS[0]);
    plot::key(&mut picture, [620.0, 264.0], "with dtc preloaded", DTC);
    plot::end(picture)
}

#[test]
fn picture_of_exchanges() {
    let (hosts, devices) = (on_cpus(&plot::read(ON_CPUS)), on_gpus(&plot::read(ON_GPUS)));
    assert_eq!((hosts.len(), devices.len()), (8, 2));
    for (groups, panel) in [(&hosts, HOST), (&devices, DEVICE)] {
        for (number, ..) in groups.iter().flat_map(|group| &group.bars) {
            assert!(panel.contains((*number, 1.0)), "{number} is outside of the picture");
        }
    }
    plot::expect_picture(PICTURE, &draw(&hosts, &devices), ON_CPUS, HOW);
}
