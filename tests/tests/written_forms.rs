//! Every written form of every example's layouts gives back the layout.

mod texts;

use dtc_compiler::datatype::{Constructor, Datatype, json, text};
use dtc_compiler::layout::Layout;
use dtc_compiler::{Pipeline, Shared, canonicalise, lower};
use std::fs;
use texts::{same_bytes, workspace};

/// The examples by name.
fn examples() -> Vec<(String, Datatype)> {
    let paths = fs::read_dir(workspace("ir-examples")).unwrap().map(|entry| entry.unwrap().path());
    let described = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut examples: Vec<(String, Datatype)> = described
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), json::read(&text).unwrap().datatype)
        })
        .collect();
    examples.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert!(!examples.is_empty());
    examples
}

/// The lowered and the canonical layout of every example.
fn layouts() -> impl Iterator<Item = (String, Layout)> {
    examples().into_iter().flat_map(|(name, datatype)| {
        let lowered = lower(&datatype);
        let canonical = canonicalise(&lowered).layout;
        [(format!("{name}, lowered"), lowered), (format!("{name}, canonical"), canonical)]
    })
}

/// The text of a layout without the mark of the canonical form, which is not written.
fn unclaimed(layout: &Layout) -> String {
    layout.to_string().replacen("layout exact", "layout", 1)
}

#[test]
fn bytes_give_the_layout_again() {
    for (name, layout) in layouts() {
        let bytes = layout.to_bytes();
        let again = Layout::from_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.to_string(), unclaimed(&layout), "{name}");
        assert_eq!(again.verify(), Ok(()), "{name}");
        assert_eq!(again.type_hash(), layout.type_hash(), "{name}");
        assert_eq!(again.to_bytes(), bytes, "{name}");
        assert!(!again.exact(), "{name}: expected the claim to stay behind");
    }
}

/// What bundles hold of a type is what the stages make of it.
#[test]
fn bytes_of_bundles_give_what_equal_types_share() {
    for (name, datatype) in examples() {
        let pipeline = Pipeline::new(datatype);
        let bytes = Shared::encode(pipeline.hash(), pipeline.layout());
        let shared = Shared::decode(&bytes).expect(&name);
        assert_eq!(shared.hash, pipeline.hash(), "{name}");
        assert_eq!(shared.layout.to_string(), pipeline.layout().to_string(), "{name}");
        assert_eq!(shared.layout.digest(), pipeline.layout().digest(), "{name}");
        let of_layout = |layout: &Layout| (layout.lb(), layout.entries(), layout.exact());
        assert_eq!(of_layout(&shared.layout), of_layout(pipeline.layout()), "{name}");
        assert_eq!(shared.plan.to_string(), pipeline.plan().to_string(), "{name}");
        assert_eq!(shared.plan.steps(), pipeline.plan().steps(), "{name}");
        assert_eq!(shared.plan.decision(), pipeline.plan().decision(), "{name}");
    }
}

#[test]
fn bytes_of_bundles_serve_types_of_their_size_and_bounds_alone() {
    let pipelines: Vec<_> = examples().into_iter().map(|(name, datatype)| (name, Pipeline::new(datatype))).collect();
    let shape =
        |layout: &Layout| (layout.size(), layout.extent(), layout.true_lb(), layout.true_ub(), layout.entries());
    for (name, one) in &pipelines {
        let bytes = Shared::encode(one.hash(), one.layout());
        let shared = Shared::decode(&bytes).expect(name);
        for (other_name, other) in &pipelines {
            let same = shape(one.lowered()) == shape(other.lowered());
            assert_eq!(shared.is_of(other.lowered()), same, "{name} for {other_name}");
        }
        for at in (1..bytes.len()).step_by(1 + bytes.len() / 64) {
            // Without the second layout, the plan is one of the first.
            assert!(Shared::decode(&bytes[..at]).is_none_or(|cut| cut.is_of(one.lowered())), "{name}: {at} bytes");
        }
    }
}

#[test]
fn damaged_bytes_are_refused() {
    for (name, layout) in layouts() {
        let bytes = layout.to_bytes();
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
            assert!(Layout::from_bytes(&bytes[..at]).is_err(), "{name}: cut after {at} bytes");
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(Layout::from_bytes(&damaged).is_err(), "{name}: damaged byte {at}");
        }
    }
}

#[test]
fn texts_give_the_layout_again() {
    for (name, layout) in layouts() {
        let again = Layout::parse(&layout.to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.to_string(), unclaimed(&layout), "{name}");
        assert_eq!(again.verify(), Ok(()), "{name}");
        assert!(same_bytes(&layout, &again), "{name}");
    }
}

#[test]
fn what_was_read_has_the_same_canonical_form() {
    for (name, datatype) in examples() {
        let lowered = lower(&datatype);
        let canonical = canonicalise(&lowered).layout;
        if !canonical.exact() {
            // The limit of enumerated runs depends on the length of the description, which is not written.
            continue;
        }
        let from_bytes = canonicalise(&Layout::from_bytes(&canonical.to_bytes()).unwrap()).layout;
        let from_text = canonicalise(&Layout::parse(&canonical.to_string()).unwrap()).layout;
        assert_eq!(from_bytes.to_string(), canonical.to_string(), "{name}");
        assert_eq!(from_text.to_string(), canonical.to_string(), "{name}");
    }
}

#[test]
fn descriptions_and_notations_lower_to_the_same_layout() {
    for (name, datatype) in examples() {
        let expected = lower(&datatype);
        let notation = text::parse(&datatype.to_string()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let description = json::read(&json::write(&datatype)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for again in [notation, description.datatype] {
            // A form names shared types first, so only the ids of nodes may change.
            let again = lower(&again);
            assert_eq!(again.nodes().len(), expected.nodes().len(), "{name}");
            assert_eq!(again.entries(), expected.entries(), "{name}");
            assert!(same_bytes(&expected, &again), "{name}");
            let (one, other) = (canonicalise(&expected).layout, canonicalise(&again).layout);
            assert_eq!(one.exact(), other.exact(), "{name}");
            assert!(!one.exact() || one.to_string() == other.to_string(), "{name}");
        }
    }
}

/// Through serde: JSON of the same schema, and the notation in formats that people do not read.
#[test]
fn serde_gives_the_datatype_again() {
    for (name, datatype) in examples() {
        let text = serde_json::to_string(&datatype).unwrap();
        let read: Datatype = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(read.to_string(), datatype.to_string(), "{name}");
        assert_eq!(json::read(&text).unwrap().datatype.to_string(), datatype.to_string(), "{name}");
        let value = serde_json::to_value(&datatype).unwrap();
        assert_eq!(serde_json::from_value::<Datatype>(value).unwrap().to_string(), datatype.to_string(), "{name}");
    }
}

#[test]
fn serde_reads_what_json_reads_and_names_the_place() {
    let text = r#"{"types": {"row": {"kind": "contiguous", "count": 5, "child": {"kind": "named", "name": "MPI_INT"}}},
        "root": "row", "story": "a \"row\" of\n5", "count": 3}"#;
    assert_eq!(serde_json::from_str::<Datatype>(text).unwrap().to_string(), "contiguous 5 int");
    let refused = |text: &str| serde_json::from_str::<Datatype>(text).unwrap_err().to_string();
    let cases = [
        (r#"{"kind": "contiguous", "count": 1.5}"#, "$.count: expected an integer of 64 bits, found 1.5"),
        (r#"{"kind": "dup", "chid": {}}"#, "$.chid: expected"),
        (r#"[true, null, -1, 18446744073709551615]"#, "$: expected"),
        (r#"7"#, "$: expected"),
    ];
    for (text, expected) in cases {
        assert!(refused(text).contains(expected), "{text}: {}", refused(text));
    }
    let lists = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(refused(&lists).contains("recursion limit exceeded"), "{}", refused(&lists));
}

/// Levels that would not fit the stack of a serializer are named, and so are those that serde_json would not read.
#[test]
fn deep_types_nest_a_few_levels_in_serde() {
    for levels in [31, 32, 33, 100, 100_000] {
        let child = Datatype::named(dtc_compiler::datatype::Predefined::INT);
        let part = || Constructor::Struct { blocklengths: vec![1].into(), displacements_bytes: vec![1].into() };
        let deep = (0..levels).fold(child, |child, _| Datatype::new(part(), [child], None).unwrap());
        let text = serde_json::to_string(&deep).unwrap();
        assert_eq!(text.contains("\"ref\""), levels > 31, "{levels} levels");
        let read: Datatype = serde_json::from_str(&text).unwrap();
        assert_eq!((read.size(), read.true_lb()), (4, levels), "{levels} levels");
    }
}
