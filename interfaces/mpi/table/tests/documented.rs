//! `docs/reference/mpi-tables.md` has the pages of the tables. `DTC_BLESS=1 cargo test -p dtc-mpi-table` writes it anew.

use dtc_mpi_table::{Table, page};
use std::path::Path;

const INTRODUCTION: &str = "\
# Which calls dtc does, by MPI

libdtc_mpi does a call where it was measured to be faster than the MPI, and leaves it to the MPI elsewhere. These pages are printed from the
tables that it reads (`interfaces/mpi/tables`). Each row is a kind of call and of datatype, each column the packed bytes of a call, and a cell has
the lengths of contiguous pieces, in bytes, with which dtc does it: `≤64` is 64 bytes and less, `32-128` from 32 to 128, `-` none. Between two
columns, or two lengths, both must have a gain of 5 %; calls above the last column are done as those in it, those below the first are left
to the MPI, and so are pieces above 2,048 bytes.

- `message`: `MPI_Send` and `MPI_Recv`. `exchange`: what has several messages under way, and collectives.
- `regular`: equal pieces at equal distances. `listed`: by a list of displacements. `records`: pieces of several lengths, or of
  elements of several kinds, as in an array of structures.
- Loops over fewer than 64 equal pieces, such as those of an element of a short vector, are `regular` in calls of one of them and `records` in calls
  of several.
- `share`: packed bytes over those that elements reach over; from a quarter on as 1/2, else as 1/8.

On another machine the figures differ. `dtc calibrate --mpi` measures an MPI, and `DTC_MPI_TABLE` has libdtc_mpi read the table that it
writes:

<!-- shown: usage -->
```sh
dtc calibrate -o table.txt --mpi mpirun -n 2
mpirun -n 4 env DTC_MPI_TABLE=$PWD/table.txt LD_PRELOAD=/opt/dtc/lib/libdtc_mpi.so ./program
```

Elements in memory of a GPU are always done by dtc, whatever these tables say: [the preload](preload.md#memory-of-a-gpu). What that gains between two
GPUs under a CUDA-aware MPI is printed, and written nowhere, by `dtc calibrate --gpus --mpi mpirun -n 2`.
";

#[test]
fn the_page_is_that_of_the_tables() {
    let mut text = INTRODUCTION.to_owned();
    for table in Table::all_shipped() {
        text.push_str(&format!("\n## {}\n\nMeasured on {}.\n\n{}", table.mpi, table.machine, page(&table)));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/mpi-tables.md");
    if std::env::var_os("DTC_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == found,
        "docs/reference/mpi-tables.md: expected the pages of the tables, found others; run with DTC_BLESS=1"
    );
}
