//! `dtc cache`: the compiled GPU code on disk.

use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_runtime::store::{Config, Entry, Store};
use std::io::Write;
use std::time::{Duration, SystemTime};

/// Lists, checks or removes the compiled GPU code that is kept on disk
///
/// DTC_CACHE_SITE names directories that are only read, separated by colons; DTC_CACHE_DIR the one that is written, or
/// off. Without it, that is a directory for this user alone under /var/tmp.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Lists the directories and their entries
    List,
    /// Reads every entry and says which would not be used, and why; exits 3 if there are any
    Verify,
    /// Removes all entries of the directory that is written
    Clear,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let store = Store::open(Config::from_environment());
    if store.directories().is_empty() {
        writeln!(out, "no directories: DTC_CACHE_DIR is off")?;
    }
    match arguments.action {
        Action::List => list(&store, out),
        Action::Verify => verify(&store, out),
        Action::Clear => clear(&store, out),
    }
}

fn list(store: &Store, out: &mut dyn Write) -> Result<(), Failure> {
    let (entries, now) = (store.list(), SystemTime::now());
    for directory in store.directories() {
        if let Some(finding) = &directory.finding {
            writeln!(out, "not used: {finding}")?;
            continue;
        }
        let own: Vec<&Entry> =
            entries.iter().filter(|entry| entry.path.parent() == Some(directory.path.as_path())).collect();
        let total = report::bytes(own.iter().map(|entry| entry.bytes).sum());
        let share = match directory.writable {
            true => format!("{total} of at most {}", report::bytes(store.capacity())),
            false => format!("{total}, only read"),
        };
        writeln!(out, "{}: {}, {share}", directory.path.display(), counted(own.len()))?;
        for entry in own {
            let age = now.duration_since(entry.used).unwrap_or_default();
            let size = report::bytes(entry.bytes);
            writeln!(out, "    {}  {size:>12}  used {} ago", entry.key, period(age))?;
        }
    }
    Ok(())
}

fn verify(store: &Store, out: &mut dyn Write) -> Result<(), Failure> {
    let verification = store.verify();
    writeln!(out, "{} sound", counted(verification.sound))?;
    for finding in &verification.findings {
        writeln!(out, "not used: {finding}")?;
    }
    match verification.findings.len() {
        0 => Ok(()),
        some => Err(Failure::data("cache", "that everything can be used", format_args!("{some} that cannot"))),
    }
}

fn clear(store: &Store, out: &mut dyn Write) -> Result<(), Failure> {
    let cleared = store.clear();
    writeln!(out, "removed {}, {}", counted(cleared.entries), report::bytes(cleared.bytes))?;
    for finding in store.directories().iter().filter_map(|directory| directory.finding.as_ref()) {
        writeln!(out, "not used: {finding}")?;
    }
    match cleared.left {
        0 => Ok(()),
        some => Err(Failure::data("cache", "to remove every file", format_args!("{some} that could not be"))),
    }
}

fn counted(entries: usize) -> String {
    let plural = if entries == 1 { "entry" } else { "entries" };
    format!("{} {plural}", report::grouped(entries as u64))
}

/// A time that passed, in the largest unit that it fills.
fn period(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}
