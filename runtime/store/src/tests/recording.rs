//! Lines of recordings that were cut short, or mixed with others.

use crate::{RecordedUses, Recording, RecordingFile};

fn read(text: &[u8]) -> Recording {
    let mut recording = Recording::default();
    recording.add_lines(text);
    recording
}

#[test]
fn lines_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let uses = |packs, largest| RecordedUses { packs, packed_bytes: packs * 12, largest, ..RecordedUses::default() };
    for packs in [3, 4] {
        let file = RecordingFile::in_folder(folder.path()).unwrap();
        file.add_uses("0a", &uses(packs, 12 * packs));
        file.add_type("0a", "let t1 = int;\nstruct [1@0 t1, 1@8 t1]");
        file.add_type("0a", "struct [1@0 int, 1@8 int]");
    }
    let mut recording = Recording::default();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        recording.add_file(&entry.unwrap().path()).unwrap();
    }
    assert_eq!((recording.types.len(), recording.left_out), (1, 0));
    let expected = ["let t1 = int; struct [1@0 t1, 1@8 t1]", "struct [1@0 int, 1@8 int]"];
    assert_eq!(recording.types["0a"].notations, expected);
    assert_eq!(recording.types["0a"].uses, uses(7, 48));
}

/// Wherever a line is cut, the lines around it stay whole, and no number is read from it.
#[test]
fn a_line_that_was_cut_is_left_out() {
    let line = b"used 0a 10 120 20 240 12;";
    for cut in 1..line.len() {
        let mut text = b"\ntype 0a int;\n\n".to_vec();
        text.extend(&line[..cut]);
        text.extend(b"\nused 0a 1 2 3 4 5;\n");
        let recording = read(&text);
        assert_eq!(recording.left_out, 1, "{cut}");
        let uses = RecordedUses { packs: 1, packed_bytes: 2, unpacks: 3, unpacked_bytes: 4, largest: 5 };
        assert_eq!(recording.types["0a"].uses, uses);
    }
}

#[test]
fn other_lines_are_left_out() {
    let wrong = [
        "used 0a 1 2 3 4;",
        "used 0a 1 2 3 4 5 6;",
        "used 0a 1 2 3 4 -5;",
        "used 0a 1 2 3 4 18446744073709551616;",
        "used xy 1 2 3 4 5;",
        "used  1 2 3 4 5;",
        "type 0a ;",
        "type 0a;",
        "kind 0a int;",
        ";",
        "\u{e9}",
    ];
    for line in wrong {
        assert_eq!(read(line.as_bytes()), Recording { left_out: 1, ..Recording::default() }, "{line}");
    }
    assert_eq!(read(b"\xff;").left_out, 1);
    let most = format!("used 0a {0} {0} {0} {0} {0};\n", u64::MAX);
    assert_eq!(read(most.repeat(2).as_bytes()).types["0a"].uses.packs, u64::MAX);
}

#[test]
fn a_process_writes_64_mib_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let file = RecordingFile::in_folder(folder.path()).unwrap();
    let long = "x".repeat(20 << 20);
    (0..5).for_each(|_| file.add_type("0a", &long));
    assert_eq!(file.path().metadata().unwrap().len() >> 20, 60);
}
