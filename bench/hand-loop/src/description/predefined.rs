//! Predefined types as C sees them.

/// A number in a description, a size, a displacement: all are 64 bits wide.
pub type Bytes = i64;

/// A basic element as C sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The C type of one element.
    pub c_type: &'static str,
    /// Its size, which on the machines we measure is also its alignment.
    pub bytes: Bytes,
    /// Whether an assignment moves every byte. It does not for `long double`, whose padding an assignment may drop.
    pub by_value: bool,
}

/// The parts of a predefined type: displacement, element, number of elements.
pub fn predefined(name: &str) -> Option<Vec<(Bytes, Element, i64)>> {
    const fn element(c_type: &'static str, bytes: Bytes) -> Element {
        Element { c_type, bytes, by_value: true }
    }
    const BYTE: Element = element("char", 1);
    const SHORT: Element = element("short", 2);
    const INT: Element = element("int", 4);
    const LONG: Element = element("long", 8);
    const FLOAT: Element = element("float", 4);
    const DOUBLE: Element = element("double", 8);
    const LONG_DOUBLE: Element = Element { c_type: "long double", bytes: 16, by_value: false };
    let one = |element| Some(vec![(0, element, 1)]);
    let two = |element| Some(vec![(0, element, 2)]);
    let pair = |first, displacement| Some(vec![(0, first, 1), (displacement, INT, 1)]);
    match name.strip_prefix("MPI_")? {
        "BYTE" | "CHAR" | "SIGNED_CHAR" | "UNSIGNED_CHAR" | "INT8_T" | "UINT8_T" | "PACKED" | "C_BOOL" | "CXX_BOOL"
        | "CHARACTER" | "INTEGER1" | "LOGICAL1" => one(BYTE),
        "SHORT" | "UNSIGNED_SHORT" | "INT16_T" | "UINT16_T" | "INTEGER2" | "LOGICAL2" => one(SHORT),
        "INT" | "UNSIGNED" | "INT32_T" | "UINT32_T" | "WCHAR" | "INTEGER" | "INTEGER4" | "LOGICAL" | "LOGICAL4" => {
            one(INT)
        }
        "LONG" | "UNSIGNED_LONG" | "LONG_LONG" | "LONG_LONG_INT" | "UNSIGNED_LONG_LONG" | "INT64_T" | "UINT64_T"
        | "AINT" | "COUNT" | "OFFSET" | "INTEGER8" | "LOGICAL8" => one(LONG),
        "FLOAT" | "REAL" | "REAL4" => one(FLOAT),
        "DOUBLE" | "DOUBLE_PRECISION" | "REAL8" => one(DOUBLE),
        "LONG_DOUBLE" => one(LONG_DOUBLE),
        // Complex numbers are two components: that is how C code without complex.h copies them.
        "C_COMPLEX" | "C_FLOAT_COMPLEX" | "CXX_FLOAT_COMPLEX" | "COMPLEX" | "COMPLEX8" | "2REAL" => two(FLOAT),
        "C_DOUBLE_COMPLEX" | "CXX_DOUBLE_COMPLEX" | "DOUBLE_COMPLEX" | "COMPLEX16" | "2DOUBLE_PRECISION" => two(DOUBLE),
        "C_LONG_DOUBLE_COMPLEX" | "CXX_LONG_DOUBLE_COMPLEX" => two(LONG_DOUBLE),
        "2INT" | "2INTEGER" => two(INT),
        "FLOAT_INT" => pair(FLOAT, 4),
        "DOUBLE_INT" => pair(DOUBLE, 8),
        "LONG_INT" => pair(LONG, 8),
        "SHORT_INT" => pair(SHORT, 4),
        "LONG_DOUBLE_INT" => pair(LONG_DOUBLE, 16),
        _ => None,
    }
}
