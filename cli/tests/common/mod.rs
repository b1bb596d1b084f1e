//! Running the command, and what it reads.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

use dtc_emulator::Emulator;
pub use dtc_emulator::{Run, is_full, write};
use std::path::Path;
use std::process::Command;

/// The emulated GPU.
pub fn emulator() -> &'static Emulator {
    Emulator::get(|| dtc_compiler::codegen::cuda::generic_source().expect("a text"))
}

/// Runs `dtc` in a folder.
pub fn dtc(folder: &Path, arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_dtc")).args(arguments).current_dir(folder))
}

/// A NumPy file of format 1.0.
pub fn npy(dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.bytes());
    bytes.extend(data);
    bytes
}

/// Bytes that do not repeat soon.
pub fn data(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
