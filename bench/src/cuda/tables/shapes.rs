//! The kernel of a case with other launch shapes: where one is faster, the tuning is wrong.
#![expect(unsafe_code, reason = "launches kernels that no plan chooses")]

use super::call::Call;
use super::subject::Subject;
use dtc_compiler::codegen::cuda::{self, TABLED_ENTRY, TabledEntries, TabledSides};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{LaunchShape, TabledVariant};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::failure::Failure;
use dtc_runtime::cuda::{CudaError, Function, Stream};
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Launch shapes that are tried: threads of a block, and words of each.
const SHAPES: [(u32, u32); 10] =
    [(128, 1), (128, 2), (128, 4), (128, 8), (256, 1), (256, 2), (256, 4), (256, 8), (512, 1), (512, 2)];

/// A kernel of a shape.
pub struct Shaped {
    variant: TabledVariant,
    function: Function,
    blocks: u32,
    words: Vec<u64>,
}

impl Shaped {
    /// Compiles all shapes for a call, in words as large as the case and its buffers allow.
    pub fn all(arena: &Arena, subject: &Subject, call: &Call) -> Result<Vec<Shaped>, Failure> {
        let layout = &subject.layout;
        let sides = match call.direction {
            Direction::Pack => TabledSides::Pack(layout),
            Direction::Unpack => TabledSides::Unpack(layout),
        };
        let chosen = TabledVariant::new(layout.granularity(), layout.most_bytes(), false);
        let entries =
            TabledEntries { address: subject.table.address(), wide: false, length: subject.entries.len() as u64 };
        let (gpu, bytes) = (&arena.gpu, call.bytes);
        let build = |(threads, unroll): (u32, u32)| {
            let variant = TabledVariant { shape: LaunchShape { threads, unroll }, ..chosen };
            let program = cuda::tabled(sides, &variant).map_err(|error| subject.failed(&error))?;
            let function = gpu.compile(&program.source, &[TABLED_ENTRY])?.pop();
            let words = sides.parameter(variant.word, &[&[entries]], 0, 0);
            match (function, variant.blocks(bytes), words, program.tables.is_empty()) {
                (Some(function), Some(blocks), Some(words), true) => Ok(Shaped { variant, function, blocks, words }),
                _ => Err(subject.failed(&"its kernel needs more than a table of the call")),
            }
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = SHAPES.into_iter().map(|shape| scope.spawn(move || build(shape))).collect();
            let ended = |part: ScopedJoinHandle<'_, _>| part.join().unwrap_or_else(|panic| resume_unwind(panic));
            started.into_iter().map(ended).collect()
        })
    }

    /// The shape.
    pub fn name(&self) -> String {
        let LaunchShape { threads, unroll } = self.variant.shape;
        format!("{threads} threads x {unroll}")
    }

    /// Enqueues the call for which it was made.
    pub fn enqueue(&self, stream: &Stream, call: &Call) -> Result<(), CudaError> {
        let (mut memory, mut packed) = (call.memory.address(), call.packed.address());
        let (mut lists, mut first, mut bytes, mut blocks) = (0_u64, 0_u64, call.bytes, self.blocks);
        let mut parameters = [
            (&raw mut memory).cast(),
            (&raw mut packed).cast(),
            (&raw mut lists).cast(),
            (&raw mut first).cast(),
            (&raw mut bytes).cast(),
            (&raw mut blocks).cast(),
            self.words.as_ptr().cast_mut().cast(),
        ];
        let threads = [self.variant.shape.threads, 1, 1];
        // SAFETY: the parameters are those of every compiled kernel, the last as many words as this one has. The buffers of the
        // call have all bytes of the case, and the table all entries; both live until the stream was waited for.
        unsafe { self.function.launch(stream, [self.blocks, 1, 1], threads, 0, &mut parameters) }
    }
}
