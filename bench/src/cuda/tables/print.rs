//! The table of figures.

use super::figure::{COPY, DRIVER, Figure, GENERIC, HAND, HOSTED, LISTED, TABLED};
use dtc_measure::bench::table::table;
use dtc_measure::failure::Failure;
use std::io::Write;

/// Prints the driver's rate, and the others as shares of it.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\nblocks by a table of the call: packed GB/s of the driver's copy with the cache emptied; the others as shares of it"
    )?;
    let mut printed = table(&[
        "what",
        "case",
        "copy",
        "by hand",
        "listed",
        "table",
        "host table",
        "driver",
        "generic",
        "fastest shape",
        "share",
    ]);
    let calls = || figures.chunk_by(|one, other| one.case == other.case && one.what == other.what);
    for call in calls().filter(|call| call[0].peer == COPY && call[0].what != "copy") {
        let time = |peer| call.iter().find(|figure| figure.peer == peer).map(|figure| figure.us);
        let share = |us: Option<f64>| match (us, time(COPY)) {
            (Some(us), Some(copy)) => format!("{:.3}", copy / us),
            _ => "-".to_owned(),
        };
        let copy = time(COPY).map_or_else(|| "-".to_owned(), |us| format!("{:.1}", call[0].bytes as f64 / us / 1e3));
        let named = [COPY, DRIVER, GENERIC, HAND, HOSTED, LISTED, TABLED];
        let shapes = call.iter().filter(|figure| !named.contains(&figure.peer.as_str()));
        let fastest = shapes.min_by(|one, other| one.us.total_cmp(&other.us));
        printed.add_row([
            call[0].what.to_owned(),
            call[0].case.clone(),
            copy,
            share(time(HAND)),
            share(time(LISTED)),
            share(time(TABLED)),
            share(time(HOSTED)),
            share(time(DRIVER)),
            share(time(GENERIC)),
            fastest.map_or_else(|| "-".to_owned(), |figure| figure.peer.clone()),
            share(fastest.map(|figure| figure.us)),
        ]);
    }
    writeln!(out, "{printed}\n")?;
    for figure in calls().filter(|call| call[0].peer != COPY || call[0].what == "copy").flatten() {
        let Figure { case, peer, what, us, .. } = figure;
        writeln!(out, "{what}, {case}, {peer}: {us:.2} us")?;
    }
    Ok(())
}
