//! Outcomes of launches.

/// Loads and stores of one buffer, by width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Number of loads of 1, 2, 4, 8 and 16 bytes.
    pub loads: [u64; 5],
    /// Number of stores of 1, 2, 4, 8 and 16 bytes.
    pub stores: [u64; 5],
    /// Bytes that were stored more than once: repeated work, and a race unless one thread did both.
    pub stored_again: u64,
}

/// The accesses of a launch; counted in checked builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Accesses to memory.
    pub memory: Accesses,
    /// Accesses to the packed bytes.
    pub packed: Accesses,
    /// Accesses to the lists.
    pub tables: Accesses,
}

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the case.
    pub name: String,
    /// The accesses, or the first fault.
    pub result: Result<Traffic, String>,
}

impl Outcome {
    /// The accesses.
    ///
    /// # Panics
    ///
    /// The case has a fault.
    pub fn traffic(&self) -> Traffic {
        match &self.result {
            Ok(traffic) => *traffic,
            Err(fault) => panic!("{}: {fault}", self.name),
        }
    }
}
