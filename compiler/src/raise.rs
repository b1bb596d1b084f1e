//! Raises layouts to datatypes: finds constructors with the same bytes, for layouts that come without a description.

use crate::datatype::{Datatype, DatatypeError, GivenBounds, Predefined, TypeBuilder, TypeId};
use crate::layout::{Edge, Kind, Layout, Node, NodeId};

/// A datatype with the elements, kinds and bounds of a layout. Shared nodes stay shared.
///
/// # Errors
///
/// The bounds of a part do not fit 64 bits: MPI computes extents of parts, which layouts do not have.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_compiler::{lower, raise};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let column = types.vector(3, 2, 4, double)?;
/// let column = types.finish(column)?;
/// let raised = raise(&lower(&column))?;
/// assert_eq!(raised.facts().extent(), column.facts().extent());
/// assert_eq!(lower(&raised).type_hash(), lower(&column).type_hash());
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
pub fn raise(layout: &Layout) -> Result<Datatype, DatatypeError> {
    let mut raising = Raising { types: TypeBuilder::new(), raised: Vec::new() };
    for (_, node) in layout.nodes() {
        let raised = raising.node(node)?;
        raising.raised.push(raised);
    }
    let root = raising.displaced(layout.root())?;
    let mut types = raising.types;
    types.give_bounds(root, GivenBounds { lb: layout.lb(), extent: layout.extent() })?;
    types.finish(root)
}

struct Raising {
    types: TypeBuilder,
    raised: Vec<TypeId>,
}

impl Raising {
    fn of(&self, node: NodeId) -> TypeId {
        self.raised[node.index()]
    }

    /// A child at the offset of its edge.
    fn displaced(&mut self, edge: Edge) -> Result<TypeId, DatatypeError> {
        let child = self.of(edge.node);
        if edge.offset == 0 { Ok(child) } else { self.types.hindexed_block(1, &[edge.offset], child) }
    }

    fn kind(&mut self, kind: Kind) -> Result<TypeId, DatatypeError> {
        let named = Predefined::all().find(|each| matches!(each.fields(), [only] if only.kind == kind));
        // Every kind has a predefined type; the fallback is a byte.
        Ok(self.types.named(named.unwrap_or(Predefined::BYTE)))
    }

    fn node(&mut self, node: &Node) -> Result<TypeId, DatatypeError> {
        // Counts of a layout fit 63 bits, because its sizes do.
        match node {
            Node::Dense { count, kind } => {
                let element = self.kind(*kind)?;
                if *count == 1 { Ok(element) } else { self.types.contiguous(*count as i64, element) }
            }
            Node::Stream { count, stride, child } => {
                let child = self.displaced(*child)?;
                self.types.hvector(*count as i64, 1, *stride, child)
            }
            Node::Indexed { offsets, child } => {
                let displacements: Vec<i64> = offsets.iter().map(|offset| offset.wrapping_add(child.offset)).collect();
                let child = self.of(child.node);
                self.types.hindexed_block(1, &displacements, child)
            }
            Node::Runs { runs, kind } => {
                let element = self.kind(*kind)?;
                let lengths: Vec<i64> = runs.iter().map(|run| run.count as i64).collect();
                let displacements: Vec<i64> = runs.iter().map(|run| run.offset).collect();
                self.types.hindexed(&lengths, &displacements, element)
            }
            Node::Record { parts } => {
                let displacements: Vec<i64> = parts.iter().map(|part| part.offset).collect();
                let children: Vec<TypeId> = parts.iter().map(|part| self.of(part.node)).collect();
                self.types.structure(&vec![1; parts.len()], &displacements, &children)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower;

    #[test]
    fn every_node_comes_back() {
        let text = "layout lb -9 extent 4000 {
            %0 = dense 3 x i16
            %1 = stream 4 x -16 of 2: %0
            %2 = indexed [5 -7 100] of 3: %1
            %3 = runs [(0 3) (40 1) (12 2)] x c160
            %4 = record []
            %5 = record [9: %2, 150: %3, 210: %0, 216: %0, 0: %4]
            root -33: %5
        }";
        let layout = Layout::parse(text).unwrap();
        let raised = raise(&layout).unwrap();
        let again = lower(&raised);
        assert!(again.displacements().eq(layout.displacements()));
        let kinds = |layout: &Layout| -> Vec<(Kind, u64)> {
            let mut elements: Vec<(Kind, u64)> = Vec::new();
            for piece in layout.walk() {
                match elements.last_mut() {
                    Some((kind, count)) if *kind == piece.kind => *count += piece.count,
                    _ => elements.push((piece.kind, piece.count)),
                }
            }
            elements
        };
        assert_eq!(kinds(&again), kinds(&layout));
        assert_eq!((again.lb(), again.extent()), (-9, 4000));
        assert_eq!(raised.facts().true_lb, layout.true_lb());
    }

    #[test]
    fn every_kind_comes_back() {
        for &kind in Kind::ALL {
            let layout =
                Layout::parse(&format!("layout lb 0 extent 64 {{\n%0 = dense 1 x {kind}\nroot %0\n}}")).unwrap();
            let raised = lower(&raise(&layout).unwrap());
            assert_eq!(raised.walk().next().unwrap().kind, kind);
        }
    }
}
