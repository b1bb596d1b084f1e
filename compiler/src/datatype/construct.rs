//! One way into the builder for every constructor, for readers of descriptions.

use super::{Constructor, DatatypeError, Facts, GivenBounds, TypeBuilder, TypeId};

impl TypeBuilder {
    /// The type that a constructor with its arguments makes of its children.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Constructor, Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.construct(&Constructor::Named(Predefined::INT), &[])?;
    /// let three = types.construct(&Constructor::Contiguous { count: 3 }, &[int])?;
    /// assert_eq!(types.facts(three)?.size, 12);
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
            Constructor::Dup => self.dup(child),
            Constructor::Named(_) | Constructor::Struct { .. } => unreachable!("handled above"),
        }
    }
}

impl Facts {
    /// What MPI defines for the type that a constructor makes of children with these facts, with bounds that replace the
    /// computed ones if there are any: for callers that keep the graph of their types themselves.
    ///
    /// # Errors
    ///
    /// Those of [`TypeBuilder::construct`] and [`TypeBuilder::give_bounds`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Constructor, Facts, GivenBounds, Predefined};
    /// let int = Facts::of(&Constructor::Named(Predefined::INT), &[], None)?;
    /// let bounds = GivenBounds { lb: 0, extent: 16 };
    /// let three = Facts::of(&Constructor::Contiguous { count: 3 }, &[int], Some(bounds))?;
    /// assert_eq!((three.size, three.extent()), (12, 16));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn of(
        constructor: &Constructor,
        children: &[Facts],
        given: Option<GivenBounds>,
    ) -> Result<Facts, DatatypeError> {
        let mut types = TypeBuilder::new();
        // Parents look at the facts of their children alone, whatever made those.
        let children: Vec<TypeId> = children.iter().map(|&facts| types.insert(Constructor::Dup, facts, &[])).collect();
        let made = types.construct(constructor, &children)?;
        if let Some(given) = given {
            types.give_bounds(made, given)?;
        }
        types.facts(made).copied()
    }
}
