//! A datatype and the results of every stage of the compiler.

use crate::datatype::Datatype;
use crate::layout::{Layout, TypeHash};
use crate::lower;
use crate::passes::{Canonical, Report, canonicalise};
use crate::plan::Plan;
use crate::plan::gpu::GpuPlan;
use crate::shared::Shared;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::cell::OnceCell;
use std::fmt::Display;

/// A datatype and what each stage of the compiler makes of it.
///
/// The datatype is lowered at once. Every later stage runs when its result is first asked for, and the result is kept. Equal types
/// have one canonical layout, one hash and one plan; datatype, lowered layout and report are those of this description.
///
/// Serialised, a pipeline is the object of `dtc explain --json` without what depends on a machine: facts, hash, layouts, passes and
/// the plan for a CPU.
///
/// # Tracing
///
/// Each stage is a record of the crate `log` at level `debug`, each rewrite of a pass one at level `trace`. The libraries install no
/// logger, and without one nothing is formatted. The command installs one for `RUST_LOG`:
/// `RUST_LOG=dtc_compiler=trace dtc lower TYPE.json`.
///
/// # Example
///
/// ```
/// use dtc_compiler::Pipeline;
/// use dtc_compiler::datatype::text;
///
/// let columns = Pipeline::new(text::parse("vector 12 5 14 double")?);
/// assert!(columns.lowered().to_string().contains("f64"));
/// assert_eq!(columns.report().to_string(), "erase-kinds 1, fold-dense 1");
/// assert!(columns.plan().to_string().contains("rows 12 x 112 of 40 bytes"));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Debug)]
pub struct Pipeline {
    datatype: Datatype,
    lowered: Layout,
    hash: OnceCell<TypeHash>,
    canonical: OnceCell<Canonical>,
    plan: OnceCell<Plan>,
    gpu_plan: OnceCell<GpuPlan>,
}

impl Pipeline {
    /// Lowers a datatype.
    pub fn new(datatype: Datatype) -> Pipeline {
        let lowered = lower(&datatype);
        log::debug!("lowered: {} nodes, {} list entries", lowered.nodes().len(), lowered.entries());
        let (hash, canonical, plan, gpu_plan) = Default::default();
        Pipeline { datatype, lowered, hash, canonical, plan, gpu_plan }
    }

    /// The datatype as it was described.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The layout before the passes, which has the kinds of the elements.
    pub fn lowered(&self) -> &Layout {
        &self.lowered
    }

    /// The identity that all equal types share. It needs no passes.
    pub fn hash(&self) -> TypeHash {
        *self.hash.get_or_init(|| self.lowered.type_hash())
    }

    /// The layout after the passes.
    pub fn layout(&self) -> &Layout {
        &self.canonical().layout
    }

    /// The passes that fired on the way from the lowered to the canonical layout of this description.
    pub fn report(&self) -> &Report {
        &self.canonical().report
    }

    /// Contiguous runs of one element.
    pub fn runs(&self) -> u64 {
        self.layout().measure(self.layout().root().node).runs
    }

    /// How a CPU moves the bytes.
    pub fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| plan_for_cpu(self.layout()))
    }

    /// How a GPU moves the bytes.
    pub fn gpu_plan(&self) -> &GpuPlan {
        self.gpu_plan.get_or_init(|| {
            let plan = GpuPlan::new(self.layout());
            log::debug!("planned for a GPU: {plan}");
            plan
        })
    }

    /// What all equal types share.
    pub fn into_shared(self) -> Shared {
        let hash = self.hash();
        let layout = self.canonical.into_inner().unwrap_or_else(|| rewritten(&self.lowered)).layout;
        let plan = self.plan.into_inner().unwrap_or_else(|| plan_for_cpu(&layout));
        Shared { hash, layout, plan }
    }

    fn canonical(&self) -> &Canonical {
        self.canonical.get_or_init(|| rewritten(&self.lowered))
    }
}

fn rewritten(lowered: &Layout) -> Canonical {
    let canonical = canonicalise(lowered);
    log::debug!("canonical: {} nodes; {}", canonical.layout.nodes().len(), canonical.report);
    canonical
}

fn plan_for_cpu(layout: &Layout) -> Plan {
    let plan = Plan::new(layout);
    log::debug!("planned for a CPU: {} steps; {}", plan.steps().len(), plan.decision());
    plan
}

/// Serialised as its text.
struct AsText<T>(T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Serialised as a map from names to numbers.
struct Fired<'a>(&'a Report);

impl Serialize for Fired<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fired().iter().copied())
    }
}

impl Serialize for Pipeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (datatype, facts) = (&self.datatype, self.datatype.facts());
        let mut object = serializer.serialize_struct("Pipeline", 19)?;
        object.serialize_field("type", &AsText(datatype))?;
        object.serialize_field("type_nodes", &datatype.nodes().len())?;
        object.serialize_field("hash", &AsText(self.hash()))?;
        object.serialize_field("size", &facts.size)?;
        object.serialize_field("lb", &facts.lb)?;
        object.serialize_field("ub", &facts.ub)?;
        object.serialize_field("extent", &facts.extent())?;
        object.serialize_field("true_lb", &facts.true_lb)?;
        object.serialize_field("true_ub", &facts.true_ub)?;
        object.serialize_field("true_extent", &facts.true_extent())?;
        object.serialize_field("alignment", &facts.alignment)?;
        object.serialize_field("elements", &datatype.signature().elements())?;
        object.serialize_field("runs", &self.runs())?;
        object.serialize_field("lowered", &AsText(&self.lowered))?;
        object.serialize_field("layout", &AsText(self.layout()))?;
        object.serialize_field("exact", &self.layout().exact())?;
        object.serialize_field("passes", &Fired(self.report()))?;
        object.serialize_field("plan", &AsText(self.plan()))?;
        object.serialize_field("decision", &AsText(self.plan().decision()))?;
        object.end()
    }
}
