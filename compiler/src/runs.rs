//! The runs of a datatype.

use crate::datatype::Datatype;
use crate::layout::Runs;
use crate::{canonicalise, lower};

impl Datatype {
    /// Offset and length in bytes of each contiguous piece of memory, in the order of the type map. Pieces that follow each other in
    /// the type map and in memory are one run.
    ///
    /// The type is brought into its canonical form once; then runs are found one by one, however many there are.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.1 (type map).
    ///
    /// ```
    /// use dtc_compiler::datatype::Datatype;
    /// let rows: Datatype = "vector 3 2 4 int".parse()?;
    /// let runs: Vec<(i64, u64)> = rows.runs().map(|run| (run.offset, run.bytes)).collect();
    /// assert_eq!(runs, [(0, 8), (16, 8), (32, 8)]);
    /// let many: Datatype = "hvector 4611686018427387904 1 0 byte".parse()?; // 2^62 times the same byte
    /// assert_eq!(many.runs().take(3).map(|run| run.bytes).sum::<u64>(), 3);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn runs(&self) -> Runs {
        canonicalise(&lower(self)).layout.into_runs()
    }
}
