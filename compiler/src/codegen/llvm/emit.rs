//! From the steps of a plan to LLVM's intermediate form.

use super::function::{Count, Function, Lanes};
use crate::plan::strategy::{ListMethod, Vectors, closed_list, near_elements};
use crate::plan::{Direction, Offsets, Plan, RunTable, Step, StepId};
use std::cell::RefCell;
use std::ops::Range;

/// Elements whose step, as one, tells that of any number of elements.
const MANY: u64 = 1 << 20;

/// Where a step is applied: pointers to memory and to packed bytes.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) memory: String,
    pub(super) packed: String,
}

impl Place {
    pub(super) fn further(&self, function: &mut Function, offset: i64, position: u64) -> Place {
        Place { memory: function.offset(&self.memory, offset), packed: function.offset(&self.packed, position as i64) }
    }

    /// The place of an iteration.
    pub(super) fn at(&self, function: &mut Function, index: &str, stride: i64, size: u64) -> Place {
        Place {
            memory: function.entry(&self.memory, index, stride),
            packed: function.entry(&self.packed, index, size as i64),
        }
    }
}

/// The numbers of a tile of one layer.
#[derive(Clone)]
pub(super) struct Tile {
    pub(super) planes: Count,
    /// Distance from plane to plane, in memory and in the packed bytes.
    pub(super) plane_stride: i64,
    pub(super) pitch: u64,
    pub(super) rows: u64,
    pub(super) stride: i64,
    /// Length of a row.
    pub(super) bytes: u64,
}

/// What both functions of a plan share: the lists that they read, in the order of their first use.
pub(super) struct Emitter<'a> {
    pub(super) plan: &'a Plan,
    pub(super) vectors: Vectors,
    pub(super) direction: Direction,
    /// How often the step that is being written is repeated in an element.
    pub(super) around: u64,
    pub(super) lists: &'a mut Vec<StepId>,
}

impl Emitter<'_> {
    /// The body of a function: `%count` elements at `%memory` and `%packed`. Where the vectors of calls that stay in a cache make a
    /// difference, there are two.
    pub(super) fn body(&mut self) -> String {
        let (near, vectors) = (near_elements(self.plan), self.vectors);
        let [whole, far] = [vectors, vectors.far()].map(|vectors| {
            let mut function = Function::new();
            self.call(&mut function, vectors);
            function.line("ret void");
            function.into_text()
        });
        if near == 0 || whole == far {
            return far;
        }
        let mut function = Function::new();
        let few = function.value("few", format_args!("icmp ule i64 %count, {near}"));
        let emitter = RefCell::new(self);
        function.either(
            &few,
            |function| emitter.borrow_mut().call(function, vectors),
            |function| emitter.borrow_mut().call(function, vectors.far()),
        );
        function.line("ret void");
        function.into_text()
    }

    /// What moves `%count` elements.
    fn call(&mut self, function: &mut Function, vectors: Vectors) {
        self.vectors = vectors;
        let plan = self.plan;
        let root = plan.root();
        let place = Place { memory: "%memory".to_owned(), packed: "%packed".to_owned() };
        let place = place.further(function, root.offset, 0);
        let count = Count::Value("%count".to_owned());
        // How often the outermost count of the step has the number of elements in it.
        let times = |function: &mut Function, of_many: u64| function.scaled(&count, of_many / MANY);
        match plan.repeated(MANY) {
            Some(Step::Nothing) => {}
            Some(Step::Copy { bytes }) => {
                let bytes = times(function, bytes);
                self.copy_long(function, &bytes.to_string(), &place);
            }
            Some(Step::Rows { rows, stride, bytes }) => {
                let rows = times(function, rows);
                self.rows(function, &rows, (stride, bytes), &place);
            }
            Some(Step::Planes { planes, plane_stride, rows, stride, bytes }) => {
                let planes = times(function, planes);
                self.planes(function, (&planes, plane_stride), (rows, stride, bytes), &place);
            }
            Some(Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes }) => {
                let planes = times(function, planes);
                let tile = Tile { planes, plane_stride, pitch: layers * rows * bytes, rows, stride, bytes };
                // Where elements overlap, the last one must be unpacked last.
                let room = if layers > 1 {
                    stride.unsigned_abs().min(layer_stride.unsigned_abs())
                } else {
                    stride.unsigned_abs()
                };
                let most = room / plane_stride.unsigned_abs().max(1);
                let apart = function.value("apart", format_args!("icmp ule i64 {}, {most}", tile.planes));
                let emitter = RefCell::new(self);
                function.either(
                    &apart,
                    |function| emitter.borrow_mut().layers(function, (layers, layer_stride), &tile, &place),
                    |function| emitter.borrow_mut().elements(function, &count, &place),
                );
            }
            _ => self.elements(function, &count, &place),
        }
    }

    /// One element after the other.
    fn elements(&mut self, function: &mut Function, count: &Count, place: &Place) {
        let plan = self.plan;
        function.repeat(count, |function, element| {
            let place = place.at(function, element, plan.extent(), plan.size());
            self.step(function, plan.root().step, &place);
        });
    }

    fn step(&mut self, function: &mut Function, id: StepId, place: &Place) {
        let plan = self.plan;
        match *plan.step(id) {
            Step::Nothing => {}
            Step::Copy { bytes } => self.copy(function, bytes, place),
            Step::Rows { rows, stride, bytes } => self.rows(function, &Count::Known(rows), (stride, bytes), place),
            Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                self.planes(function, (&Count::Known(planes), plane_stride), (rows, stride, bytes), place);
            }
            Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes } => {
                let planes = Count::Known(planes);
                let tile = Tile { planes, plane_stride, pitch: layers * rows * bytes, rows, stride, bytes };
                self.layers(function, (layers, layer_stride), &tile, place);
            }
            Step::List { ref offsets, bytes } => {
                self.list_of_blocks(function, (id, offsets), bytes, place);
            }
            Step::Runs(ref table) if table.is_unrolled() => {
                for (run, &position) in table.runs.iter().zip(table.positions.iter()) {
                    let place = place.further(function, run.offset, position);
                    self.copy(function, run.count, &place);
                }
            }
            Step::Runs(ref table) => self.runs(function, id, table, place),
            Step::Repeat { count, stride, body } => {
                let size = plan.size_of(body);
                self.inside(count, |emitter| {
                    function.repeat(&Count::Known(count), |function, index| {
                        let place = place.at(function, index, stride, size);
                        emitter.step(function, body, &place);
                    });
                });
            }
            Step::Scatter { ref offsets, body } => {
                let size = plan.size_of(body);
                self.inside(offsets.len() as u64, |emitter| {
                    let all = 0..offsets.len() as u64;
                    emitter.listed(function, (id, offsets), all, size, place, |emitter, function, place| {
                        emitter.step(function, body, place);
                    });
                });
            }
            Step::Sequence { ref parts } => {
                for part in parts.iter() {
                    let place = place.further(function, part.offset, part.position);
                    self.step(function, part.step, &place);
                }
            }
        }
    }

    fn planes(
        &mut self,
        function: &mut Function,
        (planes, plane_stride): (&Count, i64),
        (rows, stride, bytes): (u64, i64, u64),
        place: &Place,
    ) {
        let around = if let Count::Known(planes) = planes { *planes } else { 1 };
        self.inside(around, |emitter| {
            function.repeat(planes, |function, plane| {
                let place = place.at(function, plane, plane_stride, rows * bytes);
                emitter.rows(function, &Count::Known(rows), (stride, bytes), &place);
            });
        });
    }

    /// Writes what is inside of a loop.
    fn inside(&mut self, count: u64, body: impl FnOnce(&mut Self)) {
        let around = self.around;
        self.around = around.saturating_mul(count);
        body(self);
        self.around = around;
    }

    fn layers(&mut self, function: &mut Function, (layers, layer_stride): (u64, i64), tile: &Tile, place: &Place) {
        function.repeat(&Count::Known(layers), |function, layer| {
            let place = place.at(function, layer, layer_stride, tile.rows * tile.bytes);
            self.tile(function, tile, &place);
        });
    }

    /// What is read, and what is written.
    pub(super) fn ends<'p>(&self, place: &'p Place) -> (&'p str, &'p str) {
        match self.direction {
            Direction::Pack => (&place.memory, &place.packed),
            Direction::Unpack => (&place.packed, &place.memory),
        }
    }

    /// The name of the list of a step.
    fn list(&mut self, id: StepId) -> String {
        let known = self.lists.iter().position(|&known| known == id);
        let index = known.unwrap_or_else(|| {
            self.lists.push(id);
            self.lists.len() - 1
        });
        format!("@list{index}")
    }

    /// Blocks of one length at listed offsets.
    fn list_of_blocks(&mut self, function: &mut Function, list: (StepId, &Offsets), bytes: u64, place: &Place) {
        let blocks = list.1.len() as u64;
        let method = closed_list(&self.vectors, self.direction, bytes);
        let lanes = Lanes { count: bytes.next_power_of_two(), bytes: 1 };
        // What is stored behind a block is overwritten by the next; the last are moved by words.
        let before = match method {
            ListMethod::Overhanging { width } => blocks.saturating_sub((width - bytes).div_ceil(bytes)),
            ListMethod::Masked | ListMethod::Words => 0,
        };
        self.listed(function, list, 0..before, bytes, place, |emitter, function, place| {
            emitter.copy_overhanging(function, lanes, bytes, place);
        });
        self.listed(function, list, before..blocks, bytes, place, |emitter, function, place| match method {
            ListMethod::Masked => emitter.copy_masked(function, lanes, bytes, place),
            ListMethod::Overhanging { .. } | ListMethod::Words => emitter.copy(function, bytes, place),
        });
    }

    /// A loop over a part of a list of offsets.
    fn listed(
        &mut self,
        function: &mut Function,
        (id, offsets): (StepId, &Offsets),
        part: Range<u64>,
        size: u64,
        place: &Place,
        body: impl FnOnce(&mut Self, &mut Function, &Place),
    ) {
        let width = if matches!(offsets, Offsets::Narrow(_)) { 4 } else { 8 };
        let list = self.list(id);
        let list = function.offset(&list, part.start as i64 * width);
        let place = place.further(function, 0, part.start * size);
        function.repeat(&Count::Known(part.end - part.start), |function, index| {
            let offset = match offsets {
                Offsets::Narrow(_) => {
                    let entry = function.entry(&list, index, 4);
                    let narrow = function.value("narrow", format_args!("load i32, ptr {entry}, align 4"));
                    function.value("offset", format_args!("sext i32 {narrow} to i64"))
                }
                Offsets::Wide(_) => {
                    let entry = function.entry(&list, index, 8);
                    function.value("offset", format_args!("load i64, ptr {entry}, align 8"))
                }
            };
            let place = Place {
                memory: function.address(&place.memory, offset),
                packed: function.entry(&place.packed, index, size as i64),
            };
            body(self, function, &place);
        });
    }

    /// A loop over runs: offset, packed position and length in 8 bytes each.
    fn runs(&mut self, function: &mut Function, id: StepId, table: &RunTable, place: &Place) {
        let list = self.list(id);
        function.repeat(&Count::Known(table.runs.len() as u64), |function, index| {
            let entry = function.entry(&list, index, 24);
            let mut number = |at: i64| {
                let address = function.offset(&entry, at);
                function.value("run", format_args!("load i64, ptr {address}, align 8"))
            };
            let [offset, position, bytes] = [number(0), number(8), number(16)];
            let place = Place {
                memory: function.address(&place.memory, offset),
                packed: function.address(&place.packed, position),
            };
            self.copy_run(function, &bytes, &place);
        });
    }
}
