//! What all equal types share, and its bytes in a bundle.

use crate::layout::{Layout, TypeHash};
use crate::passes;
use crate::plan::Plan;

/// What all equal types share: the hash, the canonical layout and the plan for a CPU.
///
/// Its bytes are for the revision of dtc that wrote them. They hold the hash, the canonical layout, and the layout that plans for a
/// CPU are made from where it is another: no pass runs when they are read.
///
/// # Example
///
/// ```
/// use dtc_compiler::{Pipeline, Shared, datatype::text};
/// let columns = Pipeline::new(text::parse("vector 12 5 14 double")?);
/// let bytes = Shared::encode(columns.hash(), columns.layout());
/// let shared = Shared::decode(&bytes).unwrap();
/// assert!(shared.is_of(columns.lowered()));
/// assert_eq!(shared.hash, columns.hash());
/// assert_eq!(shared.layout.to_string(), columns.layout().to_string());
/// assert_eq!(shared.plan.to_string(), columns.plan().to_string());
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shared {
    /// The identity of the types.
    pub hash: TypeHash,
    /// Their canonical layout.
    pub layout: Layout,
    /// How a CPU moves their bytes.
    pub plan: Plan,
}

impl Shared {
    /// The bytes of what types with this hash and this canonical layout share.
    ///
    /// See [`Shared`] for an example.
    pub fn encode(hash: TypeHash, layout: &Layout) -> Vec<u8> {
        let canonical = layout.to_flat();
        let regular = passes::regularise_for_cpu(layout).to_flat();
        let mut bytes = hash.as_bytes().to_vec();
        bytes.push(layout.exact().into());
        bytes.extend_from_slice(&layout.lb().to_le_bytes());
        bytes.extend_from_slice(&layout.entries().to_le_bytes());
        bytes.extend_from_slice(&(canonical.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&canonical);
        if regular != canonical {
            bytes.extend_from_slice(&regular);
        }
        bytes
    }

    /// What [`Shared::encode`] wrote; `None` for other bytes.
    ///
    /// See [`Shared`] for an example.
    pub fn decode(bytes: &[u8]) -> Option<Shared> {
        let (hash, bytes) = bytes.split_first_chunk()?;
        let ([exact], bytes) = bytes.split_first_chunk()?;
        let (lb, bytes) = bytes.split_first_chunk()?;
        let (entries, bytes) = bytes.split_first_chunk()?;
        let (length, bytes) = bytes.split_first_chunk()?;
        let (canonical, regular) = bytes.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let read = |flat| Layout::from_flat(flat, i64::from_le_bytes(*lb));
        let layout = read(canonical)?.with_entries(u64::from_le_bytes(*entries));
        let plan = match regular {
            [] => Plan::as_described(&layout),
            _ => Plan::as_described(&read(regular).filter(|regular| shape(regular) == shape(&layout))?),
        };
        let layout = if *exact == 1 { layout.proved_exact() } else { layout };
        Some(Shared { hash: TypeHash::from_bytes(*hash), layout, plan })
    }

    /// Whether size, bounds and the length of the description are those of a lowered layout. The bytes are not compared: the caller found
    /// this by the digest of that layout.
    ///
    /// See [`Shared`] for an example.
    pub fn is_of(&self, lowered: &Layout) -> bool {
        let described = |layout: &Layout| (layout.lb(), layout.entries());
        shape(&self.layout) == shape(lowered) && described(&self.layout) == described(lowered)
    }
}

fn shape(layout: &Layout) -> (u64, i64, i64, i64) {
    (layout.size(), layout.extent(), layout.true_lb(), layout.true_ub())
}
