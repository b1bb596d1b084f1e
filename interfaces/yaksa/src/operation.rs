//! The operations of packs and unpacks, by their numbers, and where the basic elements that they compute with lie.

use crate::builtin::Builtin;
use crate::status::Status;
use crate::types::{Form, Type};
use dtc_compiler::operation::Operation;

/// The operation with this number.
#[inline]
pub(crate) fn of_number(number: u64) -> Result<Operation, Status> {
    Ok(match number {
        0 => Operation::Max,
        1 => Operation::Min,
        2 => Operation::Sum,
        3 => Operation::Product,
        4 => Operation::LogicalAnd,
        5 => Operation::BitwiseAnd,
        6 => Operation::LogicalOr,
        7 => Operation::BitwiseOr,
        8 => Operation::LogicalXor,
        9 => Operation::BitwiseXor,
        10 => Operation::Replace,
        _ => return Err(Status::NotSupported),
    })
}

impl Type {
    /// The basic elements from a packed position of an array of the type on, which is a border of one: their type, and how many
    /// packed bytes they have, one after the other. The parts of a pair are elements of their own. O(depth), and O(log n) for a
    /// struct of n parts.
    pub(crate) fn stretch(&self, position: u64) -> (Builtin, u64) {
        let mut inside = self;
        let mut rest = position;
        let mut length = u64::MAX;
        loop {
            let shape = &inside.shape;
            if shape.size == 0 {
                return (Builtin::NULL, length);
            }
            if let Some(basic) = shape.basic {
                let Some([value, index]) = basic.pair() else { return (basic, length) };
                let (within, first) = (rest % basic.shape().size, value.shape().size);
                return if within < first { (value, first - within) } else { (index, basic.shape().size - within) };
            }
            rest %= shape.size;
            inside = match &inside.form {
                Form::Builtin(builtin) => return (*builtin, length),
                Form::Strided { child, .. }
                | Form::Blocks { child, .. }
                | Form::Listed { child, .. }
                | Form::Resized { child }
                | Form::Dup { child } => child,
                Form::Struct { parts } => {
                    let part = &parts[parts.partition_point(|part| part.start <= rest).saturating_sub(1)];
                    rest -= part.start;
                    // The sizes of all parts together fit 64 bits.
                    length = (part.blocklength as u64).wrapping_mul(part.child.shape.size).wrapping_sub(rest);
                    &part.child
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::construct::{contiguous, structure};
    use crate::types::Shared;

    #[test]
    fn stretches_of_a_struct() {
        // SAFETY: handles of builtins.
        let [short, double, pair] = [16, 46, 55].map(|handle| unsafe { Shared::from_handle(handle) });
        let inner = structure(&[2, 1], &[0, 8], [short.clone(), pair]).unwrap();
        let outer = structure(&[3, 2], &[0, 32], [double, inner]).unwrap();
        let all = contiguous(2, outer).unwrap();
        let (mut position, mut stretches) = (0, vec![]);
        while position < 2 * all.shape.size {
            let (builtin, bytes) = all.stretch(position);
            stretches.push((builtin.handle(), bytes));
            position += bytes;
        }
        let inner = [(16, 4), (7, 2), (8, 4)];
        let outer: Vec<_> = [(46, 24)].into_iter().chain(inner).chain(inner).collect();
        assert_eq!(stretches, outer.repeat(4));
        assert_eq!(short.stretch(6).1, u64::MAX);
    }
}
