//! How long committing a type takes, alone, and with everything that a commit may leave to later calls: canonical form, hash and plan.
//! What a type costs that is packed once is measured by `bench/first_pack.c`.

use super::comparison::{AGAIN, Comparison, Settings};
use super::peers::Peers;
use crate::timing::{median, repetitions, sample};
use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds};
use dtc_runtime::{Committed, Engine};
use std::hint::black_box;
use std::time::Instant;

/// The calls of constructors that make a type: what a program writes down.
pub struct Recipe(Vec<Call>);

/// One call: the constructor, its children as places of earlier calls, and bounds given as facts.
struct Call {
    constructor: Constructor,
    children: Vec<usize>,
    given: Option<GivenBounds>,
}

impl Recipe {
    /// What makes a datatype.
    pub fn of(datatype: &Datatype) -> Recipe {
        let nodes = datatype.nodes();
        let call = |node: &&Datatype| Call {
            constructor: node.constructor().clone(),
            children: node.children().iter().map(|child| nodes.place(child)).collect(),
            given: node.given(),
        };
        Recipe(nodes.iter().map(call).collect())
    }

    /// Calls the constructors.
    fn build(&self) -> Option<Datatype> {
        let mut built: Vec<Datatype> = Vec::with_capacity(self.0.len());
        for Call { constructor, children, given } in &self.0 {
            let children = children.iter().map(|&child| built[child].clone());
            built.push(Datatype::new(constructor.clone(), children, *given).ok()?);
        }
        built.pop()
    }
}

/// A committed type with its plan.
fn committed(engine: &Engine, datatype: &Datatype) -> Committed {
    let committed = engine.commit(datatype);
    committed.plan();
    committed
}

/// How much of a commit is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What the call does.
    Call,
    /// With what it leaves to later calls.
    Plan,
}

/// A commit by an engine that has never seen the type: nanoseconds of building, committing and dropping it. Creating
/// the engine is not counted, and no thread is started.
fn first_commit(recipe: &Recipe, extent: Extent) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    let built = recipe.build();
    drop(black_box(match extent {
        Extent::Call => built.map(|datatype| engine.commit(&datatype)),
        Extent::Plan => built.map(|datatype| committed(&engine, &datatype)),
    }));
    start.elapsed().as_nanos() as f64
}

/// The same until the kernel is there, if the type wants one.
pub fn kernel_ready(recipe: &Recipe) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    black_box(recipe.build().map(|datatype| engine.commit(&datatype).specialise()));
    start.elapsed().as_nanos() as f64
}

/// First commits of a round: their median counts. Of types whose commit takes longer than [`SLOW`] there is one.
const FIRST_COMMITS: usize = 5;

/// Nanoseconds of a slow commit.
const SLOW: f64 = 1e6;

/// Interleaved rounds of building, committing and freeing the type.
pub fn commits(
    recipe: &Recipe,
    datatype: &Datatype,
    extent: Extent,
    peers: &mut Peers,
    settings: &Settings,
) -> Comparison {
    let mut comparison = rounds(recipe, datatype, extent, peers, settings, &|_| true);
    // With a plan, which MPIs do not make, it is always far slower.
    let sparing = settings.sparing.filter(|_| extent == Extent::Call);
    if let Some(peer) = sparing.and_then(|sparing| comparison.doubtful(sparing.doubtful)) {
        let longer = Settings { rounds: settings.rounds * AGAIN, ..*settings };
        let again = rounds(recipe, datatype, extent, peers, &longer, &|kind| kind == peer);
        comparison.again = Some(again.times);
    }
    comparison
}

fn rounds(
    recipe: &Recipe,
    datatype: &Datatype,
    extent: Extent,
    peers: &mut Peers,
    settings: &Settings,
    meant: &dyn Fn(&str) -> bool,
) -> Comparison {
    let known = settings.sparing.is_none().then(Engine::new);
    let held = known.as_ref().map(|engine| (engine, committed(engine, datatype)));
    let again = || {
        if let Some((engine, _)) = &held {
            drop(black_box(recipe.build().map(|datatype| committed(engine, &datatype))));
        }
    };
    let calls = held.as_ref().map(|_| repetitions(settings.least, again));
    let slow = first_commit(recipe, extent);
    let first_commits = if slow > SLOW { 1 } else { FIRST_COMMITS };
    let speeds = peers.those(|peer| meant(peer.kind), |peer| peer.time("commit", 1));
    let commits = |speed: f64| (settings.least / speed.max(1.0)).ceil().max(1.0);
    // One more call than is timed.
    let others: f64 = speeds.iter().map(|(_, speed)| (commits(*speed) + 1.0) * speed).sum();
    let number = settings.rounds_of(others + first_commits as f64 * slow);
    let names = ["dtc"].into_iter().chain(known.as_ref().map(|_| "dtc_known"));
    let mut comparison = Comparison::of_names(names.chain(speeds.iter().map(|(kind, _)| *kind)));
    for _ in 0..number {
        let first: Vec<f64> = (0..first_commits).map(|_| first_commit(recipe, extent)).collect();
        comparison.record("dtc", Some(median(&first)));
        comparison.record("dtc_known", calls.map(|calls| sample(calls, again)));
        for &(kind, speed) in &speeds {
            let asked = peers.those(|peer| peer.kind == kind, |peer| peer.time("commit", commits(speed) as u64));
            comparison.record(kind, asked.first().map(|(_, time)| *time));
        }
    }
    comparison.retain_complete();
    comparison
}
