//! `dtc view`: a type as a page that needs nothing else, or as a picture.

use super::explain::model;
use dtc_measure::description;
use dtc_measure::failure::Failure;
use dtc_measure::output;
use dtc_measure::paths::STANDARD;
use dtc_measure::program::called;
use dtc_runtime::store::Recording;
use dtc_view::{Bandwidth, View};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Draws a type as a page for a browser: memory, packed bytes, layouts and plans
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description: JSON, the short notation in a file that ends in .dtc or .txt, or as the argument itself, as in
    /// 'vector 12 1 14 double'; - for standard input
    #[arg(value_name = "TYPE.json")]
    file: PathBuf,
    /// The file to write, which appears when it is whole; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Writes one picture of memory and packed bytes, an SVG file without scripts, instead of the page
    #[arg(long)]
    svg: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    output::distinct("-o", &arguments.output, &[("TYPE.json", &arguments.file)])?;
    if Recording::is_file_name(&arguments.file) || arguments.file.is_dir() {
        let found = format_args!("a recording, whose types {} lists", called("explain"));
        return Err(Failure::description(arguments.file.display(), "the description of one type", found));
    }
    let named = description::read_tabled(&arguments.file)?;
    let (model, source) = model();
    let view = View::new(named, &Bandwidth { copy: model.device_copy(), source });
    let text = if arguments.svg { dtc_view::picture(&view) } else { dtc_view::page(&view)? };
    match &arguments.output {
        path if path == Path::new(STANDARD) => Ok(out.write_all(text.as_bytes())?),
        path => output::write(path, text.as_bytes()),
    }
}
