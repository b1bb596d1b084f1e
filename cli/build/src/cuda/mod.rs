//! Functions that launch kernels for GPUs, in libraries that need the driver of CUDA and nothing of dtc.

use crate::header;
use crate::library::{self, Objects};
use crate::types::BuiltType;
use dtc_compiler::codegen::cuda::{self, WholeProgram};
use dtc_compiler::plan::gpu::{GpuPlan, Grid};
use dtc_measure::failure::Failure;
use dtc_measure::output::Scratch;
use dtc_runtime::cuda::{Architecture, Nvrtc};
use std::fmt::Write;
use std::process::Command;

const LOADER: &str = include_str!("loader.c");
const LOADER_HEADER: &str = include_str!("loader.h");

/// The file of the lists that kernels read.
const TABLES: &str = "tables";

/// The file of an image.
fn image_file(at: usize) -> String {
    format!("image.{at}")
}

/// Machine code, or PTX, of a type.
struct Image {
    architecture: u32,
    is_ptx: bool,
    /// Its length.
    bytes: usize,
    /// It, as one block of LZ4: a third to a half of the bytes.
    packed: Vec<u8>,
}

/// The functions of a type: C, and what it launches.
pub struct Functions {
    name: String,
    source: String,
    images: Vec<Image>,
    tables: Vec<u8>,
}

impl Functions {
    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Compiles the kernels of a type for GPUs. Nothing for types that are too large for kernels of their own.
pub fn functions(built: &BuiltType, library: &str, architectures: &[u32]) -> Result<Option<Functions>, Failure> {
    let plan = built.pipeline.gpu_plan();
    let program = cuda::whole(plan, built.pipeline.datatype().facts().alignment)
        .map_err(|error| Failure::Data(format!("{}: {error}", built.place)))?;
    let mut images = Vec::new();
    if let Some(program) = &program {
        let nvrtc = Nvrtc::get()?;
        let oldest = architectures.iter().min().map(|&oldest| Architecture::Ptx(oldest));
        for target in architectures.iter().map(|&number| Architecture::Cubin(number)).chain(oldest) {
            let mut code = nvrtc.compile(&program.source, "dtc.cu", target, &[])?.bytes;
            let (architecture, is_ptx) = match target {
                Architecture::Cubin(number) => (number, false),
                Architecture::Ptx(number) => (number, true),
            };
            if is_ptx {
                code.push(0);
            }
            let packed = lz4_flex::block::compress(&code);
            images.push(Image { architecture, is_ptx, bytes: code.len(), packed });
        }
    } else if !plan.is_contiguous() {
        return Ok(None);
    }
    let source = source(built, library, program.as_ref(), &images);
    let tables = program.map(|program| program.tables).unwrap_or_default();
    Ok(Some(Functions { name: built.name.clone(), source, images, tables }))
}

/// The name of the library, of its header, and of the C function that launches.
pub fn library_name(library: &str) -> String {
    format!("{library}_cuda")
}

fn loader(library: &str) -> String {
    format!("{}_launch", header::macro_name(&library_name(library)).to_lowercase())
}

/// C for a type: its kernels, its images, and two functions.
fn source(built: &BuiltType, library: &str, program: Option<&WholeProgram>, images: &[Image]) -> String {
    let name = &built.name;
    let facts = built.pipeline.datatype().facts();
    let kernels = program.map_or(&[] as &[_], |program| &program.kernels);
    let packs = kernels.iter().filter(|entry| entry.name.starts_with("dtc_pack")).count();
    let mut text = String::from("#include \"loader.h\"\n\n");
    // Writing to a text cannot fail.
    let mut include = |name: &str, file: &str| {
        let _ = writeln!(
            text,
            "__asm__(\".section .rodata\\n.balign 64\\n{name}:\\n.incbin \\\"{file}\\\"\\n.previous\");\n\
             extern const char {name}[] __attribute__((visibility(\"hidden\")));"
        );
    };
    for at in 0..images.len() {
        include(&format!("{name}_image_{at}"), &image_file(at));
    }
    let tables = program.map_or(0, |program| program.tables.len());
    if tables > 0 {
        include(&format!("{name}_tables"), TABLES);
    }
    if !kernels.is_empty() {
        text.push_str("\nstatic const struct kernel kernels[] = {\n");
        for cuda::WholeEntry { name, kernel } in kernels {
            let Grid { unit, share, word, line, rows, each, .. } = kernel.grid;
            let more = kernel.grid.more();
            let (alignment, threads) = (kernel.alignment, kernel.variant.threads());
            let _ = writeln!(
                text,
                "    {{\"{name}\", {alignment}, {threads}, {unit}u, {share}u, {more}, {word}, {line}, {rows}u, {each}u}},"
            );
        }
        text.push_str("};\n\nstatic struct image images[] = {\n");
        for (at, Image { architecture, is_ptx, bytes, packed }) in images.iter().enumerate() {
            let (is_ptx, length) = (u8::from(*is_ptx), packed.len());
            let _ = writeln!(
                text,
                "    {{.packed = {name}_image_{at}, .packed_bytes = {length}, .bytes = {bytes}, .architecture = {architecture}, \
                 .is_ptx = {is_ptx}}},"
            );
        }
        text.push_str("};\n");
    }
    let most = (GpuPlan::whole_bytes() / facts.size).max(1);
    let _ = writeln!(
        text,
        "\nstatic struct type type = {{\n    .size = {}u, .extent = {}, .true_lb = {}, .true_ub = {}, .most = {most},",
        facts.size,
        long(facts.extent()),
        long(facts.true_lb),
        long(facts.true_ub)
    );
    if !kernels.is_empty() {
        let _ =
            writeln!(text, "    .packs = {packs}, .kernels = kernels, .images = {}, .image = images,", images.len());
    }
    if tables > 0 {
        let _ = writeln!(text, "    .tables = {name}_tables, .table_bytes = {tables},");
    }
    let launch = loader(library);
    let _ = write!(
        text,
        "}};\n\n\
         int {name}_pack_cuda(const void *memory, void *packed, size_t count, void *stream)\n\
         {{\n    return {launch}(&type, 0, memory, packed, count, stream);\n}}\n\n\
         int {name}_unpack_cuda(const void *packed, void *memory, size_t count, void *stream)\n\
         {{\n    return {launch}(&type, 1, memory, packed, count, stream);\n}}\n"
    );
    text
}

/// A number as C writes it: the least has no literal.
fn long(number: i64) -> String {
    if number == i64::MIN { "INT64_MIN".to_owned() } else { number.to_string() }
}

/// Compiles the functions, and what launches their kernels, for an architecture of CPUs.
pub fn objects(functions: &[Functions], library: &str, architecture: &str) -> Result<Objects, Failure> {
    let failed = |error| Failure::file(&std::env::temp_dir(), "room for sources to compile", &error);
    let folder = Scratch::temporary("build").map_err(failed)?;
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).map_err(failed);
    write("loader.h", LOADER_HEADER.as_bytes())?;
    let compiled = |source: &str, object: String| -> Result<(String, Vec<u8>), Failure> {
        let mut compiler = Command::new(library::compiler(architecture));
        compiler.current_dir(folder.path()).env("TMPDIR", folder.path()).args([
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-g0",
            "-Wall",
            "-Werror",
        ]);
        compiler.arg(format!("-DLOADER={}", loader(library))).args(["-c", source, "-o", "object"]);
        library::output_of(compiler, architecture)?;
        Ok((object, std::fs::read(folder.path().join("object")).map_err(failed)?))
    };
    write("launch.c", LOADER.as_bytes())?;
    let mut objects = vec![compiled("launch.c", "launch.o".to_owned())?];
    for Functions { name, source, images, tables } in functions {
        write("functions.c", source.as_bytes())?;
        write(TABLES, tables)?;
        for (at, image) in images.iter().enumerate() {
            write(&image_file(at), &image.packed)?;
        }
        objects.push(compiled("functions.c", format!("{name}_cuda.o"))?);
    }
    Ok(objects)
}
