//! A type as a page that needs nothing else, or as a picture: what `dtc view` writes, and `Layout.view` of the package for Python.
//!
//! A page is data first: [`View`] has all that it shows, from the interfaces of the compiler that `dtc explain` uses too, and `page.html`,
//! `page.css` and `page/` show it. [`picture`] draws the same memory without scripts.
//!
//! ```
//! use dtc_compiler::datatype::TabledDatatype;
//! use dtc_view::View;
//!
//! let column: TabledDatatype = "vector 12 1 14 double".parse()?;
//! let view = View::of_datatype("a column".to_owned(), column);
//! assert!(dtc_view::page(&view)?.contains("a column"));
//! assert!(dtc_view::picture(&view).starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod captions;
mod cpu;
mod data;
mod gpu;
mod graph;
mod page;
mod palette;
mod picture;
mod regions;
mod roofline;
mod stages;
mod tables;
mod touched;
mod window;
mod words;

pub use data::View;
pub use dtc_measure::description::Named;
pub use gpu::CALLS;
pub use page::html as page;
pub use picture::svg as picture;
pub use roofline::Bandwidth;
pub use words::{LAYOUT_WORDS, PLAN_WORDS};
