//! What came of a launch.

/// Loads and stores of one buffer, by width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Of 1, 2, 4, 8 and 16 bytes.
    pub loads: [u64; 5],
    /// Of 1, 2, 4, 8 and 16 bytes.
    pub stores: [u64; 5],
    /// Bytes that were stored to before: work done twice, and a race unless one thread did both.
    pub stored_again: u64,
}

/// The accesses of a launch; counted in checked builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Of memory.
    pub memory: Accesses,
    /// Of the packed bytes.
    pub packed: Accesses,
    /// Of the lists.
    pub tables: Accesses,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the case.
    pub name: String,
    /// The accesses, or what was wrong first.
    pub result: Result<Traffic, String>,
}

impl Outcome {
    /// The accesses.
    ///
    /// # Panics
    ///
    /// When something was wrong.
    pub fn traffic(&self) -> Traffic {
        match &self.result {
            Ok(traffic) => *traffic,
            Err(fault) => panic!("{}: {fault}", self.name),
        }
    }
}
