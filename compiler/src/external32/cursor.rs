//! Cursors over the values of a call.

use super::{Bytes, Conversion, ConversionRun, External32, ValueNode, ValuePart};

/// A position among the values of a count of elements. It keeps the enclosing nodes, so that a step costs only the
/// nodes that change. Seeking takes O(depth) steps, with a binary search in each struct.
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_compiler::external32::{Conversion, External32, ConversionRun};
/// let mut types = TypeBuilder::new();
/// let pair = types.named(Predefined::SHORT_INT);
/// let external = External32::new(&types.finish(pair)?);
/// let (mut cursor, _) = external.cursor(2, 0);
/// cursor.advance(1);
/// assert_eq!((cursor.run(), cursor.packed()), (ConversionRun { conversion: Conversion::Big32, values: 1 }, 2));
/// cursor.advance(1);
/// assert_eq!((cursor.run(), cursor.packed()), (ConversionRun { conversion: Conversion::Big16, values: 1 }, 6));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    external: &'a External32,
    /// The nodes around the run, each with its next copy or part.
    stack: Vec<(usize, u64)>,
    /// Elements of the type after the current one.
    elements: u64,
    run: ConversionRun,
    packed: u64,
}

impl External32 {
    /// The value that contains byte `position` of `count` elements in `external32`, and the number of its bytes before
    /// that position. Behind the last byte, the cursor has an empty run. `count` times the size of the type must fit 63
    /// bits.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::external32::External32;
    /// let mut types = TypeBuilder::new();
    /// let long = types.named(Predefined::LONG);
    /// let external = External32::new(&types.finish(long)?);
    /// let (cursor, skipped) = external.cursor(10, 15);
    /// assert_eq!((cursor.packed(), cursor.run().values, skipped), (24, 7, 3));
    /// assert_eq!(external.cursor(10, 40).0.run().values, 0);
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub fn cursor(&self, count: u64, position: u64) -> (Cursor<'_>, u64) {
        let run = ConversionRun { conversion: Conversion::Bytes, values: 0 };
        let mut cursor = Cursor { external: self, stack: Vec::new(), elements: 0, run, packed: 0 };
        let skipped = match self.root {
            None => 0,
            Some(ValuePart::ConversionRun(run)) => {
                cursor.enter(ValuePart::ConversionRun(ConversionRun { values: run.values * count, ..run }), position)
            }
            Some(root) => {
                let element = (position / self.size.external).min(count);
                cursor.packed = element * self.size.packed;
                if element < count {
                    cursor.elements = count - element - 1;
                    cursor.enter(root, position % self.size.external)
                } else {
                    0
                }
            }
        };
        (cursor, skipped)
    }
}

/// Equal records, each of a few runs.
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_compiler::external32::External32;
/// let mut types = TypeBuilder::new();
/// let pair = types.named(Predefined::DOUBLE_INT);
/// let pairs = types.contiguous(5, pair)?;
/// let external = External32::new(&types.finish(pairs)?);
/// let (cursor, _) = external.cursor(1, 12);
/// let records = cursor.records().unwrap();
/// assert_eq!((records.count, records.runs.len(), records.size.packed), (4, 2, 12));
/// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EqualRecords<'a> {
    /// Number of records.
    pub count: u64,
    /// The runs of each record, with their begins relative to the record.
    pub runs: &'a [(Bytes, ConversionRun)],
    /// Size of each record.
    pub size: Bytes,
}

impl<'a> Cursor<'a> {
    /// The remaining values of the current run; empty at the end.
    pub fn run(&self) -> ConversionRun {
        self.run
    }

    /// Position of the next value in the packed bytes.
    pub fn packed(&self) -> u64 {
        self.packed
    }

    /// Moves past `values` values of the run, which must have as many.
    pub fn advance(&mut self, values: u64) {
        self.run.values -= values;
        self.packed += values * self.run.conversion.packed_size();
        if self.run.values == 0 {
            self.next_run();
        }
    }

    /// The equal records from here on, if a record begins here.
    pub fn records(&self) -> Option<EqualRecords<'a>> {
        let &(node, 1) = self.stack.last()? else { return None };
        let ValueNode::Record { runs, size } = &self.external.nodes[node] else { return None };
        if runs[0].1 != self.run {
            return None;
        }
        let count = match self.stack.len().checked_sub(2).map(|at| self.stack[at]) {
            None => self.elements + 1,
            Some((around, next)) => match self.external.nodes[around] {
                ValueNode::Repeat { count, .. } => count - next + 1,
                _ => 1,
            },
        };
        Some(EqualRecords { count, runs, size: *size })
    }

    /// Moves past `records` of the [`records`](Cursor::records), at least one.
    pub fn advance_records(&mut self, records: u64, size: Bytes) {
        self.packed += records * size.packed;
        self.run.values = 0;
        self.stack.pop();
        match self.stack.last_mut() {
            None => self.elements -= records - 1,
            Some((_, next)) => *next += records - 1,
        }
        self.next_run();
    }

    fn next_run(&mut self) {
        while let Some((node, next)) = self.stack.last_mut() {
            let part = match &self.external.nodes[*node] {
                ValueNode::Repeat { count, child, .. } if *next < *count => *child,
                ValueNode::Sequence { parts, .. } if *next < parts.len() as u64 => parts[*next as usize].1,
                ValueNode::Record { runs, .. } if *next < runs.len() as u64 => {
                    ValuePart::ConversionRun(runs[*next as usize].1)
                }
                _ => {
                    self.stack.pop();
                    continue;
                }
            };
            *next += 1;
            self.enter(part, 0);
            return;
        }
        if let Some(root) = self.external.root
            && self.elements > 0
        {
            self.elements -= 1;
            self.enter(root, 0);
        }
    }

    /// Moves to byte `rest` of a part that begins here; returns the number of bytes of its value before it.
    fn enter(&mut self, mut part: ValuePart, mut rest: u64) -> u64 {
        loop {
            let at = match part {
                ValuePart::ConversionRun(ConversionRun { conversion, values }) => {
                    let before = rest / conversion.external_size();
                    self.run = ConversionRun { conversion, values: values - before };
                    self.packed += before * conversion.packed_size();
                    return rest % conversion.external_size();
                }
                ValuePart::Node(at) => at,
            };
            let (index, before, child) = match &self.external.nodes[at] {
                ValueNode::Repeat { child, .. } if rest == 0 => (0, Bytes::default(), *child),
                ValueNode::Repeat { each, child, .. } => {
                    let copy = rest / each.external;
                    (copy, each.times(copy), *child)
                }
                ValueNode::Sequence { parts, .. } => {
                    let index = parts.partition_point(|(start, _)| start.external <= rest) - 1;
                    let (start, child) = parts[index];
                    (index as u64, start, child)
                }
                ValueNode::Record { runs, .. } => {
                    let index = runs.partition_point(|(start, _)| start.external <= rest) - 1;
                    let (start, run) = runs[index];
                    (index as u64, start, ValuePart::ConversionRun(run))
                }
            };
            self.stack.push((at, index + 1));
            self.packed += before.packed;
            rest -= before.external;
            part = child;
        }
    }
}
