//! What the demo finds out, and how it tells it.

use super::verdict::{self, COLUMNS, Race, labelled};
use dtc_compiler::Pipeline;
use dtc_measure::bench::checkout::checkout_file;
use dtc_measure::description::Named;
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_runtime::PackError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What unpacks are poured onto.
pub const POISON: u8 = 0xa5;

/// What the demo found out.
#[derive(Default)]
pub struct Report {
    /// What the type is, where that says more than its name.
    pub about: Option<&'static str>,
    /// What the passes made of the type, and which code serves it.
    pub passes: String,
    /// Elements that were moved.
    pub count: u64,
    /// Why they are fewer than the description says.
    pub remark: Option<String>,
    /// Packed, restored and untouched bytes that were compared with the reference walker's.
    pub checked: [u64; 3],
    /// Where the data is, if not in the memory of the host.
    pub device: Option<String>,
    /// Bytes that a call moves.
    pub total: u64,
    /// Who is measured beside dtc, and who is missing.
    pub peers: Vec<String>,
    /// Packing and unpacking; none of a type without bytes.
    pub races: Vec<Race>,
    /// What --verbose shows.
    pub details: Vec<u8>,
}

impl Report {
    /// How much data there is, and a remark where that is less than was asked for.
    pub fn data(&mut self, count: u64, total: u64, buffer: usize, remark: Option<String>) -> io::Result<()> {
        (self.count, self.remark) = (count, remark);
        let (total, buffer) = (report::bytes(total), report::bytes(buffer as u64));
        writeln!(self.details, "data: {} elements, {total} in a buffer of {buffer}", report::grouped(count))
    }

    /// What the verifier found of a tier.
    pub fn checked(&mut self, name: &str, packed: u64, restored: u64, untouched: u64) -> io::Result<()> {
        for (sum, bytes) in self.checked.iter_mut().zip([packed, restored, untouched]) {
            *sum += bytes;
        }
        let [packed, restored, untouched] = [packed, restored, untouched].map(report::grouped);
        let text = format!("{packed} packed bytes right, {restored} restored, {untouched} beside them untouched");
        for (index, line) in report::wrapped(&text, COLUMNS - 16).iter().enumerate() {
            writeln!(self.details, "    {:<12}{line}", if index == 0 { name } else { "" })?;
        }
        Ok(())
    }

    /// Prints the verdict, and what it rests on if asked to.
    pub fn print(&self, named: &Named, pipeline: &Pipeline, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
        labelled("type", &verdict::describe(named, self.about, pipeline, self.count), out)?;
        let on = self.device.as_ref().map_or_else(String::new, |device| format!(", on {device}"));
        for race in &self.races {
            labelled(race.direction, &format!("{}{on}", race.verdict(self.total)), out)?;
        }
        if self.races.is_empty() {
            labelled("speed", "nothing is moved", out)?;
        }
        if !self.peers.is_empty() {
            labelled("beside", &self.peers.join("; "), out)?;
        }
        labelled("passes", &self.passes, out)?;
        let [packed, restored, untouched] = self.checked.map(report::grouped);
        let checked = format!(
            "every byte equals the reference walker's: {packed} packed, {restored} restored, {untouched} around \
             them untouched"
        );
        labelled("check", &checked, out)?;
        if let Some(remark) = &self.remark {
            labelled("data", remark, out)?;
        }
        if !self.races.is_empty() {
            labelled("noise", &verdict::noise(&self.races), out)?;
        }
        if verbose {
            writeln!(out)?;
            return out.write_all(&self.details);
        }
        let ratios = if self.races.is_empty() { "" } else { "above 1x, dtc is faster; " };
        // Who has a type of one's own needs none of others.
        let others = self.about.and_then(|_| checkout_file("ir-examples"));
        let others = others.map_or_else(String::new, |folder| format!("; more types: {}", nearby(&folder).display()));
        labelled("", &format!("{ratios}--verbose shows more{others}"), out)
    }
}

/// A path from the working directory, if it is below that.
fn nearby(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or_else(|| path.to_owned())
}

/// The failure of a call that packs or unpacks.
pub fn call_failed(error: PackError) -> Failure {
    Failure::Data(format!("demo: {error}"))
}
