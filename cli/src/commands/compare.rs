//! `dtc compare`: whether libdtc_mpi makes a program of MPI faster.

use crate::interposer;
use dtc_measure::failure::Failure;
use dtc_measure::program::called;
use dtc_measure::report::row;
use dtc_measure::timing::median;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Runs a program of MPI with libdtc_mpi preloaded and without it, in turns, and says whether it is faster
///
/// The first run shows what the program prints; it and the second measure the time in MPI calls.
#[derive(clap::Args)]
pub struct Arguments {
    /// The program and its launcher, behind --: dtc compare -- mpirun -n 2 ./program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", num_args = 1..)]
    program: Vec<OsString>,
    /// Runs of each kind whose wall time is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=MOST_RUNS))]
    runs: u32,
    /// libdtc_mpi.so; that of the installation unless given
    #[arg(long, value_name = "FILE")]
    interposer: Option<PathBuf>,
}

/// Runs of each kind: the spread tells no more beyond it.
const MOST_RUNS: i64 = 1000;

/// What the report of the library tells of the calls of a job.
#[derive(Debug, Default, PartialEq)]
struct Calls {
    processes: u64,
    /// Calls that dtc served, whole or in part.
    handled: u64,
    /// Of all processes together, without `MPI_Init` and `MPI_Finalize`.
    seconds: f64,
}

/// Wall times of one round, in seconds.
#[derive(Clone, Copy)]
struct Round {
    without: f64,
    with: f64,
}

impl Round {
    /// Above 1, dtc is faster.
    fn gain(self) -> f64 {
        self.without / self.with
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let library = interposer::library(arguments.interposer.as_deref())?;
    if let Some(preload) = std::env::var_os("LD_PRELOAD").filter(|list| list.to_string_lossy().contains("libdtc_mpi")) {
        return Err(Failure::description("LD_PRELOAD", "no libdtc_mpi, which dtc compare preloads", preload.display()));
    }
    let program = &arguments.program;
    let [calls_without, calls_with] = calls(program, &library, out)?;
    row(out, "interposer", &library.display().to_string())?;
    row(out, "processes", &calls_with.processes.to_string())?;
    let mut rounds = Vec::new();
    for at in 0..arguments.runs {
        let round = measure(program, &library, at % 2 == 1)?;
        let (without, with) = (seconds(round.without), seconds(round.with));
        row(out, &format!("round {}", at + 1), &format!("{without} without, {with} with"))?;
        out.flush()?;
        rounds.push(round);
    }
    summary(&rounds, &calls_without, &calls_with, out)
}

/// Runs the program twice with the report: once with every call left to the MPI, and once with dtc. The first shows what the program prints.
fn calls(program: &[OsString], library: &Path, out: &mut dyn Write) -> Result<[Calls; 2], Failure> {
    let mut off = interposer::preloaded(program, library);
    let (said, status) = interposer::reported(off.env("DTC_MPI", "off"), out, io::stderr())?;
    ended_well(&off, status, "with DTC_MPI=off")?;
    let without = Calls::of(&said);
    let mut on = interposer::preloaded(program, library);
    let (said, status) = interposer::reported(&mut on, &mut io::sink(), io::sink())?;
    ended_well(&on, status, "with libdtc_mpi")?;
    if said.iter().any(|line| line.starts_with("off: ")) {
        return Err(Failure::description("DTC_MPI", "a value with which dtc serves calls", "off"));
    }
    let with = Calls::of(&said);
    if with.processes == 0 {
        let nothing = "none that calls the library: it has no MPI, is linked with it statically, or dtc leaves all calls to the MPI";
        return Err(Failure::data(interposer::name(&on), "a program of MPI", nothing));
    }
    Ok([without, with])
}

/// Runs the program once with and once without the library.
fn measure(program: &[OsString], library: &Path, with_first: bool) -> Result<Round, Failure> {
    let with = || wall(interposer::preloaded(program, library), "with libdtc_mpi");
    let without = || wall(interposer::plain(program), "without libdtc_mpi");
    if with_first {
        let with = with()?;
        return Ok(Round { without: without()?, with });
    }
    Ok(Round { without: without()?, with: with()? })
}

/// Seconds that a command takes, which prints nothing.
fn wall(mut command: Command, kind: &str) -> Result<f64, Failure> {
    command.env_remove("DTC_MPI_REPORT").stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().map_err(|error| interposer::not_started(&command, &error))?;
    let seconds = start.elapsed().as_secs_f64();
    ended_well(&command, status, kind)?;
    Ok(seconds)
}

fn ended_well(command: &Command, status: ExitStatus, kind: &str) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    Err(Failure::data(interposer::name(command), "a program that ends well", format_args!("{status} {kind}")))
}

/// A time that a person reads.
fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

impl Calls {
    /// Reads the lines of all processes, such as `mpich: call MPI_Recv: 3 with dtc in 0.5 s, 4 passed on in 0.1 s (4 few bytes)`.
    fn of(lines: &[String]) -> Calls {
        let mut calls = Calls::default();
        for line in lines {
            let Some((name, numbers)) = line.split_once(": call ").and_then(|(_, call)| call.split_once(": ")) else {
                continue;
            };
            let mut words = numbers.split([' ', ',']).filter(|word| !word.is_empty());
            let mut number =
                |skipped: usize| words.nth(skipped).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
            // "H with dtc in S s, P passed on in T s"
            let (handled, in_dtc) = (number(0), number(3));
            let (passed, in_mpi) = (number(1), number(3));
            match name {
                "MPI_Init" | "MPI_Init_thread" => calls.processes += (handled + passed) as u64,
                "MPI_Finalize" => {}
                _ => {
                    calls.handled += handled as u64;
                    calls.seconds += in_dtc + in_mpi;
                }
            }
        }
        calls
    }

    /// Seconds of a process, on average.
    fn each(&self) -> f64 {
        self.seconds / self.processes.max(1) as f64
    }
}

/// What all rounds say together.
fn summary(rounds: &[Round], without: &Calls, with: &Calls, out: &mut dyn Write) -> Result<(), Failure> {
    let of = |time: fn(Round) -> f64| median(&rounds.iter().map(|round| time(*round)).collect::<Vec<_>>());
    let gains: Vec<f64> = rounds.iter().map(|round| round.gain()).collect();
    let (lowest, highest) =
        (gains.iter().copied().fold(f64::INFINITY, f64::min), gains.iter().copied().fold(0.0, f64::max));
    let line = |out: &mut dyn Write, name: &str, columns: [&str; 3]| {
        let [first, second, third] = columns;
        row(out, name, &format!("{first:<12}{second:<12}{third}"))
    };
    writeln!(out)?;
    line(out, "", ["without", "with", "gain"])?;
    let gain = format!("{:.2} ({lowest:.2} to {highest:.2})", median(&gains));
    line(out, "wall time", [&seconds(of(|round| round.without)), &seconds(of(|round| round.with)), &gain])?;
    if without.processes > 0 && with.seconds > 0.0 {
        let gain = format!("{:.2} (one run each)", without.each() / with.each());
        line(out, "in MPI calls", [&seconds(without.each()), &seconds(with.each()), &gain])?;
    }
    writeln!(out)?;
    let nothing =
        format!("dtc did no call: {} --mpi PROGRAM says which were left to the MPI, and why", called("doctor"));
    let verdict = if with.handled == 0 {
        nothing.as_str()
    } else if lowest > 1.0 {
        "faster with libdtc_mpi in every round"
    } else if highest < 1.0 {
        "slower with libdtc_mpi in every round"
    } else {
        "as fast: the rounds differ more from each other than by libdtc_mpi"
    };
    writeln!(out, "{verdict}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(calls: &Calls, rounds: &[(f64, f64)]) -> String {
        let rounds: Vec<Round> = rounds.iter().map(|&(without, with)| Round { without, with }).collect();
        let without = Calls { processes: 2, handled: 0, seconds: 3.0 };
        let mut text = Vec::new();
        summary(&rounds, &without, calls, &mut text).expect("memory");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn calls_are_read_from_reports() {
        let lines = [
            "MPI: MPICH Version: 4.0.2",
            "mpich: sent: 5 calls with dtc, 100000 bytes",
            "mpich: call MPI_Init_thread: 0 with dtc in 0.000000 s, 1 passed on in 9.5 s",
            "mpich: call MPI_Recv: 3 with dtc in 0.25 s, 193 passed on in 0.5 s (16 predefined datatype, 174 few bytes)",
            "mpich: call MPI_Init_thread: 0 with dtc in 0.000000 s, 1 passed on in 9.5 s",
            "mpich: call MPI_Wait: 1 with dtc in 0.125 s, 0 passed on in 0.000000 s",
            "mpich: call MPI_Finalize: 1 with dtc in 7 s, 0 passed on in 0 s",
        ];
        let calls = Calls::of(&lines.map(String::from));
        assert_eq!(calls, Calls { processes: 2, handled: 4, seconds: 0.875 });
    }

    #[test]
    fn the_verdict_keeps_to_the_spread() {
        let calls = Calls { processes: 2, handled: 7, seconds: 1.0 };
        let faster = said(&calls, &[(2.0, 1.0), (3.0, 2.0), (4.0, 1.0)]);
        assert!(faster.contains("    wall time      3.000 s     1.000 s     2.00 (1.50 to 4.00)\n"), "{faster}");
        assert!(faster.contains("    in MPI calls   1.500 s     0.500 s     3.00 (one run each)\n"), "{faster}");
        assert!(faster.ends_with("\nfaster with libdtc_mpi in every round\n"), "{faster}");
        assert!(said(&calls, &[(1.0, 2.0), (1.0, 1.5)]).contains("slower with"));
        assert!(said(&calls, &[(1.0, 2.0), (2.0, 1.0)]).contains("as fast"));
        let idle = Calls { handled: 0, ..calls };
        assert!(said(&idle, &[(2.0, 1.0)]).contains("dtc did no call"));
    }
}
