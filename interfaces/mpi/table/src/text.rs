//! Tables as text: two lines that begin with a name, and a line for each kind of pieces.
//!
//! ```text
//! # Time of a call of the MPI alone over its time with dtc: above 1, dtc is faster. Made by dtc calibrate --mpi.
//! mpi: MPICH Version: 4.0.2
//! machine: AMD EPYC, 2 processors
//! # call    pieces   share  bytes    256   1Ki   4Ki  16Ki  64Ki 256Ki   1Mi   4Mi  16Mi
//! pack      regular  1/2        8   1.10  1.90  2.40  2.60  2.60  2.40  2.30  2.20     -
//! ```
//!
//! A line whose first character is `#` says nothing to a program, nor does an empty one. A kind of pieces may have no line, and a `-`
//! stands for a size that was not measured: such calls are left to the MPI.

use crate::measured::{Arrangement, Cell, Density, PIECES, Table, Use};
use crate::sizes::SIZES;
use std::fmt;
use std::str::FromStr;

/// What is wrong with a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableError {
    /// The line, from 1 on; 0 if it is the table as a whole.
    line: usize,
    expected: String,
    found: String,
}

impl TableError {
    pub(crate) fn new(line: usize, expected: impl Into<String>, found: impl Into<String>) -> TableError {
        TableError { line, expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableError { line, expected, found } = self;
        match line {
            0 => write!(to, "expected {expected}, found {found}"),
            line => write!(to, "line {line}: expected {expected}, found {found}"),
        }
    }
}

impl std::error::Error for TableError {}

/// Most bytes of a table that is read: a full one has 20,000.
pub const LONGEST: usize = 1 << 20;

/// Bytes in the unit that a person reads.
pub(crate) fn short(bytes: i64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{}Mi", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{}Ki", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            to,
            "# Time of a call of the MPI alone over its time with dtc: above 1, dtc is faster. Made by dtc calibrate --mpi."
        )?;
        writeln!(to, "mpi: {}\nmachine: {}", self.mpi, self.machine)?;
        write!(to, "# call    pieces   share  bytes ")?;
        for size in SIZES {
            write!(to, " {:>5}", short(size))?;
        }
        writeln!(to)?;
        for of in Use::ALL {
            for arrangement in Arrangement::ALL {
                for density in Density::ALL {
                    for (at, piece) in PIECES.iter().enumerate() {
                        let row = self.row(of, arrangement, density, at);
                        if row.iter().all(|gain| *gain < 0.0) {
                            continue;
                        }
                        let (of, arrangement, density) = (of.name(), arrangement.name(), density.name());
                        write!(to, "{of:<9} {arrangement:<8} {density:<5} {piece:>6} ")?;
                        for gain in row {
                            if *gain < 0.0 { write!(to, "     -")? } else { write!(to, " {gain:>5.2}")? }
                        }
                        writeln!(to)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A word that names one of several things.
fn named<T: Copy, const N: usize>(
    line: usize,
    word: Option<&str>,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, TableError> {
    let found = word.and_then(|word| all.into_iter().find(|one| name(*one) == word));
    found.ok_or_else(|| TableError::new(line, all.map(name).join(", "), quoted(word)))
}

fn quoted(word: Option<&str>) -> String {
    const MOST: usize = 40;
    word.map_or("the end of the line".to_owned(), |word| format!("\"{}\"", word.chars().take(MOST).collect::<String>()))
}

/// Reads a line of gains.
fn read_row(table: &mut Table, line: usize, text: &str) -> Result<(), TableError> {
    let mut words = text.split_ascii_whitespace();
    let of = named(line, words.next(), Use::ALL, Use::name)?;
    let arrangement = named(line, words.next(), Arrangement::ALL, Arrangement::name)?;
    let density = named(line, words.next(), Density::ALL, Density::name)?;
    let word = words.next();
    let piece = word.and_then(|word| word.parse().ok()).filter(|bytes| PIECES.contains(bytes));
    let piece = piece.ok_or_else(|| {
        let all = PIECES.map(|bytes| bytes.to_string()).join(", ");
        TableError::new(line, format!("bytes of a piece ({all})"), quoted(word))
    })?;
    for size in SIZES {
        let word = words.next();
        if word == Some("-") {
            continue;
        }
        let gain = word.and_then(|word| word.parse::<f32>().ok()).filter(|gain| gain.is_finite() && *gain >= 0.0);
        let gain = gain.ok_or_else(|| TableError::new(line, "a gain for each size, or -", quoted(word)))?;
        table.put(&Cell { r#use: of, arrangement, density, piece, size, gain });
    }
    match words.next() {
        None => Ok(()),
        word => Err(TableError::new(line, "the end of the line", quoted(word))),
    }
}

impl FromStr for Table {
    type Err = TableError;

    fn from_str(text: &str) -> Result<Table, TableError> {
        if text.len() > LONGEST {
            return Err(TableError::new(0, format!("at most {LONGEST} bytes"), text.len().to_string()));
        }
        let mut table = Table::new("", "");
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("mpi", value)) => value.clone_into(&mut table.mpi),
                Some(("machine", value)) => value.clone_into(&mut table.machine),
                _ => read_row(&mut table, at + 1, line)?,
            }
        }
        if table.mpi.is_empty() {
            return Err(TableError::new(0, "a line \"mpi: NAME\"", "none"));
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_they_are_printed() {
        let mut table = Table::new("MPICH Version: 4.0.2", "a machine: with a colon");
        let (of, arrangement, density) = (Use::Exchange, Arrangement::Records, Density::Eighth);
        table.put(&Cell { r#use: of, arrangement, density, piece: 2048, size: 1 << 24, gain: 1.25 });
        table.put(&Cell { r#use: of, arrangement, density, piece: 2048, size: 256, gain: 0.5 });
        let text = table.to_string();
        let read: Table = text.parse().unwrap();
        assert_eq!(read.to_string(), text);
        assert_eq!(read.machine, "a machine: with a colon");
        assert_eq!(read.row(of, arrangement, density, 9)[8], 1.25);
    }

    #[test]
    fn wrong_tables_are_refused_by_their_line() {
        let refused = |text: &str| text.parse::<Table>().map(|table| table.mpi).unwrap_err().to_string();
        assert_eq!(refused(""), "expected a line \"mpi: NAME\", found none");
        let row = |row: &str| refused(&format!("mpi: M\n\n# c\n{row}\n"));
        assert_eq!(row("send"), "line 4: expected pack, unpack, message, exchange, found \"send\"");
        assert_eq!(row("pack"), "line 4: expected regular, listed, records, found the end of the line");
        assert_eq!(
            row("pack listed 1/2 9"),
            "line 4: expected bytes of a piece (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), found \"9\""
        );
        assert_eq!(row("pack listed 1/2 8 1 2 x"), "line 4: expected a gain for each size, or -, found \"x\"");
        assert_eq!(row("pack listed 1/2 8 1 2 -1"), "line 4: expected a gain for each size, or -, found \"-1\"");
        assert_eq!(row("pack listed 1/2 8 1 1 1 1 1 1 1 1 1 1"), "line 4: expected the end of the line, found \"1\"");
        assert!(refused(&"x".repeat(LONGEST + 1)).contains("at most"));
    }
}
