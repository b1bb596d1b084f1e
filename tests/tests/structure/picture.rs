//! A picture of the crates, as SVG: boxes in rows, each of which is built with boxes below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The crates, each with those that it is built with.
pub type Arrows = BTreeMap<String, Vec<String>>;

/// What a crate is part of.
#[derive(Clone, Copy)]
enum Part {
    Compiler,
    Runtime,
    Interfaces,
    Tools,
}

/// A crate in the picture: its name, what it is for, and where it stands, in rows from the top and columns from the left.
struct Room(&'static str, &'static str, Part, u32, f64);

const ROOMS: &[Room] = &[
    Room("dtc-tests", "oracle, corpus, conformance", Part::Tools, 0, 0.5),
    Room("dtc-fuzz", "fuzz targets for every reader", Part::Tools, 0, 1.5),
    Room("dtc-cli", "the command dtc", Part::Tools, 0, 3.6),
    Room("dtc-bench", "measurements for developers", Part::Tools, 0, 4.7),
    Room("xtask", "builds and installs the libraries", Part::Tools, 0, 5.7),
    Room("dtc-mpi", "calls of MPI, by preloading", Part::Interfaces, 0, -0.5),
    Room("dtc-yaksa", "the datatype engine of MPICH", Part::Interfaces, 1, 0.0),
    Room("dtc-capi", "libdtc, the C interface", Part::Interfaces, 1, 1.0),
    Room("dtc-cudarc", "slices and streams of cudarc", Part::Interfaces, 1, 2.0),
    Room("dtc-python", "the package libdtc of Python", Part::Interfaces, 0, 2.55),
    Room("dtc-build", "libraries and bundles of types", Part::Tools, 1, 3.0),
    Room("dtc-view", "types as pages and pictures", Part::Tools, 1, 4.1),
    Room("dtc-measure", "measurements and their reports", Part::Tools, 2, 4.0),
    Room("dtc-outside", "programs of users, as tests", Part::Tools, 2, 3.0),
    Room("dtc-emulator", "CUDA without a GPU, for tests", Part::Tools, 1, -1.0),
    Room("dtc-matching", "which receive takes a message", Part::Runtime, 2, 5.0),
    Room("dtc-mpi-table", "what dtc does faster than MPIs", Part::Interfaces, 3, -0.6),
    Room("dtc-reserve", "memory claimed for C calls", Part::Interfaces, 3, 0.6),
    Room("dtc-runtime", "engine, types, transfers", Part::Runtime, 3, 2.0),
    Room("dtc-hand-loop", "loops as written by hand", Part::Tools, 3, 4.6),
    Room("dtc-derive", "datatypes of structs in Rust", Part::Runtime, 4, 0.0),
    Room("dtc-store", "compiled GPU code on disk", Part::Runtime, 4, 1.0),
    Room("dtc-cuda", "the CUDA driver and NVRTC", Part::Runtime, 4, 2.0),
    Room("dtc-microkernels", "SIMD routines for each processor", Part::Runtime, 4, 3.0),
    Room("dtc-host", "a guest's manners in processes", Part::Runtime, 5, 1.5),
    Room("dtc-compiler", "datatype, layout, plan, code", Part::Compiler, 5, 3.0),
    Room("dtc-templates", "CUDA C++ of kernel families", Part::Compiler, 6, 3.0),
];

/// Pixels of a box, and from one to the next.
const BOX: [f64; 2] = [178.0, 46.0];
const PITCH: [f64; 2] = [192.0, 92.0];
const MARGIN: f64 = 8.0;

impl Room {
    /// The upper left corner.
    fn corner(&self) -> [f64; 2] {
        [MARGIN + self.4 * PITCH[0], MARGIN + f64::from(self.3) * PITCH[1]]
    }

    /// The middle of the upper edge.
    fn top(&self) -> [f64; 2] {
        let [x, y] = self.corner();
        [x + BOX[0] / 2.0, y]
    }

    /// The colour of the box.
    fn fill(&self) -> &'static str {
        match self.2 {
            Part::Compiler => "#dbeafe",
            Part::Runtime => "#dcfce7",
            Part::Interfaces => "#fef3c7",
            Part::Tools => "#e5e7eb",
        }
    }
}

fn room(name: &str) -> &'static Room {
    ROOMS.iter().find(|room| room.0 == name).unwrap_or_else(|| {
        panic!("{name}: expected a place for it in the picture, among ROOMS of tests/tests/structure/picture.rs, found none")
    })
}

/// Everything that can be reached from a crate.
fn reached<'a>(from: &'a str, arrows: &'a Arrows) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(next) = waiting.pop() {
        waiting.extend(arrows[next].iter().map(String::as_str).filter(|&to| reached.insert(to)));
    }
    reached
}

/// The picture. Arrows that others imply are left out: from a crate to what one of its arrows leads to already.
///
/// # Panics
///
/// A crate has no place, a place has no crate, or an arrow points upwards.
pub fn draw(arrows: &Arrows) -> String {
    for room in ROOMS {
        assert!(arrows.contains_key(room.0), "{}: expected a crate for its place in the picture, found none", room.0);
    }
    let left = ROOMS.iter().map(|room| room.corner()[0]).fold(f64::INFINITY, f64::min) - MARGIN;
    let right = ROOMS.iter().map(|room| room.corner()[0]).fold(0.0, f64::max) + BOX[0] + MARGIN;
    let bottom = ROOMS.iter().map(|room| room.corner()[1]).fold(0.0, f64::max) + BOX[1] + MARGIN;
    let width = right - left;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left} 0 {width} {bottom}\" font-family=\"sans-serif\" role=\"img\">\n  \
         <title>The crates of dtc, above those that they are built with</title>\n  \
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0 8 4 0 8z\" fill=\"#6b7280\"/></marker></defs>\n"
    );
    for (name, direct) in arrows {
        let from = room(name);
        for to in direct.iter().filter(|&to| !direct.iter().any(|other| reached(other, arrows).contains(to.as_str()))) {
            let to = room(to);
            assert!(from.3 < to.3, "{name}: expected a row above {}, found one below", to.0);
            let ([x1, y1], [x2, y2]) = (from.top(), to.top());
            let y1 = y1 + BOX[1];
            // Several arrows to one box end side by side.
            let x2 = x2 + (x1 - x2).clamp(-BOX[0], BOX[0]) / 4.0;
            let x1 = x1 + (x2 - x1).clamp(-BOX[0], BOX[0]) / 4.0;
            let _ = writeln!(
                svg,
                "  <line x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\" stroke=\"#6b7280\" stroke-width=\"1.5\" \
                 marker-end=\"url(#arrow)\"/>"
            );
        }
    }
    for room in ROOMS {
        let ([x, y], [middle, _], [width, height]) = (room.corner(), room.top(), BOX);
        let _ = writeln!(
            svg,
            "  <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{}\" stroke=\"#6b7280\"/>\n  \
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\" font-weight=\"bold\" fill=\"#111827\">{}</text>\n  \
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#374151\">{}</text>",
            room.fill(),
            y + 19.0,
            room.0,
            y + 35.0,
            room.1
        );
    }
    svg + "</svg>\n"
}
