//! Bundles: kernels that were compiled ahead of time serve in place of compiled ones, and damaged files are refused.

use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_compiler::datatype::{Datatype, text};
use dtc_compiler::{Pipeline, plan::Level};
use dtc_runtime::store::Config;
use dtc_runtime::{BundleWriter, Engine, Policy, Range, Tier};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::{TempDir, tempdir};

fn types() -> Vec<Datatype> {
    let texts = [
        "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))",
        "hvector 5 1 90000 (hvector 7 1 9000 (hvector 6 1 800 (vector 3 9 11 char)))",
        "hindexed_block 1 [0, 1000, 2000, 7000] (vector 12 5 9 double)",
    ];
    texts.map(|text| text::parse(text).expect(text)).into()
}

/// A folder as `dtc build` makes it, with a bundle of these types for this machine.
fn bundle(types: &[Datatype]) -> (TempDir, PathBuf) {
    let mut writer = BundleWriter::default();
    for datatype in types {
        for target in CpuTarget::running_on(Engine::new().target().level) {
            assert!(writer.add_cpu(&Pipeline::new(datatype.clone()), target).unwrap(), "{datatype}");
        }
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("kernels.dtc");
    fs::write(&file, writer.finish()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    (folder, file)
}

/// An engine that compiles nothing before it is asked to.
fn engine() -> Engine {
    Engine::builder().background_thread(false).store(Config::none()).build()
}

/// Packs until the type has left its description, and compares with the walker.
fn pack(committed: &dtc_runtime::Committed) {
    let (low, high) = committed.span(2).unwrap();
    assert_eq!(low, 0);
    let source: Vec<u8> = (0..high as usize).map(|at| (at * 31 + at / 251) as u8).collect();
    let mut packed = vec![0u8; committed.packed_size(2).unwrap()];
    committed.pack(&source, Range::elements(2), &mut packed).unwrap();
    let (layout, extent) = (committed.layout(), committed.facts().extent());
    let map = (0..2).flat_map(|element| layout.displacements().map(move |at| at + element * extent));
    assert!(map.map(|at| source[at as usize]).eq(packed.iter().copied()));
}

#[test]
fn types_of_a_bundle_have_their_kernels_without_a_compiler() {
    let types = types();
    let (folder, file) = bundle(&types[..2]);
    for path in [folder.path(), &file] {
        let engine = engine();
        engine.load_bundle(path).unwrap();
        for (at, datatype) in types.iter().enumerate() {
            let start = Instant::now();
            let committed = engine.commit(datatype);
            committed.type_hash();
            let tier = committed.tier();
            println!("type {at}: {tier} after {:?}", start.elapsed());
            // The last is not in the bundle, and nothing has compiled it.
            assert_eq!(tier, if at < 2 { Tier::Specialised } else { Tier::Generic });
            pack(&committed);
            pack(&committed);
        }
        assert_eq!(engine.compile_pending(std::time::Duration::ZERO), 0);
    }
}

/// An engine finds a type by its description, and its kernels by what it has in common with equal types.
#[test]
fn types_of_a_bundle_are_those_of_engines_without() {
    let texts = [
        "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))",
        "contiguous 20 (resized 0 64 (struct [8@0 char, 4@12 char, 1@20 char]))",
        "hindexed_block 3 [0, 70, 1000, 2000, 7000] int",
        "resized -8 4000 (indexed [3@9, 4@1, 1@100] double)",
    ];
    let types = texts.map(|text| text::parse(text).expect(text));
    let mut writer = BundleWriter::default();
    // The second is equal to the first, which the bundle has.
    for datatype in [&types[0], &types[2], &types[3]] {
        for target in CpuTarget::running_on(Engine::new().target().level) {
            writer.add_cpu(&Pipeline::new(datatype.clone()), target).unwrap();
        }
    }
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.path().join("kernels.dtc"), writer.finish()).unwrap();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        let (with, without) = (engine(), engine());
        with.load_bundle(folder.path()).unwrap();
        for at in order {
            let [with, without] = [&with, &without].map(|engine| engine.commit(&types[at]));
            assert_eq!(with.type_hash(), without.type_hash());
            assert_eq!(with.layout().to_string(), without.layout().to_string());
            assert_eq!(with.plan().to_string(), without.plan().to_string());
            assert!(at >= 2 || with.tier() == Tier::Specialised, "{}", texts[at]);
        }
        assert_eq!((with.cached_types(), without.cached_types()), (3, 3));
    }
}

#[test]
fn policies_hold_for_bundles() {
    let types = types();
    let (folder, _) = bundle(&types);
    for (policy, tier) in
        [(Policy::Off, Tier::Generic), (Policy::Lazy(1000), Tier::Specialised), (Policy::Eager, Tier::Specialised)]
    {
        let config = Config::none().bundle(folder.path());
        let engine = Engine::builder().policy(policy).background_thread(false).store(config).build();
        let committed = engine.commit(&types[0]);
        pack(&committed);
        assert_eq!((policy, committed.tier()), (policy, tier));
    }
}

/// Another level's kernels would run instructions that a CPU lacks.
#[test]
fn targets_are_those_of_the_level() {
    assert!(!CpuTarget::running_on(Level::Portable).contains(&CpuTarget::X86_64V3));
    assert!(!CpuTarget::running_on(Level::Avx2).contains(&CpuTarget::X86_64V4));
}

#[test]
fn what_is_no_sound_bundle_is_refused_with_a_reason() {
    let (folder, file) = bundle(&types());
    let sound = fs::read(&file).unwrap();
    let refused = |path: &Path, reason: &str| {
        let error = engine().load_bundle(path).unwrap_err().to_string();
        assert!(error.contains(reason), "expected {reason}, found {error}");
    };
    let with = |bytes: &[u8], reason: &str| {
        fs::write(&file, bytes).unwrap();
        refused(&file, reason);
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        bytes
    };
    with(b"", "expected a bundle, found other bytes");
    with(&changed(0, b'D'), "expected a bundle, found other bytes");
    with(&changed(8, 2), "expected format 1, found 2");
    with(&sound[..sound.len() - 1], "bytes, found");
    with(&sound[..20], "expected 56 bytes, found 20");
    with(&changed(sound.len() - 9, sound[sound.len() - 9] ^ 1), "expected the bytes that were written");
    with(&changed(70, sound[70] ^ 1), "expected the bytes that were written");
    fs::write(&file, &sound).unwrap();
    for mode in [0o666, 0o664] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        refused(&file, "expected that no other user may write it");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    refused(&link, "expected no symbolic link");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    refused(&file, "expected that no other user may write it");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    engine().load_bundle(&file).unwrap();
    fs::remove_file(&file).unwrap();
    refused(folder.path(), "expected a bundle, found none");
}
