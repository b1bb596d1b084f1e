//! What is known of a type.

use super::element::{DTC_KIND_MIXED, number};
use super::info::dtc_info;
use super::{Type, dtc_type};
use crate::arguments::{self, Growing};
use crate::handle;
use crate::memory;
use crate::status::{Outcome, answer};
use dtc_compiler::layout::{Kind, Layout, Node};
use dtc_runtime::Tier;
use std::ffi::c_int;

/// The kind that all elements of a layout have.
fn uniform_kind(layout: &Layout) -> Option<Kind> {
    let mut kinds = layout.nodes().filter_map(|(_, node)| match node {
        Node::Dense { kind, .. } | Node::Runs { kind, .. } => Some(*kind),
        _ => None,
    });
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// What the description says, which needs no canonical form.
fn described(requested: &Type) -> Outcome<dtc_info> {
    let committed = &requested.ready()?.committed;
    let facts = committed.facts();
    let narrow = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Ok(dtc_info {
        packed_size: narrow(facts.size),
        lb: facts.lb,
        extent: facts.extent(),
        true_lb: facts.true_lb,
        true_extent: facts.true_extent(),
        alignment: narrow(facts.alignment),
        basic_elements: narrow(committed.signature().elements()),
        ..dtc_info::DEFAULT
    })
}

fn info(requested: &Type) -> Outcome<dtc_info> {
    let ready = requested.ready()?;
    let compiled = (ready.committed.tier() == Tier::Specialised).into();
    if let Some(known) = ready.info.get() {
        return Ok(dtc_info { compiled, ..*known });
    }
    let _claim = memory::for_entries(requested.datatype().most_entries())?;
    let committed = &ready.committed;
    let (described, layout) = (described(requested)?, committed.layout());
    let kind = uniform_kind(requested.elements()?.layout());
    let lengths = layout.run_lengths();
    let narrow = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let known = ready.info.get_or_init(|| {
        Box::new(dtc_info {
            blocks: narrow(layout.measure(layout.root().node).runs),
            shortest_block: narrow(lengths.shortest),
            longest_block: narrow(lengths.longest),
            contiguous: layout.contiguous().is_some().into(),
            kind: kind.map_or(DTC_KIND_MIXED, number),
            kind_size: kind.map_or(0, |kind| narrow(kind.size())),
            canonical: layout.exact().into(),
            hash: *committed.type_hash().as_bytes(),
            ..described
        })
    });
    Ok(dtc_info { compiled, ..*known })
}

/// Tells what is known of a committed type. (MPI 4.1, 5.1.5 to 5.1.8)
///
/// `info`: filled as far as `info->size` reaches. With a size of `offsetof(dtc_info, blocks)` the description answers; the fields
/// from there on need the canonical form, which long lists have not before they were used several times: 20 ns an entry.
///
/// `DTC_ERROR_HANDLE`: not a type.
/// `DTC_ERROR_COMMIT`: not committed.
/// `DTC_ERROR_ARGUMENT`: `info` is null, or ends before `blocks`.
///
/// # Safety
///
/// `type` is null or a type; `info` is null or leads to `info->size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_type_query(r#type: *const dtc_type, info: *mut dtc_info) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let requested = unsafe { handle::borrow(r#type)? };
        // SAFETY: `info` is null or readable for the size that it begins with (contract of this function).
        let canonical = unsafe { arguments::reaches(info, std::mem::offset_of!(dtc_info, blocks))? };
        let known = if canonical { self::info(requested)? } else { described(requested)? };
        // SAFETY: `info` is null or readable and writable for the size that it begins with (contract of this function).
        unsafe { arguments::fill(info, known) }
    })
}
