//! How long committing a type takes, with everything that a commit may leave to later calls: canonical form, hash and plan.
//! What a type costs that is packed once is measured by `bench/first_pack.c`.

use super::contest::{Contest, Settings, Times};
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

/// A commit by an engine that has never seen the type: nanoseconds of building, committing and dropping it. Creating
/// the engine is not counted, and no thread is started.
fn first_commit(recipe: &Recipe) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    drop(black_box(recipe.build().map(|datatype| committed(&engine, &datatype))));
    start.elapsed().as_nanos() as f64
}

/// The same until the kernel is there, if the type wants one.
pub fn kernel_ready(recipe: &Recipe) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    black_box(recipe.build().map(|datatype| engine.commit(&datatype).specialise()));
    start.elapsed().as_nanos() as f64
}

/// Interleaved rounds of building, committing and freeing the type.
pub fn commits(recipe: &Recipe, datatype: &Datatype, peers: &mut Peers, settings: &Settings) -> Contest {
    let known = Engine::new();
    let _held = committed(&known, datatype);
    let again = || drop(black_box(recipe.build().map(|datatype| committed(&known, &datatype))));
    let calls = repetitions(settings.least, again);
    let mut contest = Contest(["dtc", "dtc_known"].map(|name| Times { name, samples: Vec::new() }).into());
    contest.0.extend(peers.running.iter().map(|peer| Times { name: peer.kind, samples: Vec::new() }));
    for _ in 0..settings.rounds {
        let first: Vec<f64> = (0..5).map(|_| first_commit(recipe)).collect();
        let mut times = vec![("dtc", median(&first)), ("dtc_known", sample(calls, again))];
        times.extend(peers.each(|peer| {
            let one = peer.time("commit", 1)?;
            peer.time("commit", (settings.least / one.max(1.0)).ceil().max(1.0) as u64)
        }));
        for (name, time) in times {
            contest.0.iter_mut().filter(|other| other.name == name).for_each(|other| other.samples.push(time));
        }
    }
    contest.0.retain(|times| times.samples.len() == settings.rounds);
    contest
}
