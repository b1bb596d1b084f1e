//! How a datatype was made, as far as the MPI tells without its contents. (MPI 4.1, 5.1.13)

use crate::abi::{Abi, Constants};
use crate::pmpi::pmpi;
use std::ffi::c_int;

/// Whether datatypes of this combiner are predefined.
fn is_predefined(combiner: c_int, constants: &Constants) -> bool {
    let f90 = [constants.combiner_f90_real, constants.combiner_f90_complex, constants.combiner_f90_integer];
    combiner == constants.combiner_named || combiner == constants.combiner_value_index || f90.contains(&combiner)
}

/// How a datatype was made, as `MPI_Type_get_envelope` tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope {
    /// `MPI_COMBINER_...`.
    pub combiner: c_int,
    /// Numbers of each kind of argument.
    pub integers: i64,
    /// See there.
    pub addresses: i64,
    /// See there; of the large-count forms.
    pub counts: i64,
    /// See there.
    pub types: i64,
}

/// Asks how a datatype was made.
pub fn envelope_of<A: Abi>(datatype: A::Handle) -> Envelope {
    let pmpi = pmpi::<A>();
    let mut envelope = Envelope::default();
    // SAFETY: a datatype of the program, and all places are writable.
    unsafe {
        if let Some(get) = pmpi.optional.type_get_envelope_c {
            let Envelope { combiner, integers, addresses, counts, types } = &mut envelope;
            get(datatype, integers, addresses, counts, types, combiner);
            return envelope;
        }
        let (mut integers, mut addresses, mut types) = (0, 0, 0);
        (pmpi.type_get_envelope)(datatype, &mut integers, &mut addresses, &mut types, &mut envelope.combiner);
        Envelope { integers: integers.into(), addresses: addresses.into(), types: types.into(), ..envelope }
    }
}

/// Whether a datatype is predefined.
pub fn is_named<A: Abi>(datatype: A::Handle) -> bool {
    is_predefined(envelope_of::<A>(datatype).combiner, &A::CONSTANTS)
}
