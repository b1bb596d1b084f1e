//! The commands that look after the compiled code on disk.

mod common;

use common::Run;
use dtc_runtime::store::{Config, Key, Store};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

fn cache(action: &str, site: &Path, directory: &Path) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
    Run::of(command.args(["cache", action]).env("DTC_CACHE_SITE", site).env("DTC_CACHE_DIR", directory))
}

#[test]
fn entries_are_listed_checked_and_removed() {
    let folder = tempdir().expect("a folder");
    let (site, own) = (folder.path().join("site"), folder.path().join("own"));
    let keys = [Key::of(&[b"a"]), Key::of(&[b"b"]), Key::of(&[b"c"])];
    assert!(Store::open(Config::none().directory(&site)).put(&keys[0], &[1; 100]));
    let store = Store::open(Config::none().directory(&own));
    assert!(store.put(&keys[1], &[2; 200]) && store.put(&keys[2], &[3; 300]));

    let text = cache("list", &site, &own).fine();
    for key in &keys {
        assert!(text.contains(&key.to_string()), "{text}");
    }
    assert!(
        text.contains("1 entry, 188 bytes, only read") && text.contains("2 entries, 676 bytes of at most"),
        "{text}"
    );
    assert_eq!(cache("verify", &site, &own).fine(), "3 entries sound\n");

    let damaged = own.join(format!("{}.kernel", keys[1]));
    fs::write(&damaged, "dtcstore, but nothing else").unwrap();
    fs::set_permissions(&damaged, fs::Permissions::from_mode(0o600)).unwrap();
    let run = cache("verify", &site, &own);
    run.fails(3, &["cache: expected", "1 that cannot"]);
    assert!(run.out.contains("2 entries sound") && run.out.contains(damaged.to_str().unwrap()), "{run:?}");

    assert!(cache("clear", &site, &own).fine().starts_with("removed 2 entries"));
    assert_eq!(cache("verify", &site, &own).fine(), "1 entry sound\n");
}

#[test]
fn directories_that_cannot_be_used_are_named() {
    let folder = tempdir().expect("a folder");
    let (site, own) = (folder.path().join("absent"), folder.path().join("file"));
    fs::write(&own, "").unwrap();
    let text = cache("list", &site, &own).fine();
    assert!(text.contains("absent: expected a directory, found none"), "{text}");
    assert!(text.contains("file: expected a directory, found something else"), "{text}");
    cache("verify", &site, &own).fails(3, &["2 that cannot"]);
    assert!(cache("clear", &site, &own).fine().starts_with("removed 0 entries, 0 bytes\nnot used: "));
}

#[test]
fn no_cache_is_no_failure() {
    for action in ["list", "verify", "clear"] {
        let text = cache(action, Path::new("/nonexistent"), Path::new("off")).fine();
        assert!(text.starts_with("no directories"), "{text}");
    }
}
