//! The pictures of the book are what the recorded results draw. `cargo xtask plots` draws them anew.

mod blocks;
mod commits;
mod exchanges;
mod gpu_blocks;
mod messages;
mod roofline;

/// The test that draws a picture.
const HOW: &str = "plots --workspace";
