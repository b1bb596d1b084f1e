//! Bounds and packed bytes compared with MPICH and Open MPI, type by type. `./test mpi` installs both and runs this.

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder, text};
use dtc_runtime::{Engine, Memory, Range};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::mpi::program::{Answer, ask, fill, hash, is_installed};
use dtc_tests::mpi::{Mpi, bounds, compiler};
use dtc_tests::skip::{is_full, skip};
use dtc_tests::type_map::TypeMap;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Types that the MPIs treat differently.
const WRITTEN: &[&str] = &[
    // Parts with their own padding.
    "struct [2@4 short_int, 1@24 double_int]",
    "struct [1@4 char, 1@8 (struct [1@0 double, 1@8 char])]",
    "struct [1@0 double_int, 1@17 char]",
    "hindexed [1@0, 1@17] short_int",
    "hvector 2 2 17 (struct [1@0 double, 1@8 char])",
    "struct [1@0 long_double_int, 1@33 char]",
    // Order and place of padding.
    "hvector 2 1 5 int",
    "struct [1@0 int, 1@5 int]",
    "struct [1@0 int, 1@5 (contiguous 1 int)]",
    "struct [1@0 int, 1@5 float]",
    "struct [1@0 int, 1@4 char, 1@-1 char]",
    "hindexed [1@0, 1@5, 1@-3] int",
    "subarray c [2@1 of 4] (hvector 2 1 5 int)",
    // Markers.
    "struct [2@0 int, 1@64 (resized 0 16 int)]",
    "struct [1@0 (resized 0 16 int), 1@64 int]",
    "struct [1@3 (resized 0 5 int), 1@30 (resized 0 9 double)]",
    "struct [1@0 (subarray c [2@1 of 4] int), 1@100 char]",
    "struct [1@0 (dup (resized 0 4 int)), 1@100 char]",
    "struct [2@3 (resized 5 -20 int), 1@9 char]",
    "hvector 3 2 -7 (resized 5 -20 int)",
    "contiguous 3 (resized 2 0 int)",
    // Types without bytes.
    "contiguous 3 (resized -4 16 (contiguous 0 int))",
    "vector 3 2 5 (resized -4 16 (contiguous 0 int))",
    "hvector 3 1 8 (contiguous 0 int)",
    "hindexed [2@8, 1@40] (resized -4 16 (contiguous 0 int))",
    "hvector 10 0 40 int",
    "hvector 3 0 -8 int",
    "indexed_block 0 [2, 9] int",
    "hvector 3 0 8 (resized -4 -16 int)",
    "struct [1@100 (contiguous 0 int), 1@0 int]",
    "struct [1@-1 (contiguous 0 double), 1@50 int]",
    "struct [0@8 double, 1@3 char]",
    "struct [1@100 (contiguous 0 int)]",
    "struct [1@100 (resized -4 16 (contiguous 0 int)), 1@0 int]",
    "struct [1@100 (resized -4 16 (contiguous 0 int)), 1@50 (contiguous 0 double)]",
    "struct [1@100 (hvector 3 0 8 int), 1@0 int]",
    // Parts without bytes that are made of several, in a struct with bytes.
    "struct [1@100 (struct [1@50 (contiguous 0 int)]), 1@0 int]",
    "struct [1@100 (struct [1@50 (contiguous 0 int), 1@-20 (contiguous 0 double)]), 1@0 int]",
    "struct [1@100 (hvector 3 1 8 (contiguous 0 int)), 1@0 int]",
    "struct [1@100 (hindexed_block 1 [0, 40] (contiguous 0 int)), 1@0 int]",
    "struct [1@100 (indexed_block 1 [0, 40] (resized 0 8 (contiguous 0 int))), 1@0 int]",
    "struct [1@100 (vector 3 1 2 (resized 0 8 (contiguous 0 int))), 1@0 int]",
    "struct [1@100 (hindexed [1@8, 1@40] (contiguous 0 int)), 1@0 int]",
    "struct [3@100 (contiguous 0 double), 1@0 char]",
    "struct [0@100 (contiguous 0 int), 1@0 int]",
    "struct [1@-100 (dup (contiguous 0 int)), 1@0 int]",
    "struct [1@101 (contiguous 0 int), 1@0 int, 1@4 char]",
    "struct [1@100 (subarray c [2@1 of 4] (contiguous 0 int)), 1@0 int]",
    "contiguous 2 (struct [1@100 (contiguous 0 int), 1@0 int])",
    "struct [1@100 (contiguous 0 int), 1@0 (resized 0 8 int)]",
];

/// Every predefined type, the types above, and random ones.
fn types(random: usize) -> Vec<Datatype> {
    let predefined = Predefined::all().map(|predefined| {
        let mut types = TypeBuilder::new();
        let root = types.named(predefined);
        types.finish(root).unwrap()
    });
    let written =
        WRITTEN.iter().map(|notation| text::parse(notation).unwrap_or_else(|error| panic!("{notation}: {error}")));
    let drawn = (0..).map(|seed| random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::SMALL));
    let drawn = drawn.filter(bounds::can_be_asked).take(random);
    predefined.filter(bounds::can_be_asked).chain(written).chain(drawn).collect()
}

/// The answer of an MPI that computes like its model.
fn expected(mpi: Mpi, datatype: &Datatype) -> Answer {
    let map = TypeMap::with_bounds(datatype, bounds::of(mpi, datatype));
    let (mut bytes, bounds) = (Vec::new(), map.bounds());
    if bounds::packs_the_type_map(mpi, datatype) {
        bytes = map.bytes();
    }
    let both = [0, bounds.extent()].into_iter().flat_map(|at| bytes.iter().map(move |byte| fill(byte + at)));
    Answer {
        size: bounds.size,
        lb: bounds.lb,
        extent: bounds.extent(),
        true_lb: bounds.true_lb,
        true_extent: bounds.true_ub - bounds.true_lb,
        packed: 2 * bytes.len() as u64,
        hash: hash(both),
    }
}

/// The answers of an MPI about every type, unless it is not installed.
fn answers(test: &str, mpi: Mpi, types: &[Datatype]) -> Option<Vec<Answer>> {
    if !is_installed(mpi) {
        skip(test, &format!("needs {}", compiler(mpi)));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    Some(ask(mpi, types, directory.path()).unwrap_or_else(|error| panic!("{error}")))
}

/// Checks that every answer is the model's, so that the model can replace the MPI in other tests.
fn model_holds(test: &str, mpi: Mpi) {
    let types = types(if is_full() { 20_000 } else { 5_000 });
    let Some(answers) = answers(test, mpi, &types) else { return };
    let mut wrong = Vec::new();
    for (datatype, answer) in types.iter().zip(&answers) {
        let mut expected = expected(mpi, datatype);
        if !bounds::has_true_bounds(mpi, datatype) {
            (expected.true_lb, expected.true_extent) = (answer.true_lb, answer.true_extent);
        }
        if *answer != expected {
            wrong.push(format!("{datatype}\n  expected {expected:?}\n  found    {answer:?}"));
        }
    }
    wrong.sort_by_key(String::len);
    let some = &wrong[..wrong.len().min(12)];
    assert!(wrong.is_empty(), "{mpi:?}: {} of {} types:\n{}", wrong.len(), types.len(), some.join("\n"));
}

#[test]
#[ignore = "asks MPICH about 5,000 types, 20,000 with ./test mpi full: ./test mpi"]
fn mpich_computes_what_its_model_says() {
    model_holds("mpich_computes_what_its_model_says", Mpi::Mpich);
}

#[test]
#[ignore = "asks Open MPI about 5,000 types, 20,000 with ./test mpi full: ./test mpi"]
fn open_mpi_computes_what_its_model_says() {
    model_holds("open_mpi_computes_what_its_model_says", Mpi::OpenMpi);
}

#[test]
fn dtc_packs_what_both_pack_where_their_bounds_agree() {
    let (engine, mut agreed) = (Engine::new(), 0);
    for datatype in types(3_000) {
        let [mpich, open_mpi] = Mpi::ALL.map(|mpi| bounds::of(mpi, &datatype));
        let same = mpich.iter().zip(&open_mpi).all(|(one, other)| (one.lb, one.ub) == (other.lb, other.ub));
        if !same || !bounds::packs_the_type_map(Mpi::Mpich, &datatype) {
            continue;
        }
        let answer = expected(Mpi::Mpich, &datatype);
        let low = (answer.true_lb + answer.extent.min(0)).min(0);
        let high = (answer.true_lb + answer.true_extent + answer.extent.max(0)).max(0);
        let memory: Vec<u8> = (low..high).map(fill).collect();
        let committed = engine.commit(&datatype);
        let mut packed = vec![0u8; answer.packed as usize];
        if answer.packed > 0 {
            committed.pack(Memory::at(&memory, low.unsigned_abs() as usize), Range::elements(2), &mut packed).unwrap();
            assert_eq!(hash(packed.into_iter()), answer.hash, "{datatype}");
            agreed += 1;
        }
    }
    assert!(agreed > 1_000, "{agreed} types");
}
