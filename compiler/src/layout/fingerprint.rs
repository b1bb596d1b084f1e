//! Fingerprints: the identity of a byte sequence, computed from any layout that describes it.
//!
//! Let `D_0 .. D_(n-1)` be the displacements of the bytes in packed order. The fingerprint at a point `(x, y)` is the
//! sum of `x^(D_k) * y^k` modulo 2^127 - 1. It composes: a shift by `o` multiplies by `x^o`, a sequence `B` after a
//! sequence `A` contributes `y^|A| * F(B)`, and streams are geometric sums. So it depends only on the sequence, and
//! costs time linear in the nodes and list entries of the layout.

use super::field::{ConstantPowers, DIGIT, FieldSum, Held, LOWEST_DIGIT, Powers, Residue, SignedPowers, on_heap};
use super::{Edge, Layout, Measure, Node, Run};
use std::fmt;

/// A point at which fingerprints are taken.
///
/// The published point ([`Point::published`]) gives the same hashes everywhere. Collisions at a known point can be
/// constructed, so code that relies on an equality confirms it at a second, random point.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::{Layout, Point};
/// let a = Layout::parse("layout lb 0 extent 4 {\n  %0 = dense 1 x i32\n  root %0\n}")?;
/// let b = Layout::parse("layout lb 0 extent 4 {\n  %0 = dense 2 x i16\n  root %0\n}")?;
/// let point = Point::new(0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321);
/// assert_eq!(a.fingerprint(&point), b.fingerprint(&point));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
pub struct Point {
    x: SignedPowers,
    y: Powers,
    /// Values of short runs at offset 0, by their length in bytes.
    short_runs: Held<[RunValue; SHORT_RUN]>,
    /// The inverse of `step - 1` for one byte; zero if there is none.
    by_step: Residue,
}

/// Prints no values, which are secrets of the process.
impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Point").finish_non_exhaustive()
    }
}

/// Runs of fewer bytes than this are looked up in a table.
const SHORT_RUN: usize = 1024;

/// A run of one length at offset 0.
#[derive(Clone, Copy)]
struct RunValue {
    /// Fingerprint of the run.
    sum: Residue,
    /// Factor that shifts by the run's length, in memory and in the packed bytes.
    step: Residue,
}

impl RunValue {
    const NONE: RunValue = RunValue { sum: Residue::ZERO, step: Residue::ONE };
}

/// Values of short runs, by the step of one byte.
const fn fill_runs(runs: &mut [RunValue; SHORT_RUN], step: Residue) {
    let mut bytes = 1;
    while bytes < SHORT_RUN {
        let RunValue { sum, step: steps } = runs[bytes - 1];
        runs[bytes] = RunValue { sum: sum.plus(steps), step: steps.times(step) };
        bytes += 1;
    }
}

/// The coordinates of the published point: the first digits of the square roots of 2 and 3.
const X: Residue = Residue::new(0x6a09_e667_f3bc_c908_b2fb_1366_ea95_7d3e);
const Y: Residue = Residue::new(0x3b67_ae85_84ca_a73b_2574_2d70_78b8_3b89);

/// The tables of the published point. Made by the compiler: a process needed 0.5 ms for them at its first commit.
static X_POWERS: ConstantPowers = ConstantPowers::new(X);
static X_INVERSE_POWERS: ConstantPowers = ConstantPowers::new(X.inverse());
static Y_POWERS: ConstantPowers = ConstantPowers::new(Y);
static RUNS: [RunValue; SHORT_RUN] = {
    let mut runs = [RunValue::NONE; SHORT_RUN];
    fill_runs(&mut runs, X.times(Y));
    runs
};

static PUBLISHED: Point = Point {
    x: SignedPowers::constant(&X_POWERS, &X_INVERSE_POWERS),
    y: Powers::constant(&Y_POWERS),
    short_runs: Held::Constant(&RUNS),
    by_step: X.times(Y).less_one().inverse(),
};

impl Point {
    /// The point with these coordinates modulo 2^127 - 1. The coordinates 0 and 1 are replaced.
    pub fn new(x: u128, y: u128) -> Point {
        let coordinate = |value: u128, instead: u128| {
            let residue = Residue::new(value);
            if residue.value() < 2 { Residue::new(instead) } else { residue }
        };
        let (x, y) = (coordinate(x, 3), coordinate(y, 5));
        let step = x * y;
        let mut short_runs = on_heap(RunValue::NONE);
        fill_runs(&mut short_runs, step);
        let short_runs = Held::Heap(short_runs);
        Point { x: SignedPowers::new(x), y: Powers::new(y), short_runs, by_step: step.less_one().inverse() }
    }

    /// The point of printed hashes, caches and bundles.
    pub fn published() -> &'static Point {
        &PUBLISHED
    }

    #[inline]
    fn run(&self, bytes: u64) -> RunValue {
        match self.short_runs.get(bytes as usize) {
            Some(&known) => known,
            None => self.long_run(bytes),
        }
    }

    #[inline(never)]
    fn long_run(&self, bytes: u64) -> RunValue {
        let step = self.x.of(bytes as i64) * self.y.of(bytes);
        // The closed form of the geometric sum, if the divisor is invertible.
        let divided = step.less_one() * self.by_step;
        let single = self.short_runs[1].step;
        let sum = if single == Residue::ONE { single.geometric_sum(bytes) } else { divided };
        RunValue { sum, step }
    }
}

/// A fingerprint at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

/// The identity of a type: equal for every construction of the same byte sequence with the same extent.
///
/// Printed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeHash([u8; 16]);

impl TypeHash {
    /// The hash as bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The hash that was written as these bytes.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> TypeHash {
        TypeHash(bytes)
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The last power or sum, because lists often repeat their lengths.
struct Last<'a> {
    argument: u64,
    value: Residue,
    compute: &'a dyn Fn(u64) -> Residue,
}

impl<'a> Last<'a> {
    fn new(compute: &'a dyn Fn(u64) -> Residue) -> Last<'a> {
        Last { argument: 0, value: compute(0), compute }
    }

    #[inline]
    fn of(&mut self, argument: u64) -> Residue {
        if argument != self.argument {
            *self = Last { argument, value: (self.compute)(argument), compute: self.compute };
        }
        self.value
    }
}

impl Layout {
    /// The fingerprint of one element at a point.
    pub fn fingerprint(&self, point: &Point) -> Fingerprint {
        let mut values: Vec<Residue> = Vec::with_capacity(self.nodes.len());
        for (node, own) in self.nodes.iter().zip(&self.measures) {
            values.push(value(node, own, point, |edge| values[edge.node.index()], |edge| self.measure(edge.node)));
        }
        let root = point.x.of(self.root.offset) * values[self.root.node.index()];
        Fingerprint(root.value())
    }

    /// The identity of the type: fingerprint at the published point, size and extent.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let once = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// let twice = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 4 x byte\n  %1 = indexed [0 4] of %0\n  root %1\n}")?;
    /// assert_eq!(once.type_hash(), twice.type_hash());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn type_hash(&self) -> TypeHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"dtc type 1");
        hasher.update(&self.fingerprint(Point::published()).0.to_le_bytes());
        hasher.update(&self.size().to_le_bytes());
        hasher.update(&self.extent.to_le_bytes());
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        TypeHash(hash)
    }
}

/// The fingerprint of a node at its origin, from the fingerprints of its children.
fn value<'a>(
    node: &Node,
    own: &Measure,
    point: &Point,
    of: impl Fn(Edge) -> Residue,
    measure: impl Fn(Edge) -> &'a Measure,
) -> Residue {
    let displaced = |edge: Edge| point.x.of(edge.offset) * of(edge);
    let size = |edge: Edge| measure(edge).size;
    match node {
        Node::Dense { count, kind } => point.run(count * kind.size()).sum,
        Node::Stream { count, stride, child } => {
            let step = point.x.of(*stride) * point.y.of(size(*child));
            displaced(*child) * step.geometric_sum(*count)
        }
        Node::Indexed { offsets, child } => {
            let (block, packed) = (measure(*child), point.y.of(size(*child)));
            // Both were measured together, so the difference fits 63 bits.
            let lowest = own.low.wrapping_sub(block.low).wrapping_sub(child.offset);
            let span = own.high.wrapping_sub(own.low).wrapping_sub(block.high.wrapping_sub(block.low)) as u64;
            let (short, x) = (offsets.len() < 4 * BLOCK, point.x.positive());
            let list = match span {
                _ if short => list_value(offsets, packed, point),
                ..NEAR => {
                    point.x.of(lowest)
                        * long_list_value(offsets, lowest, packed, |at| x.lowest(at), |upper| x.second(upper))
                }
                NEAR..MIDDLE => {
                    point.x.of(lowest)
                        * long_list_value(offsets, lowest, packed, |at| x.two_lowest(at), |upper| x.third(upper))
                }
                _ => list_value(offsets, packed, point),
            };
            displaced(*child) * list
        }
        Node::Runs { runs, kind } => runs_value(runs, kind.size(), point),
        Node::Record { parts } => {
            let packed_of = |bytes| point.y.of(bytes);
            let mut packed = Last::new(&packed_of);
            parts.iter().rev().fold(Residue::ZERO, |sum, &part| sum * packed.of(size(part)) + displaced(part))
        }
    }
}

/// The value of blocks of value 1 at listed offsets; `packed` is the factor for the packed bytes of a block.
fn list_value(offsets: &[i64], packed: Residue, point: &Point) -> Residue {
    // Horner's scheme in y, from the last entry to the first. It takes four entries per iteration, so that products do
    // not wait for each other.
    let (square, cube) = (packed * packed, packed * packed * packed);
    let fourth = square * square;
    let power = |offset: i64| point.x.of(offset);
    let groups = offsets.chunks_exact(4);
    let rest = groups.remainder().iter().rev();
    let rest = rest.fold(Residue::ZERO, |sum, &offset| sum * packed + power(offset));
    groups.rev().fold(rest, |sum, group| {
        let (first, second) = (power(group[0]), power(group[1]));
        let (third, last) = (power(group[2]), power(group[3]));
        first + Residue::sum_of_products([(second, packed), (third, square), (last, cube), (sum, fourth)])
    })
}

/// Entries that are summed by the upper digit of their offset, before the sums are multiplied.
const BLOCK: usize = 256;

/// Number of values of that upper digit.
const UPPER_DIGITS: usize = 128;

/// Span of a near list in bytes: every offset is less than this above the lowest.
const NEAR: u64 = (UPPER_DIGITS as u64) << LOWEST_DIGIT;

/// The same for lists whose offsets have three digits.
const MIDDLE: u64 = NEAR << DIGIT;

/// The value of a long list of offsets, relative to the lowest. `lower` tells the power of the lower digits of one and what its
/// upper digit is, `upper` the power of that. It costs a product less for each entry than [`list_value`].
fn long_list_value(
    offsets: &[i64],
    low: i64,
    packed: Residue,
    lower: impl Fn(u64) -> (Residue, u64),
    upper: impl Fn(usize) -> Residue,
) -> Residue {
    let mut powers = [Residue::ONE; BLOCK];
    for at in 1..BLOCK {
        powers[at] = powers[at - 1] * packed;
    }
    let whole = powers[BLOCK - 1] * packed;
    offsets.chunks(BLOCK).rev().fold(Residue::ZERO, |later, block| {
        let mut sums = [FieldSum::ZERO; UPPER_DIGITS];
        for (&offset, &power) in block.iter().zip(&powers) {
            let (power_of_lower, digit) = lower(offset.wrapping_sub(low) as u64);
            sums[digit as usize % UPPER_DIGITS].add_product(power_of_lower, power);
        }
        let used = sums.iter().enumerate().filter(|(_, sum)| !sum.is_zero());
        let mut value = FieldSum::ZERO;
        used.for_each(|(digit, sum)| value.add_product(sum.residue(), upper(digit)));
        later.times_plus(whole, value.residue())
    })
}

/// The value of a list of runs of elements of `size` bytes, computed from the last run to the first. Steps between runs
/// are short even if displacements are long, so their powers come from a table without a product.
fn runs_value(runs: &[Run], size: u64, point: &Point) -> Residue {
    let (mut value, mut next) = (Residue::ZERO, 0i64);
    for run in runs.iter().rev() {
        let bytes = run.count * size;
        let RunValue { sum, step } = point.run(bytes);
        // All bounds are in the span of the list, which fits 63 bits. For the last run, `value` is still zero.
        let gap = next.wrapping_sub(run.offset).wrapping_sub(bytes as i64);
        value = (step * point.x.of(gap)).times_plus(value, sum);
        next = run.offset;
    }
    point.x.of(next) * value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Kind, LayoutBuilder};

    /// The definition, evaluated byte by byte.
    fn direct(layout: &Layout, point: &Point) -> Fingerprint {
        let sum = layout
            .displacements()
            .enumerate()
            .fold(Residue::ZERO, |sum, (k, displacement)| sum + point.x.of(displacement) * point.y.of(k as u64));
        Fingerprint(sum.value())
    }

    #[test]
    fn composition_agrees_with_the_definition() {
        let text = "layout lb 0 extent 64 {
            %0 = dense 3 x i16
            %1 = stream 4 x -16 of 2: %0
            %2 = indexed [5 -7 100] of 3: %1
            %3 = runs [(0 3) (40 1) (-9 3)] x i32
            %4 = record [9: %2, -20: %3, 0: %0, 9: %2]
            %5 = stream 2 x 0 of %4
            root -33: %5
        }";
        let layout = Layout::parse(text).unwrap();
        let point = Point::new(u128::MAX / 7, u128::MAX / 11);
        assert_eq!(layout.fingerprint(&point), direct(&layout, &point));
        assert_eq!(layout.fingerprint(Point::published()), direct(&layout, Point::published()));
    }

    #[test]
    fn lists_of_runs_agree_with_the_definition() {
        let point = Point::new(u128::MAX / 13, u128::MAX / 17);
        let offsets = [0, 5000, -70, 1 << 40, 9000, 9040, -(1 << 35), 40_000, 39_000, 1 << 21, 77, -3];
        for length in 1..=offsets.len() {
            let runs =
                (0..length).map(|at| Run { offset: offsets[at], count: 1 + at as u64 * at as u64 * 9 }).collect();
            let mut builder = LayoutBuilder::new();
            let node = builder.intern(Node::Runs { runs, kind: Kind::I32 }).unwrap();
            let layout = builder.finish(Edge { offset: 24, node }, 0, 0);
            assert_eq!(layout.fingerprint(&point), direct(&layout, &point), "{length}");
        }
    }

    #[test]
    fn long_lists_agree_with_the_definition() {
        let point = Point::new(u128::MAX / 13, u128::MAX / 17);
        for (length, span) in [
            (1023, 4000),
            (1024, 4000),
            (1300, NEAR),
            (1500, NEAR - 1),
            (1100, 1 << 27),
            (1100, MIDDLE),
            (1100, MIDDLE - 1),
            (1100, 1 << 30),
        ] {
            for low in [0, -777, 1 << 40] {
                let mut offsets: Vec<i64> = (0..length).map(|at| low + (at * 7919 * 8 % span) as i64).collect();
                offsets[17] = low;
                offsets[18] = low + span as i64;
                let mut builder = LayoutBuilder::new();
                let child = builder.intern(Node::Dense { count: 3, kind: Kind::I16 }).unwrap();
                let child = Edge { offset: 5, node: child };
                let node = builder.intern(Node::Indexed { offsets: offsets.into(), child }).unwrap();
                let layout = builder.finish(Edge { offset: 24, node }, 0, 0);
                assert_eq!(layout.fingerprint(&point), direct(&layout, &point), "{length} {span} {low}");
            }
        }
    }

    #[test]
    fn steps_of_one_are_no_division_by_zero() {
        // Coordinates that are inverse to each other: 2 and 2^126.
        let point = Point::new(2, 1 << 126);
        let layout = Layout::parse("layout lb 0 extent 3000 {\n %0 = dense 3000 x byte\n root 1: %0\n}").unwrap();
        assert_eq!(layout.fingerprint(&point), direct(&layout, &point));
    }

    #[test]
    fn printed_hashes_never_change() {
        let layout =
            Layout::parse("layout lb 0 extent 6200 {\n %0 = dense 40 x byte\n %1 = stream 12 x 112 of %0\n root %1\n}");
        assert_eq!(layout.unwrap().type_hash().to_string(), "0203a2c50b61e72cacbe1e4ec98775a7");
    }
}
