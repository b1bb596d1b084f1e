//! What is read.

use crate::datatype::Datatype;

/// A description read from JSON: the datatype, and what the file says about its use.
#[derive(Clone, Debug)]
pub struct Description<T = Datatype> {
    /// The type.
    pub datatype: T,
    /// What the exchange is for.
    pub story: Option<String>,
    /// Where the type comes from.
    pub source: Option<String>,
    /// Elements of one transfer; 1 unless the file says otherwise.
    pub count: u64,
    /// Where in its buffer the transfer starts; 0 unless the file says otherwise.
    pub origin_bytes: u64,
    /// Bytes of a buffer that holds the transfer.
    pub buffer_bytes: Option<u64>,
}
