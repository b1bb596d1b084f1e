//! The text of one function: values, blocks and loops.

use std::fmt::{self, Display, Write};

/// A number of iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Known(u64),
    /// A value of 64 bits.
    Value(String),
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Known(count) => count.fmt(f),
            Count::Value(value) => value.fmt(f),
        }
    }
}

/// A vector of equal integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    pub(super) count: u64,
    /// Bytes of an integer.
    pub(super) bytes: u64,
}

impl Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "i{}", self.bytes * 8),
            count => write!(f, "<{count} x i{}>", self.bytes * 8),
        }
    }
}

impl Lanes {
    /// The type in the name of an intrinsic.
    fn suffix(self) -> String {
        format!("v{}i{}", self.count, self.bytes * 8)
    }
}

/// One bit for each lane.
fn mask(lanes: &[bool]) -> String {
    let bits: Vec<String> = lanes.iter().map(|lane| format!("i1 {lane}")).collect();
    format!("<{} x i1> <{}>", lanes.len(), bits.join(", "))
}

/// A function that is being written. Values are named after what they are, with a number.
pub(super) struct Function {
    text: String,
    values: u32,
    loops: u32,
    /// The block that lines are added to.
    block: String,
}

impl Function {
    /// A function without a line yet.
    pub(super) fn new() -> Function {
        Function { text: "entry:\n".to_owned(), values: 0, loops: 0, block: "entry".to_owned() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "  {line}");
    }

    fn begin_block(&mut self, name: String) {
        let _ = writeln!(self.text, "{name}:");
        self.block = name;
    }

    /// A new value.
    pub(super) fn value(&mut self, stem: &str, instruction: impl Display) -> String {
        self.values += 1;
        let name = format!("%{stem}{}", self.values);
        self.line(format_args!("{name} = {instruction}"));
        name
    }

    /// The address `offset` bytes behind a pointer.
    pub(super) fn offset(&mut self, pointer: &str, offset: i64) -> String {
        if offset == 0 { pointer.to_owned() } else { self.address(pointer, offset) }
    }

    /// The address that a value of 64 bits leads to, in bytes.
    pub(super) fn address(&mut self, pointer: &str, bytes: impl Display) -> String {
        self.value("at", format_args!("getelementptr i8, ptr {pointer}, i64 {bytes}"))
    }

    /// The address of an entry of an array whose entries are `bytes` long.
    pub(super) fn entry(&mut self, pointer: &str, index: &str, bytes: i64) -> String {
        match index.parse::<i64>() {
            Ok(index) => self.offset(pointer, index.wrapping_mul(bytes)),
            Err(_) => {
                let offset = self.times(index, bytes);
                self.address(pointer, offset)
            }
        }
    }

    /// A value times a constant.
    pub(super) fn times(&mut self, value: &str, factor: i64) -> String {
        if factor == 1 { value.to_owned() } else { self.value("by", format_args!("mul i64 {value}, {factor}")) }
    }

    /// Quotient and remainder of a count.
    pub(super) fn divided(&mut self, count: &Count, divisor: u64) -> (Count, Count) {
        match count {
            Count::Known(count) => (Count::Known(count / divisor), Count::Known(count % divisor)),
            Count::Value(count) => (
                Count::Value(self.value("quotient", format_args!("udiv i64 {count}, {divisor}"))),
                Count::Value(self.value("rest", format_args!("urem i64 {count}, {divisor}"))),
            ),
        }
    }

    /// A count less a constant, or 0 if the constant is larger.
    pub(super) fn less(&mut self, count: &Count, number: u64) -> Count {
        match count {
            Count::Known(count) => Count::Known(count.saturating_sub(number)),
            Count::Value(count) => {
                let less = format!("call i64 @llvm.usub.sat.i64(i64 {count}, i64 {number})");
                Count::Value(self.value("less", less))
            }
        }
    }

    /// One count less another that is not larger.
    pub(super) fn difference(&mut self, count: &Count, less: &Count) -> Count {
        match (count, less) {
            (Count::Known(count), Count::Known(less)) => Count::Known(count - less),
            _ => Count::Value(self.value("left", format_args!("sub i64 {count}, {less}"))),
        }
    }

    /// A count times a constant.
    pub(super) fn scaled(&mut self, count: &Count, factor: u64) -> Count {
        match count {
            Count::Known(count) => Count::Known(count.wrapping_mul(factor)),
            Count::Value(count) => Count::Value(self.times(count, factor as i64)),
        }
    }

    /// A loop. The body gets the number of the iteration, from 0 on; one iteration needs no loop.
    pub(super) fn repeat(&mut self, count: &Count, body: impl FnOnce(&mut Function, &str)) {
        match count {
            Count::Known(0) => return,
            Count::Known(1) => return body(self, "0"),
            _ => {}
        }
        self.loops += 1;
        let number = self.loops;
        let before = self.block.clone();
        match count {
            Count::Known(_) => self.line(format_args!("br label %loop{number}")),
            Count::Value(value) => {
                let none = self.value("none", format_args!("icmp eq i64 {value}, 0"));
                self.line(format_args!("br i1 {none}, label %after{number}, label %loop{number}"));
            }
        }
        self.begin_block(format!("loop{number}"));
        let index = format!("%i{number}");
        self.line(format_args!("{index} = phi i64 [ 0, %{before} ], [ %next{number}, %latch{number} ]"));
        body(self, &index);
        self.line(format_args!("br label %latch{number}"));
        self.begin_block(format!("latch{number}"));
        self.line(format_args!("%next{number} = add nuw nsw i64 {index}, 1"));
        self.line(format_args!("%done{number} = icmp eq i64 %next{number}, {count}"));
        self.line(format_args!("br i1 %done{number}, label %after{number}, label %loop{number}"));
        self.begin_block(format!("after{number}"));
    }

    /// One of two bodies.
    pub(super) fn either(
        &mut self,
        condition: &str,
        first: impl FnOnce(&mut Function),
        second: impl FnOnce(&mut Function),
    ) {
        self.loops += 1;
        let number = self.loops;
        self.line(format_args!("br i1 {condition}, label %then{number}, label %else{number}"));
        self.begin_block(format!("then{number}"));
        first(self);
        self.line(format_args!("br label %after{number}"));
        self.begin_block(format!("else{number}"));
        second(self);
        self.line(format_args!("br label %after{number}"));
        self.begin_block(format!("after{number}"));
    }

    pub(super) fn load(&mut self, lanes: Lanes, from: &str) -> String {
        self.value("vector", format_args!("load {lanes}, ptr {from}, align 1"))
    }

    pub(super) fn store(&mut self, lanes: Lanes, vector: &str, to: &str) {
        self.line(format_args!("store {lanes} {vector}, ptr {to}, align 1"));
    }

    /// Some lanes of a vector; zeros are the others.
    pub(super) fn load_masked(&mut self, lanes: Lanes, from: &str, picked: &[bool]) -> String {
        let (suffix, mask) = (lanes.suffix(), mask(picked));
        let call =
            format!("call {lanes} @llvm.masked.load.{suffix}.p0(ptr {from}, i32 1, {mask}, {lanes} zeroinitializer)");
        self.value("vector", call)
    }

    /// Stores some lanes of a vector.
    pub(super) fn store_masked(&mut self, lanes: Lanes, vector: &str, to: &str, picked: &[bool]) {
        let (suffix, mask) = (lanes.suffix(), mask(picked));
        self.line(format_args!("call void @llvm.masked.store.{suffix}.p0({lanes} {vector}, ptr {to}, i32 1, {mask})"));
    }

    /// A vector of words at a vector of addresses.
    pub(super) fn gather(&mut self, lanes: Lanes, addresses: &str) -> String {
        let (Lanes { count, .. }, suffix) = (lanes, lanes.suffix());
        let mask = mask(&vec![true; count as usize]);
        let call = format!(
            "call {lanes} @llvm.masked.gather.{suffix}.v{count}p0(<{count} x ptr> {addresses}, i32 1, {mask}, {lanes} poison)"
        );
        self.value("gathered", call)
    }

    /// Stores the words of a vector at a vector of addresses.
    pub(super) fn scatter(&mut self, lanes: Lanes, words: &str, addresses: &str) {
        let (Lanes { count, .. }, suffix) = (lanes, lanes.suffix());
        let mask = mask(&vec![true; count as usize]);
        self.line(format_args!(
            "call void @llvm.masked.scatter.{suffix}.v{count}p0({lanes} {words}, <{count} x ptr> {addresses}, i32 1, {mask})"
        ));
    }

    /// A call of `memcpy`. LLVM would write out pieces of up to eight vectors.
    pub(super) fn copy(&mut self, to: &str, from: &str, bytes: &str) {
        self.line(format_args!("call ptr @memcpy(ptr {to}, ptr {from}, i64 {bytes}) #1"));
    }

    /// The lanes of two vectors that a list names, those of the second behind those of the first; `None` for any.
    pub(super) fn shuffle(&mut self, lanes: Lanes, vectors: [&str; 2], picked: &[Option<u64>]) -> String {
        let index = |lane: &Option<u64>| match lane {
            Some(lane) => format!("i32 {lane}"),
            None => "i32 poison".to_owned(),
        };
        let picked: Vec<String> = picked.iter().map(index).collect();
        let [first, second] = vectors;
        self.value(
            "shuffled",
            format_args!(
                "shufflevector {lanes} {first}, {lanes} {second}, <{} x i32> <{}>",
                picked.len(),
                picked.join(", ")
            ),
        )
    }
}
