//! Where NVRTC is looked for.

use super::error::Version;
use std::path::{Path, PathBuf};

/// The names of NVRTC by the major number of CUDA, newest first. All of CUDA 11 has the name of 11.2.
const NAMES: [(u32, &str); 4] =
    [(14, "libnvrtc.so.14"), (13, "libnvrtc.so.13"), (12, "libnvrtc.so.12"), (11, "libnvrtc.so.11.2")];

/// Names and paths to try, best first: releases not newer than the driver before others, newer before older; each first
/// where the loader looks, then where the toolkit and Python packages put it.
pub(super) fn nvrtc(driver: Option<Version>) -> Vec<PathBuf> {
    let newer = |major: u32| driver.is_some_and(|driver| major > driver.major);
    let mut names = NAMES;
    // The sort is stable, so that releases stay in their order.
    names.sort_by_key(|(major, _)| newer(*major));
    let folders = folders();
    let mut found = Vec::new();
    for (_, name) in names {
        found.push(PathBuf::from(name));
        found.extend(folders.iter().map(|folder| folder.join(name)).filter(|path| path.is_file()));
    }
    found.push(PathBuf::from("libnvrtc.so"));
    found
}

fn folders() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut folders = Vec::new();
    for root in ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).chain([PathBuf::from("/usr/local/cuda")]) {
        folders.push(root.join("lib64"));
    }
    // Environments first: whoever entered one means its packages.
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable) {
        folders.push(root.join("lib"));
        python_packages(&root.join("lib"), &mut folders);
    }
    if let Some(home) = variable("HOME") {
        python_packages(&home.join(".local/lib"), &mut folders);
    }
    for library in ["/usr/local/lib", "/usr/lib"] {
        python_packages(Path::new(library), &mut folders);
    }
    folders
}

/// The folders of the packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12 of every Python whose library this is.
fn python_packages(library: &Path, folders: &mut Vec<PathBuf>) {
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
            folders.extend(["cu14", "cu13", "cuda_nvrtc"].map(|package| vendor.join(package).join("lib")));
        }
    }
}
