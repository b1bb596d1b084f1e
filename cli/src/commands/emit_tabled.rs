//! What `dtc emit` prints of types with index tables.

use dtc_compiler::codegen::cuda::{TabledSides, tabled};
use dtc_compiler::codegen::source::{self, TooLarge};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::TabledVariant;
use dtc_compiler::tabled::TabledLayout;
use dtc_measure::failure::Failure;

/// A text that such a type has.
#[derive(Clone, Copy)]
pub enum TabledForm {
    /// The layout in its textual form.
    Layout,
    /// The functions of C.
    C,
    /// Their header.
    CHeader,
    /// The device functions.
    CudaHeader,
    /// CUDA C++ of the kernel of a direction, for memory and packed bytes that are aligned as allocations are.
    Kernel(Direction),
}

/// Writes a text. `name` is that of the functions.
///
/// # Errors
///
/// The type is too large for it.
pub fn text(name: &str, datatype: &TabledDatatype, form: TabledForm) -> Result<String, Failure> {
    let too_large = |error: TooLarge| Failure::Description(format!("plain source: {error}; calls work without one"));
    match form {
        TabledForm::Layout => Ok(TabledLayout::new(datatype).to_string()),
        TabledForm::C => source::tabled_c(name, datatype).map_err(too_large),
        TabledForm::CHeader => source::tabled_c_header(name, datatype).map_err(too_large),
        TabledForm::CudaHeader => source::tabled_cuda_header(name, datatype).map_err(too_large),
        TabledForm::Kernel(direction) => {
            let layout = TabledLayout::new(datatype);
            let variant = TabledVariant::new(layout.granularity(), layout.most_bytes(), false);
            let sides = match direction {
                Direction::Pack => TabledSides::Pack(&layout),
                Direction::Unpack => TabledSides::Unpack(&layout),
            };
            Ok(tabled(sides, &variant).map_err(|error| Failure::Description(error.to_string()))?.source)
        }
    }
}
