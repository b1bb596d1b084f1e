//! The reference walker: the exact sequence of bytes of a layout.

use super::{Edge, Kind, Layout, Node, Run};

/// Consecutive elements in the walk. A piece may continue the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte, in bytes from the address the type is applied to.
    pub offset: i64,
    /// Number of elements.
    pub count: u64,
    /// Kind of the elements.
    pub kind: Kind,
}

impl Piece {
    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.count * self.kind.size()
    }
}

/// Yields the pieces of a layout in packed order. The depth of the layout costs heap memory, not stack.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    nodes: &'a [Node],
    stack: Vec<Frame>,
}

/// A node on the path to the current piece: its absolute offset, and the next child or entry to visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) edge: Edge,
    pub(super) next: u64,
}

impl Layout {
    /// The pieces of one element in packed order. They define the meaning of the layout.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let text = "layout lb 0 extent 16 {\n  %0 = dense 1 x i32\n  %1 = indexed [8 0] of %0\n  root 4: %1\n}";
    /// let offsets: Vec<i64> = Layout::parse(text)?.walk().map(|piece| piece.offset).collect();
    /// assert_eq!(offsets, [12, 4]);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn walk(&self) -> Walk<'_> {
        Walk::new(&self.nodes, self.root)
    }

    /// The displacement of every byte in packed order.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let text = "layout lb 0 extent 8 {\n  %0 = dense 2 x i16\n  root 2: %0\n}";
    /// assert_eq!(Layout::parse(text)?.displacements().collect::<Vec<_>>(), [2, 3, 4, 5]);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn displacements(&self) -> impl Iterator<Item = i64> {
        self.walk().flat_map(|piece| piece.offset..piece.offset + piece.bytes() as i64)
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(nodes: &'a [Node], root: Edge) -> Walk<'a> {
        Walk { nodes, stack: vec![Frame { edge: root, next: 0 }] }
    }
}

impl Iterator for Walk<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        advance(self.nodes, &mut self.stack)
    }
}

/// The next piece of a walk over `nodes` that has come to `stack`.
#[inline]
pub(super) fn advance(nodes: &[Node], stack: &mut Vec<Frame>) -> Option<Piece> {
    let dense = |edge: Edge| match nodes[edge.node.index()] {
        Node::Dense { count, kind } => Some(Piece { offset: edge.offset, count, kind }),
        _ => None,
    };
    advance_by(nodes, stack, dense, |base, run, kind| Piece { offset: base + run.offset, count: run.count, kind })
}

/// The same with pieces of another kind: `whole` returns the piece that is all of a node at an absolute offset, or `None` for a node to
/// descend into, and `listed` that of an entry of a list of runs. Dense nodes are whole.
#[inline]
pub(super) fn advance_by<T>(
    nodes: &[Node],
    stack: &mut Vec<Frame>,
    whole: impl Fn(Edge) -> Option<T>,
    listed: impl Fn(i64, &Run, Kind) -> T,
) -> Option<T> {
    loop {
        let frame = stack.last_mut()?;
        let (base, at) = (frame.edge.offset, frame.next);
        if at == 0
            && let Some(piece) = whole(frame.edge)
        {
            stack.pop();
            return Some(piece);
        }
        frame.next += 1;
        let below = |edge: Edge, shift: i64| Edge { offset: base + shift + edge.offset, ..edge };
        let (more, child) = match &nodes[frame.edge.node.index()] {
            Node::Dense { .. } => (false, None),
            Node::Runs { runs, kind } => match runs.get(at as usize) {
                Some(run) => return Some(listed(base, run, *kind)),
                None => (false, None),
            },
            Node::Stream { count, stride, child } => {
                (at + 1 < *count, (at < *count).then(|| below(*child, at as i64 * stride)))
            }
            Node::Indexed { offsets, child } => {
                (at as usize + 1 < offsets.len(), offsets.get(at as usize).map(|&offset| below(*child, offset)))
            }
            Node::Record { parts } => {
                (at as usize + 1 < parts.len(), parts.get(at as usize).map(|&part| below(part, 0)))
            }
        };
        // A frame is popped before its last child is pushed, so the stack is only as deep as the branching.
        if !more {
            stack.pop();
        }
        if let Some(edge) = child {
            // A whole node needs no frame of its own.
            if let Some(piece) = whole(edge) {
                return Some(piece);
            }
            stack.push(Frame { edge, next: 0 });
        }
    }
}
