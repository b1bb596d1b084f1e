//! Snapshots of every stage of every example, in `snapshots/` beside the crates.
//!
//! They show the effect of a change on real exchanges. `cargo insta review`, or `INSTA_UPDATE=always`, accepts new
//! ones. Every stage is also compared with the bytes of the lowered layout.

mod texts;

use dtc_compiler::codegen::cranelift::{Compiler, Microkernel};
use dtc_compiler::codegen::cuda::{self, TabledSides};
use dtc_compiler::datatype::json;
use dtc_compiler::layout::Layout;
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::gpu::{Call, CopyCall, CopyVariant, GpuPlan, TabledVariant};
use dtc_compiler::plan::{Direction, Level, Plan};
use dtc_compiler::tabled::TabledLayout;
use dtc_compiler::{canonicalise, lower};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use texts::{WALKED_BYTES, cut_lines, cut_lists, moved, same_bytes, workspace};

/// Examples whose texts are shown as far as anybody reads them: one for each family of kernels on GPUs, a graph with shared nodes, and
/// types with kernels on CPUs. Of the others, the first lines tell which kernel it is, and a digest whether it has changed.
const SHOWN: [&str; 12] = [
    "box_face_x_hvector",
    "box_face_y_hvector",
    "dag_quadtree_image",
    "dup_of_subarray",
    "fft2d_scatter",
    "fft3d_transpose_zx",
    "hacc_voronoi_block",
    "lammps_full_send",
    "records_to_fields",
    "records_unaligned",
    "redblack_face",
    "wrf_x_vec",
];

/// How many lines of a text are shown.
#[derive(Clone, Copy)]
struct Lines {
    /// Of a layout or plan.
    layout: usize,
    /// Of a kernel in each direction.
    kernel: usize,
}

impl Lines {
    fn of(example: &str) -> Lines {
        if SHOWN.contains(&example) { Lines { layout: 60, kernel: 150 } } else { Lines { layout: 24, kernel: 4 } }
    }
}

/// The intermediate form of a kernel, without what depends on the machine that runs the tests, and the microkernels it calls.
fn kernel(compiler: &Compiler, plan: &Plan, direction: Direction, lines: usize) -> String {
    let text = compiler.intermediate(plan, direction).unwrap();
    // Calling conventions are the only part that depends on the machine.
    let conventions = ["system_v", "apple_aarch64", "windows_fastcall", "tail", "fast"];
    let neutral = conventions.iter().fold(text, |text, convention| text.replace(&format!(" {convention}"), ""));
    let code = compiler.compile(plan, direction).unwrap();
    let mut microkernels: Vec<String> =
        code.relocations.iter().map(|relocation| name(relocation.microkernel)).collect();
    microkernels.sort();
    microkernels.dedup();
    let tables: Vec<String> = code.tables.iter().map(|step| format!("#{}", step.index())).collect();
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    format!("microkernels: {}\ntables: {}\n{}", list(&microkernels), list(&tables), cut_lines(&neutral, lines))
}

fn name(microkernel: Microkernel) -> String {
    format!("{microkernel:?}").to_lowercase()
}

/// Every stage of one description.
fn stages(text: &str, lines: Lines) -> String {
    let description = json::read(text).unwrap();
    let datatype = &description.datatype;
    let lowered = lower(datatype);
    let canonical = canonicalise(&lowered);
    let plan = Plan::new(&canonical.layout);

    lowered.verify().unwrap();
    canonical.layout.verify().unwrap();
    assert!(same_bytes(&lowered, &canonical.layout), "the canonical layout means other bytes");
    assert_eq!(canonical.layout.type_hash(), lowered.type_hash());
    if lowered.size() <= WALKED_BYTES {
        assert!(moved(&plan).into_iter().eq(lowered.displacements()), "the plan moves other bytes\n{plan}");
    }

    let mut all = String::new();
    let mut section = |title: &str, text: &str| writeln!(all, "# {title}\n\n{}\n", text.trim_end()).unwrap();
    section("Story", description.story.as_deref().unwrap_or("none"));
    section("Datatype", &cut_lists(&datatype.to_string()));
    let facts = datatype.facts();
    let bounds =
        format!("lb {} extent {}, true lb {} extent {}", facts.lb, facts.extent(), facts.true_lb, facts.true_extent());
    let runs = canonical.layout.measure(canonical.layout.root().node).runs;
    section("Facts", &format!("size {}, {bounds}, count {}, runs {runs}", facts.size, description.count));
    section("Type hash", &canonical.layout.type_hash().to_string());
    section("Lowered layout", &cut_lines(&cut_lists(&lowered.to_string()), lines.layout));
    section("Passes", &canonical.report.to_string());
    section("Canonical layout", &cut_lines(&cut_lists(&canonical.layout.to_string()), lines.layout));
    let mut planned = cut_lines(&plan.to_string(), lines.layout);
    if let Some(step) = plan.repeated(description.count).filter(|_| description.count > 1) {
        write!(planned, "\n{} elements: {step}", description.count).unwrap();
    }
    section("Plan", &planned);
    if plan.decision().specialise() {
        // Every supported architecture has a backend; on others, the snapshots could not be compared.
        let compiler = Compiler::new(Level::Portable).unwrap();
        for direction in [Direction::Pack, Direction::Unpack] {
            section(&format!("Kernel: {direction}"), &kernel(&compiler, &plan, direction, lines.kernel));
        }
    }
    let gpu = GpuPlan::new(&canonical.layout);
    section("GPU plan", &gpu.to_string());
    if gpu.allows() {
        let variants = [Direction::Pack, Direction::Unpack].map(|direction| gpu.usual(direction));
        let source = cuda::program(&gpu, &variants).unwrap().source;
        // The text before the kernels is the same in all programs.
        let kernels = source.find("namespace").map_or("", |at| &source[at..]);
        section("CUDA", &cut_lines(kernels, 2 * lines.kernel));
    }
    all
}

fn settings(folder: &str) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// Kernels that no example has: accumulates, and copies from type to type.
#[test]
fn operations_have_their_snapshots() {
    let plan = |extent: u64, nodes: &str| {
        let layout = Layout::parse(&format!("layout lb 0 extent {extent} {{\n{nodes}\n}}")).unwrap();
        GpuPlan::new(&canonicalise(&layout).layout)
    };
    let rows = plan(65536, "  %0 = dense 64 x byte\n  %1 = stream 128 x 512 of %0\n  root %1");
    let pairs = plan(65536, "  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1");
    let odd = plan(4096, "  %0 = dense 17 x byte\n  %1 = stream 128 x 24 of %0\n  root %1");
    let mixed = plan(4096, "  %0 = runs [(0 3) (11 20)] x byte\n  %1 = stream 90 x 40 of %0\n  root %1");
    let mut texts = Vec::new();
    for (name, plan, operation, element, packed) in [
        ("accumulate_sum_f64", &rows, Operation::Sum, Element::F64, 0),
        ("accumulate_max_f16_unaligned", &rows, Operation::Max, Element::F16, 2),
        ("accumulate_minloc_pairs", &rows, Operation::MinLoc, Element::DoubleInt, 0),
    ] {
        let reduction = Reduction::new(operation, element).unwrap();
        let call = Call { memory: 0, packed, first: 0, bytes: 8160 };
        let variant = plan.accumulation(reduction, &call).unwrap();
        texts.push((name, format!("{variant}"), cuda::program(plan, &[variant]).unwrap().source));
    }
    for (name, source, target) in
        [("copy_words", &rows, &pairs), ("copy_rows", &rows, &odd), ("copy_bytes", &odd, &mixed)]
    {
        let call = CopyCall { source: 0, source_first: 0, target: 0, target_first: 0, bytes: 2000 };
        let variant = CopyVariant::serving(source, target, &call).unwrap();
        texts.push((name, variant.to_string(), cuda::copy(source, target, &variant).unwrap().source));
    }
    settings("../kernels").bind(|| {
        for (name, variant, source) in texts {
            let kernel = source.find("namespace").map_or("", |at| &source[at..]);
            insta::assert_snapshot!(name, format!("{variant}\n\n{kernel}"));
        }
    });
}

/// Kernels that read index tables: one head of each token of pages in two layers, moved from and to packed bytes, and to rows at addresses
/// behind 16 bytes at a fixed place.
#[test]
fn types_with_index_tables_have_their_snapshots() {
    let layout = |text: &str| TabledLayout::new(&text.parse().unwrap());
    let pages = layout("hvector 2 1 33554432 (table 0 2048 512 16384 (hvector 16 1 1024 (contiguous 256 byte)))");
    let rows =
        layout("struct [1@0 (contiguous 16 byte), 1@64 (addresses 0 8 16 (table 1 100 64 640 (contiguous 512 byte)))]");
    let narrow = TabledVariant::new(16, 1 << 24, false);
    let wide = TabledVariant { checked: true, ..TabledVariant::new(16, 1 << 40, true) };
    settings("../kernels").bind(|| {
        for (name, sides, variant) in [
            ("tabled_pack", TabledSides::Pack(&pages), narrow),
            ("tabled_pack_vectors", TabledSides::Pack(&pages), TabledVariant::new(4, 1 << 24, false)),
            ("tabled_unpack_checked_wide", TabledSides::Unpack(&rows), wide),
            ("tabled_copy", TabledSides::Copy { source: &pages, target: &rows }, narrow.capped()),
        ] {
            let source = cuda::tabled(sides, &variant).unwrap().source;
            // The text between them is the same in all programs.
            let (layouts, rest) = source.split_once("typedef unsigned char").unwrap();
            let kernel = rest.find("// What a call says").map_or("", |at| &rest[at..]);
            insta::assert_snapshot!(name, format!("{variant}\n\n{layouts}{kernel}"));
        }
    });
}

#[test]
fn every_example_has_its_snapshot() {
    let settings = settings("../../snapshots");
    let mut paths: Vec<_> =
        fs::read_dir(workspace("ir-examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    assert!(!paths.is_empty());
    let name_of = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    for name in SHOWN {
        assert!(paths.iter().any(|path| name_of(path) == name), "{name}: expected an example of that name, found none");
    }
    settings.bind(|| {
        for path in &paths {
            let text = fs::read_to_string(path).unwrap();
            insta::assert_snapshot!(name_of(path), stages(&text, Lines::of(&name_of(path))));
        }
    });
    // A snapshot without an example was left by a removed or renamed one.
    for snapshot in fs::read_dir(workspace("snapshots")).unwrap() {
        let file = snapshot.unwrap().file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".snap") else { continue };
        assert!(paths.iter().any(|path| name_of(path) == name), "snapshots/{file}: expected an example of that name");
    }
}
