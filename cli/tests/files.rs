//! Packing and unpacking files.

mod common;
#[path = "files/mistakes.rs"]
mod mistakes;
#[cfg(unix)]
#[path = "files/streams.rs"]
mod streams;

use common::{data, dtc, npy, write};
use std::fs::read;
use std::path::Path;
use tempfile::tempdir;

/// A box inside a 6 x 8 array of doubles in C order.
const BOX: &str = "subarray c [3@2 of 6, 4@1 of 8] double";

/// The places of the box's bytes, in packed order.
fn places() -> impl Iterator<Item = usize> {
    (2..5).flat_map(|row| (row * 8 + 1) * 8..(row * 8 + 5) * 8)
}

#[test]
fn raw_files_make_the_round_trip() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    let memory = data(6 * 8 * 8);
    write(folder, "memory", &memory);
    let right: Vec<u8> = places().map(|place| memory[place]).collect();
    for backend in ["generic", "cranelift", "auto"] {
        let arguments = ["pack", "box.dtc", "--in", "memory", "--out", "packed", "--backend", backend];
        assert!(dtc(folder, &arguments).fine().contains("96 bytes"));
        assert_eq!(read(folder.join("packed")).unwrap(), right);
        let poison = vec![0xee; memory.len()];
        write(folder, "other", &poison);
        let arguments = ["unpack", "box.dtc", "--in", "packed", "--out", "other", "--backend", backend];
        dtc(folder, &arguments).fine();
        let mut expected = poison;
        places().for_each(|place| expected[place] = memory[place]);
        assert_eq!(read(folder.join("other")).unwrap(), expected);
    }
    // Nothing is left beside the results.
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 4);
}

#[test]
fn arrays_make_the_round_trip() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    let memory = data(6 * 8 * 8);
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 8), }\n";
    let start = npy(header, &[]).len();
    write(folder, "a.npy", npy(header, &memory));
    write(folder, "poisoned.npy", npy(header, &[0xee; 384]));
    dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b.bin"]).fine();
    let right: Vec<u8> = places().map(|place| memory[place]).collect();
    assert_eq!(read(folder.join("b.bin")).unwrap(), right);
    dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b.npy"]).fine();
    let packed = read(folder.join("b.npy")).unwrap();
    assert_eq!((&packed[..8], &packed[packed.len() - 96..]), (b"\x93NUMPY\x01\x00" as &[u8], &right[..]));
    let text = String::from_utf8_lossy(&packed);
    assert!(text.contains("'shape': (12,)") && text.contains("f8'"), "{text}");
    // What cuts elements is bytes.
    dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b.npy", "--raw"]).fine();
    assert!(String::from_utf8_lossy(&read(folder.join("b.npy")).unwrap()).contains("'descr': '|u1'"));
    dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b.npy", "--offset", "4"]).fine();
    assert!(String::from_utf8_lossy(&read(folder.join("b.npy")).unwrap()).contains("'shape': (92,)"));
    write(folder, "b.npy", &packed);
    let mut expected = npy(header, &[0xee; 384]);
    places().for_each(|place| expected[start + place] = memory[place]);
    for packed in ["b.bin", "b.npy"] {
        write(folder, "poisoned.npy", npy(header, &[0xee; 384]));
        dtc(folder, &["unpack", "box.dtc", "--in", packed, "--out", "poisoned.npy"]).fine();
        assert_eq!(read(folder.join("poisoned.npy")).unwrap(), expected);
    }
}

#[test]
fn pieces_are_the_whole() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(
        folder,
        "t.json",
        r#"{"type": {"kind": "vector", "count": 50, "blocklength": 3, "stride": 5,
        "child": {"kind": "named", "name": "MPI_SHORT"}}, "count": 7}"#,
    );
    let memory = data(7 * (49 * 10 + 6));
    write(folder, "memory", &memory);
    dtc(folder, &["pack", "t.json", "--in", "memory", "--out", "whole", "--threads", "3"]).fine();
    let whole = read(folder.join("whole")).unwrap();
    assert_eq!(whole.len(), 7 * 300);
    write(folder, "other", vec![0xee; memory.len()]);
    let mut pieces = Vec::new();
    for (offset, most) in [(0, "700"), (700, "1"), (701, "1300"), (2001, "9999")] {
        let offset = offset.to_string();
        let place = ["--offset", &offset, "--max", most];
        dtc(folder, &[&["pack", "t.json", "--in", "memory", "--out", "piece"], &place[..]].concat()).fine();
        pieces.extend(read(folder.join("piece")).unwrap());
        dtc(folder, &["unpack", "t.json", "--in", "piece", "--out", "other", "--offset", &offset, "--threads", "2"]);
        if offset == "0" {
            // Without --offset a file that is too short is most likely the wrong one, so --max has to say it is not.
            dtc(folder, &["unpack", "t.json", "--in", "piece", "--out", "other"]).fails(3, &["piece"]);
            dtc(folder, &["unpack", "t.json", "--in", "piece", "--out", "other", "--max", "700"]).fine();
        }
    }
    assert_eq!(pieces, whole);
    dtc(folder, &["pack", "t.json", "--in", "other", "--out", "again"]).fine();
    assert_eq!(read(folder.join("again")).unwrap(), whole);
    write(folder, "threads", vec![0xee; memory.len()]);
    dtc(folder, &["unpack", "t.json", "--in", "whole", "--out", "threads", "--threads", "2"]).fine();
    assert_eq!(read(folder.join("threads")).unwrap(), read(folder.join("other")).unwrap());
}

#[test]
fn an_origin_makes_room_below() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "back.dtc", "vector 4 1 -3 int");
    let memory = data(40);
    write(folder, "memory", &memory);
    dtc(folder, &["pack", "back.dtc", "--in", "memory", "--out", "packed"]).fails(3, &["memory", "origin"]);
    dtc(folder, &["pack", "back.dtc", "--in", "memory", "--out", "packed", "--origin", "36"]).fine();
    let right: Vec<u8> = [36, 24, 12, 0].into_iter().flat_map(|at| memory[at..at + 4].to_vec()).collect();
    assert_eq!(read(folder.join("packed")).unwrap(), right);
    dtc(folder, &["pack", "back.dtc", "--in", "memory", "--out", "packed", "--origin", "41"]).fails(3, &["origin"]);
}

#[test]
fn bad_data_changes_nothing() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    let small = data(200);
    write(folder, "small", &small);
    write(folder, "packed", data(96));
    write(folder, "kept", "precious");
    let kept = |folder: &Path| assert_eq!(read(folder.join("kept")).unwrap(), b"precious");
    dtc(folder, &["pack", "box.dtc", "--in", "small", "--out", "kept"]).fails(3, &["small"]);
    dtc(folder, &["pack", "box.dtc", "--in", "absent", "--out", "kept"]).fails(3, &["absent"]);
    dtc(folder, &["pack", "box.dtc", "--in", ".", "--out", "kept"]).fails(3, &["a directory"]);
    kept(folder);
    dtc(folder, &["unpack", "box.dtc", "--in", "packed", "--out", "small"]).fails(3, &["small"]);
    dtc(folder, &["unpack", "box.dtc", "--in", "packed", "--out", "absent"]).fails(3, &["absent"]);
    dtc(folder, &["unpack", "box.dtc", "--in", "kept", "--out", "small"]).fails(3, &["kept", "96 packed bytes"]);
    dtc(folder, &["unpack", "box.dtc", "--in", "small", "--out", "small"]).fails(2, &["--out"]);
    assert_eq!(read(folder.join("small")).unwrap(), small);

    let bad = [
        ("magic", b"NUMPY".to_vec()),
        ("version", b"\x93NUMPY\x09\x00\x00\x00".to_vec()),
        ("cut", b"\x93NUMPY\x01\x00\xff\x00{'descr'".to_vec()),
        ("data", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (6, 8), }", &[0; 100])),
        ("objects", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", &[0; 384])),
        ("member", npy("{'descr': '<f8', 'shape': (6, 8), }", &[0; 384])),
        ("syntax", npy("{'descr' '<f8'}", &[0; 384])),
        ("empty", Vec::new()),
    ];
    for (name, bytes) in bad {
        let file = format!("{name}.npy");
        write(folder, &file, &bytes);
        dtc(folder, &["pack", "box.dtc", "--in", &file, "--out", "kept"]).fails(3, &[&file]);
        dtc(folder, &["unpack", "box.dtc", "--in", "packed", "--out", &file]).fails(3, &[&file]);
        assert_eq!(read(folder.join(&file)).unwrap(), bytes);
    }
    kept(folder);
}

#[test]
fn empty_types_make_empty_files() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "none.dtc", "contiguous 0 int");
    write(folder, "memory", "");
    dtc(folder, &["pack", "none.dtc", "--in", "memory", "--out", "packed"]).fine();
    assert_eq!(read(folder.join("packed")).unwrap(), b"");
    dtc(folder, &["unpack", "none.dtc", "--in", "packed", "--out", "memory"]).fine();
}

#[test]
fn arrays_of_other_elements_are_refused() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    let memory = data(384);
    let (here, there) = if cfg!(target_endian = "little") { ('<', '>') } else { ('>', '<') };
    write(folder, "packed", data(96));
    for descr in [format!("{there}f8"), format!("{here}i8"), "|u1".to_owned()] {
        let shape = if descr == "|u1" { 384 } else { 48 };
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape},), }}\n");
        write(folder, "a.npy", npy(&header, &memory));
        let parts = ["a.npy", "descr", &descr, "--raw"];
        dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b"]).fails(3, &parts);
        dtc(folder, &["unpack", "box.dtc", "--in", "packed", "--out", "a.npy"]).fails(3, &parts);
        assert_eq!(read(folder.join("a.npy")).unwrap(), npy(&header, &memory));
        assert!(!folder.join("b").exists());
        dtc(folder, &["pack", "box.dtc", "--in", "a.npy", "--out", "b", "--raw"]).fine();
        std::fs::remove_file(folder.join("b")).unwrap();
    }
}

#[test]
fn one_file_on_both_sides_is_refused() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    write(folder, "a.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (48,), }\n", &data(384)));
    write(folder, "a", data(384));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a", folder.join("link")).unwrap();
        std::os::unix::fs::symlink("link", folder.join("far")).unwrap();
        std::os::unix::fs::symlink("a.npy", folder.join("link.npy")).unwrap();
    }
    std::fs::hard_link(folder.join("a"), folder.join("twin")).unwrap();
    let pairs = [("a", "a"), ("a", "twin"), ("a.npy", "a.npy"), ("a", "link"), ("far", "a"), ("link.npy", "a.npy")];
    for (input, output) in pairs.iter().take(if cfg!(unix) { 6 } else { 3 }) {
        for command in ["pack", "unpack"] {
            dtc(folder, &[command, "box.dtc", "--in", input, "--out", output]).fails(2, &["--out", "--in"]);
        }
    }
    dtc(folder, &["emit", "box.dtc", "--as", "layout", "-o", "box.dtc"]).fails(2, &["-o", "TYPE.json"]);
    assert_eq!(read(folder.join("a")).unwrap(), data(384));
    assert!(read(folder.join("a.npy")).unwrap().ends_with(&data(384)));
    assert_eq!(read(folder.join("box.dtc")).unwrap(), BOX.as_bytes());
}

#[test]
fn long_names_are_written() {
    let folder = tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    write(folder, "a", data(384));
    for name in ["n".repeat(254), "n".repeat(255)] {
        for _ in 0..2 {
            dtc(folder, &["pack", "box.dtc", "--in", "a", "--out", &name]).fine();
        }
        dtc(folder, &["emit", "box.dtc", "--as", "layout", "-o", &name]).fine();
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 4);
}
