//! The generic tier: a plan whose steps are bound to leaves, and its interpreter.

use super::Sides;
use super::thunk::Call;
use dtc_compiler::plan::{Offsets, Part, Plan, Step, StepId, Target};
use dtc_microkernels::{Level, List32Fn, List64Fn, Nest, NestFn, PlanesFn, RowsFn, RunsFn, TileFn};
use smallvec::SmallVec;

/// A first-level cache holds no more: the plans of larger footprints are bound to leaves that fetch ahead.
const NEAR_BYTES: u64 = 40 << 10;

/// Whether the blocks of a plan lie beyond the first-level cache.
pub(super) fn is_far(plan: &Plan) -> bool {
    plan.footprint() > NEAR_BYTES
}

/// Whether the packed bytes of a plan are written around the cache, where a leaf can.
pub(super) fn is_streaming(plan: &Plan, target: &Target) -> bool {
    plan.size() > target.streaming_bytes
}

/// A leaf in both directions.
#[derive(Clone, Copy)]
pub(super) struct Both<F> {
    pub(super) pack: F,
    pub(super) unpack: F,
}

impl<F: Copy> Both<F> {
    #[inline]
    pub(super) fn of<const PACK: bool>(&self) -> F {
        if PACK { self.pack } else { self.unpack }
    }
}

/// The leaves for rows of one length, in nests of one and two levels.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    pub(super) rows: Both<RowsFn>,
    pub(super) planes: Both<PlanesFn>,
    pub(super) tile: Both<TileFn>,
    /// The leaves for just the planes of the step, where there are any.
    nest: Both<Option<NestFn>>,
}

impl Strided {
    fn new(step: &Step, level: Level, bytes: u64, streaming: bool) -> Strided {
        let planes = matches!(step, Step::Planes { .. });
        Strided {
            rows: Both {
                pack: dtc_microkernels::select_pack_rows(level, bytes, streaming),
                unpack: dtc_microkernels::select_unpack_rows(level, bytes),
            },
            planes: Both {
                pack: dtc_microkernels::select_pack_planes(level, bytes, streaming),
                unpack: dtc_microkernels::select_unpack_planes(level, bytes),
            },
            tile: Both {
                pack: dtc_microkernels::select_pack_tile(level, bytes),
                unpack: dtc_microkernels::select_unpack_tile(level, bytes),
            },
            nest: Both {
                pack: if planes { nest_leaf::<true>(step, level) } else { None },
                unpack: if planes { nest_leaf::<false>(step, level) } else { None },
            },
        }
    }

    /// The leaves for any nest of such rows.
    fn for_any(self) -> Strided {
        Strided { nest: Both { pack: None, unpack: None }, ..self }
    }
}

/// What a step calls.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// A loop over other steps.
    Loop,
    Strided(Strided),
    List32(Both<List32Fn>),
    List64(Both<List64Fn>),
    Runs(Both<RunsFn>),
}

/// A plan bound to the leaves of this CPU.
pub(crate) struct Program {
    root: Root,
    plan: Plan,
    /// Of each step. Most plans have one or two.
    bound: SmallVec<[Bound; 2]>,
    /// Whether any count of elements is one piece of memory.
    contiguous: bool,
}

/// The root of a plan with its leaf: one element.
struct Root {
    offset: i64,
    step: Step,
    bound: Bound,
}

/// The leaf for just the nest that a step of rows or planes is, if there is one.
fn nest_leaf<const PACK: bool>(step: &Step, level: Level) -> Option<NestFn> {
    let (planes, plane_stride, rows, stride, bytes) = match *step {
        Step::Rows { rows, stride, bytes } => (1, 0, rows, stride, bytes),
        Step::Planes { planes, plane_stride, rows, stride, bytes } => (planes, plane_stride, rows, stride, bytes),
        _ => return None,
    };
    let nest = Nest {
        planes: planes as usize,
        plane_stride: plane_stride as isize,
        rows: rows as usize,
        stride: stride as isize,
        bytes: bytes as usize,
    };
    dtc_microkernels::select_nest::<PACK>(level, &nest)
}

/// A loop that the interpreter is inside of.
struct Frame {
    step: StepId,
    sides: Sides,
    next: u64,
}

impl Program {
    pub(crate) fn new(plan: Plan, target: &Target) -> Program {
        let streaming = is_streaming(&plan, target);
        let (level, far) = (target.level, is_far(&plan));
        let bind = |step: &Step| match step {
            Step::Copy { bytes } | Step::Rows { bytes, .. } | Step::Planes { bytes, .. } | Step::Tile { bytes, .. } => {
                Bound::Strided(Strided::new(step, level, *bytes, streaming))
            }
            Step::List { offsets: Offsets::Narrow(_), bytes } => Bound::List32(Both {
                pack: dtc_microkernels::select_pack_list32(level, *bytes),
                unpack: dtc_microkernels::select_unpack_list32(level, *bytes, far),
            }),
            Step::List { offsets: Offsets::Wide(_), bytes } => Bound::List64(Both {
                pack: dtc_microkernels::select_pack_list64(level, *bytes),
                unpack: dtc_microkernels::select_unpack_list64(level, *bytes, far),
            }),
            Step::Runs(_) => Bound::Runs(Both {
                pack: dtc_microkernels::select_pack_runs(level),
                unpack: dtc_microkernels::select_unpack_runs(level),
            }),
            Step::Nothing | Step::Repeat { .. } | Step::Scatter { .. } | Step::Sequence { .. } => Bound::Loop,
        };
        let bound: SmallVec<[Bound; 2]> = plan.steps().iter().map(bind).collect();
        let Part { offset, step: root, .. } = plan.root();
        let (step, of_root) = (plan.step(root).clone(), bound[root.index()]);
        let contiguous = matches!(plan.repeated(2), Some(Step::Copy { .. }));
        Program { root: Root { offset, bound: of_root, step }, plan, bound, contiguous }
    }

    #[inline]
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    pub(super) fn bound(&self, id: StepId) -> &Bound {
        &self.bound[id.index()]
    }

    /// The call that moves one whole element, if one leaf does, on a CPU of the level that the program was made for.
    ///
    /// Tiles are left out: they are not short, and their leaf takes more arguments than the others.
    pub(crate) fn call<const PACK: bool>(&self, level: Level) -> Option<Call> {
        let Root { offset, step, bound } = &self.root;
        Some(match (step, bound) {
            (&Step::Copy { bytes }, _) => {
                Call::copy::<PACK>(dtc_microkernels::select_copy(level, bytes) as usize, *offset, bytes)
            }
            (&Step::Rows { rows, stride, bytes }, Bound::Strided(strided)) => match nest_leaf::<PACK>(step, level) {
                Some(leaf) => Call::new(leaf as usize, *offset, [1, 0, rows, stride.cast_unsigned()]),
                None => Call::new(strided.rows.of::<PACK>() as usize, *offset, [rows, bytes, stride.cast_unsigned()]),
            },
            (&Step::Planes { planes, plane_stride, rows, stride, bytes }, Bound::Strided(strided)) => {
                let [plane_stride, stride] = [plane_stride, stride].map(i64::cast_unsigned);
                match strided.nest.of::<PACK>() {
                    Some(leaf) => Call::new(leaf as usize, *offset, [planes, plane_stride, rows, stride]),
                    None => {
                        let leaf = strided.planes.of::<PACK>() as usize;
                        Call::new(leaf, *offset, [planes, plane_stride, rows, stride, bytes])
                    }
                }
            }
            (Step::List { offsets: Offsets::Narrow(offsets), bytes }, Bound::List32(list)) => {
                let table = [offsets.as_ptr() as u64, offsets.len() as u64, *bytes];
                Call::new(list.of::<PACK>() as usize, *offset, table)
            }
            (Step::List { offsets: Offsets::Wide(offsets), bytes }, Bound::List64(list)) => {
                let table = [offsets.as_ptr() as u64, offsets.len() as u64, *bytes];
                Call::new(list.of::<PACK>() as usize, *offset, table)
            }
            (Step::Runs(table), Bound::Runs(runs)) => {
                let table = [table.runs.as_ptr() as u64, table.runs.len() as u64];
                Call::new(runs.of::<PACK>() as usize, *offset, table)
            }
            _ => return None,
        })
    }

    /// Moves one whole element.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`].
    #[inline]
    pub(crate) unsafe fn one<const PACK: bool>(&self, sides: Sides) {
        let Root { offset, step, bound, .. } = &self.root;
        // SAFETY: one element, as the caller promises.
        unsafe {
            match (step, bound) {
                (_, Bound::Loop) => self.whole_loop::<PACK>(self.plan.root().step, sides.at(*offset, 0)),
                _ => leaf::<PACK>(step, bound, sides.at(*offset, 0)),
            }
        }
    }

    /// Moves `count` whole elements.
    ///
    /// # Safety
    ///
    /// Every byte of the elements is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn elements<const PACK: bool>(&self, sides: Sides, count: u64) {
        let repeated = self.plan.repeated(count);
        // SAFETY: `repeated` addresses the same bytes as a loop over the elements.
        unsafe {
            match (repeated, &self.root.bound) {
                (Some(step), &Bound::Strided(strided)) => {
                    // More elements are another nest.
                    let bound = Bound::Strided(if count == 1 { strided } else { strided.for_any() });
                    leaf::<PACK>(&step, &bound, sides.at(self.root.offset, 0));
                }
                _ => {
                    for element in 0..count {
                        let offset = (element as i64).wrapping_mul(self.plan.extent());
                        self.one::<PACK>(sides.at(offset, element * self.plan.size()));
                    }
                }
            }
        }
    }

    /// Moves a whole step.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`], for the bytes of the step.
    #[inline]
    pub(super) unsafe fn whole<const PACK: bool>(&self, id: StepId, sides: Sides) {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.bound[id.index()] {
                Bound::Loop => self.whole_loop::<PACK>(id, sides),
                bound => leaf::<PACK>(self.plan.step(id), bound, sides),
            }
        }
    }

    /// Moves a whole loop, with the loops inside it on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`], for the bytes of the step.
    unsafe fn whole_loop<const PACK: bool>(&self, id: StepId, sides: Sides) {
        let mut stack: SmallVec<[Frame; 16]> = SmallVec::new();
        stack.push(Frame { step: id, sides, next: 0 });
        while let Some(frame) = stack.last_mut() {
            if let &Step::Repeat { count, stride, body } = self.plan.step(frame.step)
                && let bound = &self.bound[body.index()]
                && !matches!(bound, Bound::Loop)
            {
                // All turns at once: of short nests, they would take longer than their bytes otherwise.
                let (step, size, first) = (self.plan.step(body), self.plan.size_of(body), frame.sides);
                for turn in 0..count {
                    let sides = first.at((turn as i64).wrapping_mul(stride), turn * size);
                    // SAFETY: a body's bytes are among those of the step.
                    unsafe { leaf::<PACK>(step, bound, sides) };
                }
                stack.pop();
                continue;
            }
            let at = frame.next;
            frame.next += 1;
            let Some((body, sides)) = self.body(frame.step, at, frame.sides) else {
                stack.pop();
                continue;
            };
            if matches!(self.bound[body.index()], Bound::Loop) {
                stack.push(Frame { step: body, sides, next: 0 });
            } else {
                // SAFETY: a body's bytes are among those of the step.
                unsafe { leaf::<PACK>(self.plan.step(body), &self.bound[body.index()], sides) };
            }
        }
    }

    /// The body that a loop visits at some turn, and where; `None` after the last.
    pub(super) fn body(&self, id: StepId, turn: u64, sides: Sides) -> Option<(StepId, Sides)> {
        match self.plan.step(id) {
            Step::Repeat { count, stride, body } => {
                let position = turn * self.plan.size_of(*body);
                (turn < *count).then(|| (*body, sides.at((turn as i64).wrapping_mul(*stride), position)))
            }
            Step::Scatter { offsets, body } => {
                let position = turn * self.plan.size_of(*body);
                (turn < offsets.len() as u64).then(|| (*body, sides.at(offsets.get(turn as usize), position)))
            }
            Step::Sequence { parts } => {
                parts.get(turn as usize).map(|part| (part.step, sides.at(part.offset, part.position)))
            }
            _ => None,
        }
    }
}

/// Moves a step that a leaf performs.
///
/// # Safety
///
/// As for [`Program::elements`], for the bytes of the step; `bound` was selected for its block length.
#[inline]
pub(super) unsafe fn leaf<const PACK: bool>(step: &Step, bound: &Bound, sides: Sides) {
    let Sides { memory, packed } = sides;
    // SAFETY: the contract of the leaves is the caller's promise; the CPU has the level that they were selected for,
    // and tables come from the plan.
    unsafe {
        match (step, bound) {
            (Step::Copy { bytes }, _) => {
                let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
                dtc_microkernels::copy(destination, source, *bytes as usize);
            }
            (&Step::Rows { rows, stride, bytes }, Bound::Strided(strided)) => {
                strided.rows.of::<PACK>()(memory, packed, rows as usize, bytes as usize, stride as isize);
            }
            (&Step::Planes { planes, plane_stride, rows, stride, bytes }, Bound::Strided(strided)) => {
                let (planes, rows, bytes) = (planes as usize, rows as usize, bytes as usize);
                let (plane_stride, stride) = (plane_stride as isize, stride as isize);
                match strided.nest.of::<PACK>() {
                    Some(nest) => nest(memory, packed, planes, plane_stride, rows, stride),
                    None => strided.planes.of::<PACK>()(memory, packed, planes, plane_stride, rows, stride, bytes),
                }
            }
            (
                &Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes },
                Bound::Strided(strided),
            ) => {
                let tile = strided.tile.of::<PACK>();
                let (planes, layers, rows, bytes) = (planes as usize, layers as usize, rows as usize, bytes as usize);
                let (plane_stride, stride) = (plane_stride as isize, stride as isize);
                layers_of_tiles(sides, layers, layer_stride, rows * bytes, &|Sides { memory, packed }| {
                    tile(memory, packed, planes, plane_stride, rows, stride, bytes, layers * rows * bytes);
                });
            }
            (Step::List { offsets: Offsets::Narrow(offsets), bytes }, Bound::List32(list)) => {
                list.of::<PACK>()(memory, packed, offsets.as_ptr(), offsets.len(), *bytes as usize);
            }
            (Step::List { offsets: Offsets::Wide(offsets), bytes }, Bound::List64(list)) => {
                list.of::<PACK>()(memory, packed, offsets.as_ptr(), offsets.len(), *bytes as usize);
            }
            (Step::Runs(table), Bound::Runs(runs)) => {
                runs.of::<PACK>()(memory, packed, table.runs.as_ptr(), table.runs.len());
            }
            // `Program::new` binds every step to the leaf of its kind; loops do not come here.
            _ => {}
        }
    }
}

/// Moves layer after layer. Apart from the other leaves, which need no stack frame.
#[inline(never)]
fn layers_of_tiles(sides: Sides, layers: usize, stride: i64, bytes: usize, tile: &dyn Fn(Sides)) {
    for layer in 0..layers {
        tile(sides.at((layer as i64).wrapping_mul(stride), (layer * bytes) as u64));
    }
}
