//! `dtc emit`: one of the texts, or the machine code, that a datatype can become.

use super::emit_tabled::{self, TabledForm};
use crate::disassembly;
use clap::ValueEnum;
use dtc_build::native;
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::{CodegenError, Compiler, CpuTarget};
use dtc_compiler::codegen::source::{self, TooLarge};
use dtc_compiler::codegen::{cuda, llvm, mpi_c};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::gpu::GpuPlan;
use dtc_compiler::plan::{Direction, Plan};
use dtc_measure::description::{self, Named};
use dtc_measure::failure::Failure;
use dtc_measure::output;
use dtc_measure::paths::STANDARD;
use dtc_runtime::Engine;
use dtc_runtime::cuda::{Architecture, Device, Nvrtc};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Prints the layout, the kernels or MPI source of a type
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description: JSON, or the short notation in a file that ends in .dtc or .txt; - for standard input
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
    /// What to print
    #[arg(long = "as", value_enum)]
    form: Form,
    /// Which kernel [default: pack for clif and asm, and with index tables; both for cuda, ptx and cubin]
    #[arg(long, value_enum)]
    direction: Option<Way>,
    /// The machine that kernels are for: native; a processor of `dtc build` for llvm and llvm-asm; sm_90 and the like for ptx and
    /// cubin [default: native; for ptx and cubin the first GPU, or sm_90 where there is none]
    #[arg(long, value_name = "TARGET")]
    target: Option<Machine>,
    /// Writes to a file, which appears when it is whole, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Writes a header for C and C++ that declares the functions of --as c, to another file
    #[arg(long, value_name = "FILE")]
    header: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The canonical layout in its textual form
    Layout,
    /// The canonical layout as a Graphviz digraph
    Dot,
    /// The kernel in Cranelift's intermediate form
    Clif,
    /// The kernel's instructions, with addresses, and what each stretch is for
    Asm,
    /// The two functions of an ahead-of-time build in LLVM's intermediate form, before LLVM optimises them
    Llvm,
    /// The same, compiled by LLVM, as an assembler reads them; needs a dtc with the feature llvm
    LlvmAsm,
    /// CUDA C++ of the kernels for a GPU
    Cuda,
    /// The same, compiled by NVRTC to PTX
    Ptx,
    /// The same, compiled by NVRTC to machine code
    Cubin,
    /// C source that builds the type with calls of MPI
    MpiC,
    /// A C11 file with functions that pack and unpack the type, named after TYPE.json; it needs nothing of dtc
    C,
    /// A CUDA C++ header with device functions that pack and unpack the type, for kernels of your own
    CudaHeader,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Pack,
    Unpack,
}

/// What kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// This machine.
    Native,
    /// A processor.
    Cpu(CpuTarget),
    /// A GPU, by ten times its compute capability.
    Gpu(u32),
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Machine, String> {
        let number = text.strip_prefix("sm_").and_then(|number| number.parse().ok());
        match number {
            _ if text == "native" => Ok(Machine::Native),
            Some(number) => Ok(Machine::Gpu(number)),
            None => CpuTarget::named(text).map(Machine::Cpu).ok_or_else(|| {
                let cpus = CpuTarget::ALL.map(|cpu| cpu.to_string()).join(", ");
                format!("expected native, {cpus}, or sm_ and ten times a compute capability")
            }),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Machine::Native => f.write_str("native"),
            Machine::Cpu(cpu) => cpu.fmt(f),
            Machine::Gpu(number) => write!(f, "sm_{number}"),
        }
    }
}

/// When nothing is said and there is no GPU to ask.
const DEFAULT_ARCHITECTURE: u32 = 90;

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(output) = &arguments.output {
        output::distinct("-o", output, &[("TYPE.json", &arguments.file)])?;
    }
    if let Some(header) = &arguments.header {
        if arguments.form != Form::C {
            return Err(Failure::description("--header", "--as c", "another form, which has no header"));
        }
        output::distinct("--header", header, &[("TYPE.json", &arguments.file)])?;
        if let Some(output) = &arguments.output {
            let same = output == header;
            output::distinct("--header", header, &[("-o", output)])?;
            if same {
                return Err(Failure::description("--header", "another file than -o", header.display()));
            }
        }
    }
    let named = description::read_tabled(&arguments.file)?;
    let direction = match arguments.direction {
        Some(Way::Pack) => Some(Direction::Pack),
        Some(Way::Unpack) => Some(Direction::Unpack),
        None => None,
    };
    match named.description.datatype.without_tables() {
        Some(datatype) => emit(arguments, &named.name, Pipeline::new(datatype), direction, out),
        None => emit_with_tables(arguments, &named, direction.unwrap_or(Direction::Pack), out),
    }
}

/// Prints a form of a type with index tables.
fn emit_with_tables(
    arguments: &Arguments,
    named: &Named<TabledDatatype>,
    direction: Direction,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let datatype = &named.description.datatype;
    let form = match arguments.form {
        Form::Layout => TabledForm::Layout,
        Form::C => TabledForm::C,
        Form::CudaHeader => TabledForm::CudaHeader,
        Form::Cuda | Form::Ptx | Form::Cubin => TabledForm::Kernel(direction),
        form @ (Form::Dot | Form::Clif | Form::Asm | Form::Llvm | Form::LlvmAsm | Form::MpiC) => {
            let found = form.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
            let expected = "layout, c, cuda-header, cuda, ptx or cubin, for a type with index tables";
            return Err(Failure::description("--as", expected, found));
        }
    };
    if let Some(header) = &arguments.header {
        output::write(header, emit_tabled::text(&named.name, datatype, TabledForm::CHeader)?.as_bytes())?;
    }
    let text = emit_tabled::text(&named.name, datatype, form)?;
    match arguments.form {
        Form::Ptx | Form::Cubin => write(arguments, &compiled(arguments, &text)?, out),
        _ => write(arguments, (text.trim_end().to_owned() + "\n").as_bytes(), out),
    }
}

/// Prints a form of a type without them.
fn emit(
    arguments: &Arguments,
    name: &str,
    pipeline: Pipeline,
    direction: Option<Direction>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match (arguments.target, arguments.form) {
        (Some(machine @ (Machine::Gpu(_) | Machine::Cpu(_))), Form::Clif | Form::Asm) => {
            return Err(Failure::description("--target", "native, for kernels on the CPU", machine));
        }
        (Some(machine @ Machine::Gpu(_)), Form::Llvm | Form::LlvmAsm) => {
            return Err(Failure::description("--target", "a processor, for functions on the CPU", machine));
        }
        (Some(machine @ Machine::Cpu(_)), Form::Ptx | Form::Cubin) => {
            return Err(Failure::description("--target", "native or a GPU", machine));
        }
        _ => {}
    }
    let on_cpu = direction.unwrap_or(Direction::Pack);
    let text = match arguments.form {
        Form::Layout => pipeline.layout().to_string(),
        Form::Dot => pipeline.layout().to_dot(),
        Form::Clif => {
            let plan = pipeline.plan();
            stays_generic(plan) + &compiler()?.intermediate(plan, on_cpu).map_err(|error| unavailable(&error))?
        }
        Form::Asm => stays_generic(pipeline.plan()) + &assembly(pipeline.plan(), on_cpu)?,
        Form::Llvm => {
            let name = source::identifier(name);
            llvm::ir(processor(arguments.target), &name, pipeline.plan()).map_err(|error| unavailable(&error))?
        }
        Form::LlvmAsm => llvm_assembly(processor(arguments.target), &source::identifier(name), pipeline.plan())?,
        Form::MpiC => mpi_c::emit(pipeline.datatype()),
        Form::C => {
            if let Some(header) = &arguments.header {
                output::write(header, source::c_header(name, &pipeline).map_err(too_large)?.as_bytes())?;
            }
            source::c(name, &pipeline).map_err(too_large)?
        }
        Form::CudaHeader => source::cuda_header(name, &pipeline).map_err(too_large)?,
        Form::Cuda => match cuda_source(pipeline.gpu_plan(), direction)? {
            GpuText::Text(text) => text,
            GpuText::None(why) => format!("// {why}"),
        },
        Form::Ptx | Form::Cubin => match cuda_source(pipeline.gpu_plan(), direction)? {
            GpuText::Text(text) => return write(arguments, &compiled(arguments, &text)?, out),
            GpuText::None(why) => {
                return Err(Failure::description("--as", "a form that a type without kernels has", why.trim_end()));
            }
        },
    };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write(arguments, format!("{text}{end}").as_bytes(), out)
}

fn write(arguments: &Arguments, bytes: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let path = arguments.output.as_deref().unwrap_or(Path::new(STANDARD));
    if arguments.form == Form::Cubin {
        output::not_a_terminal("-o", path)?;
    }
    if path == Path::new(STANDARD) { Ok(out.write_all(bytes)?) } else { output::write(path, bytes) }
}

/// CUDA C++, or why there is none.
enum GpuText {
    Text(String),
    None(String),
}

/// The kernels for whole elements between allocations: of one direction, or both.
fn cuda_source(plan: &GpuPlan, direction: Option<Direction>) -> Result<GpuText, Failure> {
    if !plan.allows() {
        return Ok(GpuText::None(plan.to_string()));
    }
    let wanted = |way: &Direction| direction.is_none_or(|direction| direction == *way);
    let ways = [Direction::Pack, Direction::Unpack].into_iter().filter(wanted);
    let variants: Vec<_> = ways.map(|direction| plan.usual(direction)).collect();
    let program = cuda::program(plan, &variants).map_err(|error| Failure::Missing(error.to_string()))?;
    let lists = match program.tables.len() {
        0 => String::new(),
        bytes => {
            format!("\n// The parameter `tables` leads to {bytes} bytes of lists, which are not part of the text.\n")
        }
    };
    Ok(GpuText::Text(program.source + &lists))
}

/// PTX or machine code.
fn compiled(arguments: &Arguments, source: &str) -> Result<Vec<u8>, Failure> {
    let number = match arguments.target {
        Some(Machine::Gpu(number)) => number,
        Some(Machine::Native | Machine::Cpu(_)) => Device::get(0)?.info().architecture(),
        None => Device::get(0).map_or(DEFAULT_ARCHITECTURE, |device| device.info().architecture()),
    };
    let architecture = match arguments.form {
        Form::Ptx => Architecture::Ptx(number),
        _ => Architecture::Cubin(number),
    };
    Ok(Nvrtc::get()?.compile(source, "dtc.cu", architecture, &[])?.bytes)
}

/// A remark above a kernel that the engine would not compile.
fn stays_generic(plan: &Plan) -> String {
    match plan.decision().specialise() {
        true => String::new(),
        false => format!("; this kernel is never compiled: the type stays {}\n", plan.decision()),
    }
}

fn too_large(error: TooLarge) -> Failure {
    Failure::Description(format!("plain source: {error}; pack and unpack work without one"))
}

/// The kernel's instructions.
fn assembly(plan: &Plan, direction: Direction) -> Result<String, Failure> {
    let code = compiler()?.compile(plan, direction).map_err(|error| unavailable(&error))?;
    disassembly::listing(&code, plan, direction).ok_or_else(|| {
        let found = std::env::consts::ARCH;
        Failure::missing("--as asm", "x86-64 or AArch64", found, "--as clif prints the kernel on any machine")
    })
}

/// The processor that functions are for: the best that runs here, unless one is named.
fn processor(machine: Option<Machine>) -> CpuTarget {
    match machine {
        Some(Machine::Cpu(cpu)) => cpu,
        _ => native(),
    }
}

#[cfg(feature = "llvm")]
fn llvm_assembly(cpu: CpuTarget, name: &str, plan: &Plan) -> Result<String, Failure> {
    llvm::assembly(cpu, name, plan).map_err(|error| unavailable(&error))
}

#[cfg(not(feature = "llvm"))]
fn llvm_assembly(_: CpuTarget, _: &str, _: &Plan) -> Result<String, Failure> {
    let remedy = "build it with --features llvm; --as llvm prints what LLVM would compile";
    Err(Failure::missing("--as llvm-asm", "a dtc that was built with LLVM", "one without", remedy))
}

/// Cranelift for this machine.
pub fn compiler() -> Result<Compiler, Failure> {
    Compiler::new(Engine::new().target().level).map_err(|error| unavailable(&error))
}

fn unavailable(error: &CodegenError) -> Failure {
    let text = format!("kernel: {error}; pack and unpack work without one");
    match error {
        // The type has none on any machine.
        CodegenError::Size { .. } => Failure::Description(text),
        _ => Failure::Missing(text),
    }
}
