//! The loops that a programmer writes for the built-in type: process (1, 1) of a 2 x 3 grid holds every second block of 32
//! rows and every third of 24 columns, both from the second on, of 500 x 430 doubles in columns.

const ROWS: usize = 500;
const COLUMNS: usize = 430;
const ELEMENT: usize = 8;

/// The stretches of whole columns that blocks of rows cut out, in packed order: first byte and length.
#[inline]
fn pieces() -> impl Iterator<Item = (usize, usize)> {
    let columns = (24..COLUMNS).step_by(3 * 24).flat_map(|block| block..(block + 24).min(COLUMNS));
    columns.flat_map(|column| {
        (32..ROWS).step_by(2 * 32).map(move |row| {
            let rows = 32.min(ROWS - row);
            ((column * ROWS + row) * ELEMENT, rows * ELEMENT)
        })
    })
}

/// Copies the pieces out of the matrix.
pub fn pack(memory: &[u8], mut packed: &mut [u8]) {
    for (at, bytes) in pieces() {
        let Some((piece, rest)) = packed.split_at_mut_checked(bytes) else { return };
        piece.copy_from_slice(&memory[at..at + bytes]);
        packed = rest;
    }
}

/// Copies the pieces into the matrix.
pub fn unpack(mut packed: &[u8], memory: &mut [u8]) {
    for (at, bytes) in pieces() {
        let Some((piece, rest)) = packed.split_at_checked(bytes) else { return };
        memory[at..at + bytes].copy_from_slice(piece);
        packed = rest;
    }
}
