//! `yaksa_init` and `yaksa_finalize`.

use super::InfoHandle;
use super::infos::hints;
use crate::info::Info;
use crate::library::{finalise, initialise};
use crate::status::answer;

/// # Safety
///
/// The info is null or alive.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_init(info: InfoHandle) -> i32 {
    answer(|| {
        // SAFETY: `info` is null or alive (contract of this function), and the borrow ends with this call.
        initialise(unsafe { hints(info) }.unwrap_or(&Info::default()));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn yaksa_finalize() -> i32 {
    answer(finalise)
}
