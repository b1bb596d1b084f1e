//! Why a command ends early, and with which status.

use crate::paths::shown;
use dtc_runtime::TransferError;
use dtc_runtime::cuda::CudaError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use thiserror::Error;

/// A failed command. Messages read `PLACE: expected X, found Y`.
#[derive(Debug, Error)]
pub enum Failure {
    /// A bad description or bad arguments: status 2.
    #[error("{0}")]
    Description(String),
    /// Bad data: a buffer too small, a wrong file, bytes that differ. Status 3.
    #[error("{0}")]
    Data(String),
    /// A tool or library that is not there: status 4. The message says how to get it.
    #[error("{0}")]
    Missing(String),
    /// Standard output cannot be written: status 3, or none if the reader has left.
    #[error("standard output: expected it to take the report, found {}", reason(.0))]
    Output(#[from] io::Error),
}

impl From<CudaError> for Failure {
    fn from(error: CudaError) -> Failure {
        match &error {
            CudaError::Architecture { .. } => Failure::Missing(error.to_string()),
            _ if error.is_absence() => Failure::Missing(error.to_string()),
            _ => Failure::Data(error.to_string()),
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        match error {
            TransferError::Cuda(error) => error.into(),
            error => Failure::Data(error.to_string()),
        }
    }
}

fn sentence(place: impl Display, expected: impl Display, found: impl Display) -> String {
    format!("{place}: expected {expected}, found {found}")
}

impl Failure {
    /// A bad description or bad arguments.
    pub fn description(place: impl Display, expected: impl Display, found: impl Display) -> Failure {
        Failure::Description(sentence(place, expected, found))
    }

    /// Bad data.
    pub fn data(place: impl Display, expected: impl Display, found: impl Display) -> Failure {
        Failure::Data(sentence(place, expected, found))
    }

    /// A missing tool or library; `remedy` says how to get it.
    pub fn missing(place: impl Display, expected: impl Display, found: impl Display, remedy: impl Display) -> Failure {
        Failure::Missing(format!("{}; {remedy}", sentence(place, expected, found)))
    }

    /// A data file that the system does not let us use.
    pub fn file(path: &Path, expected: impl Display, error: &io::Error) -> Failure {
        Failure::data(shown(path), expected, reason(error))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Description(_) => 2,
            Failure::Data(_) => 3,
            Failure::Missing(_) => 4,
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Failure::Output(_) => 3,
        }
    }

    /// Whether there is something to tell: a reader that closes the pipe early has had enough.
    pub fn is_silent(&self) -> bool {
        self.status() == 0
    }
}

/// Bytes of a message that are shown.
const LONGEST_MESSAGE: usize = 3000;

/// A message as it is told: without control characters, which would reach the terminal, and without the end of a long one.
pub fn told(message: &str) -> String {
    let end = message.floor_char_boundary(LONGEST_MESSAGE);
    let mut text = String::new();
    for character in message[..end].chars() {
        if character.is_control() && character != '\n' {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    if end < message.len() {
        text.push_str(&format!("... ({} more bytes)", message.len() - end));
    }
    text
}

/// What the system says, without its error number, as a thing that was found.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::IsADirectory => return "a directory".to_owned(),
        io::ErrorKind::NotADirectory => return "a path through something that is no directory".to_owned(),
        _ => {}
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}
