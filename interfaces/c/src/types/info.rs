//! The answer to a query.

use crate::arguments::Growing;

/// What is known of a committed type. `DTC_INFO_INIT` sets `size`. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_info {
    /// `sizeof(dtc_info)`.
    pub size: i64,
    /// Packed bytes of one element.
    pub packed_size: i64,
    /// Lower bound in bytes.
    pub lb: i64,
    /// Extent in bytes: from one element of a count to the next.
    pub extent: i64,
    /// Lowest displacement of a byte.
    pub true_lb: i64,
    /// From there to one past the highest displacement of a byte.
    pub true_extent: i64,
    /// Strictest alignment of the basic elements, in bytes.
    pub alignment: i64,
    /// Basic elements of one element.
    pub basic_elements: i64,
    /// Contiguous pieces of one element, which are the entries of its iov list; INT64_MAX if they are more.
    pub blocks: i64,
    /// Bytes of the shortest piece; 0 if there is none.
    pub shortest_block: i64,
    /// Bytes of the longest piece.
    pub longest_block: i64,
    /// 1 if one element is one piece.
    pub contiguous: i32,
    /// The kind that all basic elements have: `DTC_KIND_...`, or `DTC_KIND_MIXED`.
    pub kind: i32,
    /// Bytes of a basic element; 0 if they are mixed.
    pub kind_size: i64,
    /// 1 if the canonical form is a function of the bytes alone, so that every equal type has it.
    pub canonical: i32,
    /// 1 if code compiled for the type serves host memory now, 0 if generic code does.
    pub compiled: i32,
    /// The identity that all equal types share, however they were described.
    pub hash: [u8; 16],
}

impl Default for dtc_info {
    fn default() -> dtc_info {
        <dtc_info as Growing>::DEFAULT
    }
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value.
unsafe impl Growing for dtc_info {
    const DEFAULT: dtc_info = dtc_info {
        size: size_of::<dtc_info>() as i64,
        packed_size: 0,
        lb: 0,
        extent: 0,
        true_lb: 0,
        true_extent: 0,
        alignment: 0,
        basic_elements: 0,
        blocks: 0,
        shortest_block: 0,
        longest_block: 0,
        contiguous: 0,
        kind: 0,
        kind_size: 0,
        canonical: 0,
        compiled: 0,
        hash: [0; 16],
    };
    const NAME: &'static str = "dtc_info";
    // What the description says. All versions have the fields behind it, too.
    const FIRST: usize = std::mem::offset_of!(dtc_info, blocks);
}
