//! Type signatures: the sequence of basic elements, without displacements.

use super::{Constructor, Datatype, Nodes};
use crate::layout::Kind;
use crate::layout::field::{ConstantPowers, Powers, Residue};

/// The signature of a type: how many basic elements, and a hash of their kinds in order.
///
/// Two types have equal signatures exactly when their elements are of the same kinds in the same order (up to a
/// collision of probability below 2^-60). Send and receive types must match in this way.
///
/// # Standard section
///
/// MPI 4.1, 5.1 (type signature), 3.3.1 (type matching).
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::text;
/// let strided = text::parse("vector 3 2 5 int")?.signature();
/// assert_eq!(strided, text::parse("contiguous 6 int")?.signature());
/// assert_eq!(strided.elements(), 6);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    elements: u64,
    hash: Residue,
}

/// Powers of the base of the hash. Made by the compiler, as the tables of the published point are.
static POWERS: ConstantPowers = ConstantPowers::new(Residue::new(0x2545_f491_4f6c_dd1d_9e6c_63d0_876a_9a47));
static BASE: Powers = Powers::constant(&POWERS);

impl Datatype {
    /// The sequence of basic elements. Takes time linear in the nodes.
    ///
    /// ```
    /// use dtc_compiler::datatype::text;
    /// let strided = text::parse("vector 3 2 5 int")?.signature();
    /// assert_eq!(strided, text::parse("contiguous 6 int")?.signature());
    /// assert_eq!(strided.elements(), 6);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn signature(&self) -> Signature {
        Signature::of(&self.nodes())
    }
}

impl Signature {
    /// The signature of a type without elements.
    pub const EMPTY: Signature = Signature { elements: 0, hash: Residue::ZERO };

    fn of_kind(kind: Kind) -> Signature {
        Signature { elements: 1, hash: Residue::new(kind as u128 + 1) }
    }

    /// Number of basic elements; a pair type counts two, a complex number one.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Whether these are the elements, over and over.
    ///
    /// ```
    /// use dtc_compiler::datatype::text;
    /// use dtc_compiler::layout::Kind;
    /// let signature = text::parse("contiguous 5 double_int")?.signature();
    /// assert!(signature.repeats(&[Kind::F64, Kind::I32]));
    /// assert!(!signature.repeats(&[Kind::F64]));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn repeats(&self, kinds: &[Kind]) -> bool {
        let once = Signature::of_kinds(kinds.iter().copied());
        !kinds.is_empty() && once.repeat(self.elements / kinds.len() as u64) == *self
    }

    // Elements are at most as many as bytes, and those of every type fit 63 bits.

    pub(crate) fn of_kinds(kinds: impl Iterator<Item = Kind>) -> Signature {
        kinds.map(Signature::of_kind).fold(Signature::EMPTY, Signature::then)
    }

    /// The signature of the last of some nodes.
    pub(super) fn of(nodes: &Nodes) -> Signature {
        let mut signatures: Vec<Signature> = Vec::with_capacity(nodes.len());
        for node in nodes.iter() {
            let children = || node.children().iter().map(|child| (signatures[nodes.place(child)], child.facts().size));
            signatures.push(match node.constructor() {
                Constructor::Named(predefined) => {
                    Signature::of_kinds(predefined.fields().iter().map(|field| field.kind))
                }
                Constructor::Struct { blocklengths, .. } => children()
                    .zip(blocklengths.iter())
                    .map(|((child, _), &copies)| child.repeat(copies as u64))
                    .fold(Signature::EMPTY, Signature::then),
                _ => children().fold(Signature::EMPTY, |_, (child, size)| {
                    child.repeat(node.facts().size.checked_div(size).unwrap_or(0))
                }),
            });
        }
        signatures.pop().unwrap_or(Signature::EMPTY)
    }

    /// This signature followed by another.
    fn then(self, next: Signature) -> Signature {
        if self.elements == 0 {
            return next;
        }
        Signature {
            elements: self.elements.saturating_add(next.elements),
            hash: self.hash + BASE.of(self.elements) * next.hash,
        }
    }

    /// This signature `copies` times.
    pub(crate) fn repeat(self, copies: u64) -> Signature {
        if copies == 1 {
            return self;
        }
        Signature {
            elements: self.elements.saturating_mul(copies),
            hash: self.hash * BASE.of(self.elements).geometric_sum(copies),
        }
    }
}
