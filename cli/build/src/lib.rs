//! `dtc build`: types compiled ahead of time, as libraries to link and as a bundle that engines load. No interface: it changes with the
//! command.
#![forbid(unsafe_code)]

mod cuda;
mod folder;
mod header;
mod library;
mod manifest;
mod target;
mod types;

use dtc_compiler::codegen::cranelift::{CodegenError, CpuTarget};
use dtc_compiler::plan::Plan;
use dtc_measure::failure::Failure;
use dtc_runtime::BundleWriter;
use dtc_runtime::store::Bundle;
use folder::Folder;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use target::Target;
pub use target::native;
use types::{BuiltTabled, BuiltTypes};

/// Compiles types ahead of time: libraries and a header to link, and a bundle that the runtime loads in place of compiling
#[derive(clap::Args)]
pub struct Arguments {
    /// Type descriptions, JSON or the short notation in files that end in .dtc or .txt, whose names the functions have; types that
    /// programs have recorded (DTC_RECORD), in files that end in .recorded, whose functions are named by their hashes; or folders of
    /// both
    #[arg(value_name = "TYPES", required = true)]
    types: Vec<PathBuf>,
    /// The folder to make; the libraries have its name. An earlier output of dtc build is replaced, and nothing else
    #[arg(short, long, value_name = "DIRECTORY")]
    output: PathBuf,
    /// Processors, separated by commas: x86-64, x86-64-v3, x86-64-v4, zen5, aarch64, or native for this machine's, and sm_90 and
    /// the like for GPUs
    #[arg(long, value_name = "TARGETS", value_delimiter = ',', default_value = target::NATIVE)]
    target: Vec<Target>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let library = library::name(&arguments.output)?;
    // What cannot be written is said before anything is compiled.
    let mut folder = Folder::create(&arguments.output)?;
    let BuiltTypes { plain: types, mut tabled } = types::read(&arguments.types)?;
    let (cpus, gpus) = target::divide(&arguments.target);
    if gpus.is_empty() {
        // A program uses what it was recorded with.
        tabled.retain(|tabled| tabled.uses.is_none());
    }
    if let (Some(BuiltTabled { name, .. }), []) = (tabled.first(), &*gpus) {
        let expected =
            format!("a GPU, such as sm_90, for {name}, which has index tables: calls in host memory need no kernels");
        let found = arguments.target.iter().map(Target::to_string).collect::<Vec<_>>().join(",");
        return Err(Failure::description("--target", expected, found));
    }
    let mut bundle = BundleWriter::default();
    let architectures: BTreeSet<&str> = cpus.iter().map(|cpu| cpu.architecture()).collect();
    let each = cpus.len() + usize::from(!gpus.is_empty());
    let progress = ProgressBar::new((types.len() * each + tabled.len() + architectures.len()) as u64);
    // On standard error, and only where that is a terminal.
    let style = ProgressStyle::with_template("{pos}/{len} {wide_msg}");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let begin = |what: String| {
        progress.set_message(what);
        progress.inc(1);
    };
    for BuiltTabled { name, datatype, .. } in &tabled {
        begin(format!("{name} for GPUs"));
        bundle.add_gpu_tabled(datatype, &gpus)?;
    }
    let mut launched = Vec::new();
    for named in types.iter().filter(|_| !gpus.is_empty()) {
        begin(format!("{} for GPUs", named.name));
        bundle.add_gpu(&named.pipeline, &gpus)?;
        if !architectures.is_empty() {
            launched.extend(cuda::functions(named, &library, &gpus)?);
        }
    }
    for &cpu in cpus.iter().filter(|_| !types.is_empty()) {
        let mut objects = Vec::new();
        for named in &types {
            begin(format!("{} for {cpu}", named.name));
            let failed = |error| Failure::Description(format!("{}: {error}", named.place));
            bundle.add_cpu(&named.pipeline, cpu).map_err(failed)?;
            let object = object(cpu, &named.name, named.pipeline.plan()).map_err(failed)?;
            objects.push((format!("{}.o", named.name), object));
        }
        let place = Path::new("lib").join(cpu.to_string());
        let shared = library::shared(&library, &objects, cpu.architecture(), &[])?;
        folder.add(place.join(format!("lib{library}.so")), shared);
        folder.add(place.join(format!("lib{library}.a")), library::archive(objects)?);
        let pkg_config = library::pkg_config(&library, &cpu.to_string(), &cpu.to_string());
        folder.add(place.join(format!("pkgconfig/{library}.pc")), pkg_config);
    }
    if !launched.is_empty() {
        let name = cuda::library_name(&library);
        for architecture in architectures {
            begin(format!("functions for GPUs beside {architecture}"));
            let objects = cuda::objects(&launched, &library, architecture)?;
            let place = Path::new("lib").join(format!("{architecture}-cuda"));
            let shared = library::shared(&name, &objects, architecture, &["-ldl", "-lpthread"])?;
            folder.add(place.join(format!("lib{name}.so")), shared);
            folder.add(place.join(format!("lib{name}.a")), library::archive(objects)?);
            let pkg_config = library::pkg_config(&name, &format!("{architecture}-cuda"), "GPUs");
            folder.add(place.join(format!("pkgconfig/{name}.pc")), pkg_config);
        }
        let names: Vec<&str> = launched.iter().map(|functions| functions.name()).collect();
        folder.add(Path::new("include").join(format!("{name}.h")), header::write_cuda(&library, &names));
    }
    if !cpus.is_empty() && !types.is_empty() {
        folder.add(Path::new("include").join(format!("{library}.h")), header::write(&library, &types));
    }
    folder.add(Path::new(Bundle::file_name()).to_owned(), bundle.finish());
    let manifest = manifest::write(&types, &tabled, &arguments.target, &folder.names());
    folder.add(PathBuf::from(manifest::NAME), manifest);
    progress.finish_and_clear();
    folder.finish()
}

/// The closed functions of a type, by the compiler whose code is the faster: LLVM where dtc is built with it.
#[cfg(feature = "llvm")]
fn object(cpu: CpuTarget, name: &str, plan: &Plan) -> Result<Vec<u8>, CodegenError> {
    dtc_compiler::codegen::llvm::object(cpu, name, plan)
}

#[cfg(not(feature = "llvm"))]
fn object(cpu: CpuTarget, name: &str, plan: &Plan) -> Result<Vec<u8>, CodegenError> {
    dtc_compiler::codegen::cranelift::object(cpu, name, plan)
}
