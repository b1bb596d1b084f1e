//! `dtc explain`: everything that the compiler knows and decides about a type.

use super::explain_preload::Preload;
use super::explain_recorded;
use super::explain_tabled::TabledExplanation;
use crate::commands::emit::compiler;
use crate::commands::{explain_bounds, explain_preload, explain_roofline};
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cuda::GenericKernel;
use dtc_compiler::datatype::json::Description;
use dtc_compiler::layout::Overlap;
use dtc_compiler::plan::gpu::{Call, Roofline, Variant};
use dtc_compiler::plan::{Direction, Strategy};
use dtc_measure::description::{self, Named};
use dtc_measure::failure::Failure;
use dtc_measure::program::called;
use dtc_measure::recorded::{self, RecordedTypes};
use dtc_measure::report;
use dtc_runtime::cuda::{Device, MemoryKind};
use dtc_runtime::store::{Config, Recording, Store};
use dtc_runtime::{Choice, Engine, TransferCase, TransferModel};
use dtc_view::{CALLS, LAYOUT_WORDS, PLAN_WORDS};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

/// Explains a type: facts, layout, passes, plan, kernels and hash
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description: JSON, the short notation in a file that ends in .dtc or .txt, or as the argument itself, as in
    /// 'vector 12 1 14 double'; or what programs recorded (DTC_RECORD): a file that ends in .recorded, or its folder
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
    /// Prints a JSON object
    #[arg(long)]
    json: bool,
    /// Prints long parts in full, and all types of a recording
    #[arg(long)]
    full: bool,
    /// Tells of kernels and transfers on a GPU also where there is none; --json always does
    #[arg(long)]
    gpu: bool,
    /// The entries of an index table of the type, as in 3,1,7, or a file of them, for the least traffic of a call; once for each table, in the
    /// order of their numbers. Without it, long tables are assumed
    #[arg(long = "table", value_name = "ENTRIES", allow_hyphen_values = true)]
    tables: Vec<String>,
}

/// Kinds of memory that transfers are explained between: those of the host, and of two GPUs.
const KINDS: [MemoryKind; 5] =
    [MemoryKind::Device(0), MemoryKind::Device(1), MemoryKind::Managed, MemoryKind::Pinned, MemoryKind::Pageable];

/// The words that occur in a text, behind a blank, as those of layouts and plans do.
fn print_words(words: &[(&str, &str)], text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let occurs = |word: &str| text.split([' ', '\n']).any(|other| other == word);
    for (word, meaning) in words.iter().filter(|(word, _)| occurs(word)) {
        writeln!(out, "    {word:<10}{meaning}")?;
    }
    Ok(())
}

/// The model of the first GPU, as it was measured, or the default; and what to call it.
pub fn model() -> (TransferModel, String) {
    let info = Device::list().ok().and_then(|devices| devices.into_iter().next());
    let stored = info.and_then(|info| TransferModel::stored(&Store::open(Config::from_environment()), &info));
    match stored {
        Some(model) => (model, "as measured here".to_owned()),
        None => {
            let text = format!("by the default model; {} measures a machine", called("calibrate"));
            (TransferModel::default(), text)
        }
    }
}

/// The kernel of one direction.
struct Kernel {
    direction: &'static str,
    code_bytes: usize,
    nanoseconds: f64,
}

/// What there is to say.
struct Explanation {
    named: Named,
    pipeline: Pipeline,
    kernels: Vec<Kernel>,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    pipeline: &'a Pipeline,
    #[serde(flatten)]
    rest: Value,
}

impl Explanation {
    fn of(named: Named) -> Result<Explanation, Failure> {
        let pipeline = Pipeline::new(named.description.datatype.clone());
        let mut kernels = Vec::new();
        if pipeline.plan().decision().specialise()
            && let Ok(compiler) = compiler()
        {
            for (direction, name) in [(Direction::Pack, "pack"), (Direction::Unpack, "unpack")] {
                let start = Instant::now();
                let code = compiler.compile(pipeline.plan(), direction);
                let nanoseconds = start.elapsed().as_nanos() as f64;
                let code = code.map_err(|error| Failure::data(format_args!("kernel for {name}"), "code", error))?;
                kernels.push(Kernel { direction: name, code_bytes: code.code.len(), nanoseconds });
            }
        }
        Ok(Explanation { named, pipeline, kernels })
    }

    /// Packed bytes of a transfer: no more than a call can have.
    fn packed_bytes(&self) -> u64 {
        let count = self.named.description.count.max(1);
        self.pipeline.layout().size().saturating_mul(count).min(i64::MAX as u64)
    }

    /// The kernels that serve a transfer on a GPU, compiled and generic, by the kind of call.
    fn variants(&self) -> Vec<(Direction, &'static str, Variant, Variant)> {
        let (size, gpu) = (self.pipeline.layout().size(), self.pipeline.gpu_plan());
        if size == 0 || gpu.is_contiguous() {
            return Vec::new();
        }
        let bytes = self.packed_bytes();
        let variant = |direction, (kind, memory, packed)| {
            let call = Call { memory, packed, first: 0, bytes };
            let generic = GenericKernel::serving(gpu, direction, &call).variant;
            let own = if gpu.allows() { gpu.variant(direction, &call) } else { generic };
            (direction, kind, own, generic)
        };
        let directions = [Direction::Pack, Direction::Unpack];
        directions.iter().flat_map(|&direction| CALLS.map(|kind| variant(direction, kind))).collect()
    }

    /// The ways between kinds of memory that a GPU takes part in: elements, packed bytes, the choice for a pack and for an
    /// unpack by calls that wait. GPUs are taken to have a link, and not to follow the page tables of the host.
    fn ways(&self, model: &TransferModel) -> Vec<(MemoryKind, MemoryKind, [Choice; 2])> {
        let layout = self.pipeline.layout();
        let choose = |direction, memory, packed| {
            let case = TransferCase {
                direction,
                memory,
                packed,
                peers: true,
                shares_page_tables: false,
                waits: true,
                run_bytes: layout.size() / self.pipeline.runs().max(1),
                bytes: self.packed_bytes(),
            };
            case.choose(model)
        };
        let pairs = KINDS.iter().flat_map(|&memory| KINDS.map(|packed| (memory, packed)));
        let with_first = pairs.filter(|(memory, packed)| {
            let both = [*memory, *packed];
            both.contains(&MemoryKind::Device(0)) && both != [MemoryKind::Device(1), MemoryKind::Device(0)]
        });
        let directions = [Direction::Pack, Direction::Unpack];
        with_first.map(|(memory, packed)| (memory, packed, directions.map(|way| choose(way, memory, packed)))).collect()
    }

    /// The bytes of DRAM that a transfer moves at least; `None` where its offsets leave 63 bits.
    fn roofline(&self) -> Option<Roofline> {
        Roofline::of(self.pipeline.layout(), self.named.description.count, self.named.description.origin_bytes)
    }

    /// Whether the elements of a transfer overlap; those of any count for a description of one.
    fn overlap(&self) -> Overlap {
        self.pipeline.layout().overlap(Some(self.named.description.count).filter(|&count| count > 1))
    }

    /// The strategy of this machine for calls of the described count.
    fn strategy(&self) -> String {
        Strategy::new(self.pipeline.plan(), &Engine::new().target(), self.named.description.count.max(1)).to_string()
    }

    /// What libdtc_mpi does with calls of the type.
    fn preload(&self) -> Option<Preload> {
        explain_preload::preload(&self.pipeline, self.named.description.datatype.facts(), self.packed_bytes())
    }

    /// Which tier serves once kernels are compiled.
    fn tier(&self) -> &'static str {
        if self.kernels.is_empty() { "generic" } else { "specialised" }
    }

    /// What is said beyond the stages of the compiler.
    fn rest(&self) -> Value {
        let (description, gpu) = (&self.named.description, self.pipeline.gpu_plan());
        let kernels: Map<String, Value> = self
            .kernels
            .iter()
            .map(|kernel| {
                let facts = json!({"code_bytes": kernel.code_bytes, "compile_ns": kernel.nanoseconds});
                (kernel.direction.to_owned(), facts)
            })
            .collect();
        let variants = self.variants().into_iter().map(|(direction, call, own, generic)| {
            json!({
                "direction": direction.to_string(),
                "call": call,
                "kernel": own.to_string(),
                "generic": generic.to_string(),
            })
        });
        let variants: Vec<Value> = variants.collect();
        let model = model().0;
        let copy = model.device_copy();
        let rooflines = self.roofline().map_or_else(Map::new, |roofline| explain_roofline::to_json(&roofline, copy));
        let ways = self.ways(&model).into_iter().map(|(memory, packed, [pack, unpack])| {
            let choice = |choice: Choice| json!({"way": choice.path.to_string(), "reason": choice.reason});
            json!({
                "memory": memory.to_string(),
                "packed": packed.to_string(),
                "pack": choice(pack),
                "unpack": choice(unpack),
            })
        });
        let ways: Vec<Value> = ways.collect();
        json!({
            "name": self.named.name,
            "story": description.story,
            "source": description.source,
            "count": description.count,
            "origin_bytes": description.origin_bytes,
            "bounds": explain_bounds::object(&description.datatype),
            "buffer_bytes": description.buffer_bytes,
            "overlap": match self.overlap() {
                Overlap::None => Value::Null,
                overlap => overlap.to_string().into(),
            },
            "strategy": self.strategy(),
            "tier": self.tier(),
            "kernels": kernels,
            "gpu": {
                "contiguous": gpu.is_contiguous(),
                "compiles": gpu.allows(),
                "plan": gpu.to_string(),
                "variants": variants,
                "roofline": rooflines,
            },
            "transfers": ways,
            "preload": self.preload().map(|preload| json!({
                "bytes": preload.bytes,
                "served": preload.served.into_iter().collect::<BTreeMap<_, _>>(),
            })),
        })
    }

    fn print(&self, out: &mut dyn Write, lines: usize, width: usize, gpu: bool) -> Result<(), Failure> {
        let (description, pipeline) = (&self.named.description, &self.pipeline);
        let facts = description.datatype.facts();
        writeln!(out, "{}", self.named.name)?;
        for remark in [&description.story, &description.source].into_iter().flatten() {
            writeln!(out, "    {remark}")?;
        }
        writeln!(out, "type, {} nodes", description.datatype.nodes().len())?;
        write!(out, "{}", report::shortened(&description.datatype.to_string(), lines, width))?;
        writeln!(out, "facts")?;
        let bounds = ("lb, ub, extent".to_owned(), format!("{}, {}, {}", facts.lb, facts.ub, facts.extent()));
        writeln!(out, "    {:<20}{}", "size", facts.size)?;
        for (name, value) in std::iter::once(bounds).chain(explain_bounds::rows(&description.datatype)) {
            writeln!(out, "    {name:<20}{value}")?;
        }
        let rows = [
            ("true lb, ub, extent", format!("{}, {}, {}", facts.true_lb, facts.true_ub, facts.true_extent())),
            ("alignment", facts.alignment.to_string()),
            ("basic elements", description.datatype.signature().elements().to_string()),
            ("contiguous runs", pipeline.runs().to_string()),
            ("count of a transfer", description.count.to_string()),
        ];
        for (name, value) in rows {
            writeln!(out, "    {name:<20}{value}")?;
        }
        match self.overlap() {
            Overlap::None => {}
            overlap => {
                for (at, line) in report::wrapped(&overlap.to_string(), 100).iter().enumerate() {
                    writeln!(out, "    {:<20}{line}", if at == 0 { "overlap" } else { "" })?;
                }
            }
        }
        writeln!(out, "layout as lowered")?;
        write!(out, "{}", report::shortened(&pipeline.lowered().to_string(), lines, width))?;
        writeln!(out, "passes\n    {}", pipeline.report())?;
        let exact = if pipeline.layout().exact() { "exact" } else { "not exact: too many runs to write out" };
        writeln!(out, "layout, canonical ({exact})")?;
        write!(out, "{}", report::shortened(&pipeline.layout().to_string(), lines, width))?;
        let plan = pipeline.plan().to_string();
        writeln!(out, "{}", plan.lines().next().unwrap_or("plan"))?;
        let steps: Vec<String> = plan.lines().skip(1).map(|line| line.trim().to_owned()).collect();
        write!(out, "{}", report::shortened(&steps.join("\n"), lines, width))?;
        writeln!(out, "decision\n    {}", pipeline.plan().decision())?;
        let strategy = self.strategy();
        writeln!(out, "{}", strategy.lines().next().unwrap_or("strategy"))?;
        let steps: Vec<&str> = strategy.lines().skip(1).map(str::trim).collect();
        write!(out, "{}", report::shortened(&steps.join("\n"), lines, width))?;
        for Kernel { direction, code_bytes, nanoseconds } in &self.kernels {
            writeln!(out, "    {direction:<7}{code_bytes} bytes of code, compiled in {}", report::time(*nanoseconds))?;
        }
        if gpu {
            self.print_gpu(out, lines, width)?;
        }
        for line in self.preload().iter().flat_map(Preload::lines) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "hash\n    {}", pipeline.hash())?;
        self.print_legend(out)
    }

    /// Kernels and transfers on a GPU.
    fn print_gpu(&self, out: &mut dyn Write, lines: usize, width: usize) -> Result<(), Failure> {
        writeln!(out, "plan for a GPU")?;
        write!(out, "{}", report::shortened(&self.pipeline.gpu_plan().to_string(), lines, width))?;
        let variants = self.variants();
        if !variants.is_empty() {
            writeln!(out, "kernels of a transfer on a GPU")?;
        }
        for (_, call, own, generic) in variants {
            writeln!(out, "    {own} ({call})")?;
            if own.family != generic.family {
                writeln!(out, "        until it is compiled: {}", generic.family)?;
            }
        }
        let (model, source) = model();
        if let Some(roofline) = self.roofline().filter(|_| self.pipeline.layout().size() > 0) {
            let copy = model.device_copy();
            writeln!(out, "{}", explain_roofline::title(copy, &source))?;
            explain_roofline::print(&roofline, copy, out)?;
        }
        writeln!(out, "transfers between kinds of memory by calls that wait, {source}")?;
        for (memory, packed, [pack, unpack]) in self.ways(&model) {
            let sides = format!("{memory}, packed bytes in {packed}");
            if pack == unpack {
                writeln!(out, "    {sides:<52}{}: {}", pack.path, pack.reason)?;
            } else {
                writeln!(out, "    {sides:<52}pack {}: {}", pack.path, pack.reason)?;
                writeln!(out, "    {:<52}unpack {}: {}", "", unpack.path, unpack.reason)?;
            }
        }
        Ok(())
    }

    /// What the words of the layouts and of the plan mean, those alone that occur.
    fn print_legend(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let layouts = [self.pipeline.lowered().to_string(), self.pipeline.layout().to_string()].join("\n");
        writeln!(out, "words of the layouts")?;
        print_words(&LAYOUT_WORDS, &layouts, out)?;
        writeln!(out, "words of the plan")?;
        print_words(&PLAN_WORDS, &self.pipeline.plan().to_string(), out)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    if Recording::is_file_name(&arguments.file) || arguments.file.is_dir() {
        return of_recording(arguments, out);
    }
    let Named { name, description } = description::read_tabled(&arguments.file)?;
    let Some(datatype) = description.datatype.without_tables() else {
        let explanation = TabledExplanation::new(&description.datatype, &arguments.tables)?;
        let (model, source) = model();
        let copy = model.device_copy();
        if arguments.json {
            return print_json(&explanation.to_json(copy), out);
        }
        return explanation.print(lines_of_parts(arguments), (copy, &source), out);
    };
    if !arguments.tables.is_empty() {
        return Err(Failure::description("--table", "a type with index tables", "one without"));
    }
    let Description { story, source, count, origin_bytes, buffer_bytes, .. } = description;
    let description = Description { datatype, story, source, count, origin_bytes, buffer_bytes };
    let explanation = Explanation::of(Named { name, description })?;
    if arguments.json {
        let (pipeline, rest) = (&explanation.pipeline, explanation.rest());
        return print_json(&Object { pipeline, rest }, out);
    }
    print(arguments, &explanation, out)
}

fn print(arguments: &Arguments, explanation: &Explanation, out: &mut dyn Write) -> Result<(), Failure> {
    let (lines, width) = (lines_of_parts(arguments), if arguments.full { usize::MAX } else { 200 });
    let gpu = arguments.gpu || Device::count().is_ok_and(|devices| devices > 0);
    explanation.print(out, lines, width, gpu)
}

/// Lines of a part at most.
fn lines_of_parts(arguments: &Arguments) -> usize {
    if arguments.full { usize::MAX } else { 16 }
}

fn print_json(value: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    Ok(writeln!(out, "{text}")?)
}

/// Explains the types of recordings, those that moved most first.
fn of_recording(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let (recordings, _) = recorded::files(std::slice::from_ref(&arguments.file))?;
    let RecordedTypes { plain: mut types, mut tabled } = recorded::read(&recordings)?;
    if types.is_empty() && tabled.is_empty() {
        return Err(Failure::description(arguments.file.display(), "recorded types", "none"));
    }
    types.sort_by_key(|recorded| std::cmp::Reverse(recorded.moved()));
    tabled.sort_by_key(|recorded| std::cmp::Reverse(recorded.moved()));
    let with_tables = || tabled.iter().map(|recorded| TabledExplanation::new(&recorded.datatype, &[]));
    let explained = || types.iter().map(|recorded| Explanation::of(recorded.named()));
    if arguments.json {
        let explanations: Vec<Explanation> = explained().collect::<Result<_, _>>()?;
        let mut objects = Vec::with_capacity(types.len());
        for (explanation, recorded) in explanations.iter().zip(&types) {
            let mut rest = explanation.rest();
            rest["uses"] = explain_recorded::uses(&recorded.uses);
            let object = Object { pipeline: &explanation.pipeline, rest };
            objects.push(serde_json::to_value(object).map_err(io::Error::from)?);
        }
        for (explanation, recorded) in with_tables().zip(&tabled) {
            let mut object = explanation?.to_json(model().0.device_copy());
            object["name"] = recorded.name.clone().into();
            object["uses"] = explain_recorded::uses(&recorded.uses);
            objects.push(object);
        }
        return print_json(&objects, out);
    }
    explain_recorded::list(&types, &tabled, out)?;
    if !arguments.full && types.len() + tabled.len() > 1 {
        return Ok(writeln!(out, "--full explains each; {} 'NOTATION' one", called("explain"))?);
    }
    for explanation in explained() {
        writeln!(out)?;
        print(arguments, &explanation?, out)?;
    }
    let (model, source) = model();
    for explanation in with_tables() {
        writeln!(out)?;
        explanation?.print(lines_of_parts(arguments), (model.device_copy(), &source), out)?;
    }
    Ok(())
}
