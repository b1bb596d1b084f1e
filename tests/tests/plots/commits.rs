//! What a commit costs, and after how many packs it has paid for itself.

use super::HOW;
use dtc_tests::plot::{self, DTC, PEERS, Panel, Stroke, number};

const RESULTS: &str = "bench/results/2026-11-22-cpu.md";
const PICTURE: &str = "docs/pictures/commits.svg";

const COST: Panel = Panel { left: 70.0, top: 40.0, width: 310.0, height: 260.0, across: [1.0, 52.0], up: [100.0, 2e6] };
const EVEN: Panel = Panel { left: 460.0, top: 40.0, width: 320.0, height: 260.0, across: [1.0, 52.0], up: [0.1, 1e4] };

/// Numbers in ascending order, with their places from 1.
fn sorted(mut numbers: Vec<f64>) -> Vec<(f64, f64)> {
    numbers.sort_by(f64::total_cmp);
    numbers.into_iter().enumerate().map(|(place, number)| (place as f64 + 1.0, number)).collect()
}

/// The rows of a table, without its head.
fn cases<'a>(results: &'a str, section: &str) -> Vec<Vec<&'a str>> {
    plot::rows(results, section).into_iter().skip(2).collect()
}

/// Nanoseconds of a commit in one column.
fn costs(results: &str, column: usize) -> Vec<(f64, f64)> {
    sorted(cases(results, "Commit of the examples").iter().map(|row| number(row[column])).collect())
}

/// Packs until a new type has paid for its commit, beside the faster of both MPIs, where dtc packs faster.
fn even(results: &str) -> Vec<(f64, f64)> {
    let packs = cases(results, "Examples: pack");
    let paid = cases(results, "Commit of the examples").into_iter().filter_map(|commit| {
        let pack = packs.iter().find(|pack| pack[0] == commit[0])?;
        let gain = |mpi: usize, of_commit: usize| {
            let saved = number(pack[mpi]) - number(pack[3]);
            (saved > 0.0).then(|| (number(commit[1]) - number(commit[of_commit])).max(0.0) / saved)
        };
        // Columns: MPICH, Open MPI.
        Some(gain(5, 4)?.max(gain(6, 5)?).max(0.1))
    });
    sorted(paid.collect())
}

fn draw(results: &str) -> String {
    let mut picture = plot::begin(960.0, 360.0);
    COST.grid(&mut picture, &[1.0, 10.0, 52.0], &[100.0, 1e3, 1e4, 1e5, 1e6]);
    plot::label(&mut picture, [COST.left, 24.0], "start", "ns of a commit, types in ascending order");
    let curves = [
        ("dtc, new type", 1, DTC, false),
        ("dtc, known type", 2, DTC, true),
        ("MPICH 4.0.2", 4, PEERS[0], false),
        ("Open MPI 4.1.4", 5, PEERS[2], false),
    ];
    for (place, (name, column, colour, dashed)) in curves.into_iter().enumerate() {
        COST.curve(&mut picture, &costs(results, column), Stroke { colour, dashed });
        plot::legend(&mut picture, [800.0, 60.0 + 24.0 * place as f64], name, Stroke { colour, dashed });
    }
    EVEN.grid(&mut picture, &[1.0, 10.0, 52.0], &[0.1, 1.0, 10.0, 100.0, 1e3, 1e4]);
    plot::label(&mut picture, [EVEN.left, 24.0], "start", "packs until the commit of a new type is paid");
    EVEN.curve(&mut picture, &even(results), Stroke { colour: DTC, dashed: false });
    for panel in [COST, EVEN] {
        plot::label(&mut picture, [panel.left + panel.width / 2.0, 340.0], "middle", "types");
    }
    plot::end(picture)
}

#[test]
fn picture_of_commits() {
    let results = plot::read(RESULTS);
    let points = [1, 2, 4, 5].map(|column| costs(&results, column)).concat();
    assert_eq!(points.len(), 4 * 52);
    points.iter().for_each(|point| assert!(COST.contains(*point), "{point:?} is outside of the picture"));
    let even = even(&results);
    assert!(even.len() > 30, "{}", even.len());
    even.iter().for_each(|point| assert!(EVEN.contains(*point), "{point:?} is outside of the picture"));
    plot::expect_picture(PICTURE, &draw(&results), RESULTS, HOW);
}
