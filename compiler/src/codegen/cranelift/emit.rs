//! From the steps of a plan to Cranelift's intermediate form.

use super::closed::{self, Closed, Surroundings};
use super::copy::chunks;
use super::microkernel::Microkernel;
use crate::plan::{
    Direction, INLINE_BYTES, INLINE_PIECE_BYTES, LOOP_WORDS, MICROKERNEL_ROWS, Offsets, Part, Plan, RunTable, Step,
    StepId, UNROLLED_LIST_WORDS, UNROLLED_WORDS,
};
use cranelift_codegen::ir::{
    AbiParam, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, Signature, SourceLoc,
    UserExternalName, UserExternalNameRef, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;

/// The microkernels and lists that a kernel refers to, in the order of their first use.
#[derive(Default)]
pub(super) struct References {
    microkernels: Vec<(Microkernel, UserExternalNameRef, FuncRef)>,
    pub(super) tables: Vec<StepId>,
    /// Whether the kernel calls microkernels and moves nothing itself.
    pub(super) only_calls: bool,
}

impl References {
    pub(super) fn microkernel(&self, name: &ExternalName) -> Option<Microkernel> {
        let ExternalName::User(name) = name else { return None };
        self.microkernels.iter().find(|(_, known, _)| known == name).map(|&(microkernel, ..)| microkernel)
    }
}

/// Where a step is applied: two pointers, and constants to be added to them.
///
/// Every function that emits a step returns the place behind it, by the pointers as they are there: those of a loop have moved on.
/// So nested loops share two pointers and keep a count each, and no register holds where an outer one began.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) memory: Value,
    pub(super) offset: i64,
    pub(super) packed: Value,
    pub(super) position: i64,
}

impl Place {
    pub(super) fn further(self, offset: i64, position: u64) -> Place {
        Place {
            offset: self.offset.wrapping_add(offset),
            position: self.position.wrapping_add(position as i64),
            ..self
        }
    }

    /// The place from which [`Place::further`] leads here.
    pub(super) fn back(self, offset: i64, position: u64) -> Place {
        Place {
            offset: self.offset.wrapping_sub(offset),
            position: self.position.wrapping_sub(position as i64),
            ..self
        }
    }
}

/// How instructions are marked with a step: 0 marks the loop over the elements.
fn location(step: StepId) -> SourceLoc {
    SourceLoc::new(u32::try_from(step.index() + 1).unwrap_or(0))
}

/// The step that an instruction is marked with.
pub(super) fn step_of(location: SourceLoc) -> Option<StepId> {
    location.bits().checked_sub(1).map(|marked| StepId::new(marked as usize))
}

pub(super) struct Emitter<'a, 'b> {
    pub(super) plan: &'a Plan,
    pub(super) direction: Direction,
    pub(super) builder: FunctionBuilder<'b>,
    /// The table of pointers to lists, of kernels of the runtime.
    tables: Option<Value>,
    pub(super) closed: Option<Closed>,
    pub(super) references: References,
}

/// Writes the body of a kernel: the element, in a loop over the count.
pub(super) fn kernel(
    mut builder: FunctionBuilder<'_>,
    plan: &Plan,
    direction: Direction,
    config: TargetFrontendConfig,
    surroundings: Surroundings,
) -> References {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let parameters = builder.block_params(entry);
    let (mut memory, mut packed, count) = (parameters[0], parameters[1], parameters[2]);
    let tables = parameters.get(3).copied();
    let mut references = References { only_calls: true, ..References::default() };
    let closed = match surroundings {
        Surroundings::Runtime => None,
        Surroundings::Closed(mut closed) => {
            references.tables = std::mem::take(&mut closed.lists);
            // Closed functions read their first argument and write their second.
            if direction == Direction::Unpack {
                (memory, packed) = (packed, memory);
            }
            closed::return_without_elements(&mut builder, count);
            Some(closed)
        }
    };
    let mut emitter = Emitter { plan, direction, builder, tables, closed, references };
    let Part { offset, step, .. } = plan.root();
    let place = Place { memory, offset: 0, packed, position: 0 };
    emitter.builder.set_srcloc(SourceLoc::new(0));
    emitter.repeated(place, count, plan.extent(), plan.size(), |emitter, place| {
        emitter.step(step, place.further(offset, 0)).back(offset, 0)
    });
    emitter.builder.ins().return_(&[]);
    emitter.builder.seal_all_blocks();
    let Emitter { builder, references, .. } = emitter;
    builder.finalize(config);
    references
}

impl Emitter<'_, '_> {
    pub(super) fn constant(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(types::I64, value)
    }

    pub(super) fn plus(&mut self, pointer: Value, offset: i64) -> Value {
        if offset == 0 { pointer } else { self.builder.ins().iadd_imm_s(pointer, offset) }
    }

    /// The pointers of a place, with their constants added.
    pub(super) fn pointers(&mut self, place: Place) -> (Value, Value) {
        (self.plus(place.memory, place.offset), self.plus(place.packed, place.position))
    }

    /// Moves constants into the pointers when they are too large for an instruction.
    pub(super) fn near(&mut self, mut place: Place, span: u64) -> Place {
        let fits = |constant: i64| i32::try_from(i128::from(constant) + i128::from(span)).is_ok();
        if !fits(place.offset) || i32::try_from(place.offset).is_err() {
            (place.memory, place.offset) = (self.plus(place.memory, place.offset), 0);
        }
        if !fits(place.position) || i32::try_from(place.position).is_err() {
            (place.packed, place.position) = (self.plus(place.packed, place.position), 0);
        }
        place
    }

    /// A loop that runs at least once, with the pointers moving by constants. They are returned as they are behind it.
    fn repeated(
        &mut self,
        place: Place,
        count: Value,
        stride: i64,
        size: u64,
        body: impl FnOnce(&mut Self, Place) -> Place,
    ) -> Place {
        let (memory, packed) = self.pointers(place);
        let (header, exit) = (self.builder.create_block(), self.builder.create_block());
        let memory_in = self.builder.append_block_param(header, types::I64);
        let packed_in = self.builder.append_block_param(header, types::I64);
        let left = self.builder.append_block_param(header, types::I64);
        self.builder.ins().jump(header, &[memory, packed, count].map(BlockArg::from));
        self.builder.switch_to_block(header);
        let place = body(self, Place { memory: memory_in, offset: 0, packed: packed_in, position: 0 });
        let (memory, packed) = self.pointers(place.further(stride, size));
        let left = self.builder.ins().iadd_imm_s(left, -1);
        let next = [memory, packed, left].map(BlockArg::from);
        self.builder.ins().brif(left, header, &next, exit, &[]);
        self.builder.switch_to_block(exit);
        Place { memory, offset: 0, packed, position: 0 }
    }

    pub(super) fn counted(
        &mut self,
        place: Place,
        count: u64,
        stride: i64,
        size: u64,
        body: impl FnOnce(&mut Self, Place) -> Place,
    ) -> Place {
        let iterations = self.constant(count as i64);
        let behind = self.repeated(place, iterations, stride, size, body);
        behind.back((count as i64).wrapping_mul(stride), count.wrapping_mul(size))
    }

    /// A loop over a list of offsets.
    pub(super) fn listed(
        &mut self,
        id: StepId,
        offsets: &Offsets,
        place: Place,
        size: u64,
        body: impl FnOnce(&mut Self, Place) -> Place,
    ) -> Place {
        let (memory, packed) = self.pointers(place);
        let table = self.table(id);
        let count = self.constant(offsets.len() as i64);
        let (header, exit) = (self.builder.create_block(), self.builder.create_block());
        let table_in = self.builder.append_block_param(header, types::I64);
        let packed_in = self.builder.append_block_param(header, types::I64);
        let left = self.builder.append_block_param(header, types::I64);
        self.builder.ins().jump(header, &[table, packed, count].map(BlockArg::from));
        self.builder.switch_to_block(header);
        let flags = MemFlagsData::trusted().with_readonly();
        let (offset, width) = match offsets {
            Offsets::Narrow(_) => (self.builder.ins().sload32(flags, table_in, 0), 4),
            Offsets::Wide(_) => (self.builder.ins().load(types::I64, flags, table_in, 0), 8),
        };
        let entry = self.builder.ins().iadd(memory, offset);
        let Place { packed, position, .. } =
            body(self, Place { memory: entry, offset: 0, packed: packed_in, position: 0 });
        let table = self.plus(table_in, width);
        let packed = self.plus(packed, position.wrapping_add(size as i64));
        let left = self.builder.ins().iadd_imm_s(left, -1);
        let next = [table, packed, left].map(BlockArg::from);
        self.builder.ins().brif(left, header, &next, exit, &[]);
        self.builder.switch_to_block(exit);
        Place { memory, offset: 0, packed, position: 0 }.back(0, (offsets.len() as u64).wrapping_mul(size))
    }

    /// The address of the list of a step.
    pub(super) fn table(&mut self, id: StepId) -> Value {
        let tables = &mut self.references.tables;
        let index = tables.iter().position(|&known| known == id).unwrap_or_else(|| {
            tables.push(id);
            tables.len() - 1
        });
        match (&self.closed, self.tables) {
            (None, Some(tables)) => {
                let flags = MemFlagsData::trusted().with_readonly();
                self.builder.ins().load(types::I64, flags, tables, index as i32 * 8)
            }
            (closed, _) => {
                let first = closed.as_ref().map_or(0, |closed| closed.first_list);
                closed::address_of_list(&mut self.builder, first + index as u32)
            }
        }
    }

    pub(super) fn call(&mut self, microkernel: Microkernel, arguments: &[Value]) {
        let known = self
            .references
            .microkernels
            .iter()
            .find(|(known, ..)| *known == microkernel)
            .map(|&(.., function)| function);
        let function = known.unwrap_or_else(|| {
            let mut signature = Signature::new(self.builder.func.signature.call_conv);
            signature.params.extend(arguments.iter().map(|_| AbiParam::new(types::I64)));
            let signature = self.builder.import_signature(signature);
            let index = self.references.microkernels.len() as u32;
            let name = self.builder.func.declare_imported_user_function(UserExternalName { namespace: 1, index });
            let data = ExtFuncData { name: ExternalName::user(name), signature, colocated: false, patchable: false };
            let function = self.builder.import_function(data);
            self.references.microkernels.push((microkernel, name, function));
            function
        });
        self.builder.ins().call(function, arguments);
    }

    /// One contiguous piece.
    pub(super) fn copy(&mut self, bytes: u64, place: Place) {
        if bytes > self.inline_bytes() {
            let (memory, packed) = self.pointers(place);
            let bytes = self.constant(bytes as i64);
            return self.copy_long(memory, packed, bytes);
        }
        self.references.only_calls = false;
        let Place { memory, offset, packed, position } = self.near(place, bytes);
        let flags = MemFlagsData::new().with_notrap();
        for chunk in chunks(bytes) {
            let (memory_at, packed_at) = ((offset + chunk.offset) as i32, (position + chunk.offset) as i32);
            match self.direction {
                Direction::Pack => {
                    let word = self.builder.ins().load(chunk.word, flags, memory, memory_at);
                    self.builder.ins().store(flags, word, packed, packed_at);
                }
                Direction::Unpack => {
                    let word = self.builder.ins().load(chunk.word, flags, packed, packed_at);
                    self.builder.ins().store(flags, word, memory, memory_at);
                }
            }
        }
    }

    /// A contiguous piece of any length, at two addresses.
    pub(super) fn copy_long(&mut self, memory: Value, packed: Value, bytes: Value) {
        let (destination, source) = match self.direction {
            Direction::Pack => (packed, memory),
            Direction::Unpack => (memory, packed),
        };
        match &self.closed {
            None => self.call(Microkernel::Copy, &[destination, source, bytes]),
            Some(closed) => closed::copy(&mut self.builder, closed.memcpy, &[destination, source, bytes]),
        }
    }

    /// Longest piece that is moved by straight code.
    fn inline_bytes(&self) -> u64 {
        if self.closed.is_some() { closed::INLINE_BYTES } else { INLINE_PIECE_BYTES }
    }

    /// How many loads a piece takes by straight code.
    pub(super) fn piece(&self, bytes: u64) -> u64 {
        if bytes <= self.inline_bytes() { chunks(bytes).len() as u64 } else { u64::MAX }
    }

    /// Whether the whole element is straight code.
    pub(super) fn small(&self) -> bool {
        self.plan.decision().is_small()
    }

    /// How many loads a step takes when everything in it is unrolled.
    fn words(&self, id: StepId) -> u64 {
        let piece = |bytes: u64| self.piece(bytes);
        match *self.plan.step(id) {
            Step::Nothing => 0,
            Step::Copy { bytes } => piece(bytes),
            Step::Rows { rows, bytes, .. } => piece(bytes).saturating_mul(rows),
            Step::Planes { planes, rows, bytes, .. } => piece(bytes).saturating_mul(rows).saturating_mul(planes),
            Step::Repeat { count, body, .. } => self.words(body).saturating_mul(count),
            Step::Runs(ref table) if table.is_unrolled() => table.runs.iter().map(|run| piece(run.count)).sum(),
            // Their sizes do not matter: they are written out in any case, or called.
            Step::Tile { .. } | Step::List { .. } | Step::Runs(_) | Step::Scatter { .. } | Step::Sequence { .. } => {
                u64::MAX
            }
        }
    }

    /// A step, and the place again. Its instructions are marked with it, but for those of the steps inside.
    pub(super) fn step(&mut self, id: StepId, place: Place) -> Place {
        let outer = self.builder.srcloc();
        self.builder.set_srcloc(location(id));
        let place = self.emit_step(id, place);
        self.builder.set_srcloc(outer);
        place
    }

    /// A step without marking its instructions.
    fn emit_step(&mut self, id: StepId, place: Place) -> Place {
        let plan = self.plan;
        match *plan.step(id) {
            Step::Nothing => place,
            Step::Copy { bytes } => {
                self.copy(bytes, place);
                place
            }
            Step::Rows { rows, stride, bytes } => self.rows(rows, stride, bytes, place),
            Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                self.planes(id, (planes, plane_stride), (rows, stride, bytes), place)
            }
            Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes } => {
                self.tile((planes, plane_stride), (layers, layer_stride), (rows, stride, bytes), place)
            }
            Step::List { ref offsets, bytes } => self.list(id, offsets, bytes, place),
            Step::Runs(ref table) => self.runs(id, table, place),
            Step::Repeat { count, stride, body } => self.repeat(id, (count, stride), body, place),
            Step::Scatter { ref offsets, body } if self.small() => {
                let size = plan.size_of(body);
                (0..offsets.len()).fold(place, |place, iteration| {
                    let (offset, position) = (offsets.get(iteration), iteration as u64 * size);
                    self.step(body, place.further(offset, position)).back(offset, position)
                })
            }
            Step::Scatter { ref offsets, body } => {
                self.listed(id, offsets, place, plan.size_of(body), |emitter, place| emitter.step(body, place))
            }
            Step::Sequence { ref parts } => parts.iter().fold(place, |place, part| {
                self.step(part.step, place.further(part.offset, part.position)).back(part.offset, part.position)
            }),
        }
    }

    fn planes(
        &mut self,
        id: StepId,
        (planes, plane_stride): (u64, i64),
        (rows, stride, bytes): (u64, i64, u64),
        place: Place,
    ) -> Place {
        let few = rows < MICROKERNEL_ROWS || self.closed.is_some();
        let plane = |emitter: &mut Self, place| emitter.rows(rows, stride, bytes, place);
        if self.small() || (self.words(id) <= UNROLLED_WORDS && few) {
            return self.unrolled(planes, plane_stride, rows * bytes, place, plane);
        }
        if self.closed.is_some() {
            return self.counted(place, planes, plane_stride, rows * bytes, plane);
        }
        let numbers = [planes as i64, plane_stride, rows as i64, stride, bytes as i64];
        self.nest(Microkernel::Planes(bytes), &numbers, place)
    }

    fn tile(
        &mut self,
        (planes, plane_stride): (u64, i64),
        (layers, layer_stride): (u64, i64),
        (rows, stride, bytes): (u64, i64, u64),
        place: Place,
    ) -> Place {
        let (layer, pitch) = (rows * bytes, layers * rows * bytes);
        if self.small() {
            return self.unrolled(planes, plane_stride, pitch, place, |emitter, place| {
                emitter.unrolled(layers, layer_stride, layer, place, |emitter, place| {
                    emitter.rows(rows, stride, bytes, place)
                })
            });
        }
        let numbers = [planes as i64, plane_stride, rows as i64, stride, bytes as i64, pitch as i64];
        let tile = |emitter: &mut Self, place| match emitter.closed {
            Some(_) => emitter.closed_tile((planes, plane_stride, pitch), (rows, stride, bytes), place),
            None => emitter.nest(Microkernel::Tile(bytes), &numbers, place),
        };
        if layers == 1 { tile(self, place) } else { self.counted(place, layers, layer_stride, layer, tile) }
    }

    fn list(&mut self, id: StepId, offsets: &Offsets, bytes: u64, place: Place) -> Place {
        let words = self.piece(bytes).saturating_mul(offsets.len() as u64);
        if self.small() || bytes <= INLINE_BYTES && words <= UNROLLED_LIST_WORDS {
            for index in 0..offsets.len() {
                self.copy(bytes, place.further(offsets.get(index), index as u64 * bytes));
            }
            return place;
        }
        if self.closed.is_some() {
            return self.listed(id, offsets, place, bytes, |emitter, place| {
                emitter.copy(bytes, place);
                place
            });
        }
        let (memory, packed) = self.pointers(place);
        let table = self.table(id);
        let [count, length] = [offsets.len() as i64, bytes as i64].map(|value| self.constant(value));
        let microkernel = match offsets {
            Offsets::Narrow(_) => Microkernel::List32(bytes),
            Offsets::Wide(_) => Microkernel::List64(bytes),
        };
        self.call(microkernel, &[memory, packed, table, count, length]);
        place
    }

    fn runs(&mut self, id: StepId, table: &RunTable, place: Place) -> Place {
        if table.is_unrolled() {
            self.straight_runs(table, place);
            return place;
        }
        if self.closed.is_some() {
            return self.closed_runs(id, table, place);
        }
        let (memory, packed) = self.pointers(place);
        let (runs, count) = (self.table(id), self.constant(table.runs.len() as i64));
        self.call(Microkernel::Runs, &[memory, packed, runs, count]);
        place
    }

    fn repeat(&mut self, id: StepId, (count, stride): (u64, i64), body: StepId, place: Place) -> Place {
        if let Some(arrays) = self.arrays(count, stride, body) {
            return self.interleaved(arrays, place);
        }
        let size = self.plan.size_of(body);
        let iteration = |emitter: &mut Self, place| emitter.step(body, place);
        let copies = LOOP_WORDS / self.words(body).max(1);
        if self.small() || self.words(id) <= UNROLLED_WORDS {
            self.unrolled(count, stride, size, place, iteration)
        } else if copies < 2 {
            self.counted(place, count, stride, size, iteration)
        } else {
            self.several(place, count, copies, (stride, size), iteration)
        }
    }

    /// A loop written out.
    pub(super) fn unrolled(
        &mut self,
        count: u64,
        stride: i64,
        size: u64,
        place: Place,
        mut body: impl FnMut(&mut Self, Place) -> Place,
    ) -> Place {
        (0..count).fold(place, |place, iteration| {
            let (offset, position) = ((iteration as i64).wrapping_mul(stride), iteration * size);
            body(self, place.further(offset, position)).back(offset, position)
        })
    }

    /// A call with constants after the pointers.
    fn nest(&mut self, microkernel: Microkernel, numbers: &[i64], place: Place) -> Place {
        let (memory, packed) = self.pointers(place);
        let numbers = numbers.iter().map(|&value| self.constant(value));
        let arguments: Vec<Value> = [memory, packed].into_iter().chain(numbers).collect();
        self.call(microkernel, &arguments);
        place
    }
}
