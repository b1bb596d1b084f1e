//! Mistakes in descriptions, command lines and arrays: each ends with a message that names the place, what was expected and
//! what was found, with the documented status, and with every file as it was.

use crate::common::{Run, data, npy, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{read, read_dir};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// The most bytes of a message that a reader is asked to read.
const LONGEST_MESSAGE: usize = 4096;

/// A run that must fail, and what the message must have.
struct Mistake {
    arguments: Vec<String>,
    status: i32,
    parts: Vec<String>,
}

fn mistake(arguments: &str, status: i32, parts: &[&str]) -> Mistake {
    Mistake {
        arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        status,
        parts: parts.iter().map(|&part| part.to_owned()).collect(),
    }
}

/// Every file of a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path()).unwrap())).collect()
}

fn check(folder: &Path, mistakes: &[Mistake]) {
    let before = contents(folder);
    for Mistake { arguments, status, parts } in mistakes {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtc"));
        let run = Run::of(command.args(arguments).current_dir(folder).stdin(Stdio::null()));
        let text = || arguments.get(1).and_then(|name| before.get(name)).map(|text| String::from_utf8_lossy(text));
        assert_eq!(run.status, *status, "{arguments:?}: {run:?} of {:?}", text());
        let wanted = ["expected", "found"].iter().copied().filter(|_| run.err.starts_with("dtc: "));
        for part in parts.iter().map(String::as_str).chain(wanted) {
            assert!(run.err.contains(part), "{arguments:?}: expected {part:?} in {:?}", run.err);
        }
        // The parser of arguments has a form of its own.
        let begins = run.err.starts_with("dtc: ") || run.err.starts_with("error: ") && *status == 2;
        assert!(begins && run.err.len() <= LONGEST_MESSAGE, "{arguments:?}: {run:?}");
        assert_eq!(run.out, "", "{arguments:?}");
        let after = contents(folder);
        let changed = after.iter().find(|(name, bytes)| before.get(*name) != Some(bytes));
        assert_eq!(changed.map(|(name, _)| name), None, "{arguments:?}");
        assert_eq!(after.len(), before.len(), "{arguments:?}");
    }
}

/// One right description of each kind.
fn right() -> Vec<Value> {
    let int = json!({"kind": "named", "name": "MPI_INT"});
    vec![
        int.clone(),
        json!({"kind": "contiguous", "count": 2, "child": int}),
        json!({"kind": "vector", "count": 2, "blocklength": 1, "stride": 3, "child": int}),
        json!({"kind": "hvector", "count": 2, "blocklength": 1, "stride_bytes": 12, "child": int}),
        json!({"kind": "indexed", "blocklengths": [1, 2], "displacements": [0, 3], "child": int}),
        json!({"kind": "hindexed", "blocklengths": [1, 2], "displacements_bytes": [0, 12], "child": int}),
        json!({"kind": "indexed_block", "blocklength": 2, "displacements": [0, 3], "child": int}),
        json!({"kind": "hindexed_block", "blocklength": 2, "displacements_bytes": [0, 12], "child": int}),
        json!({"kind": "struct", "blocklengths": [1, 2], "displacements_bytes": [0, 12], "children": [int, int]}),
        json!({"kind": "subarray", "sizes": [4, 4], "subsizes": [2, 2], "starts": [1, 1], "order": "C", "child": int}),
        json!({"kind": "darray", "size": 4, "rank": 1, "gsizes": [8, 8], "distributions": ["block", "cyclic"],
               "psizes": [2, 2], "order": "Fortran", "child": int}),
        json!({"kind": "resized", "lb": 0, "extent": 8, "child": int}),
        json!({"kind": "dup", "child": int}),
    ]
}

/// Each member of each kind missing, of another JSON type, out of its range or of another length; and members too many.
fn wrong_members() -> Vec<(Value, String)> {
    let mut wrong = Vec::new();
    for description in right() {
        let object = description.as_object().unwrap().clone();
        let lists = object.values().filter(|value| value.is_array()).count();
        for (name, value) in &object {
            let mut with = |replaced: Option<Value>, place: &str| {
                let mut object = object.clone();
                match replaced {
                    Some(value) => object.insert(name.clone(), value),
                    None => object.remove(name),
                };
                wrong.push((Value::Object(object), place.to_owned()));
            };
            let path = format!("$.{name}");
            with(None, name);
            with(Some(Value::Null), &path);
            match value {
                Value::Number(_) => {
                    with(Some(json!("two")), &path);
                    with(Some(json!(1.5)), &path);
                    if matches!(name.as_str(), "count" | "blocklength" | "size" | "rank") {
                        with(Some(json!(-1)), &path);
                    }
                }
                Value::Array(items) => {
                    with(Some(json!(7)), &path);
                    with(Some(json!([{}])), &path);
                    if lists > 1 {
                        with(Some(Value::Array(items[1..].to_vec())), "$");
                    }
                }
                Value::String(_) => with(Some(json!("vectro")), &path),
                _ => with(Some(json!([1])), &path),
            }
        }
        let mut more = object.clone();
        more.insert("colour".to_owned(), json!(1));
        wrong.push((Value::Object(more), "$.colour".to_owned()));
    }
    wrong
}

#[test]
fn mistakes_in_descriptions() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "in", data(4096));
    write(folder, "kept", "precious");
    let mut mistakes = Vec::new();
    let mut described = |name: &str, text: &str, parts: &[&str]| {
        write(folder, name, text);
        mistakes.push(mistake(&format!("pack {name} --in in --out kept"), 2, &[&[name], parts].concat()));
    };
    for (index, (description, place)) in wrong_members().iter().enumerate() {
        described(&format!("wrong{index}.json"), &description.to_string(), &[place]);
    }
    let int = r#"{"kind": "named", "name": "MPI_INT"}"#;
    let whole = [
        ("empty", String::new(), "$"),
        ("list", "[]".to_owned(), "$"),
        ("number", "3".to_owned(), "$"),
        ("words", "contiguous 3 int".to_owned(), "$"),
        ("cut", r#"{"kind": "named", "name": "MPI_I"#.to_owned(), "$"),
        ("comma", format!(r#"{{"kind": "dup", "child": {int},}}"#), "$"),
        ("two", format!("{int} {int}"), "$"),
        ("brackets", "[".repeat(1 << 20), "$"),
        ("braces", r#"{"a":"#.repeat(1 << 14), "$"),
        ("long_name", format!(r#"{{"kind": "named", "name": "{}"}}"#, "x".repeat(1 << 16)), "$.name"),
        ("long_key", format!(r#"{{"{}": 1}}"#, "y".repeat(1 << 16)), "$"),
        ("escapes", r#"{"kind": "named", "name": "[31m"}"#.to_owned(), "$.name"),
        ("root", r#"{"types": {}, "root": "a"}"#.to_owned(), "$.root"),
        ("ref", r#"{"types": {"a": {"ref": "b"}}, "root": "a"}"#.to_owned(), "$.types.a"),
        ("cycle", r#"{"types": {"a": {"kind": "dup", "child": {"ref": "a"}}}, "root": "a"}"#.to_owned(), "$.types.a"),
        ("doubled", r#"{"kind": "named", "kind": "named", "name": "MPI_INT"}"#.to_owned(), "$.kind"),
        ("count", format!(r#"{{"type": {int}, "count": -3}}"#), "$.count"),
        ("large", format!(r#"{{"kind": "contiguous", "count": 99999999999999999999, "child": {int}}}"#), "$.count"),
        ("overflow", format!(r#"{{"kind": "contiguous", "count": 9223372036854775807, "child": {int}}}"#), "$"),
    ];
    for (name, text, place) in whole {
        described(&format!("{name}.json"), &text, &[place]);
    }
    for (index, text) in [
        "",
        "intt",
        "vector",
        "vector 3",
        "vector 3 1",
        "vector 3 1 2",
        "vector x 1 2 int",
        "vector -3 1 2 int",
        "vector 3 1 2 int int",
        "contiguous 3 (int",
        "contiguous 3 int)",
        "contiguous 99999999999999999999 int",
        "contiguous 1.5 int",
        "indexed [1] int",
        "indexed [1@] int",
        "indexed 1@2 int",
        "indexed [1@2 int",
        "subarray c [3@2 of 4] double",
        "subarray d [3@0 of 4] double",
        "subarray c [3@0 for 4] double",
        "struct {}}",
        "struct {1@0}",
        "resized 0 int",
        "resized 0 8",
        "dup",
        "darray 4 1 c [8 block 2] int",
        "\u{1}",
        "möbius",
    ]
    .iter()
    .enumerate()
    {
        described(&format!("short{index}.dtc"), text, &["line 1, column"]);
    }
    write(folder, "latin.json", [b'{', 0xe9, b'}']);
    mistakes.push(mistake("pack latin.json --in in --out kept", 2, &["latin.json", "UTF-8", "offset 1"]));
    mistakes.push(mistake("pack absent.json --in in --out kept", 2, &["absent.json"]));
    mistakes.push(mistake("pack . --in in --out kept", 2, &[".", "directory"]));
    mistakes.push(mistake("pack in/type.json --in in --out kept", 2, &["in/type.json"]));
    mistakes.push(mistake("pack - --in in --out kept", 2, &["standard input"]));
    println!("{} mistakes in descriptions", mistakes.len());
    assert!(mistakes.len() >= 150);
    check(folder, &mistakes);
}

#[test]
fn mistakes_on_command_lines() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "t.dtc", "vector 4 1 2 int");
    write(folder, "back.dtc", "vector 4 1 -3 int");
    write(folder, "sparse.dtc", "hvector 2 1 1000000000000 int");
    write(folder, "in", data(64));
    write(folder, "packed", data(16));
    write(folder, "kept", "precious");
    std::fs::create_dir(folder.join("folder")).unwrap();
    std::fs::hard_link(folder.join("in"), folder.join("twin")).unwrap();
    let most = u64::MAX;
    let pack = |more: &str| format!("pack t.dtc --in in --out kept {more}");
    let unpack = |more: &str| format!("unpack t.dtc --in packed --out kept {more}");
    let mistakes = [
        mistake("fly", 2, &["fly"]),
        mistake("--fly", 2, &["--fly"]),
        mistake("pack", 2, &["--in", "--out", "TYPE"]),
        mistake("pack t.dtc --in in", 2, &["--out"]),
        mistake("pack t.dtc --out kept", 2, &["--in"]),
        mistake("pack --in in --out kept", 2, &["TYPE"]),
        mistake(&pack("kept"), 2, &["kept"]),
        mistake(&pack("--in in"), 2, &["--in"]),
        mistake(&pack("--count -1"), 2, &["-1"]),
        mistake(&pack("--count x"), 2, &["--count", "x"]),
        mistake(&pack("--count 1.5"), 2, &["--count", "1.5"]),
        mistake(&pack(&format!("--count {most}")), 2, &["--count", &most.to_string()]),
        mistake(&pack("--count 18446744073709551616"), 2, &["--count"]),
        mistake(&pack("--count"), 2, &["--count"]),
        mistake(&pack("--count 9"), 3, &["in"]),
        mistake(&pack("--offset 17"), 2, &["--offset", "16", "17"]),
        mistake(&pack("--offset x"), 2, &["--offset", "x"]),
        mistake(&pack("--max x"), 2, &["--max", "x"]),
        mistake(&pack("--origin x"), 2, &["--origin", "x"]),
        mistake(&pack("--origin 65"), 3, &["in", "origin", "65"]),
        mistake(&pack("--origin 40"), 3, &["in", "24"]),
        mistake(&pack(&format!("--origin {most}")), 3, &["in", "origin"]),
        mistake(&pack("--threads 0"), 2, &["--threads", "0"]),
        mistake(&pack("--threads 1025"), 2, &["--threads", "1025"]),
        mistake(&pack("--threads x"), 2, &["--threads", "x"]),
        mistake(&pack("--backend fast"), 2, &["--backend", "fast"]),
        mistake(&pack("--backend cuda --threads 2"), 2, &["--threads", "2"]),
        mistake(&pack("--memory disk"), 2, &["--memory", "disk"]),
        mistake(&pack("--packed device:x"), 2, &["--packed", "x"]),
        mistake("pack back.dtc --in in --out kept", 3, &["in", "origin"]),
        mistake("pack sparse.dtc --in in --out kept", 3, &["in", "64"]),
        mistake("pack t.dtc --in absent --out kept", 3, &["absent"]),
        mistake("pack t.dtc --in folder --out kept", 3, &["folder", "a directory"]),
        mistake("pack t.dtc --in - --out kept", 3, &["standard input"]),
        mistake("pack - --in - --out kept", 2, &["--in", "standard input"]),
        mistake("pack t.dtc --in in --out folder", 3, &["folder", "a directory"]),
        mistake("pack t.dtc --in in --out folder/", 3, &["folder", "a directory"]),
        mistake("pack t.dtc --in in --out new/", 3, &["new", "a directory"]),
        mistake("pack t.dtc --in in --out absent/file", 3, &["absent/file"]),
        mistake("pack t.dtc --in in --out kept/file", 3, &["kept/file"]),
        mistake("pack t.dtc --in in --out in", 2, &["--out", "--in"]),
        mistake("pack t.dtc --in in --out ./in", 2, &["--out", "--in"]),
        mistake("pack t.dtc --in in --out folder/../in", 2, &["--out", "--in"]),
        mistake("pack t.dtc --in in --out twin", 2, &["--out", "--in"]),
        mistake("pack t.dtc --in in --out t.dtc", 2, &["--out", "TYPE.json"]),
        mistake(&unpack("--count 2"), 3, &["packed", "32", "16"]),
        mistake(&unpack("--offset 4"), 3, &["packed", "12"]),
        mistake(&unpack("--max 12"), 3, &["kept"]),
        mistake(&unpack(""), 3, &["kept", "8"]),
        mistake("unpack t.dtc --in in --out twin", 2, &["--out", "--in"]),
        mistake("unpack t.dtc --in packed --out packed", 2, &["--out", "--in"]),
        mistake("unpack t.dtc --in packed --out t.dtc", 2, &["--out", "TYPE.json"]),
        mistake("unpack t.dtc --in packed --out absent", 3, &["absent"]),
        mistake("unpack t.dtc --in packed --out folder", 3, &["folder", "a directory"]),
        mistake("unpack t.dtc --in packed --out /dev/null", 3, &["/dev/null", "a device"]),
        mistake("unpack t.dtc --in packed --out -", 2, &["--out", "standard output"]),
        mistake("unpack t.dtc --in kept --out in", 3, &["kept", "16", "8"]),
        mistake("unpack t.dtc --in - --out in", 3, &["standard input", "16", "0 bytes"]),
        mistake("unpack t.dtc --in /dev/zero --out in", 3, &["/dev/zero", "16", "17"]),
        mistake("emit t.dtc", 2, &["--as"]),
        mistake("emit t.dtc --as poem", 2, &["poem"]),
        mistake("emit t.dtc --as layout -o t.dtc", 2, &["-o", "TYPE.json"]),
        mistake("emit t.dtc --as layout -o folder", 3, &["folder", "a directory"]),
        mistake("emit t.dtc --as layout -o absent/file", 3, &["absent/file"]),
        mistake("emit t.dtc --as clif --target sm_90", 2, &["--target", "sm_90"]),
        mistake("emit t.dtc --as clif --target x86-64-v3", 2, &["--target", "x86-64-v3"]),
        mistake("emit t.dtc --as llvm --target sm_90", 2, &["--target", "sm_90", "a processor"]),
        mistake("emit t.dtc --as ptx --target x86", 2, &["--target", "x86"]),
        mistake("emit t.dtc --as ptx --target zen5", 2, &["--target", "zen5"]),
        mistake("emit t.dtc --as clif --direction up", 2, &["--direction", "up"]),
        mistake("explain", 2, &["TYPE"]),
        mistake("explain absent", 2, &["absent"]),
        mistake("lower t.dtc t.dtc", 2, &["t.dtc"]),
        mistake("bench t.dtc --only nothing", 2, &["--only", "nothing"]),
        mistake("bench t.dtc --rounds 0", 2, &["--rounds", "0"]),
        mistake("bench sparse.dtc", 3, &["buffer"]),
        mistake("demo absent", 2, &["absent"]),
        mistake("demo t.dtc --backend tpu", 2, &["--backend", "tpu"]),
    ];
    println!("{} mistakes on command lines", mistakes.len());
    assert!(mistakes.len() >= 70);
    check(folder, &mistakes);
    assert!(read_dir(folder.join("folder")).unwrap().next().is_none());
}

#[test]
fn mistakes_in_arrays() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "t.dtc", "vector 4 1 2 double");
    write(folder, "packed", data(32));
    write(folder, "kept", "precious");
    write(folder, "memory", data(56));
    let mut mistakes = Vec::new();
    let mut array = |name: &str, bytes: Vec<u8>, parts: &[&str], packed_too: bool| {
        let name = format!("{name}.npy");
        write(folder, &name, bytes);
        let parts = [&[name.as_str()], parts].concat();
        mistakes.push(mistake(&format!("pack t.dtc --in {name} --out kept"), 3, &parts));
        mistakes.push(mistake(&format!("unpack t.dtc --in packed --out {name}"), 3, &parts));
        if packed_too {
            mistakes.push(mistake(&format!("unpack t.dtc --in {name} --out memory"), 3, &parts));
        }
    };
    let (here, there) = if cfg!(target_endian = "little") { ('<', '>') } else { ('>', '<') };
    let header =
        |descr: &str, shape: u64| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({shape},), }}\n");
    for (index, (descr, bytes)) in [
        (format!("'{there}f8'"), 8),
        (format!("'{here}i8'"), 8),
        (format!("'{here}u8'"), 8),
        (format!("'{here}f4'"), 4),
        (format!("'{here}f16'"), 16),
        (format!("'{here}c16'"), 16),
        (format!("'{here}M8[ns]'"), 8),
        (format!("'{here}U2'"), 8),
        ("'|S8'".to_owned(), 8),
        ("'|b1'".to_owned(), 1),
        (format!("[('a', '{here}i4'), ('b', '{here}f4')]"), 8),
        (format!("[('a', '{there}f8')]"), 8),
    ]
    .iter()
    .enumerate()
    {
        let file = npy(&header(descr, 112 / bytes), &data(112));
        array(&format!("element{index}"), file, &["header, descr", "f8", "--raw"], true);
    }
    // Bytes in memory are not doubles; packed, they may be.
    array("bytes", npy(&header("'|u1'", 112), &data(112)), &["header, descr", "'|u1'", "--raw"], false);
    let double = format!("'{here}f8'");
    let right = header(&double, 7);
    array("magic", b"NUMPY".to_vec(), &["header, byte 0"], true);
    array("empty", Vec::new(), &["header, byte 0"], true);
    array("version", b"\x93NUMPY\x09\x00\x00\x00".to_vec(), &["header, byte 6", "9.0"], true);
    array("no_version", b"\x93NUMPY".to_vec(), &["header, byte 6"], true);
    array("cut", b"\x93NUMPY\x01\x00\xff\x00{'descr'".to_vec(), &["header, byte 8", "255"], true);
    array("latin", b"\x93NUMPY\x01\x00\x02\x00{\xff".to_vec(), &["header"], true);
    array("data", npy(&right, &data(55)), &["data", "56", "55"], true);
    array("few", npy(&header(&double, 3), &data(24)), &["24"], true);
    for (name, dictionary, place) in [
        ("objects", header("'|O'", 7), "header, descr"),
        ("code", header("'f'", 7), "header, descr"),
        ("letters", header("'<z8'", 7), "header, descr"),
        ("long_code", header(&format!("'<{}'", "z".repeat(60_000)), 7), "header, descr"),
        ("number", header("8", 7), "header, descr"),
        ("field", header("[('a',)]", 7), "header, descr"),
        ("large", right.replace("7", "18446744073709551615, 18446744073709551615"), "header, shape"),
        ("digits", right.replace("7", "99999999999999999999999"), "header, character"),
        ("negative", right.replace("7", "-7"), "header, character"),
        ("text", right.replace("7", "'7'"), "header, shape"),
        ("order", right.replace("False", "0"), "header, fortran_order"),
        ("no_order", right.replace("fortran_order", "order"), "header"),
        ("no_shape", right.replace("shape", "form"), "header"),
        ("no_descr", right.replace("descr", "dtype"), "header"),
        ("colon", right.replace("':", "'"), "header, character"),
        ("string", "{'descr".to_owned(), "header, character"),
        ("after", right.replace('\n', " 1"), "header, character"),
        ("nested", "(".repeat(60_000), "header, character"),
        ("list", "[]".to_owned(), "header"),
    ] {
        array(name, npy(&dictionary, &data(112)), &[place], true);
    }
    println!("{} mistakes in arrays", mistakes.len());
    assert!(mistakes.len() >= 100);
    check(folder, &mistakes);
}
