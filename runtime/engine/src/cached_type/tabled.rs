//! What equal types with index tables share.

use crate::cpu::{self, Program};
use crate::device::{DeviceKernel, DeviceState, Generic};
use crate::error::{check_text, without_source};
use crate::policy::Policy;
use crate::recorder::{Uses, recorder};
use crate::worker::Job;
use dtc_compiler::codegen::cuda::{TABLED_ENTRY, TabledProgram, TabledSides, tabled};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::gpu::TabledVariant;
use dtc_compiler::plan::{Direction, Plan};
use dtc_compiler::tabled::TabledLayout;
use dtc_cuda::{CudaError, DeviceBuffer};
use dtc_host::lock::Lock;
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// The types of an engine, by their digests. It does not keep them alive.
#[derive(Default)]
pub(crate) struct TabledTypes(Lock<HashMap<[u8; 32], Weak<TabledType>>>);

impl TabledTypes {
    /// What all types of the same normal form share.
    pub(crate) fn get(&self, datatype: &TabledDatatype) -> Arc<TabledType> {
        let made = TabledType::of(datatype);
        let digest = made.digest;
        let mut known = self.0.lock();
        if let Some(found) = known.get(&digest).and_then(Weak::upgrade) {
            return found;
        }
        // Those that are gone go before the table would grow.
        if known.len() == known.capacity() {
            known.retain(|_, known| known.strong_count() > 0);
        }
        let made = Arc::new(made);
        known.insert(digest, Arc::downgrade(&made));
        made
    }
}

/// A type with index tables: its layout, and what moves it.
pub(crate) struct TabledType {
    pub(crate) layout: TabledLayout,
    /// Packed bytes for the longest tables.
    pub(crate) most_bytes: u64,
    /// What the places and lengths of all runs are multiples of.
    pub(crate) granularity: u32,
    pub(super) digest: [u8; 32],
    /// Of each fixed layout, made at the first call in host memory.
    programs: OnceBox<Vec<Program>>,
    /// What the generic kernels interpret, made at the first call that they serve; nothing for types of too many parts.
    interpreted: OnceBox<Option<TabledProgram>>,
    devices: Lock<OnDevices>,
    /// The counters of the process's recorder; `None` where it has none.
    recorded: Option<&'static Uses>,
}

/// What a type has on devices.
#[derive(Default)]
struct OnDevices {
    kernels: Vec<TabledKernel>,
    interpreters: Vec<(Arc<DeviceState>, Arc<TabledInterpreter>)>,
    requests: Vec<(TabledKey, Arc<AtomicU32>)>,
}

/// What the generic kernels need for a type on a device. A graph keeps it, and so the code that its nodes run.
pub(crate) struct TabledInterpreter {
    pub(crate) generic: Arc<Generic>,
    /// Nothing for types without lists.
    pub(crate) lists: Option<DeviceBuffer>,
}

/// What serves a call.
pub(crate) enum TabledServing<'a> {
    /// A kernel compiled for the type.
    Compiled(Arc<DeviceKernel>),
    /// The generic kernels of a pack or unpack.
    Generic(TabledGeneric<'a>),
    /// Those of both types of a copy.
    Passes([TabledGeneric<'a>; 2]),
}

/// What the generic kernels interpret for a type.
pub(crate) struct TabledGeneric<'a> {
    pub(crate) program: &'a TabledProgram,
    pub(crate) interpreter: Arc<TabledInterpreter>,
}

/// A kernel of a type on a device.
struct TabledKernel {
    key: TabledKey,
    state: Arc<DeviceState>,
    kernel: Arc<DeviceKernel>,
}

/// What a kernel is for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TabledKey {
    ordinal: u32,
    move_of: MoveOf,
    variant: TabledVariant,
}

impl From<TabledMove<'_>> for MoveOf {
    fn from(moved: TabledMove<'_>) -> MoveOf {
        match moved {
            TabledMove::Pack => MoveOf::Pack,
            TabledMove::Unpack => MoveOf::Unpack,
            TabledMove::CopyTo(target) => MoveOf::Copy(target.digest),
        }
    }
}

impl TabledKey {
    fn new(state: &DeviceState, moved: TabledMove<'_>, variant: TabledVariant) -> TabledKey {
        TabledKey { ordinal: state.device.info().ordinal, move_of: moved.into(), variant }
    }
}

fn find(kernels: &[TabledKernel], key: TabledKey) -> Option<Arc<DeviceKernel>> {
    Some(kernels.iter().find(|known| known.key == key)?.kernel.clone())
}

/// The background's compiling a kernel of a type. `uses` tells how many calls would have used it.
struct CompileTabled {
    of: Weak<TabledType>,
    state: Weak<DeviceState>,
    moved: WeakMove,
    variant: TabledVariant,
    uses: Arc<AtomicU32>,
}

/// A move that keeps no type alive.
enum WeakMove {
    Pack,
    Unpack,
    CopyTo(Weak<TabledType>),
}

impl From<TabledMove<'_>> for WeakMove {
    fn from(moved: TabledMove<'_>) -> WeakMove {
        match moved {
            TabledMove::Pack => WeakMove::Pack,
            TabledMove::Unpack => WeakMove::Unpack,
            TabledMove::CopyTo(target) => WeakMove::CopyTo(Arc::downgrade(target)),
        }
    }
}

impl Job for CompileTabled {
    fn priority(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    fn run(&self) {
        let (Some(of), Some(state)) = (self.of.upgrade(), self.state.upgrade()) else { return };
        let target;
        let moved = match &self.moved {
            WeakMove::Pack => TabledMove::Pack,
            WeakMove::Unpack => TabledMove::Unpack,
            WeakMove::CopyTo(weak) => match weak.upgrade() {
                Some(live) => {
                    target = live;
                    TabledMove::CopyTo(&target)
                }
                None => return,
            },
        };
        if let Err(error) = of.kernel(&state, moved, self.variant) {
            state.note(error);
        }
    }
}

/// Which way a kernel moves the type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum MoveOf {
    Pack,
    Unpack,
    /// To the type with this digest.
    Copy([u8; 32]),
}

impl Drop for TabledType {
    fn drop(&mut self) {
        let OnDevices { kernels, interpreters, .. } = std::mem::take(self.devices.get_mut());
        // Launches may still be running; in a forked child nothing can be freed.
        for TabledKernel { state, kernel, .. } in kernels {
            if state.device.check_process().is_ok() {
                state.retire(kernel);
            }
        }
        for (state, interpreter) in interpreters {
            if state.device.check_process().is_ok() {
                state.retire(interpreter);
            }
        }
    }
}

/// A move of a type, as kernels are made for it.
#[derive(Clone, Copy)]
pub(crate) enum TabledMove<'a> {
    /// From elements to packed bytes.
    Pack,
    /// From packed bytes to elements.
    Unpack,
    /// To elements of another type.
    CopyTo(&'a Arc<TabledType>),
}

impl TabledType {
    /// A type of its own, which shares nothing with equal ones.
    pub(crate) fn of(datatype: &TabledDatatype) -> TabledType {
        let layout = TabledLayout::new(datatype);
        let digest = layout.digest();
        let (most_bytes, granularity) = (layout.most_bytes(), layout.granularity());
        let recorded = recorder().and_then(|recorder| recorder.uses_of_tabled(&digest, datatype));
        let (programs, interpreted, devices) = Default::default();
        TabledType { layout, most_bytes, granularity, digest, programs, interpreted, devices, recorded }
    }

    /// Counts a call, if the process records.
    pub(crate) fn count_use(&self, direction: Direction, bytes: u64) {
        if let (Some(uses), Some(recorder)) = (self.recorded, recorder()) {
            recorder.count(uses, direction, bytes);
        }
    }

    /// What moves each fixed layout in host memory.
    pub(crate) fn programs(&self) -> &[Program] {
        self.programs.get_or_init(|| {
            let fixed_layouts = self.layout.fixed_layouts().iter();
            Box::new(fixed_layouts.map(|fixed| Program::new(Plan::new(fixed), cpu::host())).collect())
        })
    }

    /// The layouts of both sides of a move.
    pub(crate) fn sides<'a>(&'a self, moved: TabledMove<'a>) -> TabledSides<'a> {
        match moved {
            TabledMove::Pack => TabledSides::Pack(&self.layout),
            TabledMove::Unpack => TabledSides::Unpack(&self.layout),
            TabledMove::CopyTo(target) => TabledSides::Copy { source: &self.layout, target: &target.layout },
        }
    }

    /// What serves a move on a device now: its kernel if it is there, or is made at once under the policy; the generic kernels otherwise, while the
    /// background compiles. Calls of types with too many parts for those wait for their kernel.
    pub(crate) fn serving<'a>(
        self: &'a Arc<TabledType>,
        state: &Arc<DeviceState>,
        moved: TabledMove<'a>,
        variant: TabledVariant,
    ) -> Result<TabledServing<'a>, CudaError> {
        // In a forked child, a thread of the parent may have held the lock.
        state.device.check_process()?;
        let key = TabledKey::new(state, moved, variant);
        if let Some(kernel) = find(&self.devices.lock().kernels, key) {
            return Ok(TabledServing::Compiled(kernel));
        }
        if variant.reduction.is_some() {
            // No generic kernel combines elements.
            return self.kernel(state, moved, variant).map(TabledServing::Compiled);
        }
        // While the background waits until nothing runs, uploads wait with it, and a kernel that runs may wait for this call.
        let generic = match moved {
            TabledMove::Pack | TabledMove::Unpack => self.generic(state)?.map(TabledServing::Generic),
            TabledMove::CopyTo(target) => match (self.generic(state)?, target.generic(state)?) {
                (Some(source), Some(target)) => Some(TabledServing::Passes([source, target])),
                _ => None,
            },
        };
        let Some(generic) = generic else {
            return self.kernel(state, moved, variant).map(TabledServing::Compiled);
        };
        let uses = self.count(key);
        match state.policy {
            Policy::Off => {}
            // One call alone tries it: what cannot be compiled stays with the generic kernels.
            Policy::Eager | Policy::Always if uses.fetch_add(1, Ordering::Relaxed) == 0 => {
                match self.kernel(state, moved, variant) {
                    Ok(kernel) => return Ok(TabledServing::Compiled(kernel)),
                    Err(error) => state.note(error),
                }
            }
            Policy::Eager | Policy::Always => {}
            Policy::Background | Policy::Lazy(_) => {
                let threshold = if let Policy::Lazy(threshold) = state.policy { threshold } else { 0 };
                let used = uses.fetch_add(1, Ordering::Relaxed);
                if used == threshold {
                    let (of, on) = (Arc::downgrade(self), Arc::downgrade(state));
                    let job = CompileTabled { of, state: on, moved: moved.into(), variant, uses };
                    state.queue.push(job, state.background_thread);
                }
            }
        }
        Ok(generic)
    }

    /// What the generic kernels need for the type; nothing where it has too many parts.
    fn generic(&self, state: &Arc<DeviceState>) -> Result<Option<TabledGeneric<'_>>, CudaError> {
        let Some(program) = self.program() else { return Ok(None) };
        Ok(Some(TabledGeneric { program, interpreter: self.interpreter(state, program)? }))
    }

    /// The counter of the calls that a kernel would have served.
    fn count(&self, key: TabledKey) -> Arc<AtomicU32> {
        let requests = &mut self.devices.lock().requests;
        if let Some((_, uses)) = requests.iter().find(|(known, _)| *known == key) {
            return uses.clone();
        }
        let uses = Arc::new(AtomicU32::new(0));
        requests.push((key, uses.clone()));
        uses
    }

    fn program(&self) -> Option<&TabledProgram> {
        self.interpreted.get_or_init(|| Box::new(TabledProgram::new(&self.layout))).as_ref()
    }

    /// What the generic kernels need on a device, from the first use on.
    fn interpreter(
        &self,
        state: &Arc<DeviceState>,
        program: &TabledProgram,
    ) -> Result<Arc<TabledInterpreter>, CudaError> {
        let find = |known: &[(Arc<DeviceState>, Arc<TabledInterpreter>)]| {
            Some(known.iter().find(|(known, _)| Arc::ptr_eq(known, state))?.1.clone())
        };
        if let Some(known) = find(&self.devices.lock().interpreters) {
            return Ok(known);
        }
        // No lock is held meanwhile: another thread may make the same.
        let lists = state.upload(&program.lists)?;
        let made = Arc::new(TabledInterpreter { generic: state.generic()?.clone(), lists });
        let mut devices = self.devices.lock();
        if let Some(known) = find(&devices.interpreters) {
            drop(devices);
            // Freeing it at once might wait for the device.
            state.retire(made);
            return Ok(known);
        }
        devices.interpreters.push((state.clone(), made.clone()));
        Ok(made)
    }

    /// The kernel for a move on a device: known, from the store of compiled code, or compiled now.
    pub(crate) fn kernel(
        &self,
        state: &Arc<DeviceState>,
        moved: TabledMove<'_>,
        variant: TabledVariant,
    ) -> Result<Arc<DeviceKernel>, CudaError> {
        // In a forked child, a thread of the parent may have held the lock.
        state.device.check_process()?;
        let key = TabledKey::new(state, moved, variant);
        if let Some(kernel) = find(&self.devices.lock().kernels, key) {
            return Ok(kernel);
        }
        // No lock is held meanwhile: another thread may compile the same, and its kernel is as good.
        let program = tabled(self.sides(moved), &variant).map_err(without_source)?;
        check_text(&program.source)?;
        let functions = state.functions(&program.source, &[TABLED_ENTRY])?;
        let tables = state.upload(&program.tables)?.map(Arc::new);
        let made =
            functions.into_iter().map(|function| Arc::new(DeviceKernel { function, tables: tables.clone() })).next();
        let mut devices = self.devices.lock();
        let (kernel, forgotten) = match (find(&devices.kernels, key), made) {
            (Some(known), made) => (known, made),
            (None, Some(made)) => {
                devices.kernels.push(TabledKernel { key, state: state.clone(), kernel: made.clone() });
                (made, None)
            }
            (None, None) => return Err(without_source(TABLED_ENTRY)),
        };
        drop(devices);
        if let Some(forgotten) = forgotten {
            // Freeing it at once might wait for the device.
            state.retire(forgotten);
        }
        Ok(kernel)
    }
}
