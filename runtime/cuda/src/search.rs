//! Names and folders where NVRTC is searched.

use super::error::Version;
use super::library::Candidate;
use dtc_host::environment;
use std::path::{Path, PathBuf};

/// Names of NVRTC by the major number of CUDA, newest first. All of CUDA 11 uses the name of 11.2.
const NAMES: [(u32, &str); 4] =
    [(14, "libnvrtc.so.14"), (13, "libnvrtc.so.13"), (12, "libnvrtc.so.12"), (11, "libnvrtc.so.11.2")];

/// Candidates for NVRTC, best first: releases not newer than the driver before others, then newer before older. For
/// each release, the loader's search comes first, then the folders of the toolkit and of Python packages.
pub(super) fn nvrtc(driver: Option<Version>) -> Vec<Candidate> {
    let newer = |major: u32| driver.is_some_and(|driver| major > driver.major);
    let mut names = NAMES;
    // The sort is stable, so releases keep their order.
    names.sort_by_key(|(major, _)| newer(*major));
    let folders = folders();
    let mut found = Vec::new();
    for (_, name) in names {
        found.push(Candidate::System(PathBuf::from(name)));
        let inside = folders.iter().map(|(folder, candidate)| candidate(folder.join(name)));
        found.extend(inside.filter(|candidate| candidate.path().is_file()));
    }
    found.push(Candidate::System(PathBuf::from("libnvrtc.so")));
    found
}

/// A folder, and the kind of candidate that a path inside is.
type Place = (PathBuf, fn(PathBuf) -> Candidate);

fn folders() -> Vec<Place> {
    let mut folders: Vec<Place> = Vec::new();
    for root in [c"CUDA_HOME", c"CUDA_PATH"].into_iter().filter_map(environment::path) {
        folders.push((root.join("lib64"), Candidate::Environment));
    }
    folders.push((PathBuf::from("/usr/local/cuda/lib64"), Candidate::System));
    // Active environments come first, because the user entered them for their packages.
    for root in [c"VIRTUAL_ENV", c"CONDA_PREFIX"].into_iter().filter_map(environment::path) {
        folders.push((root.join("lib"), Candidate::Environment));
        python_packages(&root.join("lib"), Candidate::Environment, &mut folders);
    }
    if let Some(home) = environment::path(c"HOME") {
        python_packages(&home.join(".local/lib"), Candidate::Environment, &mut folders);
    }
    for library in ["/usr/local/lib", "/usr/lib"] {
        python_packages(Path::new(library), Candidate::System, &mut folders);
    }
    folders
}

/// Adds the folders of the packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12 of every Python in `library`.
fn python_packages(library: &Path, candidate: fn(PathBuf) -> Candidate, folders: &mut Vec<Place>) {
    let Ok(entries) = std::fs::read_dir(library) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with("python3") {
            continue;
        }
        for packages in ["site-packages", "dist-packages"] {
            let vendor = entry.path().join(packages).join("nvidia");
            if !vendor.is_dir() {
                continue;
            }
            folders.extend(["cu14", "cu13", "cuda_nvrtc"].map(|package| (vendor.join(package).join("lib"), candidate)));
        }
    }
}
