//! What libdtc_mpi does with calls of a type under the MPIs that were measured, for `dtc explain`.

use dtc_compiler::Pipeline;
use dtc_compiler::datatype::Facts as TypeFacts;
use dtc_compiler::layout::{Layout, Node};
use dtc_measure::report;
use dtc_mpi_table::{Facts, LARGEST_MESSAGE, Pieces, SIZES, Sizes, Table, Use};

/// Packed bytes of the calls that are explained if one element is smaller than every call that dtc does.
const USUAL: i64 = 64 << 10;

/// The calls of one size.
pub struct Preload {
    /// Their packed bytes.
    pub bytes: i64,
    /// The MPI, as it names itself, and the calls that dtc does there.
    pub served: Vec<(String, Vec<&'static str>)>,
}

fn narrow(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Whether basic elements are of several kinds.
fn is_mixed(lowered: &Layout) -> bool {
    let mut kinds = lowered.nodes().filter_map(|(_, node)| match node {
        Node::Dense { kind, .. } | Node::Runs { kind, .. } => Some(*kind),
        _ => None,
    });
    kinds.next().is_some_and(|first| kinds.any(|kind| kind != first))
}

/// The calls of `bytes` packed bytes that dtc does, under each MPI. Returns `None` for types that are left to every MPI: contiguous and empty
/// ones, and those with a `long double`.
pub fn preload(pipeline: &Pipeline, facts: &TypeFacts, bytes: u64) -> Option<Preload> {
    let layout = pipeline.layout();
    let contiguous = layout.contiguous().is_some() && facts.extent() == narrow(layout.size());
    // Padding of a long double stays where it is.
    if layout.size() == 0 || contiguous || facts.alignment > 8 {
        return None;
    }
    let lengths = layout.run_lengths();
    let pieces = Pieces::of(&Facts {
        packed: narrow(layout.size()),
        extent: facts.extent(),
        true_extent: facts.true_extent(),
        blocks: narrow(pipeline.runs()),
        shortest_block: narrow(lengths.shortest),
        longest_block: narrow(lengths.longest),
        described: layout.to_readable_bytes().map_or(0, |bytes| bytes.len() as i64),
        mixed: is_mixed(pipeline.lowered()),
    });
    let bytes = if narrow(bytes) < SIZES[0] { USUAL } else { narrow(bytes) };
    let served = |table: &Table| {
        let fits = |of: &Use| matches!(of, Use::Pack | Use::Unpack) || bytes <= LARGEST_MESSAGE;
        let does =
            |of: &Use| fits(of) && table.sizes(*of, &pieces) != Sizes::NONE && table.sizes(*of, &pieces).hold(bytes);
        Use::ALL.into_iter().filter(does).map(Use::name).collect()
    };
    let served = Table::all_shipped().into_iter().map(|table| (table.mpi.clone(), served(&table))).collect();
    Some(Preload { bytes, served })
}

impl Preload {
    /// Lines for a person.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("calls of {} under libdtc_mpi", report::bytes(self.bytes as u64))];
        for (mpi, served) in &self.served {
            let left: Vec<&str> = Use::ALL.map(Use::name).into_iter().filter(|name| !served.contains(name)).collect();
            let with = (!served.is_empty()).then(|| format!("{} with dtc", served.join(", ")));
            let by = (!left.is_empty()).then(|| format!("{} by the MPI", left.join(", ")));
            let said: Vec<String> = [with, by].into_iter().flatten().collect();
            lines.push(format!("    {mpi:<24}{}", said.join("; ")));
        }
        lines
    }
}
