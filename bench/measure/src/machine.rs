//! The machine that measures: its programs and its processor.

use std::path::PathBuf;

/// Where a command is on the search path.
pub fn find(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|file| file.is_file())
}

/// What the system calls its processor.
pub fn processor() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let find = |field: &str| {
        let mut values = information.lines().filter_map(|line| line.split_once(':'));
        values.find(|(name, _)| name.trim() == field).map(|(_, value)| value.trim())
    };
    let name = find("model name").unwrap_or(std::env::consts::ARCH);
    // Names are often those of a product line: family and model say which microarchitecture it is.
    match (find("cpu family"), find("model")) {
        (Some(family), Some(model)) => format!("{name}, family {family} model {model}"),
        _ => name.to_owned(),
    }
}
