//! Unflattens hostile bytes: an error, or a type that answers every query.
#![no_main]

use dtc::*;
use dtc_compiler::layout::Layout;
use libfuzzer_sys::fuzz_target;
use std::ptr::{null, null_mut};

/// The engine of the process.
fn engine() -> *mut dtc_engine {
    static ENGINE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let address = ENGINE.get_or_init(|| {
        let mut engine = null_mut();
        // SAFETY: a null configuration selects the defaults, and `engine` is a live pointer to fill.
        assert_eq!(unsafe { dtc_init(null(), &mut engine) }, DTC_OK);
        engine.expose_provenance()
    });
    std::ptr::with_exposed_provenance_mut(*address)
}

/// # Safety
///
/// `made` is a live committed type.
unsafe fn ask(made: *mut dtc_type) {
    let base = std::ptr::without_provenance(1 << 46);
    let (mut number, mut skip, mut bytes) = (0, 0, 0);
    let mut pieces = [dtc_iovec { base: null_mut(), length: 0 }; 8];
    // SAFETY: `made` is live and committed (contract of this function). Every list has room for its given length, the
    // other pointers are to live locals, and no bytes are moved.
    unsafe {
        let mut info: dtc_info = std::mem::zeroed();
        info.size = size_of::<dtc_info>() as i64;
        assert_eq!(dtc_type_query(made, &mut info), DTC_OK);
        assert!(info.shortest_block <= info.longest_block && info.longest_block <= info.packed_size);
        for offset in [0, info.packed_size / 3, info.packed_size] {
            assert_eq!(dtc_iov_at(made, 1, offset, &mut number, &mut skip), DTC_OK);
            let list = pieces.as_mut_ptr();
            assert_eq!(dtc_iov(made, base, 1, number, skip, list, 8, &mut number, &mut bytes), DTC_OK);
            assert!(bytes <= info.packed_size - offset);
            assert_eq!(dtc_iov_len(made, 1, offset, &mut number, &mut bytes), DTC_OK);
            assert!(bytes <= offset);
            assert_eq!(dtc_element_border(made, 1, offset, &mut bytes), DTC_OK);
            assert!(bytes <= offset);
        }
        assert_eq!(dtc_leading_piece(made, 1, &mut skip, &mut bytes), DTC_OK);
        assert_eq!(dtc_explain(made, null_mut(), 0, &mut bytes), DTC_OK);
        assert_eq!(dtc_flatten_size(made, &mut bytes), DTC_OK);
    }
}

fuzz_target!(|bytes: &[u8]| {
    // Fuzzers cannot guess checksums, so the body gets a valid header.
    let sealed = Layout::from_body(bytes).ok().map(|layout| layout.to_bytes());
    for candidate in [Some(bytes), sealed.as_deref()].into_iter().flatten() {
        let mut made = null_mut();
        // SAFETY: `bytes` has the given length, `made` is a live pointer to fill, and the type is released once.
        unsafe {
            match dtc_unflatten(engine(), candidate.as_ptr().cast(), candidate.len() as i64, &mut made) {
                DTC_OK => {
                    ask(made);
                    assert_eq!(dtc_type_release(made), DTC_OK);
                }
                status => assert!(status == DTC_ERROR_ENCODING && made.is_null()),
            }
        }
    }
});
