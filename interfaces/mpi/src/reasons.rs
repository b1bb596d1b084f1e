//! Why dtc did not do a call, as far as its arguments tell afterwards: for the report alone.

use crate::abi::{Abi, Handle};
use crate::calls::Arguments;
use crate::limits::{LARGEST_MESSAGE, limits};
use crate::memory::{sends_packed, size_of};
use crate::recall::{Knowledge, recall};
use crate::rent::PRICELESS;
use crate::report_calls::{Judged, Reason};
use crate::start::is_ready;

/// The reason.
pub fn reason_of<A: Abi>(judged: &Judged) -> Reason {
    let Judged { arguments, memory, elements, datatype, rank } = *judged;
    let packs = matches!(arguments, Arguments::Pack | Arguments::Unpack);
    let (limits, datatype) = (limits(), A::Handle::of(datatype));
    let least = if packs { limits.packed_bytes } else { limits.bytes };
    if elements <= 0 || (!packs && rank == A::CONSTANTS.proc_null) {
        return Reason::Nothing;
    }
    if !is_ready::<A>() || datatype == A::handles().datatype_null {
        return Reason::Other;
    }
    let known = recall::<A, _>(datatype, |known| (known.is, known.plan.clone(), known.price));
    let Some((is, plan, price)) = known else { return Reason::Other };
    if is == Knowledge::Predefined {
        return Reason::Predefined;
    }
    let Some(plan) = plan else {
        let bytes = size_of::<A>(datatype).and_then(|size| size.checked_mul(elements));
        return match bytes {
            Some(bytes) if bytes < least => Reason::FewBytes,
            _ if price == PRICELESS => Reason::LongPieces,
            _ => Reason::FewUses,
        };
    };
    if plan.r#type.is_none() {
        return Reason::Undecoded;
    }
    if plan.whole {
        return Reason::Whole;
    }
    if if packs { plan.piece > limits.packed_piece } else { plan.least == i64::MAX } {
        return Reason::LongPieces;
    }
    match elements.checked_mul(plan.size) {
        None => Reason::ManyBytes,
        Some(bytes) if bytes < least => Reason::FewBytes,
        Some(bytes) if !packs && bytes > LARGEST_MESSAGE => Reason::ManyBytes,
        Some(_) if arguments == Arguments::Send && !sends_packed::<A>(&plan) && memory != 0 => Reason::Mixed,
        Some(_) => Reason::Other,
    }
}
