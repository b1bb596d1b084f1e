//! What `dtc explain` says of types with index tables.

use super::explain_roofline;
use super::explain_tables::Tables;
use dtc_compiler::codegen::cuda::{TabledProgram, TabledSides};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::Plan;
use dtc_compiler::plan::gpu::{DeviceCopy, TabledVariant};
use dtc_compiler::tabled::{TabledLayout, TabledRoofline};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_runtime::{Engine, IndexTable};
use serde_json::{Value, json};
use std::io::Write;

/// What there is to say.
pub struct TabledExplanation<'a> {
    datatype: &'a TabledDatatype,
    layout: TabledLayout,
    tables: Tables,
    /// Nothing for calls of too many runs.
    roofline: Option<TabledRoofline>,
}

impl<'a> TabledExplanation<'a> {
    /// Of a type that has tables, for a call with those that are given.
    pub fn new(datatype: &'a TabledDatatype, given: &[String]) -> Result<TabledExplanation<'a>, Failure> {
        let tables = Tables::of(datatype.tables(), given)?;
        let passed: Vec<IndexTable<'_>> = tables.entries.iter().map(IndexTable::from).collect();
        let roofline = Engine::new().commit_tabled(datatype).roofline(&passed, 0);
        let roofline = roofline.map_err(|error| Failure::Description(format!("--table: {error}")))?;
        Ok(TabledExplanation { datatype, layout: TabledLayout::new(datatype), tables, roofline })
    }

    /// The kernel for memory and packed bytes that are aligned as allocations are, if the type has one.
    fn variant(&self) -> Option<TabledVariant> {
        let has_kernel = TabledSides::Pack(&self.layout).has_kernel();
        has_kernel.then(|| TabledVariant::new(self.layout.granularity(), self.layout.most_bytes(), false))
    }

    /// Whether generic kernels serve it until its own is compiled.
    fn has_generic_kernel(&self) -> bool {
        TabledProgram::new(&self.layout).is_some()
    }

    /// The object of `--json`. `copy`: how fast the GPU copies.
    pub fn to_json(&self, copy: DeviceCopy) -> Value {
        let layouts: Vec<String> = self.layout.fixed_layouts().iter().map(ToString::to_string).collect();
        json!({
            "type": self.datatype.to_string(),
            "tables": self.datatype.tables().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "most_bytes": self.layout.most_bytes(),
            "true_lb": self.layout.true_lb(),
            "true_ub": self.layout.true_ub(),
            "layout": self.layout.to_string(),
            "fixed_layouts": layouts,
            "gpu": {
                "kernel": self.variant().map(|variant| variant.to_string()),
                "generic": self.has_generic_kernel(),
                "roofline": self.roofline.map(|found| explain_roofline::to_json(&found.roofline, copy)),
            },
            "call": {
                "assumed": self.tables.assumed,
                "lengths": self.tables.entries.iter().map(Vec::len).collect::<Vec<_>>(),
                "bytes": self.roofline.map(|found| found.bytes),
                "pieces": self.roofline.map(|found| found.pieces),
                "sectors": self.roofline.map(|found| found.roofline.footprint().sectors),
            },
            "hash": self.layout.hash(),
        })
    }

    /// Prints it, long parts cut to `lines`. The GPU copies as fast as `source` says.
    pub fn print(&self, lines: usize, (copy, source): (DeviceCopy, &str), out: &mut dyn Write) -> Result<(), Failure> {
        let TabledExplanation { datatype, layout, tables, roofline } = self;
        writeln!(out, "type with index tables\n    {datatype}\ntables, which come with each call")?;
        for (number, table) in datatype.tables().iter().enumerate() {
            writeln!(out, "    {number}                   {table}")?;
        }
        writeln!(out, "facts")?;
        writeln!(out, "    longest tables      {} packed bytes", layout.most_bytes())?;
        writeln!(out, "    true lb, ub         {}, {}, whatever the tables hold", layout.true_lb(), layout.true_ub())?;
        writeln!(out, "    words               {} bytes at most, by all strides and lengths", layout.granularity())?;
        part("layout", &layout.to_string(), lines, out)?;
        for (number, fixed) in layout.fixed_layouts().iter().enumerate() {
            let plan = Plan::new(fixed).to_string();
            part(&format!("plan of layout {number}, for each entry in host memory"), &plan, lines, out)?;
        }
        let kernel =
            self.variant().map_or_else(|| "none: too many parts by table".to_owned(), |variant| variant.to_string());
        writeln!(out, "kernel on a GPU, one launch for any tables\n    {kernel}")?;
        let generic =
            if self.has_generic_kernel() { "generic kernels" } else { "nothing, because it has too many parts" };
        writeln!(out, "    until it is compiled, {generic}")?;
        let (how, lengths) = (if tables.assumed { "assumed, in no order" } else { "given" }, tables.lengths());
        writeln!(out, "a call with tables of {lengths} entries, {how}")?;
        match roofline {
            None => writeln!(out, "    too many runs to count")?,
            Some(TabledRoofline { bytes, pieces, roofline }) => {
                let sectors = roofline.footprint().sectors;
                writeln!(
                    out,
                    "    moves {} in {pieces} pieces, in {sectors} sectors of 32 bytes",
                    report::bytes(*bytes)
                )?;
                writeln!(out, "{}", explain_roofline::title(copy, source))?;
                explain_roofline::print(roofline, copy, out)?;
            }
        }
        writeln!(out, "hash\n    {}", self.layout.hash())?;
        Ok(())
    }
}

fn part(title: &str, text: &str, lines: usize, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{title}")?;
    for line in text.lines().take(lines) {
        writeln!(out, "    {line}")?;
    }
    match text.lines().count().saturating_sub(lines) {
        0 => Ok(()),
        more => Ok(writeln!(out, "    ... {more} more lines; --full prints them")?),
    }
}
