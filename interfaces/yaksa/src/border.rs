//! Where a pack must stop: basic elements are not cut.

use crate::types::{Form, Type};

impl Type {
    /// A packed position of an array of the type, rounded down to the border of a basic element. A pair and a complex
    /// number are one element. O(depth), and O(log n) for a struct of n parts.
    pub(crate) fn border(&self, position: u64) -> u64 {
        let mut inside = self;
        let mut rest = position;
        loop {
            let shape = &inside.shape;
            if shape.size == 0 {
                return position;
            }
            if shape.unit > 0 {
                // Elements of one size fill every whole number of copies.
                return position - rest % shape.unit;
            }
            rest %= shape.size;
            inside = match &inside.form {
                Form::Builtin(_) => return position - rest,
                Form::Strided { child, .. }
                | Form::Blocks { child, .. }
                | Form::Listed { child, .. }
                | Form::Resized { child }
                | Form::Dup { child } => child,
                Form::Struct { parts } => {
                    // The first starts at 0, so there is one that is not beyond.
                    let part = &parts[parts.partition_point(|part| part.start <= rest).saturating_sub(1)];
                    rest -= part.start;
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
    fn elements_of_differing_sizes_are_whole() {
        // SAFETY: handles of builtins.
        let [short, double, pair]: [Shared; 3] = [16, 46, 55].map(|handle| unsafe { Shared::from_handle(handle) });
        let mixed = structure(&[3, 0, 2], &[0, 8, 8], [short, pair.clone(), double]).unwrap();
        let two = contiguous(2, mixed).unwrap();
        let borders: Vec<u64> = (0..=22).map(|position| two.border(position)).collect();
        let expected = [0, 0, 2, 2, 4, 4, 6, 6, 6, 6, 6, 6, 6, 6, 14, 14, 14, 14, 14, 14, 14, 14, 22];
        assert_eq!(borders, expected);
        assert_eq!((pair.border(5), pair.border(6), pair.border(13)), (0, 6, 12));
    }
}
