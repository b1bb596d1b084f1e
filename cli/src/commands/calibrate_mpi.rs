//! `dtc calibrate --mpi`: which calls with derived datatypes dtc does faster than an MPI, as a table that libdtc_mpi reads.

use crate::interposer;
use dtc_measure::failure::{Failure, reason};
use dtc_measure::machine::processor;
use dtc_measure::output::{self, Scratch};
use dtc_mpi_table::said::{LEAVES_ALL, PASSED_ON};
use dtc_mpi_table::{Arrangement, Cell, Density, PIECES, SIZES, Table, Use, page};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Times each call alone and with libdtc_mpi, in one job of two processes.
const PROGRAM: &str = include_str!("calibrate_mpi.c");

/// What is measured, and where the table goes.
pub struct Request<'a> {
    /// The launcher and its options, for two processes.
    pub launcher: &'a [OsString],
    /// The compiler of the MPI; the one beside the launcher unless given.
    pub compiler: Option<&'a Path>,
    /// libdtc_mpi.so; that of the installation unless given.
    pub library: Option<&'a Path>,
    /// The file of the table.
    pub table: &'a Path,
    /// Packed bytes of the largest calls that are measured.
    pub largest: u64,
    /// How often all is measured. The lowest gain of each call counts.
    pub runs: u32,
    /// Whether messages of elements on GPUs are measured. No table is written then: libdtc_mpi does all of them.
    pub gpus: bool,
}

/// Runs the command.
pub fn run(request: &Request<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let library = interposer::library(request.library)?;
    let folder = Scratch::temporary("calibrate")
        .map_err(|error| Failure::data("the folder for temporary files", "room for a program", reason(&error)))?;
    let program = compile(request, folder.path())?;
    let job = |largest: u64| {
        let mut command: Vec<OsString> = request.launcher.to_vec();
        command.push(program.clone().into_os_string());
        command.push(largest.to_string().into());
        command.extend(request.gpus.then(|| "gpu".into()));
        interposer::preloaded(&command, &library)
    };
    let left = left_to_mpi(job(SIZES[0] as u64))?;
    let mut measured = Measured::new();
    for _ in 0..request.runs {
        measure(job(request.largest), &mut measured)?;
    }
    let nothing = || Failure::data("the program", "lines of what it measured", "none");
    let table = measured.table().ok_or_else(nothing)?;
    if request.gpus {
        return Ok(write!(out, "{}", gains(&table))?);
    }
    output::write(request.table, table.to_string().as_bytes())?;
    writeln!(
        out,
        "{}: bytes of the contiguous pieces with which dtc does a call, by packed bytes of the call:\n",
        table.mpi
    )?;
    writeln!(out, "{}", page(&table))?;
    if !left.is_empty() {
        writeln!(out, "libdtc_mpi left these calls to the MPI, whose gains say nothing:\n")?;
        for line in left {
            writeln!(out, "    {line}")?;
        }
        writeln!(out)?;
    }
    let written = std::path::absolute(request.table).unwrap_or_else(|_| request.table.to_owned());
    writeln!(out, "written to {}; DTC_MPI_TABLE, set to this path, has libdtc_mpi use it", written.display())?;
    Ok(())
}

/// Gains below this are losses that a second run shows too.
const LOSS: f32 = 0.95;

/// What was measured of elements on GPUs: the table, and how many calls dtc makes slower.
fn gains(table: &Table) -> String {
    let cells: Vec<Cell> = table.cells().collect();
    let lost = cells.iter().filter(|cell| cell.gain < LOSS).count();
    let mut text = format!("{table}\n{} calls with elements on GPUs, {lost} below {LOSS}", cells.len());
    if let Some(least) = cells.iter().min_by(|one, other| one.gain.total_cmp(&other.gain)) {
        let Cell { r#use, arrangement, density, piece, size, gain } = least;
        let (of, arrangement, density) = (r#use.name(), arrangement.name(), density.name());
        text +=
            &format!("; the least is {gain:.2}: {of}, {arrangement}, {density}, pieces of {piece} bytes, {size} bytes");
    }
    text + "\n"
}

/// The compiler beside a launcher: `mpicc.openmpi` for `mpirun.openmpi`.
fn compiler_of(launcher: &OsStr) -> PathBuf {
    let launcher = Path::new(launcher);
    let name = launcher.file_name().unwrap_or_default().to_string_lossy();
    let kind = name.strip_prefix("mpirun").or_else(|| name.strip_prefix("mpiexec"));
    launcher.with_file_name(format!("mpicc{}", kind.unwrap_or_default()))
}

fn compile(request: &Request<'_>, folder: &Path) -> Result<PathBuf, Failure> {
    let launcher = request.launcher.first().map_or(OsStr::new(""), OsString::as_os_str);
    let compiler = request.compiler.map_or_else(|| compiler_of(launcher), Path::to_owned);
    let (source, program) = (folder.join("calibrate.c"), folder.join("calibrate"));
    std::fs::write(&source, PROGRAM).map_err(|error| Failure::file(&source, "room for a program", &error))?;
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-std=gnu11", "-o"]).args([&program, &source]).arg("-ldl").stdin(Stdio::null());
    let compiled = command.output().map_err(|error| {
        let remedy = "name that of your MPI with --mpicc FILE";
        Failure::missing(compiler.display(), "a compiler of the MPI", reason(&error), remedy)
    })?;
    if compiled.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&compiled.stderr).trim().to_owned();
    Err(Failure::data(compiler.display(), "a program that compiles", said))
}

/// The datatypes of the program whose calls libdtc_mpi leaves to the MPI although it is asked to do all, as its report says: they would measure as
/// calls that gain nothing. A job with the smallest calls alone tells; one that fails does so again where it is measured.
///
/// # Errors
///
/// The library leaves all calls to the MPI: its test of the MPI found other bytes, or the MPI lacks a call.
fn left_to_mpi(mut command: Command) -> Result<Vec<String>, Failure> {
    command.env("DTC_MPI", "all");
    let (said, _) = interposer::reported(&mut command, &mut std::io::sink(), std::io::sink())?;
    if let Some(all) = said.iter().find(|line| line.starts_with(LEAVES_ALL)) {
        let found = format!("one that {all}");
        return Err(Failure::data(interposer::name(&command), "a library that does calls", found));
    }
    let mut left: Vec<String> = said.into_iter().filter(|line| line.contains(PASSED_ON)).collect();
    left.sort();
    left.dedup();
    Ok(left)
}

/// Runs the program and reads what it measures.
fn measure(mut command: Command, measured: &mut Measured) -> Result<(), Failure> {
    command.env("DTC_MPI", "all").env_remove("DTC_MPI_REPORT").stdout(Stdio::piped());
    let name = interposer::name(&command);
    let mut child = command.spawn().map_err(|error| interposer::not_started(&command, &error))?;
    let said = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let mut complaint = None;
    for line in said {
        let line = line?;
        if let Some(said) = line.strip_prefix("error: ") {
            complaint = Some(said.to_owned());
        } else if let Some(size) = measured.read(&line)
            && std::io::stderr().is_terminal()
        {
            eprintln!("calls of {size} bytes");
        }
    }
    let status = child.wait()?;
    if let Some(complaint) = complaint {
        return Err(Failure::data(name, "a measurement", complaint));
    }
    if !status.success() {
        return Err(Failure::data(name, "a program that ends well", status));
    }
    Ok(())
}

/// What came of the program so far.
struct Measured {
    table: Table,
    /// The size of the last line.
    size: i64,
}

impl Measured {
    fn new() -> Measured {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let machine = format!("{}, {cores} processors", processor());
        Measured { table: Table::new("", &machine), size: 0 }
    }

    /// Reads a line; the size, if it is the first of its size.
    fn read(&mut self, line: &str) -> Option<i64> {
        if let Some(version) = line.strip_prefix("mpi: ") {
            self.table.mpi = version.split_whitespace().collect::<Vec<_>>().join(" ");
            return None;
        }
        let cell = read_cell(line).filter(|cell| self.table.lower(cell))?;
        let first = cell.size != self.size;
        self.size = cell.size;
        first.then_some(cell.size)
    }

    /// The table; none if nothing was measured.
    fn table(self) -> Option<Table> {
        (!self.table.mpi.is_empty() && self.size > 0).then_some(self.table)
    }
}

/// A line such as `pack regular 1/2 8 1024 1890 950`.
fn read_cell(line: &str) -> Option<Cell> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[of, arrangement, density, piece, size, alone, with] = words.as_slice() else { return None };
    let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
    let (alone, with) = (number(alone)?, number(with)?.max(1.0));
    let (piece, size) = (piece.parse().ok()?, size.parse().ok()?);
    let known = PIECES.contains(&piece) && SIZES.contains(&size);
    let of = Use::ALL.into_iter().find(|one| one.name() == of)?;
    let arrangement = Arrangement::ALL.into_iter().find(|one| one.name() == arrangement)?;
    let density = Density::ALL.into_iter().find(|one| one.name() == density)?;
    known.then_some(Cell { r#use: of, arrangement, density, piece, size, gain: (alone / with) as f32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_becomes_a_table() {
        let mut measured = Measured::new();
        for (line, size) in [
            ("mpi: MPICH Version:      4.0.2", None),
            ("pack regular 1/2 8 1024 1890 945", Some(1024)),
            ("message listed 1/8 64 1024 2048 1024", None),
            ("message listed 1/8 64 4096 100 1024", Some(4096)),
            ("pack regular 1/2 8 1024 1050 1000", Some(1024)),
            ("pack regular 1/2 8 1024 3000 1000", None),
            ("something else", None),
            ("pack regular 1/2 9 1024 1 1", None),
        ] {
            assert_eq!(measured.read(line), size, "{line}");
        }
        let table = measured.table().unwrap();
        assert_eq!(table.mpi, "MPICH Version: 4.0.2");
        let text = table.to_string();
        assert!(text.contains("pack      regular  1/2        8      -  1.05     -"), "{text}");
        assert!(Measured::new().table().is_none());
    }

    #[test]
    fn gains_between_gpus_are_told_with_the_least() {
        let mut measured = Measured::new();
        for line in ["mpi: M", "message regular 1/2 64 1024 2048 1024", "exchange records 1/8 2048 65536 90 100"] {
            measured.read(line);
        }
        let text = gains(&measured.table().unwrap());
        let said = "2 calls with elements on GPUs, 1 below 0.95; the least is 0.90: exchange, records, 1/8, pieces of 2048 bytes, 65536 bytes\n";
        assert!(text.ends_with(said) && text.contains("message   regular  1/2       64"), "{text}");
    }

    #[test]
    fn compilers_are_beside_their_launchers() {
        for (launcher, compiler) in [
            ("mpirun", "mpicc"),
            ("mpirun.openmpi", "mpicc.openmpi"),
            ("/opt/mpi/bin/mpiexec.hydra", "/opt/mpi/bin/mpicc.hydra"),
            ("srun", "mpicc"),
        ] {
            assert_eq!(compiler_of(OsStr::new(launcher)), Path::new(compiler), "{launcher}");
        }
    }

    #[test]
    fn the_program_measures_the_cells_of_a_table() {
        let number = |text: &str| PROGRAM.contains(text);
        assert!(number("SMALLEST = 256, SHORTEST_PIECE = 4, LONGEST_PIECE = 2048;"));
        assert_eq!(SIZES[0], 256);
        assert_eq!((PIECES[0], PIECES[PIECES.len() - 1]), (4, 2048));
        for name in Use::ALL.map(Use::name).into_iter().chain(Arrangement::ALL.map(Arrangement::name)) {
            assert!(number(&format!("\"{name}\"")), "{name}");
        }
    }
}
