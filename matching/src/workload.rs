//! Messages and receives of the shapes that applications have, drawn from a seed.
//!
//! The shapes are those of Klenk et al., "Relaxations for High-Performance Message Passing on Massively Parallel SIMT
//! Processors" (2017): Table I for peers, tags, wildcards and communicators, figure 2 for queue lengths, section V.B for orders.

use crate::envelope::{Envelope, LARGEST, Pattern};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// The order of the receives, compared with that of their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The same.
    Same,
    /// The last message is received first.
    Reversed,
    /// Drawn.
    Random,
}

/// The shape of messages and receives. Shares are of 0 to 1.
///
/// ```
/// use dtc_matching::workload::{Order, Shape};
/// let shape = Shape { order: Order::Reversed, ..Shape::random(512) };
/// let workload = shape.draw(1);
/// assert_eq!((workload.messages.len(), workload.receives.len()), (512, 512));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Messages, and as many receives.
    pub length: u32,
    /// Ranks that messages come from.
    pub peers: u32,
    /// Tags of a peer.
    pub tags: u32,
    /// Communicators.
    pub communicators: u32,
    /// The order of the receives.
    pub order: Order,
    /// Share of the receives with `MPI_ANY_SOURCE`.
    pub any_source: f64,
    /// Share of the receives with `MPI_ANY_TAG`.
    pub any_tag: f64,
    /// Share of the messages that no receive without wildcards takes, and of the receives that no message fits.
    pub unmatched: f64,
}

/// Messages in the order in which they come, and receives in the order of posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The messages.
    pub messages: Vec<Envelope>,
    /// The receives.
    pub receives: Vec<Pattern>,
}

/// An application of Table I whose matching was analysed: its communicators, peers and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its name.
    pub name: &'static str,
    /// Whether it receives from `MPI_ANY_SOURCE`. None receives `MPI_ANY_TAG`.
    pub any_source: bool,
    /// Communicators.
    pub communicators: u32,
    /// Ranks that a rank receives from.
    pub peers: u32,
    /// Tags.
    pub tags: u32,
}

const fn application(name: &'static str, any_source: bool, communicators: u32, peers: u32, tags: u32) -> Application {
    Application { name, any_source, communicators, peers, tags }
}

/// The applications of Table I with figures for peers and tags.
pub const APPLICATIONS: [Application; 13] = [
    application("MOCFE", false, 1, 4, 2944),
    application("NEKBONE", false, 2, 29, 1044),
    application("CNS", false, 1, 72, 67),
    application("MultiGrid (EXACT)", false, 1, 37, 845),
    application("LULESH", false, 1, 19, 2),
    application("AMG", false, 1, 79, 1),
    application("AMR Boxlib", false, 1, 35, 631),
    application("Crystal Router", false, 1, 6, 14),
    application("Fill Boundary", false, 1, 23, 24),
    application("MultiGrid (DF)", false, 1, 10, 104),
    application("MiniDFT", true, 7, 19, 19666),
    application("MiniFE", true, 1, 15, 3),
    application("PARTISN", false, 1, 1, 3444),
];

impl Application {
    /// Queues of this application. Where it uses a wildcard, an eighth of the receives does.
    ///
    /// ```
    /// let lulesh = dtc_matching::workload::APPLICATIONS[4];
    /// assert_eq!(lulesh.shape(512).tags, 2);
    /// ```
    pub fn shape(&self, length: u32) -> Shape {
        Shape {
            peers: self.peers,
            tags: self.tags,
            communicators: self.communicators,
            any_source: if self.any_source { 0.125 } else { 0.0 },
            ..Shape::random(length)
        }
    }
}

impl Shape {
    /// Tuples of 4,096 sources and 65,536 tags in random order; all match. This is the benchmark of section V.B.
    ///
    /// ```
    /// assert_eq!(dtc_matching::workload::Shape::random(64).unmatched, 0.0);
    /// ```
    pub fn random(length: u32) -> Shape {
        Shape {
            length,
            peers: 1 << 12,
            tags: 1 << 16,
            communicators: 1,
            order: Order::Random,
            any_source: 0.0,
            any_tag: 0.0,
            unmatched: 0.0,
        }
    }

    /// Draws messages and receives of this shape.
    ///
    /// ```
    /// use dtc_matching::workload::Shape;
    /// assert_eq!(Shape::random(64).draw(5), Shape::random(64).draw(5));
    /// assert_ne!(Shape::random(64).draw(5), Shape::random(64).draw(6));
    /// ```
    pub fn draw(&self, seed: u64) -> Workload {
        let mut rng = SmallRng::seed_from_u64(seed);
        // Tags come from the lower half of the range, so that receives can ask for tags that never come.
        let half = |number: u32| number.clamp(1, LARGEST / 2);
        let mut messages = Vec::with_capacity(self.length as usize);
        let mut receives = Vec::with_capacity(self.length as usize);
        for _ in 0..self.length {
            let communicator = rng.random_range(0..half(self.communicators));
            let (source, tag) = (rng.random_range(0..half(self.peers)), rng.random_range(0..half(self.tags)));
            messages.push(Envelope { source, tag, communicator });
            let mut hit = |share: f64| rng.random::<f64>() < share;
            receives.push(if hit(self.unmatched) {
                Pattern { source: Some(source), tag: Some(tag + half(self.tags)), communicator }
            } else {
                let (any_source, any_tag) = (hit(self.any_source), hit(self.any_tag));
                Pattern { source: (!any_source).then_some(source), tag: (!any_tag).then_some(tag), communicator }
            });
        }
        let mut workload = Workload { messages, receives };
        match self.order {
            Order::Same => {}
            Order::Reversed => workload.receives.reverse(),
            Order::Random => workload.receives.shuffle(&mut rng),
        }
        workload
    }
}
