//! What `dtc explain` says where MPICH and Open MPI compute other bounds than dtc, or than each other.

use dtc_compiler::datatype::{Datatype, Mpi, MpiBounds};
use serde_json::{Value, json};

/// The bounds of a type in an MPI.
struct Found {
    mpi: Mpi,
    whole: MpiBounds,
    /// Nodes of the type whose bounds are others than dtc's.
    differing: usize,
}

/// What both MPIs compute, as far as it fits 64 bits.
fn found(datatype: &Datatype) -> Vec<Found> {
    let nodes = datatype.nodes();
    let of = |mpi: Mpi| {
        let all = mpi.bounds(datatype)?;
        let differs =
            |node: &Datatype, bounds: &MpiBounds| (bounds.lb, bounds.ub) != (node.facts().lb, node.facts().ub);
        let differing = nodes.iter().zip(&all).filter(|(node, bounds)| differs(node, bounds)).count();
        Some(Found { mpi, whole: all[nodes.place(datatype)], differing })
    };
    Mpi::ALL.into_iter().filter_map(of).collect()
}

/// Which MPI has the bounds of dtc.
fn followed(found: &[Found]) -> &'static str {
    let follows = |mpi| found.iter().any(|found| found.mpi == mpi && found.differing == 0);
    match (follows(Mpi::Mpich), follows(Mpi::OpenMpi)) {
        (true, true) => "both",
        (true, false) => "MPICH 4.0",
        (false, true) => "Open MPI 4.1",
        (false, false) => "the standard, from which both differ",
    }
}

/// Lines for a person, a name and what there is to say: none where both MPIs have the bounds of dtc.
pub fn rows(datatype: &Datatype) -> Vec<(String, String)> {
    let found = found(datatype);
    if found.iter().all(|found| found.differing == 0) {
        return Vec::new();
    }
    let nodes = datatype.nodes().len();
    let row = |Found { mpi, whole, differing }: &Found| {
        let bounds = format!("{}, {}, {}", whole.lb, whole.ub, whole.extent());
        let more = match differing {
            0 => String::new(),
            differing => format!("; {differing} of {nodes} nodes differ"),
        };
        (format!("in {mpi}"), bounds + &more)
    };
    let last = ("followed".to_owned(), format!("{}: see docs/reference/bounds.md", followed(&found)));
    found.iter().map(row).chain([last]).collect()
}

/// The same for a program.
pub fn object(datatype: &Datatype) -> Value {
    let found = found(datatype);
    let mpis = found.iter().map(|Found { mpi, whole, differing }| {
        json!({
            "mpi": mpi.to_string(),
            "lb": whole.lb,
            "ub": whole.ub,
            "extent": whole.extent(),
            "differing_nodes": differing,
        })
    });
    let mpis: Vec<Value> = mpis.collect();
    json!({ "mpis": mpis, "followed": followed(&found) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text;

    #[test]
    fn differing_bounds_are_named() {
        let rows_of = |notation: &str| rows(&text::parse(notation).expect("a type"));
        assert!(rows_of("vector 3 1 2 int").is_empty());
        let row = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            row("in MPICH 4.0", "0, 9, 9; 1 of 2 nodes differ"),
            row("in Open MPI 4.1", "0, 12, 12"),
            row("followed", "Open MPI 4.1: see docs/reference/bounds.md"),
        ];
        assert_eq!(rows_of("hvector 2 1 5 int"), expected);
        // The whole is marked; its copies are elsewhere all the same.
        let inside = rows_of("resized 0 64 (contiguous 3 (hvector 2 1 5 int))");
        assert_eq!(inside[0].1, "0, 64, 64; 2 of 4 nodes differ");
        let both = rows_of("struct [1@0 int, 1@5 (struct [1@0 int, 1@4 char, 1@-1 char])]");
        assert_eq!(both.last(), Some(&row("followed", "MPICH 4.0: see docs/reference/bounds.md")));
        let huge = "hindexed [4611686018427387904@0] byte";
        assert!(rows_of(huge).is_empty());
    }
}
