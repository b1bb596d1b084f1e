//! Type signatures: the sequence of basic elements, without displacements.

use crate::layout::Kind;
use crate::layout::field::{Powers, Residue};
use once_cell::race::OnceBox;

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
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let strided = types.vector(3, 2, 5, int)?;
/// let dense = types.contiguous(6, int)?;
/// let strided = types.facts(strided)?.signature;
/// assert_eq!(strided, types.facts(dense)?.signature);
/// assert_eq!(strided.elements(), 6);
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    elements: u64,
    hash: Residue,
}

/// Powers of the base of the hash.
fn base() -> &'static Powers {
    static BASE: OnceBox<Powers> = OnceBox::new();
    BASE.get_or_init(|| Box::new(Powers::new(Residue::new(0x2545_f491_4f6c_dd1d_9e6c_63d0_876a_9a47))))
}

impl Signature {
    /// Of a type without elements.
    pub const EMPTY: Signature = Signature { elements: 0, hash: Residue::ZERO };

    pub(crate) fn of_kind(kind: Kind) -> Signature {
        Signature { elements: 1, hash: Residue::new(kind as u128 + 1) }
    }

    /// Number of basic elements; a pair type counts two, a complex number one.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Whether these are the elements, over and over.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::layout::Kind;
    /// let mut types = TypeBuilder::new();
    /// let pair = types.named(Predefined::DOUBLE_INT);
    /// let pairs = types.contiguous(5, pair)?;
    /// let signature = types.facts(pairs)?.signature;
    /// assert!(signature.repeats(&[Kind::F64, Kind::I32]));
    /// assert!(!signature.repeats(&[Kind::F64]));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn repeats(&self, kinds: &[Kind]) -> bool {
        let each = |all: Signature, &kind: &Kind| all.then(Signature::of_kind(kind));
        let copies = self.elements.checked_div(kinds.len() as u64);
        let repeated = kinds.iter().try_fold(Signature::EMPTY, each).zip(copies);
        repeated.and_then(|(once, copies)| once.repeat(copies)) == Some(*self)
    }

    /// This signature followed by another; `None` when the elements overflow.
    pub(crate) fn then(self, next: Signature) -> Option<Signature> {
        if self.elements == 0 {
            return Some(next);
        }
        Some(Signature {
            elements: self.elements.checked_add(next.elements)?,
            hash: self.hash + base().of(self.elements) * next.hash,
        })
    }

    /// This signature `copies` times; `None` when the elements overflow.
    pub(crate) fn repeat(self, copies: u64) -> Option<Signature> {
        if copies == 1 {
            return Some(self);
        }
        Some(Signature {
            elements: self.elements.checked_mul(copies)?,
            hash: self.hash * base().of(self.elements).geometric_sum(copies),
        })
    }
}
