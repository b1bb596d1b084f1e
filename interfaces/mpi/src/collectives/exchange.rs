//! A call whose directions go through staging memory. Either is staged by itself, as either side of a message is: the MPI moves these blocks in
//! messages between two processes, and chooses how by bytes alone.

use super::arguments::BlockArguments;
use super::side::{self, Side, Wanted};
use crate::abi::{Abi, MPI_SUCCESS};
use crate::memory::{Direction, fail, offset, place_of, true_lb_of};
use crate::operations::Collective;
use crate::rent::{Refused, USES_OF_PERSISTENT};
use crate::start::is_ready;
use std::ffi::c_int;
use std::ptr::null;

/// Both directions of a call, as far as they are staged.
pub struct Exchange<A: Abi> {
    /// What is sent.
    pub out: Option<Side<A>>,
    /// What is received.
    pub input: Option<Side<A>>,
}

/// Both directions of a call, as the program gives them.
#[derive(Clone, Copy)]
pub struct Directions<A: Abi> {
    /// What is sent; without blocks in place.
    pub out: BlockArguments<A>,
    /// What is received.
    pub input: BlockArguments<A>,
    /// Whether elements are sent from where they are received.
    pub in_place: bool,
    /// Of the call.
    pub communicator: A::Handle,
}

/// The GPU of the first block that lies on one.
fn device_of<A: Abi>(given: &BlockArguments<A>) -> Option<i32> {
    if !given.is_usable() || !place_of(null()).uses_cuda() || !is_ready::<A>() {
        return None;
    }
    for at in 0..given.length {
        let datatype = given.datatype(at);
        if given.elements(at) <= 0 || datatype == A::handles().datatype_null {
            continue;
        }
        let place = place_of(offset(given.memory_of(at), true_lb_of::<A>(datatype, None)));
        if !place.uses_cuda() {
            return None;
        }
        if place.is_device() {
            return Some(place.device);
        }
    }
    None
}

/// A direction, unless a step of it failed: then the MPI moves it, if it may be given it.
fn checked<A: Abi>(side: Option<Side<A>>, step: impl FnOnce(&Side<A>) -> bool) -> side::SideStaging<A> {
    match side {
        Some(side) if !step(&side) => {
            if side.is_bound() {
                Err(Refused(fail::<A>(A::CONSTANTS.err_other)))
            } else {
                Ok(None)
            }
        }
        side => Ok(side),
    }
}

impl<A: Abi> Exchange<A> {
    /// Stages the directions of a call; none if the MPI shall do it all. A persistent request is packed when it is started.
    ///
    /// # Errors
    ///
    /// The MPI does not accept a datatype, or must not be given the elements.
    pub fn stage(directions: &Directions<A>, persistent: bool) -> Result<Option<Exchange<A>>, Refused> {
        let Directions { out, input, in_place, communicator } = directions;
        let (from, into) = (device_of(out), device_of(input));
        let (communicator, uses) = (*communicator, if persistent { USES_OF_PERSISTENT } else { 1 });
        let sends = Wanted { direction: Direction::Send, device: from, other: into, communicator, uses };
        let both = if *in_place { Direction::Both } else { Direction::Receive };
        let receives = Wanted { direction: both, device: into, other: from, communicator, uses };
        let (mut out, mut input) = (side::stage(out, &sends)?, side::stage(input, &receives)?);
        if !persistent {
            out = checked(out, Side::pack)?;
            input = checked(input, Side::fill)?;
        }
        Ok((out.is_some() || input.is_some()).then_some(Exchange { out, input }))
    }

    /// What the MPI is given in place of the program's arguments.
    pub fn given(&self, of_program: &Directions<A>) -> Directions<A> {
        let given =
            |side: &Option<Side<A>>, given: &BlockArguments<A>| side.as_ref().map_or(*given, |side| side.given(given));
        Directions {
            out: given(&self.out, &of_program.out),
            input: given(&self.input, &of_program.input),
            ..*of_program
        }
    }
}

impl<A: Abi> Collective for Exchange<A> {
    /// Packs what is sent, and fills what is received over, before a persistent request is started; false if that fails.
    fn pack(&self) -> bool {
        self.out.as_ref().is_none_or(Side::pack) && self.input.as_ref().is_none_or(Side::fill)
    }

    /// Once the MPI has the datatypes.
    fn posted(&mut self) {
        if let Some(input) = &mut self.input {
            input.posted();
        }
    }

    /// Unpacks what was received; the code of the call.
    fn unpack(&self) -> c_int {
        let unpacked = self.input.as_ref().is_none_or(Side::unpack);
        if unpacked { MPI_SUCCESS } else { fail::<A>(A::CONSTANTS.err_other) }
    }
}
