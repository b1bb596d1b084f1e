//! Envelopes of messages, and patterns of receives.

use thiserror::Error;

/// The largest source, tag and communicator: the upper bound of an `int`, which tags have in MPI at most.
pub const LARGEST: u32 = i32::MAX as u32;

/// What stands for any source or tag in [`Pattern::bits`].
const ANY: u32 = LARGEST + 1;

/// A number that is out of range.
///
/// ```
/// use dtc_matching::Envelope;
/// let error = Envelope::new(1, u32::MAX, 0).unwrap_err();
/// assert_eq!(error.to_string(), "tag: expected 0 to 2147483647, found 4294967295");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field}: expected 0 to {LARGEST}, found {found}")]
pub struct EnvelopeError {
    /// Which number.
    pub field: &'static str,
    /// Its value.
    pub found: u32,
}

fn in_range(field: &'static str, value: u32) -> Result<u32, EnvelopeError> {
    if value <= LARGEST { Ok(value) } else { Err(EnvelopeError { field, found: value }) }
}

/// What a message is matched by: its source, tag and communicator (MPI 4.1, section 3.2.3).
///
/// ```
/// let envelope = dtc_matching::Envelope::new(3, 7, 0)?;
/// assert_eq!((envelope.source(), envelope.tag(), envelope.communicator()), (3, 7, 0));
/// # Ok::<(), dtc_matching::EnvelopeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    pub(crate) source: u32,
    pub(crate) tag: u32,
    pub(crate) communicator: u32,
}

impl Envelope {
    /// The envelope of a message.
    ///
    /// # Errors
    ///
    /// A number is above [`LARGEST`].
    ///
    /// ```
    /// assert!(dtc_matching::Envelope::new(1 << 31, 0, 0).is_err());
    /// ```
    pub fn new(source: u32, tag: u32, communicator: u32) -> Result<Envelope, EnvelopeError> {
        Ok(Envelope {
            source: in_range("source", source)?,
            tag: in_range("tag", tag)?,
            communicator: in_range("communicator", communicator)?,
        })
    }

    /// The rank of the sender.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Envelope::new(3, 7, 0)?.source(), 3);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn source(self) -> u32 {
        self.source
    }

    /// The tag.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Envelope::new(3, 7, 0)?.tag(), 7);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn tag(self) -> u32 {
        self.tag
    }

    /// The envelope as kernels have it: the source above, the tag below. Queues belong to one communicator.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Envelope::new(3, 7, 0)?.bits(), 3 << 32 | 7);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn bits(self) -> u64 {
        u64::from(self.source) << 32 | u64::from(self.tag)
    }

    /// The number of the communicator.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Envelope::new(3, 7, 2)?.communicator(), 2);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn communicator(self) -> u32 {
        self.communicator
    }
}

/// The envelopes that a receive takes.
///
/// ```
/// use dtc_matching::{Envelope, Pattern};
/// let any_source = Pattern::new(None, Some(7), 0)?;
/// assert!(any_source.fits(Envelope::new(3, 7, 0)?));
/// assert!(!any_source.fits(Envelope::new(3, 8, 0)?));
/// # Ok::<(), dtc_matching::EnvelopeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    pub(crate) source: Option<u32>,
    pub(crate) tag: Option<u32>,
    pub(crate) communicator: u32,
}

impl Pattern {
    /// The pattern of a receive. No source stands for `MPI_ANY_SOURCE`, no tag for `MPI_ANY_TAG`.
    ///
    /// # Errors
    ///
    /// A number is above [`LARGEST`].
    ///
    /// ```
    /// assert!(dtc_matching::Pattern::new(None, Some(1 << 31), 0).is_err());
    /// ```
    pub fn new(source: Option<u32>, tag: Option<u32>, communicator: u32) -> Result<Pattern, EnvelopeError> {
        Ok(Pattern {
            source: source.map(|source| in_range("source", source)).transpose()?,
            tag: tag.map(|tag| in_range("tag", tag)).transpose()?,
            communicator: in_range("communicator", communicator)?,
        })
    }

    /// The rank it receives from; `None` for `MPI_ANY_SOURCE`.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Pattern::new(None, Some(7), 0)?.source(), None);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn source(self) -> Option<u32> {
        self.source
    }

    /// The tag; `None` for `MPI_ANY_TAG`.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Pattern::new(None, Some(7), 0)?.tag(), Some(7));
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn tag(self) -> Option<u32> {
        self.tag
    }

    /// The pattern as kernels have it: like [`Envelope::bits`], with the highest bit of a half for any.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Pattern::new(None, Some(7), 0)?.bits(), 1 << 63 | 7);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn bits(self) -> u64 {
        u64::from(self.source.unwrap_or(ANY)) << 32 | u64::from(self.tag.unwrap_or(ANY))
    }

    /// The number of the communicator.
    ///
    /// ```
    /// assert_eq!(dtc_matching::Pattern::new(None, None, 2)?.communicator(), 2);
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    pub fn communicator(self) -> u32 {
        self.communicator
    }

    /// Whether the receive may take a message of this envelope.
    ///
    /// ```
    /// use dtc_matching::{Envelope, Pattern};
    /// assert!(!Pattern::new(None, None, 0)?.fits(Envelope::new(3, 7, 1)?));
    /// # Ok::<(), dtc_matching::EnvelopeError>(())
    /// ```
    #[inline]
    pub fn fits(self, envelope: Envelope) -> bool {
        self.communicator == envelope.communicator
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| tag == envelope.tag)
    }
}
