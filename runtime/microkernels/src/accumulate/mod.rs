//! Accumulating packed elements into memory, where both are contiguous: `memory = memory OP packed`.
//!
//! An operation is a type that says how to run over two slices; loops over elements as arrays of bytes need no alignment and
//! become vector code, once for each level.

#[cfg(target_arch = "x86_64")]
mod extended;
mod half;
mod operations;
mod pair;
mod value;

use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::strategy::Level;
#[cfg(target_arch = "x86_64")]
use extended::Extended;
use half::{Bfloat, Float16};
use operations::{
    Accumulate, BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc,
    Product, Sum,
};
use pair::ValueAndIndex;
use value::{Arithmetic, Bits, Complex, Ordered, Truth, Value};

/// Accumulates as many whole elements as both slices have.
///
/// # Safety
///
/// The CPU has the level that the function was selected for.
pub type AccumulateFn = unsafe fn(memory: &mut [u8], packed: &[u8]);

/// The function for a reduction; `None` where it is a plain unpack, and for long doubles on CPUs that have none of 80 bits.
pub fn select_accumulate(level: Level, reduction: Reduction) -> Option<AccumulateFn> {
    let operation = reduction.operation();
    if operation == Operation::Replace {
        return None;
    }
    match reduction.element() {
        Element::I8 => integer::<i8>(level, operation),
        Element::I16 => integer::<i16>(level, operation),
        Element::I32 => integer::<i32>(level, operation),
        Element::I64 => integer::<i64>(level, operation),
        Element::U8 => integer::<u8>(level, operation),
        Element::U16 => integer::<u16>(level, operation),
        Element::U32 => integer::<u32>(level, operation),
        Element::U64 => integer::<u64>(level, operation),
        Element::F16 => number::<Float16>(level, operation),
        Element::Bf16 => number::<Bfloat>(level, operation),
        Element::F32 => number::<f32>(level, operation),
        Element::F64 => number::<f64>(level, operation),
        #[cfg(target_arch = "x86_64")]
        Element::F80 => number::<Extended>(level, operation),
        #[cfg(target_arch = "x86_64")]
        Element::LongDoubleInt => pair::<ValueAndIndex<Extended, i32>>(level, operation),
        #[cfg(not(target_arch = "x86_64"))]
        Element::F80 | Element::LongDoubleInt => None,
        Element::C64 => arithmetic::<Complex<f32>>(level, operation),
        Element::C128 => arithmetic::<Complex<f64>>(level, operation),
        Element::B8 => logical::<u8>(level, operation),
        Element::B16 => logical::<u16>(level, operation),
        Element::B32 => logical::<u32>(level, operation),
        Element::B64 => logical::<u64>(level, operation),
        Element::Byte => bitwise::<u8>(level, operation),
        Element::FloatInt => pair::<ValueAndIndex<f32, i32>>(level, operation),
        Element::DoubleInt => pair::<ValueAndIndex<f64, i32>>(level, operation),
        Element::LongInt => pair::<ValueAndIndex<i64, i32>>(level, operation),
        Element::TwoInt => pair::<ValueAndIndex<i32, i32>>(level, operation),
        Element::ShortInt => pair::<ValueAndIndex<i16, i32>>(level, operation),
        Element::TwoReal => pair::<ValueAndIndex<f32, f32>>(level, operation),
        Element::TwoDoublePrecision => pair::<ValueAndIndex<f64, f64>>(level, operation),
    }
}

fn portable<C: Accumulate>(memory: &mut [u8], packed: &[u8]) {
    C::run(memory, packed);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<C: Accumulate>(memory: &mut [u8], packed: &[u8]) {
    C::run(memory, packed);
}

/// With the vectors of the microkernels that pack and unpack: a load that spans two stores waits for both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<C: Accumulate>(memory: &mut [u8], packed: &[u8]) {
    C::run(memory, packed);
}

/// The function for an operation.
fn at<C: Accumulate>(level: Level) -> Option<AccumulateFn> {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Zen4 | Level::Zen5 => Some(avx512::<C>),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => Some(avx2::<C>),
        _ => Some(portable::<C>),
    }
}

fn arithmetic<T: Arithmetic>(level: Level, operation: Operation) -> Option<AccumulateFn> {
    match operation {
        Operation::Sum => at::<Sum<T>>(level),
        Operation::Product => at::<Product<T>>(level),
        _ => None,
    }
}

fn number<T: Arithmetic + Ordered>(level: Level, operation: Operation) -> Option<AccumulateFn> {
    match operation {
        Operation::Min => at::<Min<T>>(level),
        Operation::Max => at::<Max<T>>(level),
        _ => arithmetic::<T>(level, operation),
    }
}

fn logical<T: Truth>(level: Level, operation: Operation) -> Option<AccumulateFn> {
    match operation {
        Operation::LogicalAnd => at::<LogicalAnd<T>>(level),
        Operation::LogicalOr => at::<LogicalOr<T>>(level),
        Operation::LogicalXor => at::<LogicalXor<T>>(level),
        _ => None,
    }
}

fn bitwise<T: Bits>(level: Level, operation: Operation) -> Option<AccumulateFn> {
    match operation {
        Operation::BitwiseAnd => at::<BitwiseAnd<T>>(level),
        Operation::BitwiseOr => at::<BitwiseOr<T>>(level),
        Operation::BitwiseXor => at::<BitwiseXor<T>>(level),
        _ => None,
    }
}

fn integer<T: Arithmetic + Ordered + Truth + Bits>(level: Level, operation: Operation) -> Option<AccumulateFn> {
    number::<T>(level, operation).or_else(|| logical::<T>(level, operation)).or_else(|| bitwise::<T>(level, operation))
}

fn pair<T: Value>(level: Level, operation: Operation) -> Option<AccumulateFn>
where
    MinLoc<T>: Accumulate,
    MaxLoc<T>: Accumulate,
{
    match operation {
        Operation::MinLoc => at::<MinLoc<T>>(level),
        Operation::MaxLoc => at::<MaxLoc<T>>(level),
        _ => None,
    }
}
