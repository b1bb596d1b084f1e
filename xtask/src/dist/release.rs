//! What the parts of a release have in common: where it is made, and its date.

use crate::steps::{Outcome, root};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A release that is being made.
pub(super) struct Release {
    /// Where its files go.
    pub(super) folder: PathBuf,
    /// Where installations are staged.
    pub(super) stage: PathBuf,
    /// The date of all that is in it, in seconds since 1970.
    pub(super) epoch: String,
}

impl Release {
    /// A command that dates what it writes as the release is.
    pub(super) fn dated(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.env("SOURCE_DATE_EPOCH", &self.epoch).current_dir(root());
        command
    }

    /// A folder below that of stages, empty.
    pub(super) fn empty(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.stage.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }
}
