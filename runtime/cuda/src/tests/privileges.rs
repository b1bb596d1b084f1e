//! Libraries that the environment names are opened only if no other user could have chosen or changed them.

use crate::{CudaError, Driver, Nvrtc, search};
use dtc_emulator::Stub::{Absent, Built};
use dtc_emulator::{build_stub, in_child};
use dtc_store::{Config, RecordingFile};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

in_child! {
    fn a_library_that_others_may_change_is_refused(driver: Built(&[]), nvrtc: Built(&[])) {
        let path = |variable| PathBuf::from(std::env::var_os(variable).unwrap());
        let (driver, nvrtc) = (path("DTC_CUDA_DRIVER"), path("DTC_NVRTC"));
        set_mode(&driver, 0o666);
        let Some(CudaError::LibraryMissing { tried, .. }) = Driver::get().err() else { panic!("it was loaded") };
        let complaint = |path: &Path, mode: &str| {
            format!("{}: expected that no other user may write it, found mode {mode}", path.display())
        };
        assert_eq!(tried, [complaint(&driver, "666")]);
        // dtc opens it neither through a link, nor in a folder that others may write.
        let link = driver.with_file_name("link");
        std::os::unix::fs::symlink(&nvrtc, &link).unwrap();
        set_mode(nvrtc.parent().unwrap(), 0o777);
        // SAFETY: this process runs this test alone, in one thread.
        unsafe { std::env::set_var("DTC_NVRTC", &link) };
        let Some(CudaError::LibraryMissing { tried, .. }) = Nvrtc::get().err() else { panic!("it was loaded") };
        assert!(tried[0].ends_with(&complaint(nvrtc.parent().unwrap(), "777")), "{tried:?}");
    }

    fn a_toolkit_that_others_may_change_is_passed_over(driver: Absent, nvrtc: Built(&[])) {
        let toolkit = tempfile::tempdir().unwrap();
        let library = toolkit.path().join("lib64/libnvrtc.so.14");
        std::fs::create_dir(library.parent().unwrap()).unwrap();
        std::fs::copy(std::env::var_os("DTC_NVRTC").unwrap(), &library).unwrap();
        set_mode(library.parent().unwrap(), 0o777);
        // SAFETY: this process runs this test alone, in one thread.
        unsafe {
            std::env::remove_var("DTC_NVRTC");
            std::env::set_var("CUDA_HOME", toolkit.path());
        }
        assert!(search::nvrtc(None).iter().any(|candidate| candidate.path() == library));
        match Nvrtc::get() {
            Ok(nvrtc) => assert_ne!(nvrtc.path(), Some(&*library)),
            Err(CudaError::LibraryMissing { tried, .. }) => {
                assert!(tried.iter().any(|tried| tried.contains("found mode 777")), "{tried:?}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Set in the set-user-id program, to the folder that the variables lead to.
const PRIVILEGED: &str = "DTC_TEST_PRIVILEGED";

#[test]
fn a_program_with_more_rights_ignores_the_environment() {
    if let Some(folder) = std::env::var_os(PRIVILEGED) {
        return ignores_the_environment(Path::new(&folder));
    }
    const NAME: &str = "a_program_with_more_rights_ignores_the_environment";
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: {NAME}: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    if !honours_set_user_id(folder.path()) {
        println!("skipped: {NAME}: needs a file system that honours set-user-id");
        return;
    }
    let program = folder.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&program, 0o4755);
    let packages = folder.path().join(".local/lib/python3.13/site-packages/nvidia/cu13/lib");
    for made in [&packages, &folder.path().join("lib64")] {
        std::fs::create_dir_all(made).unwrap();
        std::fs::copy(build_stub(folder.path(), "nvrtc", Built(&[])), made.join("libnvrtc.so.14")).unwrap();
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(&program);
    // The program is started by nobody (65534) and has the rights of root.
    child.uid(65_534).gid(65_534).current_dir("/").env(PRIVILEGED, folder.path());
    child.args([&format!("{module}::{NAME}"), "--exact", "--nocapture", "--test-threads=1"]);
    child.env("DTC_CUDA_DRIVER", build_stub(folder.path(), "driver", Built(&[])));
    child.env("DTC_NVRTC", folder.path().join("libnvrtc.so"));
    for variable in ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "TMPDIR"] {
        child.env(variable, folder.path());
    }
    for variable in ["DTC_CACHE_DIR", "DTC_CACHE_SITE", "DTC_BUNDLES", "DTC_RECORD"] {
        child.env(variable, folder.path().join("store"));
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}{:?}", output.status);
}

/// Body of the set-user-id program.
fn ignores_the_environment(folder: &Path) {
    // SAFETY: `getuid` and `geteuid` have no preconditions and cannot fail.
    assert_ne!(unsafe { (libc::getuid(), libc::geteuid()) }, (0, 0));
    assert!(std::env::var_os("DTC_CUDA_DRIVER").is_some());
    let inside = |path: Option<&Path>| path.is_some_and(|path| path.starts_with(folder));
    match Driver::get() {
        Ok(driver) => assert!(!inside(driver.path())),
        Err(error) => assert!(!error.to_string().contains(folder.to_str().unwrap()), "{error}"),
    }
    assert!(search::nvrtc(None).iter().all(|candidate| !inside(Some(candidate.path()))));
    match Nvrtc::get() {
        Ok(nvrtc) => assert!(!inside(nvrtc.path())),
        Err(error) => assert!(!error.to_string().contains(folder.to_str().unwrap()), "{error}"),
    }
    let config = format!("{:?}", Config::from_environment());
    assert!(!config.contains(folder.to_str().unwrap()), "{config}");
    assert!(RecordingFile::from_environment().is_none());
}

fn honours_set_user_id(folder: &Path) -> bool {
    let folder = CString::new(folder.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in a NUL byte, and `answer` is a live structure of integers, for which zero is valid.
    unsafe {
        let mut answer: libc::statvfs = std::mem::zeroed();
        libc::statvfs(folder.as_ptr(), &mut answer) == 0
            && answer.f_flag & libc::ST_NOSUID == 0
            && libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0
    }
}
