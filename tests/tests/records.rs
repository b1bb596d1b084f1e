//! Structs with padding: what is derived for them, which types they admit, and what is moved.

use dtc_compiler::lower;
use dtc_runtime::datatype::{Constructor, Datatype};
use dtc_runtime::{Engine, PackError, Range, Record, RecordError};
use dtc_tests::generate::random::{self, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Record)]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    charge: i32,
    kind: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Record)]
#[repr(C)]
pub(crate) struct Cell(pub u8, pub(crate) Particle, [[i16; 2]; 3]);

/// Rust may order its fields otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Record)]
struct Ordered {
    /// Documentation is an attribute.
    small: u8,
    large: u64,
    r#type: u16,
}

#[derive(Clone, Copy, Record)]
#[repr(C, packed)]
struct Packed {
    small: u8,
    large: u64,
}

#[derive(Record)]
struct Empty;

#[derive(Record)]
struct Nothing {}

fn particle(number: i32) -> Particle {
    let number = f64::from(number);
    Particle { position: [number, number + 0.5, -number], charge: number as i32, kind: number as u8 }
}

#[test]
fn the_datatype_has_the_fields_in_order() {
    let text = |datatype: Result<Datatype, _>| datatype.map(|datatype: Datatype| datatype.to_string()).unwrap();
    let fields = "struct [1@0 (contiguous 3 double), 1@24 int32_t, 1@28 uint8_t]";
    assert_eq!(text(Particle::datatype()), format!("resized 0 32 ({fields})"));
    let cell = Cell::datatype().unwrap();
    assert_eq!((cell.size(), cell.extent(), size_of::<Cell>()), (1 + 29 + 12, 56, 56));
    let ordered = Ordered::datatype().unwrap();
    assert_eq!((ordered.size(), ordered.extent()), (11, size_of::<Ordered>() as i64));
    assert_eq!(text(Packed::datatype()), "resized 0 9 (struct [1@0 uint8_t, 1@1 uint64_t])");
    assert_eq!(text(Empty::datatype()), "resized 0 0 (struct [])");
    assert_eq!(text(Nothing::datatype()), "resized 0 0 (struct [])");
    assert!(<[Empty; usize::MAX]>::datatype().is_err());
    macro_rules! sizes {
        ($($number:ty)*) => {$(
            assert_eq!(<$number>::datatype().map(|datatype| datatype.size()), Ok(size_of::<$number>() as u64));
        )*};
    }
    sizes!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);
}

#[test]
fn records_come_back() {
    let engine = Engine::new();
    let cell = engine.commit(&Cell::datatype().unwrap()).of::<Cell>().unwrap();
    let cells: Vec<Cell> = (0..50).map(|at| Cell(at as u8, particle(at), [[at as i16; 2]; 3])).collect();
    let mut packed = vec![0u8; 50 * 42];
    assert_eq!(cell.pack(&cells, Range::elements(50), &mut packed), Ok(50 * 42));
    assert_eq!(packed[42], 1);
    assert_eq!(packed[43..51], 1f64.to_ne_bytes());
    let mut others = vec![Cell::default(); 50];
    assert_eq!(cell.unpack(&packed, Range::elements(50), &mut others), Ok(50 * 42));
    assert_eq!(others, cells);
    let short = Err(PackError::Packed { expected: 42, found: 41 });
    assert_eq!(cell.pack(&cells, Range::elements(1), &mut packed[..41]), short);
    let short = cell.unpack(&packed, Range::elements(51), &mut others).unwrap_err();
    assert!(matches!(short, PackError::Bounds { .. }));

    let ordered = engine.commit(&Ordered::datatype().unwrap()).of::<Ordered>().unwrap();
    let mut packed = [0u8; 11];
    ordered.pack(&[Ordered { small: 1, large: 2, r#type: 3 }], Range::elements(1), &mut packed).unwrap();
    assert_eq!(packed, [&[1][..], &2u64.to_ne_bytes(), &3u16.to_ne_bytes()].concat()[..]);
}

/// Lists of records, and of some of their fields.
#[test]
fn types_of_whole_records_and_of_fields_are_admitted() {
    let engine = Engine::new();
    let list = Constructor::IndexedBlock { blocklength: 2, displacements: vec![7, 0, 3].into() };
    let list = Datatype::new(list, [Particle::datatype().unwrap()], None).unwrap();
    let list = engine.commit(&list).of::<Particle>().unwrap();
    let particles: Vec<Particle> = (0..9).map(particle).collect();
    let mut packed = vec![0u8; 6 * 29];
    list.pack(&particles, Range::elements(1), &mut packed).unwrap();
    let mut others = vec![Particle::default(); 9];
    list.unpack(&packed, Range::elements(1), &mut others).unwrap();
    for (at, (one, other)) in particles.iter().zip(&others).enumerate() {
        let expected = if [0, 1, 3, 4, 7, 8].contains(&at) { *one } else { Particle::default() };
        assert_eq!(*other, expected);
    }

    let positions: Datatype = "resized 0 32 (contiguous 3 double)".parse().unwrap();
    let positions = engine.commit(&positions).of::<Particle>().unwrap();
    let mut packed = [0.0; 27];
    assert_eq!(positions.pack(&particles, Range::elements(9), &mut packed), Ok(27 * 8));
    assert_eq!(packed[3..6], [1.0, 1.5, -1.0]);
}

#[test]
fn types_with_bytes_of_the_padding_are_refused() {
    let engine = Engine::new();
    let refused = |text: &str| match engine.commit(&text.parse().unwrap()).of::<Particle>() {
        Err(RecordError::Padding { byte, size: 32, .. }) => Some(byte),
        Err(error) => panic!("{text}: {error}"),
        Ok(_) => None,
    };
    let cases = [
        // Elements follow each other at any byte.
        ("contiguous 29 byte", Some(29)),
        ("resized 0 32 (contiguous 29 byte)", None),
        ("resized 0 32 (contiguous 30 byte)", Some(29)),
        ("resized 0 64 (contiguous 33 byte)", Some(29)),
        ("resized 0 16 (contiguous 8 byte)", None),
        ("resized 0 16 (contiguous 14 byte)", Some(29)),
        ("resized 0 32 (hindexed [1@-4, 1@30] byte)", Some(30)),
        ("resized 0 32 (hindexed [1@-32, 1@28] byte)", None),
        ("resized 0 32 (hvector 1000000000 1 32 double)", None),
        ("resized 0 32 (hvector 1000000000 1 36 byte)", None),
        ("resized 0 32 (hvector 1000000000 1 33 byte)", Some(29)),
        ("resized 0 0 (hindexed [0@29] byte)", None),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
    let error = engine.commit(&"contiguous 32 byte".parse().unwrap()).of::<Particle>().unwrap_err();
    let name = std::any::type_name::<Particle>();
    let expected = format!("type: expected bytes of the fields of {name}, found byte 29 of its 32, which is padding");
    assert_eq!(error.to_string(), expected);
}

/// Beside the displacements of every byte, one after the other.
#[test]
fn residues_are_those_of_every_byte() {
    let mut compared = 0;
    for seed in 0..2000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &Limits::DISJOINT);
        let (layout, extent) = (lower(&datatype), i128::from(datatype.extent()));
        let modulus = rng.random_range(1..40u64);
        if layout.size() > 10_000 {
            continue;
        }
        let elements = 0..i128::from(modulus);
        let found: BTreeSet<u64> = elements
            .flat_map(|element| layout.displacements().map(move |at| i128::from(at) + element * extent))
            .map(|at| at.rem_euclid(modulus.into()) as u64)
            .collect();
        let residues = layout.residues(modulus).expect("few ranges");
        for byte in 0..modulus {
            let text = format!("layout lb 0 extent {modulus} {{\n  %0 = dense 1 x byte\n  root {byte}: %0\n}}");
            let one = dtc_compiler::layout::Layout::parse(&text).unwrap().residues(modulus).unwrap();
            assert_eq!(
                one.first_outside(&residues).is_none(),
                found.contains(&byte),
                "seed {seed}: {byte} of {modulus}\n{layout}"
            );
        }
        compared += 1;
    }
    assert!(compared > 1000, "{compared} types");
}
