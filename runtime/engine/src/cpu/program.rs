//! The generic tier: a plan whose steps are bound to microkernels, and its interpreter.

use super::Addresses;
use dtc_compiler::plan::strategy::{self, Nest, Strategy, Target, WordGroup};
use dtc_compiler::plan::{Offsets, Part, Plan, Step, StepId};
use dtc_microkernels::{GroupsFn, Level, List32Fn, List64Fn, NestFn, Places, PlanesFn, RowsFn, RunsFn, TileFn};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A microkernel in both directions.
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

/// The microkernels for rows of one length, in nests of one and two levels.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    rows: Both<RowsFn>,
    planes: Both<PlanesFn>,
    /// Packs of both that bypass the caches, where the length of the rows allows it.
    non_temporal: (RowsFn, PlanesFn),
    tile: Both<TileFn>,
    /// The microkernels specialised for the counts and strides of the step, where there are any.
    pub(super) nest: Both<Option<NestFn>>,
}

impl Strided {
    fn new(step: &Step, level: Level, bytes: u64) -> Strided {
        let rows = |non_temporal| dtc_microkernels::select_pack_rows(level, bytes, non_temporal);
        let planes = |non_temporal| dtc_microkernels::select_pack_planes(level, bytes, non_temporal);
        Strided {
            rows: Both { pack: rows(false), unpack: dtc_microkernels::select_unpack_rows(level, bytes) },
            planes: Both { pack: planes(false), unpack: dtc_microkernels::select_unpack_planes(level, bytes) },
            non_temporal: (rows(true), planes(true)),
            tile: Both {
                pack: dtc_microkernels::select_pack_tile(level, bytes),
                unpack: dtc_microkernels::select_unpack_tile(level, bytes),
            },
            nest: match step {
                // Of rows alone, only one element has a microkernel of its own.
                Step::Planes { .. } => whole_nests(step, level),
                _ => Both { pack: None, unpack: None },
            },
        }
    }

    pub(super) fn rows<const PACK: bool, const NON_TEMPORAL: bool>(&self) -> RowsFn {
        if NON_TEMPORAL { self.non_temporal.0 } else { self.rows.of::<PACK>() }
    }

    pub(super) fn planes<const PACK: bool, const NON_TEMPORAL: bool>(&self) -> PlanesFn {
        if NON_TEMPORAL { self.non_temporal.1 } else { self.planes.of::<PACK>() }
    }

    /// The microkernels for any nest of such rows.
    fn for_any(self) -> Strided {
        Strided { nest: Both { pack: None, unpack: None }, ..self }
    }
}

/// A group with the microkernels that move it.
#[derive(Clone)]
pub(super) struct Grouped {
    group: WordGroup,
    moves: Both<GroupsFn>,
}

impl Grouped {
    /// A step as a group, if it is one.
    fn of(plan: &Plan, step: StepId, level: Level) -> Option<Grouped> {
        let moves = Both {
            pack: dtc_microkernels::select_pack_groups(level),
            unpack: dtc_microkernels::select_unpack_groups(level),
        };
        WordGroup::of(plan, step).map(|group| Grouped { group, moves })
    }
}

/// What a step calls.
#[derive(Clone)]
pub(super) enum Bound {
    /// A loop over other steps.
    Loop,
    /// A loop whose bodies are moved word by word.
    Groups(Arc<Grouped>),
    Strided(Strided),
    List32(Both<List32Fn>),
    List64(Both<List64Fn>),
    Runs(Both<RunsFn>),
}

/// A plan bound to the microkernels of this CPU.
pub(crate) struct Program {
    pub(super) root: Root,
    plan: Plan,
    /// Of each step. Most plans have one or two.
    bound: SmallVec<[Bound; 2]>,
    /// Packed bytes of a call from which a pack bypasses the caches.
    non_temporal_bytes: u64,
    /// Whether any count of elements is one piece of memory.
    contiguous: bool,
}

/// The root of a plan with its microkernel: one element.
pub(super) struct Root {
    pub(super) offset: i64,
    pub(super) step: Step,
    pub(super) bound: Bound,
    /// One element as a group, where several are no nest.
    group: Option<Grouped>,
}

/// The microkernels specialised for the nest that a step of rows or planes is, where there are any.
fn whole_nests(step: &Step, level: Level) -> Both<Option<NestFn>> {
    Both { pack: whole_nest::<true>(step, level), unpack: whole_nest::<false>(step, level) }
}

fn whole_nest<const PACK: bool>(step: &Step, level: Level) -> Option<NestFn> {
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
    addresses: Addresses,
    next: u64,
}

impl Program {
    pub(crate) fn new(plan: Plan, target: &Target) -> Program {
        let (level, prefetch) = (target.level, Strategy::new(&plan, target, 1).prefetches_lists());
        let bind = |step: &Step| match step {
            Step::Copy { bytes } | Step::Rows { bytes, .. } | Step::Planes { bytes, .. } | Step::Tile { bytes, .. } => {
                Bound::Strided(Strided::new(step, level, *bytes))
            }
            Step::List { offsets: Offsets::Narrow(_), bytes } => Bound::List32(Both {
                pack: dtc_microkernels::select_pack_list32(level, *bytes),
                unpack: dtc_microkernels::select_unpack_list32(level, *bytes, prefetch),
            }),
            Step::List { offsets: Offsets::Wide(_), bytes } => Bound::List64(Both {
                pack: dtc_microkernels::select_pack_list64(level, *bytes),
                unpack: dtc_microkernels::select_unpack_list64(level, *bytes, prefetch),
            }),
            Step::Runs(_) => Bound::Runs(Both {
                pack: dtc_microkernels::select_pack_runs(level),
                unpack: dtc_microkernels::select_unpack_runs(level),
            }),
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => {
                Grouped::of(&plan, *body, level).map_or(Bound::Loop, |group| Bound::Groups(Arc::new(group)))
            }
            Step::Nothing | Step::Sequence { .. } => Bound::Loop,
        };
        let bound: SmallVec<[Bound; 2]> = plan.steps().iter().map(bind).collect();
        let Part { offset, step: root, .. } = plan.root();
        let (step, mut of_root) = (plan.step(root).clone(), bound[root.index()].clone());
        if let Bound::Strided(strided) = &mut of_root {
            strided.nest = whole_nests(&step, level);
        }
        let repeated = plan.repeated(2);
        let contiguous = matches!(repeated, Some(Step::Copy { .. }));
        let group = if repeated.is_none() { Grouped::of(&plan, root, level) } else { None };
        let root = Root { offset, bound: of_root, step, group };
        Program { root, plan, bound, non_temporal_bytes: target.non_temporal_bytes, contiguous }
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

    /// Whether a pack of `bytes` packed bytes goes by non-temporal stores where a microkernel can.
    pub(super) fn is_non_temporal<const PACK: bool>(&self, bytes: u64) -> bool {
        PACK && strategy::is_beyond_caches(bytes, self.non_temporal_bytes)
    }

    /// Moves one whole element.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`].
    #[inline]
    pub(crate) unsafe fn one<const PACK: bool>(&self, addresses: Addresses) {
        // SAFETY: `one_element` moves the same element under the contract of `elements`.
        unsafe {
            if self.is_non_temporal::<PACK>(self.plan.size()) {
                self.one_element::<PACK, true>(addresses);
            } else {
                self.one_element::<PACK, false>(addresses);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Program::elements`].
    #[inline]
    unsafe fn one_element<const PACK: bool, const NON_TEMPORAL: bool>(&self, addresses: Addresses) {
        let Root { offset, step, bound, group } = &self.root;
        // SAFETY: the group or the step and `bound` are those of the root: they move the bytes of one element, which the contract of
        // `elements` covers.
        unsafe {
            match (step, bound) {
                (_, Bound::Loop) if let Some(group) = group => self.grouped_elements::<PACK>(group, addresses, 1),
                (_, Bound::Loop) => {
                    self.whole_loop::<PACK, NON_TEMPORAL>(self.plan.root().step, addresses.at(*offset, 0))
                }
                (_, Bound::Groups(group)) => groups::<PACK>(step, group, None, addresses.at(*offset, 0)),
                (&Step::Rows { rows, stride, .. }, Bound::Strided(strided))
                    if let Some(nest) = strided.nest.of::<PACK>() =>
                {
                    let Addresses { memory, packed } = addresses.at(*offset, 0);
                    nest(memory, packed, 1, 0, rows as usize, stride as isize);
                }
                _ => microkernel::<PACK, NON_TEMPORAL>(step, bound, addresses.at(*offset, 0)),
            }
        }
    }

    /// Moves `count` whole elements.
    ///
    /// # Safety
    ///
    /// Every byte of the elements is readable on one side and writable on the other, and the sides do not overlap.
    pub(crate) unsafe fn elements<const PACK: bool>(&self, addresses: Addresses, count: u64) {
        // SAFETY: `whole_elements` moves the same elements under the same contract.
        unsafe {
            if self.is_non_temporal::<PACK>(self.plan.size().saturating_mul(count)) {
                self.whole_elements::<PACK, true>(addresses, count);
            } else {
                self.whole_elements::<PACK, false>(addresses, count);
            }
        }
    }

    /// Moves `count` whole elements; where `NON_TEMPORAL`, packs bypass the caches.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`].
    pub(super) unsafe fn whole_elements<const PACK: bool, const NON_TEMPORAL: bool>(
        &self,
        addresses: Addresses,
        count: u64,
    ) {
        if let Some(group) = &self.root.group {
            // SAFETY: the group is the root.
            return unsafe { self.grouped_elements::<PACK>(group, addresses, count) };
        }
        let repeated = self.plan.repeated(count);
        // SAFETY: `repeated` addresses the same bytes as a loop over the elements.
        unsafe {
            match (repeated, &self.root.bound) {
                (Some(step), &Bound::Strided(strided)) => {
                    // SharedKernels elements are a nest with other counts.
                    let bound = Bound::Strided(if count == 1 { strided } else { strided.for_any() });
                    microkernel::<PACK, NON_TEMPORAL>(&step, &bound, addresses.at(self.root.offset, 0));
                }
                _ => {
                    for element in 0..count {
                        let offset = (element as i64).wrapping_mul(self.plan.extent());
                        self.one_element::<PACK, NON_TEMPORAL>(addresses.at(offset, element * self.plan.size()));
                    }
                }
            }
        }
    }

    /// Moves `count` whole elements word by word.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`]; the group is the root of the plan.
    unsafe fn grouped_elements<const PACK: bool>(&self, grouped: &Grouped, addresses: Addresses, count: u64) {
        let Addresses { memory, packed } = addresses.at(self.root.offset, 0);
        let places = Places::Strided { count: count as usize, stride: self.plan.extent() as isize };
        // SAFETY: one group is one element, and elements are at multiples of the extent.
        unsafe { grouped.moves.of::<PACK>()(memory, packed, places, &grouped.group) }
    }

    /// Moves a whole step.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`], for the bytes of the step.
    #[inline]
    pub(super) unsafe fn whole<const PACK: bool, const NON_TEMPORAL: bool>(&self, id: StepId, addresses: Addresses) {
        // SAFETY: `whole_loop` and `microkernel` move the bytes of this step and no others, and `bound` was selected for the
        // step.
        unsafe {
            match &self.bound[id.index()] {
                Bound::Loop => self.whole_loop::<PACK, NON_TEMPORAL>(id, addresses),
                Bound::Groups(group) => groups::<PACK>(self.plan.step(id), group, None, addresses),
                bound => microkernel::<PACK, NON_TEMPORAL>(self.plan.step(id), bound, addresses),
            }
        }
    }

    /// Moves some whole bodies of a loop.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`], for the bytes of these bodies.
    pub(super) unsafe fn whole_bodies<const PACK: bool, const NON_TEMPORAL: bool>(
        &self,
        id: StepId,
        bodies: Range<u64>,
        addresses: Addresses,
    ) {
        if let Bound::Groups(group) = &self.bound[id.index()] {
            // SAFETY: the bodies are groups of the loop.
            unsafe { groups::<PACK>(self.plan.step(id), group, Some(bodies), addresses) };
            return;
        }
        for iteration in bodies {
            if let Some((step, addresses)) = self.body(id, iteration, addresses) {
                // SAFETY: one of the bodies.
                unsafe { self.whole::<PACK, NON_TEMPORAL>(step, addresses) };
            }
        }
    }

    /// Moves a whole loop, with the loops inside it on a stack of its own.
    ///
    /// # Safety
    ///
    /// As for [`Program::elements`], for the bytes of the step.
    unsafe fn whole_loop<const PACK: bool, const NON_TEMPORAL: bool>(&self, id: StepId, addresses: Addresses) {
        let mut stack: SmallVec<[Frame; 16]> = SmallVec::new();
        stack.push(Frame { step: id, addresses, next: 0 });
        while let Some(frame) = stack.last_mut() {
            if let &Step::Repeat { count, stride, body } = self.plan.step(frame.step)
                && !matches!(self.bound[body.index()], Bound::Loop)
            {
                // All iterations without the stack, which would cost more than the bytes of a short nest.
                let (size, first) = (self.plan.size_of(body), frame.addresses);
                for iteration in 0..count {
                    let addresses = first.at((iteration as i64).wrapping_mul(stride), iteration * size);
                    // SAFETY: a body's bytes are among those of the step, and it is no loop that needs a stack.
                    unsafe { self.whole::<PACK, NON_TEMPORAL>(body, addresses) };
                }
                stack.pop();
                continue;
            }
            let at = frame.next;
            frame.next += 1;
            let Some((body, addresses)) = self.body(frame.step, at, frame.addresses) else {
                stack.pop();
                continue;
            };
            if matches!(self.bound[body.index()], Bound::Loop) {
                stack.push(Frame { step: body, addresses, next: 0 });
            } else {
                // SAFETY: a body's bytes are among those of the step, and it is no loop that needs a stack.
                unsafe { self.whole::<PACK, NON_TEMPORAL>(body, addresses) };
            }
        }
    }

    /// The body that a loop visits at some iteration, and where; `None` after the last.
    pub(super) fn body(&self, id: StepId, iteration: u64, addresses: Addresses) -> Option<(StepId, Addresses)> {
        match self.plan.step(id) {
            Step::Repeat { count, stride, body } => {
                let position = iteration * self.plan.size_of(*body);
                (iteration < *count).then(|| (*body, addresses.at((iteration as i64).wrapping_mul(*stride), position)))
            }
            Step::Scatter { offsets, body } => {
                let position = iteration * self.plan.size_of(*body);
                (iteration < offsets.len() as u64)
                    .then(|| (*body, addresses.at(offsets.get(iteration as usize), position)))
            }
            Step::Sequence { parts } => {
                parts.get(iteration as usize).map(|part| (part.step, addresses.at(part.offset, part.position)))
            }
            _ => None,
        }
    }
}

/// Moves some bodies of a loop, or all, word by word.
///
/// # Safety
///
/// As for [`Program::elements`], for the bytes of these bodies; `group` is the body of the step.
#[inline]
unsafe fn groups<const PACK: bool>(step: &Step, grouped: &Grouped, some: Option<Range<u64>>, addresses: Addresses) {
    let count = match step {
        Step::Repeat { count, .. } => *count,
        Step::Scatter { offsets, .. } => offsets.len() as u64,
        _ => 0,
    };
    let bodies = some.unwrap_or(0..count);
    let (first, number) = (bodies.start as usize, (bodies.end - bodies.start) as usize);
    let (places, offset) = match step {
        &Step::Repeat { stride, .. } => {
            let offset = (bodies.start as i64).wrapping_mul(stride);
            (Places::Strided { count: number, stride: stride as isize }, offset)
        }
        Step::Scatter { offsets: Offsets::Narrow(offsets), .. } => (Places::Narrow(&offsets[first..][..number]), 0),
        Step::Scatter { offsets: Offsets::Wide(offsets), .. } => (Places::Wide(&offsets[first..][..number]), 0),
        // `Program::new` binds groups to these loops alone.
        _ => return,
    };
    let Addresses { memory, packed } = addresses.at(offset, bodies.start * grouped.group.bytes());
    // SAFETY: the bytes of the bodies are valid on both sides, and do not overlap (contract of this function).
    unsafe { grouped.moves.of::<PACK>()(memory, packed, places, &grouped.group) }
}

/// Moves a step that one microkernel carries out.
///
/// # Safety
///
/// As for [`Program::elements`], for the bytes of the step; `bound` was selected for its block length.
#[inline]
pub(super) unsafe fn microkernel<const PACK: bool, const NON_TEMPORAL: bool>(
    step: &Step,
    bound: &Bound,
    addresses: Addresses,
) {
    let Addresses { memory, packed } = addresses;
    // SAFETY: the bytes of the step are valid on both sides (contract of this function). `Program::new` selected `bound` for this
    // step and for the level of the CPU, and tables come from the plan.
    unsafe {
        match (step, bound) {
            (Step::Copy { bytes }, _) => {
                let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
                dtc_microkernels::copy(destination, source, *bytes as usize);
            }
            (&Step::Rows { rows, stride, bytes }, Bound::Strided(strided)) => {
                strided.rows::<PACK, NON_TEMPORAL>()(memory, packed, rows as usize, bytes as usize, stride as isize);
            }
            (&Step::Planes { planes, plane_stride, rows, stride, bytes }, Bound::Strided(strided)) => {
                let (planes, rows, bytes) = (planes as usize, rows as usize, bytes as usize);
                let (plane_stride, stride) = (plane_stride as isize, stride as isize);
                match strided.nest.of::<PACK>() {
                    Some(nest) => nest(memory, packed, planes, plane_stride, rows, stride),
                    None => strided.planes::<PACK, NON_TEMPORAL>()(
                        memory,
                        packed,
                        planes,
                        plane_stride,
                        rows,
                        stride,
                        bytes,
                    ),
                }
            }
            (
                &Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes },
                Bound::Strided(strided),
            ) => {
                let tile = strided.tile.of::<PACK>();
                let (planes, layers, rows, bytes) = (planes as usize, layers as usize, rows as usize, bytes as usize);
                let (plane_stride, stride) = (plane_stride as isize, stride as isize);
                layers_of_tiles(addresses, layers, layer_stride, rows * bytes, &|Addresses { memory, packed }| {
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
            // `Program::new` binds every step to the microkernel of its kind; loops do not come here.
            _ => {}
        }
    }
}

/// Moves layer after layer. Apart from the other microkernels, which need no stack frame.
#[inline(never)]
fn layers_of_tiles(addresses: Addresses, layers: usize, stride: i64, bytes: usize, tile: &dyn Fn(Addresses)) {
    for layer in 0..layers {
        tile(addresses.at((layer as i64).wrapping_mul(stride), (layer * bytes) as u64));
    }
}
