//! Words and launch shapes for blocks at strides and listed runs on GPUs of architecture sm_90.
//!
//! The values are those that were chosen by hand from the sweeps of `bench/results/2026-11-20-gpu.md` and `bench/results/2026-11-25-gpu-families.md`;
//! those of near runs of 64 and of 512 bytes and more, unpacked, from `bench/results/2026-11-28-gpu-drawn-h200.md`; those of near runs of 16 bytes from
//! `bench/results/2026-11-29-gpu-requests.md`, and of words of 2 and 4 bytes in near runs of 17 to 32 bytes from `bench/results/2026-11-29-gpu-vectors.md`.
//! `bench/gpu/tune.cu` writes such a file for the GPU that it runs on.

use crate::plan::Direction::{Pack, Unpack};
use crate::plan::gpu::tuning::row::Density::{Close, Near, Sparse};
use crate::plan::gpu::tuning::row::Row;

/// Rows of each direction and density by ascending `least`.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row { direction: Pack, density: Close, least: 0, word: 8, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Close, least: 48, word: 16, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Close, least: 128, word: 16, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (128, 1)] },
    Row { direction: Pack, density: Near, least: 0, word: 8, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Near, least: 16, word: 16, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Near, least: 17, word: 8, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Near, least: 48, word: 16, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (1024, 1)] },
    Row { direction: Pack, density: Near, least: 128, word: 16, shapes: [(128, 4), (128, 4), (128, 4), (128, 4), (128, 1)] },
    Row { direction: Pack, density: Sparse, least: 0, word: 4, shapes: [(1024, 1), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Pack, density: Sparse, least: 32, word: 8, shapes: [(1024, 1), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Pack, density: Sparse, least: 48, word: 16, shapes: [(1024, 1), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Pack, density: Sparse, least: 128, word: 16, shapes: [(1024, 1), (1024, 1), (1024, 1), (1024, 1), (128, 1)] },
    Row { direction: Unpack, density: Close, least: 0, word: 8, shapes: [(256, 4), (256, 2), (256, 2), (1024, 1), (1024, 1)] },
    Row { direction: Unpack, density: Close, least: 32, word: 8, shapes: [(256, 4), (256, 2), (256, 2), (256, 1), (1024, 1)] },
    Row { direction: Unpack, density: Close, least: 33, word: 8, shapes: [(256, 4), (128, 4), (256, 2), (256, 1), (256, 2)] },
    Row { direction: Unpack, density: Close, least: 128, word: 16, shapes: [(256, 4), (128, 4), (128, 4), (128, 2), (128, 1)] },
    Row { direction: Unpack, density: Near, least: 0, word: 8, shapes: [(256, 4), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Unpack, density: Near, least: 16, word: 16, shapes: [(256, 4), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Unpack, density: Near, least: 17, word: 8, shapes: [(256, 4), (128, 4), (256, 1), (1024, 1), (1024, 1)] },
    Row { direction: Unpack, density: Near, least: 32, word: 8, shapes: [(256, 4), (128, 4), (1024, 1), (256, 1), (1024, 1)] },
    Row { direction: Unpack, density: Near, least: 33, word: 8, shapes: [(256, 4), (128, 4), (256, 2), (256, 1), (256, 2)] },
    Row { direction: Unpack, density: Near, least: 64, word: 8, shapes: [(256, 4), (128, 4), (128, 4), (256, 1), (256, 2)] },
    Row { direction: Unpack, density: Near, least: 128, word: 16, shapes: [(256, 4), (128, 4), (128, 4), (128, 2), (128, 1)] },
    Row { direction: Unpack, density: Near, least: 512, word: 16, shapes: [(256, 4), (128, 4), (128, 4), (128, 1), (128, 1)] },
    Row { direction: Unpack, density: Sparse, least: 0, word: 4, shapes: [(256, 4), (1024, 1), (1024, 1), (1024, 1), (1024, 1)] },
    Row { direction: Unpack, density: Sparse, least: 32, word: 4, shapes: [(256, 4), (1024, 1), (1024, 1), (256, 1), (1024, 1)] },
    Row { direction: Unpack, density: Sparse, least: 33, word: 8, shapes: [(256, 4), (128, 4), (256, 2), (256, 1), (256, 2)] },
    Row { direction: Unpack, density: Sparse, least: 128, word: 16, shapes: [(256, 4), (128, 4), (128, 4), (128, 2), (128, 1)] },
];
