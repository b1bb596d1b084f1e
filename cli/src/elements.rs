//! Which elements of NumPy arrays are those of a type.

use crate::npy::Element;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::{Kind, Node};
use dtc_compiler::lower;

/// The elements of a type, for comparison with those of arrays.
pub struct Elements {
    /// Their kinds, each once. Bytes that mean nothing in particular (`MPI_BYTE`) are not among them.
    kinds: Vec<Kind>,
    /// Whether such bytes are beside them.
    bytes: bool,
}

/// What a refusal says: expected and found.
pub type Refusal = (String, String);

impl Elements {
    /// The elements of a type.
    pub fn of(datatype: &Datatype) -> Elements {
        let mut elements = Elements { kinds: Vec::new(), bytes: false };
        for (_, node) in lower(datatype).nodes() {
            match *node {
                Node::Dense { kind: Kind::Byte, .. } | Node::Runs { kind: Kind::Byte, .. } => elements.bytes = true,
                Node::Dense { kind, .. } | Node::Runs { kind, .. } if !elements.kinds.contains(&kind) => {
                    elements.kinds.push(kind);
                }
                _ => {}
            }
        }
        elements
    }

    /// Why an array in which elements of the type are does not have them; `None` if it does. An array of records may have more
    /// fields than the type uses, and opaque bytes (`V`) may be anything.
    pub fn refuse(&self, array: &Element) -> Option<Refusal> {
        let lacking = self.kinds.iter().find(|&kind| !array.kinds.contains(kind) && !array.opaque)?;
        let place = if array.structured { "a field" } else { "elements" };
        let text = match (code(*lacking), array.structured) {
            (Some(code), _) => format!("{place} of type '{code}', as the type has"),
            (None, _) => format!("{place} of {} opaque bytes, for the {lacking} that the type has", lacking.size()),
        };
        Some((text, array.text.clone()))
    }

    /// The same of an array of packed bytes, which may also be just bytes: that is what `dtc pack` writes where one type of
    /// elements does not fit.
    pub fn refuse_packed(&self, array: &Element) -> Option<Refusal> {
        let bytes = !array.structured && array.kinds.contains(&Kind::U8);
        if bytes { None } else { self.refuse(array) }
    }

    /// The type string of an array of these packed bytes, and how many elements it has. Bytes, where the type has elements of
    /// several kinds, or where a piece cuts one.
    pub fn packed_array(&self, offset: u64, bytes: u64) -> (&'static str, u64) {
        if let ([kind], false) = (self.kinds.as_slice(), self.bytes)
            && let Some(code) = code(*kind)
            && offset.is_multiple_of(kind.size())
            && bytes.is_multiple_of(kind.size())
        {
            return (code, bytes / kind.size());
        }
        (BYTES, bytes)
    }
}

/// The type string of bytes.
pub const BYTES: &str = "|u1";

/// NumPy's type string for a kind in the byte order of this machine, if it has one. Logicals of Fortran are integers there.
fn code(kind: Kind) -> Option<&'static str> {
    macro_rules! native {
        ($code:literal) => {
            if cfg!(target_endian = "little") { concat!("<", $code) } else { concat!(">", $code) }
        };
    }
    Some(match kind {
        Kind::Char => "|S1",
        Kind::I8 => "|i1",
        Kind::Byte | Kind::U8 => BYTES,
        Kind::B8 => "|b1",
        Kind::I16 | Kind::B16 => native!("i2"),
        Kind::I32 | Kind::B32 => native!("i4"),
        Kind::I64 | Kind::B64 => native!("i8"),
        Kind::U16 => native!("u2"),
        Kind::U32 => native!("u4"),
        Kind::U64 => native!("u8"),
        Kind::F16 => native!("f2"),
        Kind::F32 => native!("f4"),
        Kind::F64 => native!("f8"),
        Kind::F80 | Kind::F128 => native!("f16"),
        Kind::C64 => native!("c8"),
        Kind::C128 => native!("c16"),
        Kind::C160 | Kind::C256 => native!("c32"),
        Kind::I128 | Kind::C32 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::Array;
    use dtc_compiler::datatype::text;

    fn refused(datatype: &str, descr: &str) -> Option<Refusal> {
        let datatype = text::parse(datatype).unwrap();
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (0,), }}");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        Elements::of(&datatype).refuse(&Array::read(&file).unwrap().element)
    }

    #[test]
    fn every_written_code_is_read_as_its_kind() {
        for &kind in Kind::ALL {
            let elements = Elements { kinds: vec![kind], bytes: false };
            let (descr, count) = elements.packed_array(0, 64);
            assert!(count == 64 / kind.size() || descr == BYTES);
            let mut file = crate::npy::header(descr, count);
            file.resize(file.len() + 64, 0);
            let array = Array::read(&file).unwrap();
            assert_eq!(array.data.len(), 64);
            assert_eq!(elements.refuse_packed(&array.element), None, "{kind}");
            assert_eq!(elements.packed_array(1, 64).0 == BYTES, kind.size() > 1 || descr == BYTES, "{kind}");
        }
    }

    #[test]
    fn elements_and_byte_orders_are_compared() {
        let (here, there) = if cfg!(target_endian = "little") { ('<', '>') } else { ('>', '<') };
        for (datatype, descr) in [
            ("double", format!("'{here}f8'")),
            ("double", "'=f8'".to_owned()),
            ("vector 3 1 2 int", format!("'{here}i4'")),
            ("byte", format!("'{there}f8'")),
            ("double", "'|V8'".to_owned()),
            ("char", "'|S10'".to_owned()),
            ("contiguous 0 double", format!("'{here}i4'")),
            ("double", format!("[('a', '{here}i4'), ('', '|V4'), ('b', '{here}f8', (3,))]")),
        ] {
            assert_eq!(refused(datatype, &descr), None, "{datatype} in {descr}");
        }
        for (datatype, descr) in [
            ("double", format!("'{there}f8'")),
            ("double", format!("'{here}i8'")),
            ("double", format!("'{here}f4'")),
            ("int", format!("'{here}u4'")),
            ("int", "'|u1'".to_owned()),
            ("float", format!("[('a', '{here}i4'), ('', '|V4'), ('b', '{here}f8')]")),
            ("float", format!("[('a', '{there}f4')]")),
        ] {
            assert!(refused(datatype, &descr).is_some(), "{datatype} in {descr}");
        }
        let (expected, found) = refused("double", &format!("'{there}f8'")).unwrap();
        assert_eq!(expected, format!("elements of type '{here}f8', as the type has"));
        assert_eq!(found, format!("'{there}f8'"));
    }
}
