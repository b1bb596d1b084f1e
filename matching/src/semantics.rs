//! What a program promises about its messages and receives, so that they can be matched with less work.

use std::fmt;

/// Which wildcards receives may have (MPI 4.1, section 3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wildcards {
    /// `MPI_ANY_SOURCE` and `MPI_ANY_TAG`.
    SourceAndTag,
    /// `MPI_ANY_TAG` alone. Queues are partitioned by source.
    Tag,
    /// None.
    None,
}

/// The guarantees that a program needs. Those of MPI are all of them; each method gives one up, as in section VI of Klenk et al.
/// 2017. A kernel is generated for exactly these.
///
/// ```
/// use dtc_matching::{Semantics, Wildcards};
/// let semantics = Semantics::MPI.without_source_wildcard().without_unexpected();
/// assert_eq!(semantics.wildcards(), Wildcards::Tag);
/// assert!(semantics.ordering() && !semantics.unexpected());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Semantics {
    wildcards: Wildcards,
    unexpected: bool,
    ordering: bool,
}

impl Semantics {
    /// Everything that MPI guarantees.
    pub const MPI: Semantics = Semantics { wildcards: Wildcards::SourceAndTag, unexpected: true, ordering: true };

    /// No receive has `MPI_ANY_SOURCE`.
    ///
    /// ```
    /// use dtc_matching::{Semantics, Wildcards};
    /// assert_eq!(Semantics::MPI.without_source_wildcard().wildcards(), Wildcards::Tag);
    /// ```
    pub const fn without_source_wildcard(self) -> Semantics {
        let wildcards = match self.wildcards {
            Wildcards::SourceAndTag => Wildcards::Tag,
            fewer => fewer,
        };
        Semantics { wildcards, ..self }
    }

    /// No receive has a wildcard.
    ///
    /// ```
    /// use dtc_matching::{Semantics, Wildcards};
    /// assert_eq!(Semantics::MPI.without_wildcards().wildcards(), Wildcards::None);
    /// ```
    pub const fn without_wildcards(self) -> Semantics {
        Semantics { wildcards: Wildcards::None, ..self }
    }

    /// Messages of one source and tag may be taken in any order. Without ordering there are no wildcards either.
    ///
    /// ```
    /// use dtc_matching::{Semantics, Wildcards};
    /// assert_eq!(Semantics::MPI.without_ordering().wildcards(), Wildcards::None);
    /// ```
    pub const fn without_ordering(self) -> Semantics {
        Semantics { wildcards: Wildcards::None, ordering: false, ..self }
    }

    /// Every message finds its receive in the call that first sees it.
    ///
    /// ```
    /// assert!(!dtc_matching::Semantics::MPI.without_unexpected().unexpected());
    /// ```
    pub const fn without_unexpected(self) -> Semantics {
        Semantics { unexpected: false, ..self }
    }

    /// Which wildcards there are.
    ///
    /// ```
    /// use dtc_matching::{Semantics, Wildcards};
    /// assert_eq!(Semantics::MPI.wildcards(), Wildcards::SourceAndTag);
    /// ```
    pub const fn wildcards(self) -> Wildcards {
        self.wildcards
    }

    /// Whether messages may wait for their receives.
    ///
    /// ```
    /// assert!(dtc_matching::Semantics::MPI.unexpected());
    /// ```
    pub const fn unexpected(self) -> bool {
        self.unexpected
    }

    /// Whether messages that fit the same receives are taken in the order in which they came.
    ///
    /// ```
    /// assert!(dtc_matching::Semantics::MPI.ordering());
    /// ```
    pub const fn ordering(self) -> bool {
        self.ordering
    }

    /// Every value.
    ///
    /// ```
    /// use dtc_matching::Semantics;
    /// assert_eq!(Semantics::all().next(), Some(Semantics::MPI));
    /// ```
    pub fn all() -> impl Iterator<Item = Semantics> {
        let mpi = Semantics::MPI;
        let kinds = [mpi, mpi.without_source_wildcard(), mpi.without_wildcards(), mpi.without_ordering()];
        kinds.into_iter().flat_map(|one| [one, one.without_unexpected()])
    }
}

impl fmt::Display for Semantics {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self.wildcards {
            Wildcards::SourceAndTag => "any source and tag",
            Wildcards::Tag => "any tag",
            Wildcards::None => "no wildcards",
        })?;
        out.write_str(if self.unexpected { ", unexpected messages" } else { ", none unexpected" })?;
        out.write_str(if self.ordering { ", ordered" } else { ", unordered" })
    }
}
