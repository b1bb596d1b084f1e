//! The constructors of MPI with their arguments: the one table that descriptions in every form are read and written by.

use super::Predefined;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Index tables of a type, at most.
pub const MOST_TABLES: usize = 8;

/// Which axis of an array is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last axis is contiguous (`MPI_ORDER_C`).
    C,
    /// The first axis is contiguous (`MPI_ORDER_FORTRAN`).
    Fortran,
}

/// How one axis of a distributed array is dealt to the processes along it.
///
/// # Standard section
///
/// MPI 4.1, 5.1.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One block for each process; `None` is `MPI_DISTRIBUTE_DFLT_DARG`: the smallest block that covers the axis.
    Block(Option<i64>),
    /// Blocks dealt in turn; `None` is the default block length 1.
    Cyclic(Option<i64>),
    /// Not distributed.
    None,
}

/// The value of an argument of a [`Constructor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// The length of the lists that follow. MPI's calls have it; descriptions do not write it down.
    Length(usize),
    /// A count, or a displacement in extents of the child.
    Integer(i64),
    /// A number of bytes.
    Address(i64),
    /// Counts, or displacements in extents of the child.
    Integers(&'a [i64]),
    /// Numbers of bytes.
    Addresses(&'a [i64]),
    /// The contiguous axis.
    Order(Order),
    /// The distribution of each axis.
    Distributions(&'a [Distribution]),
}

/// Where [`Constructor::read`] finds the arguments of a constructor. They are asked for one after the other, in MPI's order, each
/// by the name that it has in JSON descriptions.
pub trait ReadArguments {
    /// Why an argument cannot be read.
    type Error;
    /// The length of the lists that follow.
    fn length(&mut self, _name: &'static str) -> Result<(), Self::Error> {
        Ok(())
    }
    /// See [`Argument::Integer`].
    fn integer(&mut self, name: &'static str) -> Result<i64, Self::Error>;
    /// See [`Argument::Address`].
    fn address(&mut self, name: &'static str) -> Result<i64, Self::Error> {
        self.integer(name)
    }
    /// See [`Argument::Integers`].
    fn integers(&mut self, name: &'static str) -> Result<Arc<[i64]>, Self::Error>;
    /// See [`Argument::Addresses`].
    fn addresses(&mut self, name: &'static str) -> Result<Arc<[i64]>, Self::Error> {
        self.integers(name)
    }
    /// See [`Argument::Order`].
    fn order(&mut self, name: &'static str) -> Result<Order, Self::Error>;
    /// See [`Argument::Distributions`].
    fn distributions(&mut self, name: &'static str) -> Result<Vec<Distribution>, Self::Error>;
}

/// The type of an argument.
macro_rules! type_of {
    (integers) => { Arc<[i64]> };
    (addresses) => { Arc<[i64]> };
    (order) => { Order };
    (distributions) => { Vec<Distribution> };
    ($number:ident) => { i64 };
}

/// An argument as an [`Argument`].
macro_rules! value_of {
    (integer $value:ident) => {
        Argument::Integer(*$value)
    };
    (address $value:ident) => {
        Argument::Address(*$value)
    };
    (integers $value:ident) => {
        Argument::Integers($value)
    };
    (addresses $value:ident) => {
        Argument::Addresses($value)
    };
    (order $value:ident) => {
        Argument::Order(*$value)
    };
    (distributions $value:ident) => {
        Argument::Distributions($value)
    };
}

/// How many numbers an argument lists; 0 if it is no list.
macro_rules! entries_of {
    (integers $value:ident) => {
        $value.len()
    };
    (addresses $value:ident) => {
        $value.len()
    };
    (distributions $value:ident) => {
        $value.len()
    };
    ($other:ident $value:ident) => {{
        let _ = $value;
        0
    }};
}

/// Each line is a constructor: its variant, its name in descriptions, the key of its children there, and its arguments in MPI's
/// order. A text in brackets stands where MPI's call has the length of the lists.
macro_rules! constructors {
    ($(
        $(#[$doc:meta])*
        $variant:ident $name:literal of $children:literal $({
            $( $(#[$about:meta])* $([$length:literal])? $argument:ident: $kind:ident, )*
        })?
    )*) => {
        /// The constructor of one node: its MPI combiner with its arguments.
        ///
        /// Counts, block lengths and displacements without a unit in their name are in elements of the child, as in MPI.
        ///
        /// # Standard sections
        ///
        /// MPI 4.1, 5.1.2 (constructors), 5.1.3 (subarray), 5.1.4 (darray), 5.1.7 (resized), 5.1.10 (dup).
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Constructor {
            /// A predefined type; no children.
            Named(Predefined),
            $( $(#[$doc])* $variant $({ $( $(#[$about])* $argument: type_of!($kind), )* })?, )*
        }

        /// The kinds of nodes in JSON descriptions, each with the keys of its members.
        pub(super) const KINDS: &[(&str, &[&str])] = &[
            ("named", &["kind", "name", "facts"]),
            $( ($name, &["kind", $($( stringify!($argument), )*)? $children, "facts"]), )*
        ];

        /// The place of each constructor in [`KINDS`].
        enum KindIndex {
            Named,
            $( $variant, )*
        }

        impl Constructor {
            /// Its number in the table: 0 for a predefined type, and from 1 on the numbers of `DTC_COMBINER_...` in C.
            ///
            /// ```
            /// use dtc_compiler::datatype::Constructor;
            /// assert_eq!((Constructor::Dup.number(), Constructor::name_of_number(1)), (1, Some("dup")));
            /// ```
            pub fn number(&self) -> usize {
                match self {
                    Constructor::Named(_) => KindIndex::Named as usize,
                    $( Constructor::$variant { .. } => KindIndex::$variant as usize, )*
                }
            }

            /// The name of the kind in JSON descriptions.
            ///
            /// ```
            /// use dtc_compiler::datatype::Constructor;
            /// assert_eq!(Constructor::Contiguous { count: 3 }.name(), "contiguous");
            /// ```
            pub fn name(&self) -> &'static str {
                match self {
                    Constructor::Named(_) => "named",
                    $( Constructor::$variant { .. } => $name, )*
                }
            }

            /// The arguments in MPI's order, each with its name in JSON descriptions; none of a predefined type.
            ///
            /// ```
            /// use dtc_compiler::datatype::{Argument, Constructor};
            /// let resized = Constructor::Resized { lb: -8, extent: 16 };
            /// assert_eq!(resized.arguments()[..], [("lb", Argument::Address(-8)), ("extent", Argument::Address(16))]);
            /// ```
            pub fn arguments(&self) -> SmallVec<[(&'static str, Argument<'_>); 8]> {
                match self {
                    Constructor::Named(_) => smallvec![],
                    $( Constructor::$variant { $($( $argument, )*)? } => smallvec![ $($(
                        $( ($length, Argument::Length(self.entries())), )?
                        (stringify!($argument), value_of!($kind $argument)),
                    )*)? ], )*
                }
            }

            /// The constructor of this name with the arguments that a reader finds. `None` if there is no such name, or it is that
            /// of a predefined type, which has no arguments.
            ///
            /// # Errors
            ///
            /// Those of the reader.
            pub fn read<R: ReadArguments>(name: &str, reader: &mut R) -> Result<Option<Constructor>, R::Error> {
                let _ = &reader;
                Ok(Some(match name {
                    $( $name => Constructor::$variant { $($(
                        $argument: {
                            $( reader.length($length)?; )?
                            reader.$kind(stringify!($argument))?
                        },
                    )*)? }, )*
                    _ => return Ok(None),
                }))
            }

            /// The length of its lists: how many numbers its description writes down for each.
            pub(crate) fn entries(&self) -> usize {
                match self {
                    Constructor::Named(_) => 0,
                    $( Constructor::$variant { $($( $argument, )*)? } => {
                        [0, $($( entries_of!($kind $argument), )*)?].into_iter().max().unwrap_or(0)
                    } )*
                }
            }
        }
    };
}

constructors! {
    /// The child itself.
    Dup "dup" of "child"
    /// `count` copies, one extent apart.
    Contiguous "contiguous" of "child" {
        /// Number of copies.
        count: integer,
    }
    /// `count` blocks of `blocklength` copies, the blocks `stride` extents apart.
    Vector "vector" of "child" {
        /// Number of blocks.
        count: integer,
        /// Copies in each block.
        blocklength: integer,
        /// Distance from block to block, in extents of the child.
        stride: integer,
    }
    /// Like [`Constructor::Vector`] with the stride in bytes.
    Hvector "hvector" of "child" {
        /// Number of blocks.
        count: integer,
        /// Copies in each block.
        blocklength: integer,
        /// Distance from block to block, in bytes.
        stride_bytes: address,
    }
    /// Blocks of differing length at displacements counted in extents of the child.
    Indexed "indexed" of "child" {
        /// Copies in each block.
        ["count"] blocklengths: integers,
        /// Displacement of each block, in extents of the child.
        displacements: integers,
    }
    /// Blocks of differing length at displacements in bytes.
    Hindexed "hindexed" of "child" {
        /// Copies in each block.
        ["count"] blocklengths: integers,
        /// Displacement of each block, in bytes.
        displacements_bytes: addresses,
    }
    /// Blocks of one length at displacements counted in extents of the child.
    IndexedBlock "indexed_block" of "child" {
        /// Copies in every block.
        ["count"] blocklength: integer,
        /// Displacement of each block, in extents of the child.
        displacements: integers,
    }
    /// Blocks of one length at displacements in bytes.
    HindexedBlock "hindexed_block" of "child" {
        /// Copies in every block.
        ["count"] blocklength: integer,
        /// Displacement of each block, in bytes.
        displacements_bytes: addresses,
    }
    /// Block `i` is `blocklengths[i]` copies of child `i` at `displacements_bytes[i]`.
    Struct "struct" of "children" {
        /// Copies of each child.
        ["count"] blocklengths: integers,
        /// Displacement of each child, in bytes.
        displacements_bytes: addresses,
    }
    /// A box inside an array.
    Subarray "subarray" of "child" {
        /// Elements of the whole array along each axis.
        ["ndims"] sizes: integers,
        /// Elements of the box along each axis.
        subsizes: integers,
        /// First element of the box along each axis.
        starts: integers,
        /// Which axis is contiguous.
        order: order,
    }
    /// The part of a distributed array that one rank of a process grid owns.
    Darray "darray" of "child" {
        /// Number of processes.
        size: integer,
        /// The process whose part this is.
        rank: integer,
        /// Elements of the global array along each axis.
        ["ndims"] gsizes: integers,
        /// How each axis is distributed.
        distributions: distributions,
        /// Processes along each axis.
        psizes: integers,
        /// Which axis is contiguous.
        order: order,
    }
    /// The child with other bounds.
    Resized "resized" of "child" {
        /// New lower bound in bytes.
        lb: address,
        /// New extent in bytes.
        extent: address,
    }
    /// Copies at the places that an index table of the call lists: entry `i` puts copy `i` at `entry * pitch_bytes`. Only a
    /// [`TabledDatatype`](super::TabledDatatype) has it.
    Table "table" of "child" {
        /// The number of the table among those of a call, from 0 on.
        table: integer,
        /// How many places there are: entries are below.
        places: integer,
        /// How many entries a table has, at most.
        most: integer,
        /// Distance from place to place, in bytes.
        pitch_bytes: address,
    }
    /// Copies at the addresses that a table of the call lists, instead of places in the memory of the call. Only a
    /// [`TabledDatatype`](super::TabledDatatype) has it.
    Addresses "addresses" of "child" {
        /// The number of the table among those of a call, from 0 on.
        table: integer,
        /// How many entries a table has, at most.
        most: integer,
        /// What every address is a multiple of, a power of two.
        alignment: integer,
    }
}

impl Constructor {
    /// Whether the displacements come with the call.
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Constructor::Table { .. } | Constructor::Addresses { .. })
    }

    /// The name of the kind with this number in the table. See [`Constructor::number`].
    pub fn name_of_number(number: usize) -> Option<&'static str> {
        KINDS.get(number).map(|&(name, _)| name)
    }
}
