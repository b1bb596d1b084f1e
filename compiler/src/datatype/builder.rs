//! Building datatypes, bottom-up, by the names of MPI's constructors.

use super::{
    Constructor, Datatype, DatatypeError, Distribution, Facts, GivenBounds, Order, Predefined, TabledDatatype,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a type of one [`TypeBuilder`].
///
/// An id carries the number of its builder, so no other builder takes it for a type of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId {
    index: usize,
    builder: BuilderId,
}

/// Number of a builder. Each builder of the process has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct BuilderId(u64);

impl BuilderId {
    fn next() -> BuilderId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Only uniqueness is needed, so no order is. 2^64 builders take centuries.
        BuilderId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Builds datatypes from the leaves up. A type that is used twice is shared.
///
/// The methods are MPI's constructors. They return an error that names the argument, what was expected and what was
/// found when a count is negative, lists differ in length, a size or bound does not fit 64 bits, or a [`TypeId`] is of
/// another builder.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let row = types.contiguous(5, double)?;
/// let face = types.vector(12, 1, 14, row)?;
/// let face = types.finish(face)?;
/// assert_eq!((face.facts().size, face.facts().extent()), (480, 6200));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Debug)]
pub struct TypeBuilder {
    types: Vec<Datatype>,
    id: BuilderId,
}

impl Default for TypeBuilder {
    fn default() -> TypeBuilder {
        TypeBuilder { types: Vec::new(), id: BuilderId::next() }
    }
}

type Built = Result<TypeId, DatatypeError>;

impl TypeBuilder {
    /// An empty builder.
    pub fn new() -> TypeBuilder {
        TypeBuilder::default()
    }

    /// What MPI defines for a type built so far.
    ///
    /// # Errors
    ///
    /// The id is of another builder.
    pub fn facts(&self, id: TypeId) -> Result<&Facts, DatatypeError> {
        Ok(self.known(id, || "facts.id".to_owned())?.facts())
    }

    /// The datatype with that root. The builder remains, for more types.
    ///
    /// # Errors
    ///
    /// The id is of another builder, or the type has index tables.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let (mut types, mut others) = (TypeBuilder::new(), TypeBuilder::new());
    /// let double = types.named(Predefined::DOUBLE);
    /// let char = others.named(Predefined::CHAR);
    /// assert_eq!(types.finish(double)?.facts().size, 8);
    /// assert_eq!(types.finish(char).unwrap_err().found(), "an id of another one");
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn finish(&self, root: TypeId) -> Result<Datatype, DatatypeError> {
        let argument = || "finish.root".to_owned();
        self.known(root, argument)?.clone().without_tables(argument)
    }

    /// The same for a type that may have index tables.
    ///
    /// # Errors
    ///
    /// The id is of another builder. The numbers of the tables are not 0, 1 and so on without a gap, one is used for indices and
    /// for addresses, or there are more than 256 axes by table or 65536 parts of structures around them.
    ///
    /// See [`TabledDatatype`] for an example.
    pub fn finish_tabled(&self, root: TypeId) -> Result<TabledDatatype, DatatypeError> {
        TabledDatatype::of(self.known(root, || "finish_tabled.root".to_owned())?.clone())
    }

    /// A type of this builder; an error that names the argument otherwise.
    fn known(&self, id: TypeId, argument: impl FnOnce() -> String) -> Result<&Datatype, DatatypeError> {
        let known = self.types.get(id.index).filter(|_| id.builder == self.id);
        known.ok_or_else(|| DatatypeError::new(argument(), "an id of this builder", "an id of another one"))
    }

    /// The type that a constructor with its arguments makes of its children.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Constructor, Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.construct(Constructor::Named(Predefined::INT), &[])?;
    /// let three = types.construct(Constructor::Contiguous { count: 3 }, &[int])?;
    /// assert_eq!(types.facts(three)?.size, 12);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn construct(&mut self, constructor: Constructor, children: &[TypeId]) -> Built {
        let known = |(index, &child): (usize, &TypeId)| {
            let argument = || match constructor {
                Constructor::Struct { .. } => format!("struct.children[{index}]"),
                _ => format!("{}.child", constructor.name()),
            };
            self.known(child, argument).cloned()
        };
        let children = children.iter().enumerate().map(known).collect::<Result<Vec<Datatype>, _>>()?;
        let made = Datatype::of(constructor, children, None)?;
        Ok(self.add(made))
    }

    fn add(&mut self, made: Datatype) -> TypeId {
        self.types.push(made);
        TypeId { index: self.types.len() - 1, builder: self.id }
    }

    /// A predefined type.
    pub fn named(&mut self, predefined: Predefined) -> TypeId {
        self.add(Datatype::named(predefined))
    }

    /// `MPI_Type_contiguous`.
    pub fn contiguous(&mut self, count: i64, child: TypeId) -> Built {
        self.construct(Constructor::Contiguous { count }, &[child])
    }

    /// `MPI_Type_vector`; the stride is in extents of the child.
    pub fn vector(&mut self, count: i64, blocklength: i64, stride: i64, child: TypeId) -> Built {
        self.construct(Constructor::Vector { count, blocklength, stride }, &[child])
    }

    /// `MPI_Type_create_hvector`; the stride is in bytes.
    pub fn hvector(&mut self, count: i64, blocklength: i64, stride_bytes: i64, child: TypeId) -> Built {
        self.construct(Constructor::Hvector { count, blocklength, stride_bytes }, &[child])
    }

    /// `MPI_Type_indexed`; displacements are in extents of the child.
    pub fn indexed(&mut self, blocklengths: &[i64], displacements: &[i64], child: TypeId) -> Built {
        let (blocklengths, displacements) = (blocklengths.into(), displacements.into());
        self.construct(Constructor::Indexed { blocklengths, displacements }, &[child])
    }

    /// `MPI_Type_create_hindexed`; displacements are in bytes.
    pub fn hindexed(&mut self, blocklengths: &[i64], displacements_bytes: &[i64], child: TypeId) -> Built {
        let (blocklengths, displacements_bytes) = (blocklengths.into(), displacements_bytes.into());
        self.construct(Constructor::Hindexed { blocklengths, displacements_bytes }, &[child])
    }

    /// `MPI_Type_create_indexed_block`; displacements are in extents of the child.
    pub fn indexed_block(&mut self, blocklength: i64, displacements: &[i64], child: TypeId) -> Built {
        self.construct(Constructor::IndexedBlock { blocklength, displacements: displacements.into() }, &[child])
    }

    /// `MPI_Type_create_hindexed_block`; displacements are in bytes.
    pub fn hindexed_block(&mut self, blocklength: i64, displacements_bytes: &[i64], child: TypeId) -> Built {
        let displacements_bytes = displacements_bytes.into();
        self.construct(Constructor::HindexedBlock { blocklength, displacements_bytes }, &[child])
    }

    /// `MPI_Type_create_struct`.
    pub fn structure(&mut self, blocklengths: &[i64], displacements_bytes: &[i64], children: &[TypeId]) -> Built {
        let (blocklengths, displacements_bytes) = (blocklengths.into(), displacements_bytes.into());
        self.construct(Constructor::Struct { blocklengths, displacements_bytes }, children)
    }

    /// `MPI_Type_create_subarray`.
    pub fn subarray(&mut self, sizes: &[i64], subsizes: &[i64], starts: &[i64], order: Order, child: TypeId) -> Built {
        let [sizes, subsizes, starts] = [sizes, subsizes, starts].map(Arc::from);
        self.construct(Constructor::Subarray { sizes, subsizes, starts, order }, &[child])
    }

    /// `MPI_Type_create_darray`: what `rank` of `size` processes owns.
    #[expect(clippy::too_many_arguments, reason = "the arguments of the MPI constructor")]
    pub fn darray(
        &mut self,
        size: i64,
        rank: i64,
        gsizes: &[i64],
        distributions: &[Distribution],
        psizes: &[i64],
        order: Order,
        child: TypeId,
    ) -> Built {
        let (gsizes, distributions, psizes) = (gsizes.into(), distributions.into(), psizes.into());
        self.construct(Constructor::Darray { size, rank, gsizes, distributions, psizes, order }, &[child])
    }

    /// `MPI_Type_create_resized`.
    pub fn resized(&mut self, lb: i64, extent: i64, child: TypeId) -> Built {
        self.construct(Constructor::Resized { lb, extent }, &[child])
    }

    /// `MPI_Type_dup`.
    pub fn dup(&mut self, child: TypeId) -> Built {
        self.construct(Constructor::Dup, &[child])
    }

    /// Copies at `entry * pitch_bytes` for each entry of index table `table` of the call, which has at most `most` entries, all
    /// below `places`. See [`TabledDatatype`].
    pub fn table(&mut self, table: i64, places: i64, most: i64, pitch_bytes: i64, child: TypeId) -> Built {
        self.construct(Constructor::Table { table, places, most, pitch_bytes }, &[child])
    }

    /// Copies at the addresses in table `table` of the call, at most `most`, each a multiple of `alignment`. See
    /// [`TabledDatatype`].
    pub fn addresses(&mut self, table: i64, most: i64, alignment: i64, child: TypeId) -> Built {
        self.construct(Constructor::Addresses { table, most, alignment }, &[child])
    }

    /// Replaces the computed bounds of a type by those that the caller knows, for instance from its MPI. Must be called
    /// before the type is used as a child, since parents take their bounds from it.
    ///
    /// ```
    /// use dtc_compiler::datatype::{GivenBounds, Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let uneven = types.hvector(2, 1, 5, int)?;
    /// assert_eq!(types.facts(uneven)?.extent(), 12);
    /// types.give_bounds(uneven, GivenBounds { lb: 0, extent: 9 })?;
    /// assert_eq!(types.facts(uneven)?.extent(), 9);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn give_bounds(&mut self, id: TypeId, given: GivenBounds) -> Result<(), DatatypeError> {
        let known = self.known(id, || "give_bounds.id".to_owned())?;
        self.types[id.index] =
            Datatype::of(known.constructor().clone(), known.children().iter().cloned(), Some(given))?;
        Ok(())
    }
}
