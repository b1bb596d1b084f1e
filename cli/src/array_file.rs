//! Data files: raw bytes, and NumPy arrays (`.npy`), whose data begins behind a header.

use crate::elements::Elements;
use crate::npy::{self, HeaderError};
use dtc_measure::failure::Failure;
use dtc_measure::input::{Input, kind_name};
use dtc_measure::mapped::MappedMut;
use std::fs::OpenOptions;
use std::ops::Range;
use std::path::Path;

/// A data file to be read.
pub struct Source {
    input: Input,
    data: Range<usize>,
}

/// A data file to be changed in place.
pub struct Destination {
    file: MappedMut,
    data: Range<usize>,
}

/// What is asked of the elements of NumPy arrays.
#[derive(Clone, Copy)]
pub enum Expected<'a> {
    /// Nothing: they are bytes.
    Bytes,
    /// That they are elements of a type, in memory.
    InMemory(&'a Elements),
    /// That they are elements of a type, packed; or bytes.
    Packed(&'a Elements),
}

impl Source {
    /// Opens a file to read the first `most` bytes of its data. The header of a `.npy` file is not part of the data.
    ///
    /// # Errors
    ///
    /// [`Failure::Data`] where there is no such file, or its array is not what is asked for.
    pub fn open(path: &Path, most: u64, requested: Expected) -> Result<Source, Failure> {
        let most = if is_npy(path) { u64::MAX } else { most };
        let input = Input::open(path, most)?;
        let data = data_of(path, input.bytes(), requested)?;
        Ok(Source { input, data })
    }

    /// The data.
    pub fn bytes(&self) -> &[u8] {
        &self.input.bytes()[self.data.clone()]
    }
}

impl Destination {
    /// Opens an existing file for reading and writing. Nothing is changed yet.
    ///
    /// # Errors
    ///
    /// As [`Source::open`]; pipes and devices are refused.
    pub fn open(path: &Path, requested: Expected) -> Result<Destination, Failure> {
        let expected = "an existing file to write into";
        let failed = |error| Failure::file(path, expected, &error);
        // Before it is opened: a pipe would wait, and a device might do something.
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_file() {
            return Err(Failure::data(path.display(), expected, kind_name(kind)));
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let mut file = MappedMut::new(&file).map_err(|error| Failure::file(path, "a file to map", &error))?;
        let data = data_of(path, file.bytes_mut(), requested)?;
        Ok(Destination { file, data })
    }

    /// The data.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.file.bytes_mut()[self.data.clone()]
    }

    /// Waits until the changes are stored.
    pub fn store(&self, path: &Path) -> Result<(), Failure> {
        self.file.flush().map_err(|error| Failure::file(path, "changes to be stored", &error))
    }
}

/// Whether a file is a NumPy array, by its name.
pub fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

fn data_of(path: &Path, bytes: &[u8], requested: Expected) -> Result<Range<usize>, Failure> {
    if !is_npy(path) {
        return Ok(0..bytes.len());
    }
    let array = npy::Array::read(bytes).map_err(|HeaderError { place, expected, found }| {
        Failure::data(format_args!("{}: {place}", path.display()), expected, found)
    })?;
    let refused = match requested {
        Expected::Bytes => None,
        Expected::InMemory(elements) => elements.refuse(&array.element),
        Expected::Packed(elements) => elements.refuse_packed(&array.element),
    };
    match refused {
        None => Ok(array.data),
        Some((expected, found)) => {
            let place = format!("{}: header, descr", path.display());
            Err(Failure::data(place, expected, format_args!("{found}; --raw takes its bytes as they are")))
        }
    }
}
