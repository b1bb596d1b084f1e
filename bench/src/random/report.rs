//! Distributions of ratios and times, and the worst types of each.

use super::distribution::{Distribution, PERCENTILES};
use super::run::Random;
use dtc_measure::bench::comparison::{Comparison, Undisturbed};
use dtc_measure::bench::measure::Measured;
use dtc_measure::bench::table::{LOST, table};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use std::io::Write;

/// Packed bytes of a transfer below which nanoseconds beyond the fastest peer count, and not ratios: such a call takes less than 100.
const SMALL: u64 = 4 << 10;

/// Nanoseconds that a small transfer may take beyond the fastest peer.
const BEYOND: f64 = 8.0;

/// Types that are listed of each distribution.
const WORST: usize = 10;

/// Characters of a type in short.
const WIDTH: usize = 200;

type Pick = fn(&Measured) -> &Comparison;

const CALLS: [(&str, Pick); 4] = [
    ("pack", |case| &case.pack),
    ("unpack", |case| &case.unpack),
    ("commit", |case| &case.bare_commit),
    ("commit and plan", |case| &case.commit),
];

/// Calls whose worst types are listed: a plan belongs to the packs that it serves.
const LISTED: usize = 3;

type Covers = fn(u64) -> bool;

const SIZES: [(&str, Covers); 2] = [("4 KiB and more", |bytes| bytes >= SMALL), ("below 4 KiB", |bytes| bytes < SMALL)];

/// Prints distributions, the worst types, and what went wrong.
///
/// # Errors
///
/// [`Failure::Data`] with the first mismatch or failure: the type, the seed and the byte.
pub fn print(random: &Random, out: &mut dyn Write) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: the times below say little")?;
    }
    for (kind, version) in &random.results.versions {
        writeln!(out, "{kind}: {version}")?;
    }
    ratios(random, out)?;
    beyond(random, out)?;
    for (call, pick) in CALLS.into_iter().take(LISTED) {
        for (size, covers) in SIZES {
            worst(random, (call, pick), (size, covers), out)?;
        }
    }
    let Random { number, seed, .. } = random;
    writeln!(out, "\na type whole: dtc-bench --random {number} --seed {seed} --only NAME --types DIRECTORY")?;
    let cases = &random.results.cases;
    for note in random.results.notes.iter().chain(cases.iter().flat_map(|case| &case.notes)) {
        writeln!(out, "note: {note}")?;
    }
    let mut wrong = cases.iter().flat_map(|case| &case.mismatches).chain(&random.failed);
    let Some(first) = wrong.next() else { return Ok(()) };
    for other in wrong {
        writeln!(out, "wrong: {other} (seed {seed})")?;
    }
    Err(Failure::Data(format!("{first} (seed {seed})")))
}

/// The cases of a size.
fn of_size(random: &Random, covers: Covers) -> impl Iterator<Item = (usize, &Measured)> {
    random.results.cases.iter().enumerate().filter(move |(_, case)| covers(case.packed_bytes))
}

fn ratios(random: &Random, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\nfastest of hand loop and MPIs over dtc, by the least times; of commits (build, commit, free), the faster MPI: above 1, dtc is faster"
    )?;
    let mut header = vec!["call".to_owned(), "packed".to_owned(), "types".to_owned(), "minimum".to_owned()];
    header.extend(PERCENTILES.iter().map(|percent| format!("{percent} %")));
    header.push(format!("below {LOST}"));
    let mut table = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for (call, pick) in CALLS {
        for (size, covers) in SIZES {
            let found = Distribution::new(
                of_size(random, covers).filter_map(|(_, case)| Some(pick(case).undisturbed()?.ratio())),
            );
            let Some(minimum) = found.minimum() else { continue };
            let below = of_size(random, covers).filter_map(|(_, case)| Some(pick(case).undisturbed()?.ratio()));
            let below = below.filter(|ratio| *ratio < LOST).count();
            let percentiles = PERCENTILES.iter().filter_map(|&percent| found.percentile(percent));
            let figures = std::iter::once(minimum).chain(percentiles).map(|ratio| format!("{ratio:.2}"));
            let row = [call.to_owned(), size.to_owned(), found.len().to_string()];
            table.add_row(row.into_iter().chain(figures).chain([below.to_string()]));
        }
    }
    Ok(writeln!(out, "{table}")?)
}

fn beyond(random: &Random, out: &mut dyn Write) -> Result<(), Failure> {
    let (size, covers) = SIZES[1];
    writeln!(out, "\n{size}: nanoseconds of dtc beyond the fastest; below 0, dtc is faster")?;
    let within = format!("at most {BEYOND}");
    let mut table = table(&["call", "types", "50 %", "95 %", "99 %", "maximum", &within]);
    for (call, pick) in &CALLS[..2] {
        let found =
            Distribution::new(of_size(random, covers).filter_map(|(_, case)| Some(pick(case).undisturbed()?.beyond())));
        let figure = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
        let percentiles = [50.0, 95.0, 99.0].map(|percent| figure(found.percentile(percent)));
        let row = [(*call).to_owned(), found.len().to_string()].into_iter().chain(percentiles);
        table.add_row(row.chain([figure(found.maximum()), format!("{:.1} %", found.percent_up_to(BEYOND))]));
    }
    Ok(writeln!(out, "{table}")?)
}

/// The worst types: by the ratio, or of small packs and unpacks by nanoseconds.
fn worst(
    random: &Random,
    (call, pick): (&str, Pick),
    (size, covers): (&str, Covers),
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let by_time = !call.starts_with("commit") && size == SIZES[1].0;
    let mut found: Vec<(f64, Undisturbed, usize, &Measured)> = of_size(random, covers)
        .filter_map(|(index, case)| {
            let found = pick(case).undisturbed()?;
            Some((if by_time { -found.beyond() } else { found.ratio() }, found, index, case))
        })
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    if found.is_empty() {
        return Ok(());
    }
    let what = if by_time { "nanoseconds beyond the fastest" } else { "ratio" };
    writeln!(out, "\n{call}, {size}, the worst by {what}: ratio, dtc, fastest, elements, packed bytes, tier, type")?;
    for (_, found, index, case) in found.into_iter().take(WORST) {
        let (count, text) = &random.texts[index];
        writeln!(
            out,
            "{:>6.2} {:>9} {:<7} {:>9} {:>9} x {} {} {}: {}",
            found.ratio(),
            report::time(found.dtc),
            found.name,
            report::time(found.fastest),
            report::grouped(*count),
            report::bytes(case.packed_bytes),
            case.tier,
            case.name,
            report::cut(text, WIDTH)
        )?;
    }
    Ok(())
}
