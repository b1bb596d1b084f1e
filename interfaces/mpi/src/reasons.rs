//! Why dtc did not do a call, as far as its arguments tell afterwards: for the report alone.

use crate::abi::{Abi, Handle};
use crate::limits::{LARGEST_MESSAGE, limits};
use crate::memory::{sends_packed, size_of};
use crate::recall::{Knowledge, recall};
use crate::rent::PRICELESS;
use crate::report_calls::{CountedCall, Reason};
use crate::start::is_ready;
use dtc_mpi_table::{Sizes, Use};

/// The reason.
pub fn reason_of<A: Abi>(call: &CountedCall) -> Reason {
    let CountedCall { of, sends, elements, datatype, rank } = *call;
    let packs = matches!(of, Use::Pack | Use::Unpack);
    let (smallest, datatype) = (limits().smallest(of), A::Handle::of(datatype));
    if elements <= 0 || rank == Some(A::CONSTANTS.proc_null) {
        return Reason::Nothing;
    }
    if !is_ready::<A>() || datatype == A::handles().datatype_null {
        return Reason::Other;
    }
    let known = recall::<A, _>(datatype, |known| (known.is, known.plan.clone(), known.rent));
    let Some((is, plan, rent)) = known else { return Reason::Other };
    if is == Knowledge::Predefined {
        return Reason::Predefined;
    }
    let Some(plan) = plan else {
        let bytes = size_of::<A>(datatype).and_then(|size| size.checked_mul(elements));
        return match bytes {
            Some(bytes) if bytes < smallest => Reason::FewBytes,
            _ if rent.price == PRICELESS => Reason::FastPieces,
            Some(bytes) if rent.size > 0 && !rent.served[of as usize].hold(bytes) => Reason::FastSize,
            _ => Reason::FewUses,
        };
    };
    if plan.r#type.is_none() {
        return Reason::Undecoded;
    }
    if plan.whole {
        return Reason::Whole;
    }
    if plan.served(of) == Sizes::NONE {
        return Reason::FastPieces;
    }
    match elements.checked_mul(plan.size) {
        None => Reason::ManyBytes,
        Some(bytes) if bytes < smallest => Reason::FewBytes,
        Some(bytes) if !packs && bytes > LARGEST_MESSAGE => Reason::ManyBytes,
        Some(bytes) if !plan.served(of).hold(bytes) => Reason::FastSize,
        Some(_) if sends && !sends_packed(&plan) => Reason::Mixed,
        Some(_) => Reason::Other,
    }
}
