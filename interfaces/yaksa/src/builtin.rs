//! The builtin types: their handles, and what each is to the compiler.

use dtc_compiler::datatype::Predefined;
use dtc_compiler::layout::Kind;
use dtc_compiler::operation::Element;
use once_cell::race::OnceBox;

/// A builtin type, by the number of its handle. 0 is the type without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Builtin(u8);

/// How many there are.
pub(crate) const BUILTINS: usize = 57;

/// In the order of their handles. The sizes are those of the 64-bit Linux ABIs, where the fast types of 16 and 32 bits
/// have 64.
const MEANINGS: [Option<Predefined>; BUILTINS] = {
    const SOME: [Predefined; BUILTINS - 1] = [
        // Booleans, characters.
        Predefined::C_BOOL,
        Predefined::CHAR,
        Predefined::SIGNED_CHAR,
        Predefined::UNSIGNED_CHAR,
        Predefined::WCHAR,
        // int8_t to uint64_t.
        Predefined::INT8_T,
        Predefined::INT16_T,
        Predefined::INT32_T,
        Predefined::INT64_T,
        Predefined::UINT8_T,
        Predefined::UINT16_T,
        Predefined::UINT32_T,
        Predefined::UINT64_T,
        // int to unsigned long long.
        Predefined::INT,
        Predefined::UNSIGNED,
        Predefined::SHORT,
        Predefined::UNSIGNED_SHORT,
        Predefined::LONG,
        Predefined::UNSIGNED_LONG,
        Predefined::LONG_LONG,
        Predefined::UNSIGNED_LONG_LONG,
        // int_fast8_t to uint_fast64_t.
        Predefined::INT8_T,
        Predefined::INT64_T,
        Predefined::INT64_T,
        Predefined::INT64_T,
        Predefined::UINT8_T,
        Predefined::UINT64_T,
        Predefined::UINT64_T,
        Predefined::UINT64_T,
        // int_least8_t to uint_least64_t.
        Predefined::INT8_T,
        Predefined::INT16_T,
        Predefined::INT32_T,
        Predefined::INT64_T,
        Predefined::UINT8_T,
        Predefined::UINT16_T,
        Predefined::UINT32_T,
        Predefined::UINT64_T,
        // A byte, intmax_t, uintmax_t, size_t, intptr_t, uintptr_t, ptrdiff_t.
        Predefined::BYTE,
        Predefined::INT64_T,
        Predefined::UINT64_T,
        Predefined::UINT64_T,
        Predefined::INT64_T,
        Predefined::UINT64_T,
        Predefined::INT64_T,
        // Floating point, complex.
        Predefined::FLOAT,
        Predefined::DOUBLE,
        Predefined::LONG_DOUBLE,
        Predefined::C_COMPLEX,
        Predefined::C_DOUBLE_COMPLEX,
        Predefined::C_LONG_DOUBLE_COMPLEX,
        // Pairs.
        Predefined::FLOAT_INT,
        Predefined::DOUBLE_INT,
        Predefined::LONG_INT,
        Predefined::TWO_INT,
        Predefined::SHORT_INT,
        Predefined::LONG_DOUBLE_INT,
    ];
    let mut meanings = [None; BUILTINS];
    let mut at = 1;
    while at < BUILTINS {
        meanings[at] = Some(SOME[at - 1]);
        at += 1;
    }
    meanings
};

/// What operations compute with.
fn elements() -> &'static [Option<Element>; BUILTINS] {
    static ELEMENTS: OnceBox<[Option<Element>; BUILTINS]> = OnceBox::new();
    ELEMENTS.get_or_init(|| Box::new(MEANINGS.map(|meaning| meaning.and_then(Element::of))))
}

impl Builtin {
    /// The type without bytes.
    pub(crate) const NULL: Builtin = Builtin(0);

    /// The builtin with this handle.
    pub(crate) fn of_handle(handle: u64) -> Option<Builtin> {
        (handle < BUILTINS as u64).then_some(Builtin(handle as u8))
    }

    /// All of them, in the order of their handles.
    pub(crate) fn all() -> impl Iterator<Item = Builtin> {
        (0..BUILTINS as u8).map(Builtin)
    }

    /// The handle.
    pub(crate) fn handle(self) -> u64 {
        u64::from(self.0)
    }

    /// What it is to the compiler; nothing for the type without bytes.
    pub(crate) fn predefined(self) -> Option<Predefined> {
        MEANINGS[self.0 as usize]
    }

    /// What operations compute with; nothing for a type that none is defined for.
    pub(crate) fn element(self) -> Option<Element> {
        elements()[self.0 as usize]
    }

    /// The two parts of a pair.
    pub(crate) fn pair(self) -> Option<[Builtin; 2]> {
        let part = |kind| {
            Some(Builtin(match kind {
                Kind::I16 => 7,
                Kind::I32 => 8,
                Kind::I64 => 9,
                Kind::F32 => 45,
                Kind::F64 => 46,
                Kind::F80 => 47,
                _ => return None,
            }))
        };
        match self.predefined()?.fields() {
            [value, index] => Some([part(value.kind)?, part(index.kind)?]),
            _ => None,
        }
    }

    /// Whether two builtins are one to the rules for the bounds of structs: integers of one size are, whatever their sign,
    /// and so are characters. (Plain `char` is not `int8_t`.)
    pub(crate) fn is_same(self, other: Builtin) -> bool {
        let family = |builtin: Builtin| match builtin.0 {
            2..=4 => 0,
            6..=44 => 1,
            alone => u64::from(alone) + 2,
        };
        let size = |builtin: Builtin| builtin.predefined().map_or(0, Predefined::size);
        family(self) == family(other) && size(self) == size(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_those_of_the_interface() {
        let of = |handle| Builtin::of_handle(handle).and_then(Builtin::predefined).map(Predefined::name);
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some("MPI_C_BOOL"));
        assert_eq!(of(14), Some("MPI_INT"));
        assert_eq!(of(23), Some("MPI_INT64_T"));
        assert_eq!(of(38), Some("MPI_BYTE"));
        assert_eq!(of(46), Some("MPI_DOUBLE"));
        assert_eq!(of(56), Some("MPI_LONG_DOUBLE_INT"));
        assert_eq!(Builtin::of_handle(57), None);
    }

    #[test]
    fn pairs_have_two_parts() {
        for handle in 0..BUILTINS as u64 {
            let builtin = Builtin::of_handle(handle).unwrap();
            let parts = builtin.pair();
            assert_eq!(parts.is_some(), (51..=56).contains(&handle));
            if let Some(parts) = parts {
                assert_eq!(parts.map(|part| part.shape().size).iter().sum::<u64>(), builtin.shape().size);
            }
        }
    }

    #[test]
    fn pairs_have_their_padding() {
        let of = |handle| Builtin::of_handle(handle).unwrap().shape();
        assert_eq!((of(55).size, of(55).extent(), of(55).true_ub, of(55).segments), (6, 8, 8, 2));
        assert_eq!((of(52).size, of(52).extent(), of(52).true_ub, of(52).segments), (12, 16, 12, 1));
        assert_eq!((of(54).size, of(54).extent(), of(54).segments), (8, 8, 1));
        assert!(!of(52).is_contiguous() && of(54).is_contiguous());
    }
}
