//! Which file of C or CUDA includes which.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// How the names of files end that include others.
const EXTENSIONS: [&str; 7] = ["c", "cpp", "cu", "cuh", "def", "h", "hpp"];

/// The includes of files below a folder, by the names on the way from there: the first file includes the second. Names in angle brackets
/// are of other projects, and so are those that no file here has.
pub fn includes(folder: &Path) -> Vec<[Vec<String>; 2]> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    let names = |file: &Path| -> Vec<String> {
        let below = file.strip_prefix(folder).expect("a file of the folder");
        below.iter().map(|name| name.to_string_lossy().into_owned()).collect()
    };
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for included in text.lines().filter_map(included) {
            if let Some(to) = resolve(file, included, &files) {
                found.push([names(file), names(&to)]);
            }
        }
    }
    found
}

/// The files that may include others, but not those of builds, and of tools, whose folders begin with a dot.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_kept = path.extension().and_then(OsStr::to_str).is_some_and(|extension| EXTENSIONS.contains(&extension));
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            collect(&path, files);
        } else if path.is_file() && is_kept {
            files.push(path);
        }
    }
}

/// What a line includes, in quotation marks.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
    rest.trim_start().strip_prefix('"')?.split('"').next()
}

/// The file that another one includes by a name: beside it, or the only one whose path ends so, as the options of the compiler say.
fn resolve(from: &Path, name: &str, files: &[PathBuf]) -> Option<PathBuf> {
    let beside = normal(&from.parent()?.join(name));
    if files.contains(&beside) {
        return Some(beside);
    }
    let mut ending = files.iter().filter(|file| file.ends_with(name));
    ending.next().filter(|_| ending.next().is_none()).cloned()
}

/// A path without `..`.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    normal
}
