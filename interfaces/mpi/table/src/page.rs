//! What a table comes to, as a person reads it.

use crate::measured::{Arrangement, Density, PIECES, Pieces, Table, Use};
use crate::sizes::SIZES;
use crate::text::short;
use std::fmt::Write as _;

/// The lengths of pieces that dtc moves in a call of one size: ranges of bytes, or `-`.
fn served(table: &Table, of: Use, arrangement: Arrangement, density: Density, size: i64) -> String {
    let share = 1.0 / density.reach() as f64;
    let gains =
        |bytes: &i64| table.sizes(of, &Pieces { arrangement, bytes: *bytes, share, loop_bytes: i64::MAX }).hold(size);
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (at, _) in PIECES.iter().enumerate().filter(|(_, bytes)| gains(bytes)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => ranges.push((at, at)),
        }
    }
    let range = |&(first, last): &(usize, usize)| match (PIECES[first], PIECES[last]) {
        (_, last) if first == 0 => format!("≤{last}"),
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    if ranges.is_empty() { "-".to_owned() } else { ranges.iter().map(range).collect::<Vec<_>>().join(", ") }
}

/// The page of a table, in Markdown: for each call, arrangement, share of packed bytes and size, the bytes of the pieces that dtc moves.
///
/// ```
/// use dtc_mpi_table::{Table, page};
///
/// let page = page(&Table::new("an MPI", "a machine"));
/// assert!(page.contains("| pack | regular | 1/2 | - |"));
/// ```
pub fn page(table: &Table) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write!(page, "| call | pieces | share |");
    for size in SIZES {
        let _ = write!(page, " {} |", short(size));
    }
    let _ = write!(page, "\n| --- | --- | --- |{}\n", " --- |".repeat(SIZES.len()));
    for of in Use::ALL {
        for arrangement in Arrangement::ALL {
            for density in Density::ALL {
                let _ = write!(page, "| {} | {} | {} |", of.name(), arrangement.name(), density.name());
                for size in SIZES {
                    let _ = write!(page, " {} |", served(table, of, arrangement, density, size));
                }
                page.push('\n');
            }
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Cell;

    #[test]
    fn pieces_are_ranges() {
        let mut table = Table::new("an MPI", "a machine");
        let (arrangement, density, size) = (Arrangement::Listed, Density::Half, 1024);
        for piece in [4, 8, 32, 128, 256] {
            table.put(&Cell { r#use: Use::Unpack, arrangement, density, piece, size, gain: 2.0 });
        }
        let page = page(&table);
        assert!(page.contains("| unpack | listed | 1/2 | - | ≤8, 32, 128-256 | - |"), "{page}");
    }
}
