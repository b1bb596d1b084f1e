//! The predefined reduction operations, and the elements they are defined for.
//!
//! A [`Reduction`] is an [`Operation`] on an [`Element`] for which the standard defines it, so its holder need not
//! check again.
//!
//! # Example
//!
//! ```
//! use dtc_compiler::operation::{Element, Operation, Reduction};
//! assert!(Operation::Sum.supports(Element::C128));
//! assert!(!Operation::Max.supports(Element::C128));
//! let error = Reduction::new(Operation::BitwiseAnd, Element::F64).unwrap_err();
//! assert_eq!(error.to_string(), "operation: expected one that is defined for f64, found MPI_BAND");
//! ```

mod element;

pub use element::Element;

use element::Class;
use std::fmt;
use thiserror::Error;

/// A predefined reduction operation. It accumulates a packed element into an element of memory.
///
/// - Integers wrap around.
/// - 16-bit floats are computed with as 32-bit floats, and the result is rounded to nearest, ties to even.
/// - Minimum and maximum keep the element in memory unless the packed one is strictly less, or greater. So of -0 and +0
///   the one in memory stays, and if either element is a NaN, memory stays unchanged.
/// - Logical operations treat every value other than 0 as true, and write 0 or 1.
/// - `MinLoc` and `MaxLoc` order values by the same rule; of equal values, the lower index stays.
///
/// # Standard sections
///
/// MPI 4.1, 6.9.2 (operations), 6.9.4 (`MINLOC` and `MAXLOC`), 12.3.4 (`MPI_REPLACE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `MPI_SUM`
    Sum,
    /// `MPI_PROD`
    Product,
    /// `MPI_MIN`
    Min,
    /// `MPI_MAX`
    Max,
    /// `MPI_LAND`
    LogicalAnd,
    /// `MPI_LOR`
    LogicalOr,
    /// `MPI_LXOR`
    LogicalXor,
    /// `MPI_BAND`
    BitwiseAnd,
    /// `MPI_BOR`
    BitwiseOr,
    /// `MPI_BXOR`
    BitwiseXor,
    /// `MPI_MINLOC`
    MinLoc,
    /// `MPI_MAXLOC`
    MaxLoc,
    /// `MPI_REPLACE`: stores the packed element.
    Replace,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 13] = [
        Operation::Sum,
        Operation::Product,
        Operation::Min,
        Operation::Max,
        Operation::LogicalAnd,
        Operation::LogicalOr,
        Operation::LogicalXor,
        Operation::BitwiseAnd,
        Operation::BitwiseOr,
        Operation::BitwiseXor,
        Operation::MinLoc,
        Operation::MaxLoc,
        Operation::Replace,
    ];

    /// Its MPI name.
    ///
    /// ```
    /// assert_eq!(dtc_compiler::operation::Operation::LogicalXor.name(), "MPI_LXOR");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Sum => "MPI_SUM",
            Operation::Product => "MPI_PROD",
            Operation::Min => "MPI_MIN",
            Operation::Max => "MPI_MAX",
            Operation::LogicalAnd => "MPI_LAND",
            Operation::LogicalOr => "MPI_LOR",
            Operation::LogicalXor => "MPI_LXOR",
            Operation::BitwiseAnd => "MPI_BAND",
            Operation::BitwiseOr => "MPI_BOR",
            Operation::BitwiseXor => "MPI_BXOR",
            Operation::MinLoc => "MPI_MINLOC",
            Operation::MaxLoc => "MPI_MAXLOC",
            Operation::Replace => "MPI_REPLACE",
        }
    }

    /// Whether the standard defines the operation for an element.
    ///
    /// Fortran and C integers are the same elements. The standard defines logical operations only for C integers; here
    /// they are defined for both.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 6.9.2 (the table), 6.9.4 (pairs), 12.3.4 (`MPI_REPLACE`).
    ///
    /// ```
    /// use dtc_compiler::operation::{Element, Operation};
    /// assert!(Operation::MinLoc.supports(Element::DoubleInt));
    /// assert!(!Operation::Sum.supports(Element::B8));
    /// ```
    pub const fn supports(self, element: Element) -> bool {
        let class = element.class();
        match self {
            Operation::Sum | Operation::Product => matches!(class, Class::Integer | Class::Float | Class::Complex),
            Operation::Min | Operation::Max => matches!(class, Class::Integer | Class::Float),
            Operation::LogicalAnd | Operation::LogicalOr | Operation::LogicalXor => {
                matches!(class, Class::Integer | Class::Logical)
            }
            Operation::BitwiseAnd | Operation::BitwiseOr | Operation::BitwiseXor => {
                matches!(class, Class::Integer | Class::Byte)
            }
            Operation::MinLoc | Operation::MaxLoc => matches!(class, Class::Pair),
            Operation::Replace => true,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An operation that is not defined for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("operation: expected one that is defined for {element}, found {operation}")]
pub struct OperationError {
    /// The operation.
    pub operation: Operation,
    /// The element.
    pub element: Element,
}

/// An operation on an element for which it is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    operation: Operation,
    element: Element,
}

impl Reduction {
    /// Pairs an operation with an element.
    ///
    /// # Errors
    ///
    /// The operation is not defined for the element: [`Operation::supports`].
    ///
    /// ```
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// assert_eq!((sum.operation(), sum.element()), (Operation::Sum, Element::F64));
    /// assert_eq!(sum.to_string(), "MPI_SUM of f64");
    /// # Ok::<(), dtc_compiler::operation::OperationError>(())
    /// ```
    pub const fn new(operation: Operation, element: Element) -> Result<Reduction, OperationError> {
        if operation.supports(element) {
            Ok(Reduction { operation, element })
        } else {
            Err(OperationError { operation, element })
        }
    }

    /// All reductions.
    ///
    /// ```
    /// use dtc_compiler::operation::Reduction;
    /// assert!(Reduction::all().count() > 100);
    /// ```
    pub fn all() -> impl Iterator<Item = Reduction> {
        let on = |operation| Element::ALL.iter().filter_map(move |&element| Reduction::new(operation, element).ok());
        Operation::ALL.into_iter().flat_map(on)
    }

    /// The operation.
    pub const fn operation(self) -> Operation {
        self.operation
    }

    /// The element.
    pub const fn element(self) -> Element {
        self.element
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.operation, self.element)
    }
}
