//! Identity depends on the meaning, not on the form. Different descriptions of one byte sequence have one hash and one
//! canonical layout; types of different sequences do not.

use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::TypeHash;
use dtc_compiler::{canonicalise, lower};
use dtc_tests::generate::algebra::Huge;
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::watch::each_seed;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAIRS: u64 = 100_000;
const HUGE_PAIRS: u64 = 5_000;
/// Far above the time of any of these types, which must not depend on the counts.
const LIMIT: Duration = Duration::from_secs(10);

/// The compiler's identity of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    hash: TypeHash,
    /// Text of the canonical layout, if it is exact.
    canonical: Option<String>,
}

fn identity(datatype: &Datatype) -> Identity {
    let layout = lower(datatype);
    let canonical = canonicalise(&layout);
    let hash = layout.type_hash();
    assert_eq!(hash, canonical.layout.type_hash(), "canonicalisation changed the meaning of {datatype:?}");
    Identity { hash, canonical: canonical.layout.exact().then(|| canonical.layout.to_string()) }
}

/// A digest of the sequence itself, which tells a collision of hashes from a repetition.
fn digest(sequence: &Sequence) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&sequence.lb.to_le_bytes());
    hasher.update(&sequence.extent.to_le_bytes());
    for byte in &sequence.bytes {
        hasher.update(&byte.to_le_bytes());
    }
    hasher.finalize()
}

/// The sequence of each hash.
#[derive(Default)]
struct Seen(HashMap<TypeHash, (blake3::Hash, u64)>);

impl Seen {
    /// Returns the seed of another sequence with this hash, if there is one.
    fn insert(&mut self, hash: TypeHash, sequence: &Sequence, seed: u64) -> Result<(), u64> {
        // A lower bound moves no packed byte, so it is not part of the identity.
        let digest = digest(&Sequence { lb: 0, ..sequence.clone() });
        match self.0.insert(hash, (digest, seed)) {
            Some((other, at)) if other != digest => Err(at),
            _ => Ok(()),
        }
    }
}

#[test]
fn equal_sequences_have_one_identity() {
    let totals = Arc::new(Mutex::new((0, 0)));
    let shared = Arc::clone(&totals);
    let mut seen = Seen::default();
    each_seed(0..PAIRS, LIMIT, move |seed| {
        let (mut exact, mut partners) = (0, 0);
        let mut rng = SmallRng::seed_from_u64(seed);
        let most = if seed % 50 == 0 { 4000 } else { 250 };
        let sequence = Sequence::draw(&mut rng, most);
        let [one, other] = [(); 2].map(|()| split::datatype_of(&sequence, &mut rng));
        let (a, b) = (identity(&one), identity(&other));
        assert_eq!(a.hash, b.hash, "seed {seed}: {sequence:?}\n{}\n{}", lower(&one), lower(&other));
        if let (Some(a), Some(b)) = (&a.canonical, &b.canonical) {
            exact += 1;
            assert_eq!(a, b, "seed {seed}: {sequence:?}\n{}\n{}", lower(&one), lower(&other));
        }
        let collision = seen.insert(a.hash, &sequence, seed);
        assert_eq!(collision, Ok(()), "seed {seed}: the hash of another sequence");
        // Every check above must detect a change of the sequence.
        let take = if seed % 4 == 0 { 4 } else { 1 };
        for (what, partner) in sequence.partners(&mut rng).into_iter().take(take) {
            let c = identity(&split::datatype_of(&partner, &mut rng));
            assert_ne!(a.hash, c.hash, "seed {seed}: {what}");
            assert!(a.canonical.is_none() || a.canonical != c.canonical, "seed {seed}: {what}");
            assert_eq!(
                seen.insert(c.hash, &partner, seed),
                Ok(()),
                "seed {seed}: {what}: the hash of another sequence"
            );
            partners += 1;
        }
        let mut totals = shared.lock().expect("the other thread only reads at the end");
        *totals = (totals.0 + exact, totals.1 + partners);
    });
    let (exact, partners) = *totals.lock().expect("the worker has ended");
    tell(&format!("{PAIRS} pairs, exact {:.3} %, {partners} unequal partners", 100.0 * exact as f64 / PAIRS as f64));
    assert!(exact * 100 > PAIRS * 95, "only {exact} of {PAIRS} pairs are exact");
}

#[test]
fn huge_sequences_have_one_identity() {
    let exact = Arc::new(Mutex::new(0));
    let shared = Arc::clone(&exact);
    let mut seen = HashMap::new();
    each_seed(0..HUGE_PAIRS, LIMIT, move |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let huge = Huge::draw(&mut rng);
        let [one, other] = [(); 2].map(|()| huge.datatype(&mut rng));
        let (a, b) = (identity(&one), identity(&other));
        assert_eq!(a.hash, b.hash, "seed {seed}: {huge:?}\n{}\n{}", lower(&one), lower(&other));
        if let (Some(a), Some(b)) = (&a.canonical, &b.canonical) {
            *shared.lock().expect("the other thread only reads at the end") += 1;
            assert_eq!(a, b, "seed {seed}: {huge:?}\n{}\n{}", lower(&one), lower(&other));
        }
        let altered = huge.altered(&mut rng);
        let c = identity(&altered.datatype(&mut rng));
        assert_ne!(a.hash, c.hash, "seed {seed}: {huge:?} and {altered:?}");
        if let Some(before) = seen.insert(a.hash, huge.clone()) {
            assert_eq!(before.expression, huge.expression, "seed {seed}: a collision");
        }
    });
    let exact = *exact.lock().expect("the worker has ended");
    tell(&format!("{HUGE_PAIRS} huge pairs, exact {:.1} %", 100.0 * exact as f64 / HUGE_PAIRS as f64));
    assert!(exact > 0);
}

/// Prints a figure also if the test passes; the harness captures `println`.
fn tell(figure: &str) {
    std::io::stderr().write_all(format!("{figure}\n").as_bytes()).unwrap();
}
