//! Which calls dtc does faster than the MPI. Measured with `bench/messages.c`: `bench/results/2026-11-23-mpi.md`. Long pieces are fast
//! everywhere: a message that goes through staging memory is moved twice.

use crate::abi::Abi;
use crate::{find, settings};
use once_cell::race::OnceBox;

/// Most bytes of a message: it takes as many bytes of memory more.
pub const LARGEST_MESSAGE: i64 = 256 << 20;

/// Bytes and pieces, as far as the choice between dtc and the MPI goes. Pieces are contiguous bytes, on average.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most bytes of a piece of an `MPI_Pack` or `MPI_Unpack`, and fewest bytes of the call.
    pub packed_piece: i64,
    /// See there.
    pub packed_bytes: i64,
    /// The same of a message in bytes. Up to 8 KiB, MPICH 4.0 packs into the memory that it sends.
    pub piece: i64,
    /// See there.
    pub bytes: i64,
    /// The same where pieces are irregular, and where they are sparse ([`pieces`](crate::plan)): then fewest bytes of a piece, too.
    pub irregular_piece: i64,
    /// See there.
    pub irregular_bytes: i64,
    /// See there.
    pub shortest_sparse_piece: i64,
    /// See there.
    pub sparse_piece: i64,
    /// One of this many bytes of a collective, at least, is one that dtc moves faster.
    pub share: i64,
    /// Whether contiguous datatypes are left to the MPI, and others decoded only when their uses pay for it ([`rent`](crate::rent)).
    pub leaves_whole: bool,
    /// Picoseconds that the MPI loses for each byte of a use that dtc would do, at least.
    pub lost: i64,
    /// The longest of the pieces above.
    pub longest_piece: i64,
    /// The fewest bytes of a message.
    pub least: i64,
}

static LIMITS: OnceBox<Limits> = OnceBox::new();

/// The limits of the MPI of the process.
pub fn limits() -> &'static Limits {
    LIMITS.get_or_init(|| Box::new(Limits::of_mpich()))
}

/// Open MPI's major version, if it says one.
fn version_of_open_mpi() -> Option<u32> {
    let version = find::library_version();
    let (_, number) = version.split_once("Open MPI v")?;
    number.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

impl Limits {
    fn of_mpich() -> Limits {
        Limits {
            packed_piece: 1024,
            packed_bytes: 4096,
            piece: 128,
            bytes: 8192,
            irregular_piece: 128,
            irregular_bytes: 8192,
            shortest_sparse_piece: 0,
            sparse_piece: 128,
            share: 2,
            leaves_whole: true,
            lost: 500,
            longest_piece: 0,
            least: 0,
        }
    }

    /// Open MPI 5 packs vectors straight into the memory that it sends, as fast as dtc, from pieces of 8 bytes on. Irregular pieces take it 2 to
    /// 6 times as long, sparse ones of 44 to 92 bytes 1.1 to 1.5 times (`bench/results/2026-11-23-mpi-ddtbench.md`).
    fn of_open_mpi() -> Limits {
        let limits = Limits {
            packed_piece: 64,
            packed_bytes: 8192,
            piece: 16,
            irregular_piece: 32,
            irregular_bytes: 1024,
            sparse_piece: 96,
            lost: 200,
            ..Limits::of_mpich()
        };
        match version_of_open_mpi() {
            Some(5..) => Limits { piece: 4, shortest_sparse_piece: 44, ..limits },
            _ => limits,
        }
    }

    /// Those of `DTC_MPI=all`. A datatype with a gap, as a receive may need one, has two bytes.
    fn of_all(self) -> Limits {
        Limits {
            packed_piece: LARGEST_MESSAGE,
            packed_bytes: 1,
            piece: LARGEST_MESSAGE,
            bytes: 2,
            irregular_piece: LARGEST_MESSAGE,
            irregular_bytes: 2,
            shortest_sparse_piece: 0,
            sparse_piece: LARGEST_MESSAGE,
            share: LARGEST_MESSAGE,
            leaves_whole: false,
            ..self
        }
    }
}

/// Finds the limits, when the MPI was found.
pub fn find<A: Abi>() {
    let of_mpi = if A::IS_OPEN_MPI { Limits::of_open_mpi() } else { Limits::of_mpich() };
    let limits = if settings::is_set("DTC_MPI", "all") { of_mpi.of_all() } else { of_mpi };
    let pieces = [limits.packed_piece, limits.piece, limits.irregular_piece, limits.sparse_piece];
    let least = limits.bytes.min(limits.irregular_bytes);
    let limits = Limits { longest_piece: pieces.into_iter().max().unwrap_or(0), least, ..limits };
    let _ = LIMITS.set(Box::new(limits));
}
