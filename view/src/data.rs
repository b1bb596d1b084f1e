//! What a page shows of a type, as plain data.

use crate::captions::{LayoutGraph, signed, text_of};
use crate::cpu::{CpuView, LINE};
use crate::gpu::{GpuView, SECTOR};
use crate::graph::Drawing;
use crate::palette;
use crate::regions::{Content, Entry, MOST_ENTRIES, Region, Regions};
use crate::roofline::Bandwidth;
use crate::stages::{Stage, Stages};
use crate::tables::{Example, ExampleTable, SKIPPED};
use crate::touched::count_touched;
use crate::window::{WindowRun, runs_within};
use crate::words::{LAYOUT_WORDS, PLAN_WORDS};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::json::Description;
use dtc_compiler::datatype::{Datatype, Facts, TabledDatatype};
use dtc_compiler::layout::positions::Segment;
use dtc_compiler::layout::{Kind, Layout, Node, Overlap, Run};
use dtc_compiler::plan::Plan;
use dtc_compiler::plan::gpu::{Roofline, TabledVariant};
use dtc_compiler::tabled::TabledLayout;
use dtc_measure::description::Named;
use dtc_measure::report;
use serde::Serialize;

/// Letters of the notation that are shown.
const MOST_LETTERS: usize = 2000;

/// Strides that a reader may wrap memory at.
const MOST_STRIDES: usize = 8;

/// Nodes that are written out of a layout that no table moves.
const FIXED_LINES: usize = 48;

/// Pieces of a lowered layout whose kinds are looked at.
const MOST_PIECES: usize = 1 << 16;

/// Integers beyond this are rounded by browsers.
const EXACT: u64 = 1 << 53;

/// A name and what there is to say.
type Fact = (String, String);

/// Consecutive elements in packed order.
#[derive(Serialize)]
pub struct ElementRun {
    /// The first packed byte.
    packed: u64,
    /// How many.
    count: u64,
    /// The kind, as layouts name it.
    pub kind: &'static str,
    /// Bytes of one.
    pub size: u64,
}

/// The memory and the packed bytes of a transfer.
#[derive(Serialize)]
pub struct MemoryMap {
    /// Where the whole begins.
    pub root: Entry,
    /// The region of the whole, and those below.
    pub regions: Vec<Region>,
    /// Lower and upper bound of one element: the array around a box, for instance. Equal where several are drawn.
    pub bounds: [i64; 2],
    /// Strides of the layout, which memory may be wrapped at.
    pub strides: Vec<u64>,
    /// The elements of a small type, or one entry without a count for a type of one kind.
    pub elements: Vec<ElementRun>,
    /// For each entry of the whole, the tables and entries that led to it.
    pub origins: Vec<Vec<(usize, usize)>>,
}

/// All that a page shows.
#[derive(Serialize)]
pub struct View {
    /// What the type is called.
    pub name: String,
    /// What it is for, and where it comes from.
    pub remarks: Vec<String>,
    /// The type in the notation.
    pub notation: String,
    /// Size, bounds and so on.
    pub facts: Vec<Fact>,
    /// The colours of packed order.
    pub palette: Vec<[u8; 3]>,
    /// Memory and packed bytes.
    pub memory: MemoryMap,
    /// Example tables, for types that have such.
    pub tables: Vec<ExampleTable>,
    /// The constructors.
    pub constructors: Option<Drawing>,
    /// The layouts that the passes make; of a type with index tables, its layout and those that no table moves.
    pub stages: Vec<Stage>,
    /// How a GPU moves it.
    pub gpu: Option<GpuView>,
    /// How a CPU moves it.
    pub cpu: CpuView,
    /// What the memory allows, in sentences.
    pub roofline: Vec<String>,
    /// What the page leaves out.
    pub notes: Vec<String>,
    /// What the words of layouts and plans mean.
    pub words: Vec<(&'static str, &'static str)>,
    /// The version of the command.
    pub version: &'static str,
}

fn fact(name: &str, value: impl ToString) -> Fact {
    (name.to_owned(), value.to_string())
}

/// The distance from entry to entry of a list, if it is the same everywhere.
fn distance(mut places: impl Iterator<Item = i64>) -> Option<u64> {
    let (first, second) = (places.next()?, places.next()?);
    let stride = second.checked_sub(first)?;
    let mut last = second;
    let same = places.all(|place| place.checked_sub(std::mem::replace(&mut last, place)) == Some(stride));
    same.then_some(stride.unsigned_abs())
}

/// The strides of all streams, and of lists whose runs begin or end at one, as those of a triangle do; widest first.
fn strides<'a>(layouts: impl IntoIterator<Item = &'a Layout>) -> Vec<u64> {
    let mut strides = Vec::new();
    for layout in layouts {
        for (_, node) in layout.nodes() {
            match node {
                Node::Stream { stride, .. } => strides.push(stride.unsigned_abs()),
                Node::Runs { runs, kind } => {
                    let end = |run: &Run| run.offset + (run.count * kind.size()) as i64;
                    strides.extend(distance(runs.iter().map(|run| run.offset)));
                    strides.extend(distance(runs.iter().map(end)));
                }
                _ => {}
            }
        }
    }
    strides.retain(|&stride| stride > 0);
    strides.sort_unstable_by(|one, other| other.cmp(one));
    strides.dedup();
    strides.truncate(MOST_STRIDES);
    strides
}

/// The elements of a layout that has the kinds of them: each, if they are few pieces, or the kind that all of them have.
fn elements(lowered: &Layout) -> Vec<ElementRun> {
    let kinds = lowered.nodes().filter_map(|(_, node)| match node {
        Node::Dense { kind, .. } | Node::Runs { kind, .. } => Some(*kind),
        _ => None,
    });
    let mut kinds: Vec<Kind> = kinds.collect();
    kinds.dedup();
    let elements = |packed, count, kind: Kind| ElementRun { packed, count, kind: kind.name(), size: kind.size() };
    if let [kind] = kinds[..] {
        return vec![elements(0, lowered.size() / kind.size(), kind)];
    }
    let mut packed = 0;
    let mut pieces: Vec<ElementRun> = Vec::new();
    for piece in lowered.walk().take(MOST_PIECES) {
        match pieces.last_mut() {
            Some(last) if last.kind == piece.kind.name() => last.count += piece.count,
            _ => pieces.push(elements(packed, piece.count, piece.kind)),
        }
        packed += piece.bytes();
    }
    if packed == lowered.size() && pieces.len() <= MOST_ENTRIES { pieces } else { Vec::new() }
}

/// The memory of `count` elements; of one, where the offsets of more leave 63 bits. Returns how many there are too.
fn memory_of(pipeline: &Pipeline, count: u64) -> (MemoryMap, u64) {
    let (layout, mut regions) = (pipeline.layout(), Regions::default());
    let number = regions.add(layout);
    let one = regions.region(number).clone();
    let root = Entry { memory: layout.root().offset, packed: 0, bytes: one.bytes, region: Some(number) };
    let several = (count > 1).then(|| several(layout, count, root, &one)).flatten();
    let (root, count) = match several {
        Some(region) => {
            let bytes = region.bytes;
            (Entry { memory: 0, packed: 0, bytes, region: Some(regions.push(region)) }, count)
        }
        None => (root, 1),
    };
    let facts = pipeline.datatype().facts();
    let memory = MemoryMap {
        root,
        regions: regions.into_regions(),
        bounds: if count == 1 { [facts.lb, facts.ub] } else { [0, 0] },
        strides: strides([layout]),
        elements: elements(pipeline.lowered()),
        origins: Vec::new(),
    };
    (memory, count)
}

/// The region of several elements; nothing where it has offsets or sizes beyond 63 bits.
fn several(layout: &Layout, count: u64, first: Entry, one: &Region) -> Option<Region> {
    let last = layout.extent().checked_mul(i64::try_from(count - 1).ok()?)?;
    let (low, high) = (first.memory.checked_add(one.low)?, first.memory.checked_add(one.high)?);
    i64::try_from(one.bytes.checked_mul(count)?).ok()?;
    let region = Region {
        bytes: one.bytes * count,
        low: low.min(low.checked_add(last)?),
        high: high.max(high.checked_add(last)?),
        runs: one.runs.saturating_mul(count),
        content: Content::Copies { count, stride: layout.extent(), first },
    };
    region.high.checked_sub(region.low).map(|_| region)
}

fn notation(text: String) -> String {
    report::cut(&text, MOST_LETTERS)
}

fn triple(lb: i64, ub: i64, extent: i64) -> String {
    [lb, ub, extent].map(signed).join(" \u{b7} ")
}

fn bounds(facts: &Facts) -> Vec<Fact> {
    vec![
        fact("lb, ub, extent", triple(facts.lb, facts.ub, facts.extent())),
        fact("true lb, ub, extent", triple(facts.true_lb, facts.true_ub, facts.true_extent())),
        fact("alignment", facts.alignment),
    ]
}

/// What is left out of a memory map.
fn notes(memory: &MemoryMap) -> Vec<String> {
    let mut notes = Vec::new();
    for region in &memory.regions {
        if let Content::Entries { of, listed } = &region.content
            && (listed.len() as u64) < *of
        {
            let (shown, of) = (report::grouped(listed.len() as u64), report::grouped(*of));
            notes.push(format!("{shown} of {of} listed places are drawn, at equal distances in the list."));
        }
    }
    notes.dedup();
    let end = |region: &Region| region.low.unsigned_abs().max(region.high.unsigned_abs()).max(region.bytes);
    if memory.regions.iter().any(|region| end(region) > EXACT) {
        notes.push("Offsets beyond 2^53 are rounded.".to_owned());
    }
    notes
}

impl View {
    /// All that a page shows of a type: the bounds of memory and packed bytes are those of the elements and the origin of the description. `bandwidth`
    /// is that of the GPU whose least times are told.
    ///
    /// See the [crate](crate) for an example.
    pub fn new(named: Named<TabledDatatype>, bandwidth: &Bandwidth) -> View {
        match named.description.datatype.without_tables() {
            None => View::of_tabled(named),
            Some(datatype) => {
                let Description { story, source, count, origin_bytes, buffer_bytes, .. } = named.description;
                let description = Description { datatype, story, source, count, origin_bytes, buffer_bytes };
                View::of(Named { name: named.name, description }, bandwidth)
            }
        }
    }

    /// The same of one element of a type that no description tells more of, by the bandwidth that reports assume.
    ///
    /// See the [crate](crate) for an example.
    pub fn of_datatype(name: String, datatype: TabledDatatype) -> View {
        let (story, source, buffer_bytes) = (None, None, None);
        let description = Description { datatype, story, source, count: 1, origin_bytes: 0, buffer_bytes };
        View::new(Named { name, description }, &Bandwidth::default())
    }

    /// The view of a type without index tables.
    fn of(named: Named, bandwidth: &Bandwidth) -> View {
        let Named { name, description } = named;
        let pipeline = Pipeline::new(description.datatype.clone());
        let layout = pipeline.layout();
        let (memory, drawn) = memory_of(&pipeline, description.count);
        let count = description.count.max(1);
        let bytes = layout.size().saturating_mul(count).min(i64::MAX as u64);
        let roofline = Roofline::of(layout, count, description.origin_bytes).filter(|_| layout.size() > 0);
        let Stages { stages, complete } = Stages::of(&pipeline);
        let mut notes = notes(&memory);
        if drawn < count {
            notes.push(format!("One element of {} is drawn: the others leave 63 bits.", report::grouped(count)));
        }
        if !complete {
            notes.push(
                "The type has a long description: of the passes, only what all of them make is shown.".to_owned(),
            );
        }
        let nodes = description.datatype.nodes();
        View {
            name,
            remarks: [&description.story, &description.source].into_iter().flatten().cloned().collect(),
            notation: notation(description.datatype.to_string()),
            facts: facts(&description, &pipeline),
            palette: palette::STOPS.to_vec(),
            memory,
            tables: Vec::new(),
            constructors: Some(Drawing::of(&nodes, nodes.len() - 1)),
            stages,
            gpu: Some(GpuView::of(&pipeline, bytes, roofline.as_ref())),
            cpu: CpuView::of(&pipeline, count, roofline.as_ref()),
            roofline: bandwidth.sentences(roofline.as_ref(), bytes),
            notes,
            words: words(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// The view of a type with index tables.
    fn of_tabled(named: Named<TabledDatatype>) -> View {
        let Named { name, description } = named;
        let datatype = &description.datatype;
        let layout = TabledLayout::new(datatype);
        let mut regions = Regions::default();
        let Example { tables, root, origins, absolute } = Example::of(&layout, &mut regions);
        let bytes = regions.region(root).bytes;
        let memory = MemoryMap {
            root: Entry { memory: 0, packed: 0, bytes, region: Some(root) },
            regions: regions.into_regions(),
            bounds: [0, 0],
            strides: strides(layout.fixed_layouts()),
            elements: Vec::new(),
            origins,
        };
        let mut notes = notes(&memory);
        notes.insert(0, "The tables are an example: each call of such a type brings its own.".to_owned());
        if tables.iter().any(|table| table.entries.len() > SKIPPED + 1) {
            notes.push(
                "An entry is skipped, as -1 and the address 0 are: its packed bytes stay as they are.".to_owned(),
            );
        }
        if absolute {
            notes.push("Addresses of the example are small numbers, drawn on one line with offsets.".to_owned());
        }
        // Runs of entries that are not skipped; none where they are too many.
        let runs = runs_within(&memory.regions, root, 0, i64::MIN..i64::MAX);
        let segment = |run: &WindowRun| Segment { offset: run.memory, bytes: run.bytes };
        let units = |unit| runs.as_ref().map(|runs| count_touched(runs.iter().map(segment), unit));
        let wanted = runs.iter().flatten().map(|run| run.bytes).sum();
        let sectors = units(SECTOR).map(|sectors| (sectors, wanted, 0.0));
        let variant = TabledVariant::new(layout.granularity(), layout.most_bytes(), false);
        let remark = Some(format!("{variant}; one launch for any tables"));
        let plans = layout.fixed_layouts().iter().enumerate();
        let plan = |(number, fixed)| (format!("layout {number}, for each entry in host memory"), Plan::new(fixed));
        let mut facts = vec![
            fact("packed bytes", format!("{} by the longest tables", report::grouped(layout.most_bytes()))),
            fact("packed bytes here", report::grouped(bytes)),
        ];
        facts.extend(bounds(datatype.facts()));
        View {
            name,
            remarks: [&description.story, &description.source].into_iter().flatten().cloned().collect(),
            notation: notation(datatype.to_string()),
            facts,
            palette: palette::STOPS.to_vec(),
            memory,
            tables,
            constructors: None,
            stages: stages_of_tabled(&layout),
            gpu: Some(GpuView { remark, kernels: Vec::new(), warp: None, sectors }),
            cpu: CpuView::of_plans(plans.map(plan).collect(), units(LINE)),
            roofline: Vec::new(),
            notes,
            words: words(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The layout above the tables, and each below them.
fn stages_of_tabled(layout: &TabledLayout) -> Vec<Stage> {
    let above = Stage {
        pass: "by tables".to_owned(),
        summary: "what tables move, above the layouts that no table moves".to_owned(),
        fired: 0,
        text: report::cut(&layout.to_string(), MOST_LETTERS),
        drawing: Drawing::of(layout, layout.root().node.index()),
    };
    let fixed = layout.fixed_layouts().iter().enumerate().map(|(number, fixed)| Stage {
        pass: format!("fixed {number}"),
        summary: "canonical, as all entries have it".to_owned(),
        fired: 0,
        text: text_of(fixed, FIXED_LINES),
        drawing: Drawing::of(&LayoutGraph::of(fixed), fixed.root().node.index()),
    });
    std::iter::once(above).chain(fixed).collect()
}

fn words() -> Vec<(&'static str, &'static str)> {
    LAYOUT_WORDS.iter().chain(&PLAN_WORDS).copied().collect()
}

fn facts(description: &Description<Datatype>, pipeline: &Pipeline) -> Vec<Fact> {
    let (datatype, layout) = (&description.datatype, pipeline.layout());
    let grouped = report::grouped;
    let mut facts = vec![fact("packed bytes", grouped(layout.size())), fact("runs", grouped(pipeline.runs()))];
    facts.extend(bounds(datatype.facts()));
    facts.push(fact("basic elements", grouped(datatype.signature().elements())));
    if description.count != 1 {
        facts.push(fact("elements of a transfer", grouped(description.count)));
    }
    match layout.overlap(Some(description.count).filter(|&count| count > 1)) {
        Overlap::None => {}
        overlap => facts.push(fact("overlap", overlap)),
    }
    facts.push(fact("hash", pipeline.hash()));
    facts
}
