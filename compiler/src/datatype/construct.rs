//! One way into the builder for every constructor, for readers of descriptions.

use super::{Constructor, DatatypeError, TypeBuilder, TypeId};

impl TypeBuilder {
    /// The type that a constructor with its arguments makes of its children.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Constructor, Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.construct(&Constructor::Named(Predefined::INT), &[])?;
    /// let three = types.construct(&Constructor::Contiguous { count: 3 }, &[int])?;
    /// assert_eq!(types.facts(three).size, 12);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn construct(&mut self, constructor: &Constructor, children: &[TypeId]) -> Result<TypeId, DatatypeError> {
        if let Constructor::Named(predefined) = *constructor {
            return match children {
                [] => Ok(self.named(predefined)),
                _ => Err(DatatypeError::new("named.child", "no children", children.len())),
            };
        }
        if let Constructor::Struct { blocklengths, displacements_bytes } = constructor {
            return self.structure(blocklengths, displacements_bytes, children);
        }
        let &[child] = children else {
            return Err(DatatypeError::new(format!("{}.child", constructor.name()), "one child", children.len()));
        };
        match constructor {
            Constructor::Contiguous { count } => self.contiguous(*count, child),
            Constructor::Vector { count, blocklength, stride } => self.vector(*count, *blocklength, *stride, child),
            Constructor::Hvector { count, blocklength, stride_bytes } => {
                self.hvector(*count, *blocklength, *stride_bytes, child)
            }
            Constructor::Indexed { blocklengths, displacements } => self.indexed(blocklengths, displacements, child),
            Constructor::Hindexed { blocklengths, displacements_bytes } => {
                self.hindexed(blocklengths, displacements_bytes, child)
            }
            Constructor::IndexedBlock { blocklength, displacements } => {
                self.indexed_block(*blocklength, displacements, child)
            }
            Constructor::HindexedBlock { blocklength, displacements_bytes } => {
                self.hindexed_block(*blocklength, displacements_bytes, child)
            }
            Constructor::Subarray { sizes, subsizes, starts, order } => {
                self.subarray(sizes, subsizes, starts, *order, child)
            }
            Constructor::Darray { size, rank, gsizes, distributions, psizes, order } => {
                self.darray(*size, *rank, gsizes, distributions, psizes, *order, child)
            }
            Constructor::Resized { lb, extent } => self.resized(*lb, *extent, child),
            Constructor::Dup => Ok(self.dup(child)),
            Constructor::Named(_) | Constructor::Struct { .. } => unreachable!("handled above"),
        }
    }
}
