//! Layouts as pages and pictures.

use crate::committed::{LayoutType, tabled_datatype};
use crate::errors::LayoutError;
use dtc_view::{View, page, picture};
use pyo3::prelude::*;

/// A layout as a page of HTML, or as a picture. `name`: its title.
pub fn view(made: &LayoutType, name: String, svg: bool) -> PyResult<String> {
    let view = View::of_datatype(name, tabled_datatype(&made.described)?);
    match svg {
        true => Ok(picture(&view)),
        false => page(&view).map_err(|failure| LayoutError::new_err(failure.to_string())),
    }
}
