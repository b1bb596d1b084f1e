//! Sequences too long to enumerate, as expressions that are rewritten by arithmetic on counts.

use super::writer::{Placed, Writer};
use dtc_compiler::datatype::Datatype;
use rand::Rng;
use rand::rngs::SmallRng;

/// The structure of a byte sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Consecutive bytes from 0 on.
    Run(i64),
    /// A number of copies at a stride in bytes.
    Repeat(i64, i64, Box<Expression>),
    /// Expressions in sequence, each at an offset.
    Concat(Vec<(i64, Expression)>),
}

use Expression::{Concat, Repeat, Run};

/// A structured sequence of up to 2^55 bytes, with its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Huge {
    /// The bytes.
    pub expression: Expression,
    /// Lower bound.
    pub lb: i64,
    /// Bytes from one element of an array to the next.
    pub extent: i64,
}

impl Huge {
    /// Draws nests with counts of up to 2^40, some of them concatenated.
    pub fn draw(rng: &mut SmallRng) -> Huge {
        let expression = if rng.random_bool(0.7) {
            draw_nest(rng, 55)
        } else {
            let pieces = rng.random_range(2..4);
            Concat((0..pieces).map(|piece| (piece << 52, draw_nest(rng, 50))).collect())
        };
        Huge { expression, lb: rng.random_range(-99..99), extent: rng.random_range(-(1 << 50)..1 << 50) }
    }

    /// A random datatype with exactly this type map and these bounds.
    pub fn datatype(&self, rng: &mut SmallRng) -> Datatype {
        let mut writer = Writer::new(rng);
        let placed = express(&mut writer, &self.expression, 0);
        writer.finish(placed, self.lb, self.extent)
    }

    /// Another sequence: this one with one number changed.
    pub fn altered(&self, rng: &mut SmallRng) -> Huge {
        let mut altered = self.clone();
        alter(&mut altered.expression, rng);
        altered
    }
}

fn draw_nest(rng: &mut SmallRng, bits: u32) -> Expression {
    let mut expression = Run([1, 3, 4, 8, 12, 20, 4096][rng.random_range(0..7)]);
    // Every copy is disjoint from the next, except if the stride is negative or 0 on purpose.
    let mut span_bits = 13;
    loop {
        let count_bits = rng.random_range(1..=40);
        if span_bits + count_bits + 2 > bits {
            return expression;
        }
        let count = rng.random_range(1i64 << (count_bits - 1)..1 << count_bits) + 1;
        let mut stride = (1i64 << span_bits) + rng.random_range(0..1 << span_bits);
        match rng.random_range(0..8) {
            0 => stride = -stride,
            1 => stride = 0,
            2..=3 => stride = stride / 8 * 8,
            _ => {}
        }
        expression = Repeat(count, stride, Box::new(expression));
        span_bits += count_bits + 2;
    }
}

fn alter(expression: &mut Expression, rng: &mut SmallRng) {
    match expression {
        Run(length) => *length += 1,
        Repeat(count, stride, body) => match rng.random_range(0..3) {
            0 => *count += 1,
            1 => *stride += [1, -1, 8][rng.random_range(0..3)],
            _ => alter(body, rng),
        },
        Concat(pieces) => {
            let at = rng.random_range(0..pieces.len());
            alter(&mut pieces[at].1, rng);
        }
    }
}

const DEEPEST: u32 = 6;

fn express(writer: &mut Writer, expression: &Expression, depth: u32) -> Placed {
    if depth < DEEPEST
        && let Some(rewritten) = rewrite(writer, expression)
    {
        return express(writer, &rewritten, depth + 1);
    }
    match expression {
        Run(length) => writer.run(*length),
        Repeat(count, stride, body) => {
            let child = express(writer, body, depth + 1);
            writer.repeat(child, *count, *stride)
        }
        Concat(pieces) => {
            let pieces: Vec<Placed> =
                pieces.iter().map(|(offset, piece)| express(writer, piece, depth + 1).moved(*offset)).collect();
            writer.concatenation(&pieces)
        }
    }
}

/// The same sequence in another form.
fn rewrite(writer: &mut Writer, expression: &Expression) -> Option<Expression> {
    match expression {
        Run(length) if *length > 1 && writer.one_in(4) => {
            let first = writer.rng.random_range(1..*length);
            Some(Concat(vec![(0, Run(first)), (first, Run(length - first))]))
        }
        Repeat(count, stride, body) => match writer.rng.random_range(0..8) {
            0 => {
                let (outer, inner) = writer.factors(*count)?;
                Some(Repeat(outer, inner * stride, Box::new(Repeat(inner, *stride, body.clone()))))
            }
            1 => {
                let first = writer.rng.random_range(1..*count);
                let head = copies(first, *stride, body);
                let tail = copies(count - first, *stride, body);
                Some(Concat(vec![(0, head), (first * stride, tail)]))
            }
            2 => Some(rotated(*count, *stride, body)),
            3 => {
                // The body is cut first, so that the next rewrite can rotate it.
                let body = rewrite(writer, body)?;
                Some(Repeat(*count, *stride, Box::new(body)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn copies(count: i64, stride: i64, body: &Expression) -> Expression {
    if count == 1 { body.clone() } else { Repeat(count, stride, Box::new(body.clone())) }
}

/// n copies of A B as A, then n - 1 copies of B A', then B: the same bytes in another phase.
fn rotated(count: i64, stride: i64, body: &Expression) -> Expression {
    let split = match body {
        Concat(pieces) if pieces.len() > 1 => {
            let (first, rest) = pieces.split_first().expect("there are two pieces");
            Some((first.clone(), (0, Concat(rest.to_vec()))))
        }
        Run(length) if *length > 1 => Some(((0, Run(1)), (1, Run(length - 1)))),
        Repeat(inner, inner_stride, innermost) if *inner > 1 => {
            let rest = copies(inner - 1, *inner_stride, innermost);
            Some(((0, (**innermost).clone()), (*inner_stride, rest)))
        }
        _ => None,
    };
    let Some(((at_a, a), (at_b, b))) = split else { return copies(count, stride, body) };
    let middle = Concat(vec![(at_b, b.clone()), (at_a + stride, a.clone())]);
    Concat(vec![(at_a, a), (0, copies(count - 1, stride, &middle)), (at_b + (count - 1) * stride, b)])
}
