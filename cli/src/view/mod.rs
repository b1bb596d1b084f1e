//! `dtc view`: a type as a page that needs nothing else, or as a picture.
//!
//! A page is data first: [`data`] has all that it shows, from the interfaces of the compiler that `dtc explain` uses too, and `page.html`,
//! `page.css` and `page/` show it. [`picture`] draws the same memory without scripts.

mod captions;
mod cpu;
mod data;
mod gpu;
mod graph;
mod page;
mod palette;
mod picture;
mod regions;
mod roofline;
mod stages;
mod tables;
mod touched;
mod window;

use data::View;
use dtc_compiler::datatype::json::Description;
use dtc_measure::description::{self, Named};
use dtc_measure::failure::Failure;
use dtc_measure::output;
use dtc_measure::paths::STANDARD;
use dtc_measure::program::called;
use dtc_runtime::store::Recording;
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
    let view = match named.description.datatype.without_tables() {
        None => View::of_tabled(named),
        Some(datatype) => {
            let Description { story, source, count, origin_bytes, buffer_bytes, .. } = named.description;
            let description = Description { datatype, story, source, count, origin_bytes, buffer_bytes };
            View::of(Named { name: named.name, description })
        }
    };
    let text = if arguments.svg { picture::svg(&view) } else { page::html(&view)? };
    match &arguments.output {
        path if path == Path::new(STANDARD) => Ok(out.write_all(text.as_bytes())?),
        path => output::write(path, text.as_bytes()),
    }
}
