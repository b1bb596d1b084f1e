//! `dtc emit`: one of the texts that a datatype can become.

use crate::description;
use crate::failure::{Failure, reason};
use clap::ValueEnum;
use dtc_compiler::codegen::cranelift::{CodegenError, Compiler, Direction};
use dtc_compiler::codegen::mpi_c;
use dtc_compiler::plan::Plan;
use dtc_compiler::{canonicalise, lower};
use dtc_runtime::Engine;
use std::io::Write;
use std::path::PathBuf;

/// Prints the layout, the kernel or MPI source of a type
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description: JSON, or the short notation in a file that ends in .dtc or .txt
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
    /// What to print
    #[arg(long = "as", value_enum)]
    form: Form,
    /// Which kernel, for clif and asm
    #[arg(long, value_enum, default_value_t = Way::Pack)]
    direction: Way,
    /// The machine that kernels are for
    #[arg(long, value_enum, default_value_t = Machine::Native)]
    target: Machine,
    /// Writes to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// The canonical layout in its textual form
    Layout,
    /// The canonical layout as a Graphviz digraph
    Dot,
    /// The kernel in Cranelift's intermediate form
    Clif,
    /// The kernel's instructions
    Asm,
    /// C source that builds the type with calls of MPI
    MpiC,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Pack,
    Unpack,
}

#[derive(Clone, Copy, ValueEnum)]
enum Machine {
    /// This one
    Native,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let datatype = description::read(&arguments.file)?.description.datatype;
    let direction = match arguments.direction {
        Way::Pack => Direction::Pack,
        Way::Unpack => Direction::Unpack,
    };
    let layout = || canonicalise(&lower(&datatype)).layout;
    let plan = || match arguments.target {
        Machine::Native => Plan::new(&layout()),
    };
    let mut text = match arguments.form {
        Form::Layout => layout().to_string(),
        Form::Dot => layout().to_dot(),
        Form::Clif => compiler()?.intermediate(&plan(), direction),
        Form::Asm => compiler()?.assembly(&plan(), direction).map_err(|error| unavailable(&error))?,
        Form::MpiC => mpi_c::emit(&datatype),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match &arguments.output {
        None => out.write_all(text.as_bytes())?,
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::description(path.display(), "a file to write", reason(&error)))?,
    }
    Ok(())
}

/// Cranelift for this machine.
pub fn compiler() -> Result<Compiler, Failure> {
    Compiler::new(Engine::new().target().level).map_err(|error| unavailable(&error))
}

fn unavailable(error: &CodegenError) -> Failure {
    Failure::Missing(format!("kernel: {error}; pack and unpack work without one"))
}
