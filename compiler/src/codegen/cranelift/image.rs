//! Both kernels of a type as bytes, which the runtime binds to its microkernels when it loads them.

use super::MachineCode;
#[cfg(feature = "jit")]
use super::{CodegenError, Compiler};
#[cfg(feature = "jit")]
use crate::plan::Direction;
use crate::plan::{Plan, Step};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The kernels of a plan, not yet at an address.
///
/// ```
/// use dtc_compiler::codegen::cranelift::{Compiler, CpuTarget, Image};
/// use dtc_compiler::{Pipeline, datatype::text};
/// let rows = Pipeline::new(text::parse("vector 100 3 5 double")?);
/// let image = Image::compile(&Compiler::for_target(CpuTarget::X86_64V3)?, rows.plan())?;
/// assert!(Image::from_bytes(&image.to_bytes(), rows.plan()).is_ok());
/// assert!(Image::from_bytes(b"other bytes", rows.plan()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Image {
    /// The kernel that packs.
    pub pack: MachineCode,
    /// The kernel that unpacks.
    pub unpack: MachineCode,
}

/// Why bytes are no kernels of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("kernels: expected {expected}, found {found}")]
pub struct ImageError {
    expected: &'static str,
    found: String,
}

impl Image {
    /// Compiles both kernels.
    ///
    /// # Errors
    ///
    /// As [`Compiler::compile`].
    #[cfg(feature = "jit")]
    pub fn compile(compiler: &Compiler, plan: &Plan) -> Result<Image, CodegenError> {
        let [pack, unpack] = [Direction::Pack, Direction::Unpack].map(|direction| compiler.compile(plan, direction));
        Ok(Image { pack: pack?, unpack: unpack? })
    }

    /// The kernels as bytes, without what only explains them. Equal kernels are equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Writing to memory cannot fail.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Reads what [`Image::to_bytes`] wrote for a plan. Only bytes that can be trusted may be run afterwards: places and lists are
    /// checked here, instructions are not.
    ///
    /// # Errors
    ///
    /// [`ImageError`] for any other bytes, and for kernels that refer to what the plan lacks.
    pub fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Image, ImageError> {
        let wrong = |expected, found: &dyn ToString| ImageError { expected, found: found.to_string() };
        let (image, rest) = postcard::take_from_bytes::<Image>(bytes).map_err(|error| wrong("two kernels", &error))?;
        if !rest.is_empty() {
            return Err(wrong("nothing behind the kernels", &format!("{} bytes", rest.len())));
        }
        for code in [&image.pack, &image.unpack] {
            if !code.alignment.is_power_of_two() || code.alignment > 4096 {
                return Err(wrong("an alignment within a page", &code.alignment));
            }
            for relocation in &code.relocations {
                if relocation.offset as usize + 8 > code.code.len() {
                    return Err(wrong("a place within the code", &format!("offset {}", relocation.offset)));
                }
            }
            for table in &code.tables {
                let step = plan.steps().get(table.index());
                if !matches!(step, Some(Step::List { .. } | Step::Scatter { .. } | Step::Runs(_))) {
                    return Err(wrong("a step with a list", &format!("step {}", table.index())));
                }
            }
        }
        Ok(image)
    }
}
