//! `dtc lower`: the layout before and after the passes.

use dtc_compiler::Pipeline;
use dtc_measure::description;
use dtc_measure::failure::Failure;
use std::io::Write;
use std::path::PathBuf;

/// Prints the lowered layout, the passes that fired, and the canonical layout
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description: JSON, or the short notation in a file that ends in .dtc or .txt; - for standard input
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let pipeline = Pipeline::new(description::read(&arguments.file)?.description.datatype);
    writeln!(out, "{}\n\npasses: {}\n\n{}", pipeline.lowered(), pipeline.report(), pipeline.layout())?;
    Ok(())
}
