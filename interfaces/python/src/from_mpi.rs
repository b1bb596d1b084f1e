//! Datatypes of mpi4py.

use crate::described::refused;
use crate::errors::mismatch;
use crate::functions::of_datatype;
use crate::layout::Layout;
use dtc_runtime::datatype::{Distribution, Order, Predefined, TypeBuilder, TypeId};
use pyo3::intern;
use pyo3::prelude::*;

/// Datatypes within datatypes, at most: each is a call within a call.
const MOST_LEVELS: usize = 256;

/// The layout of a datatype of mpi4py, applied to the first byte of an array. No MPI is linked: `Datatype.decode()` says how the datatype
/// was made.
///
/// >>> import libdtc
/// >>> from mpi4py import MPI # doctest: +SKIP
/// >>> column = libdtc.from_mpi(MPI.DOUBLE.Create_vector(8, 1, 8)) # doctest: +SKIP
/// >>> column.pack(field) # doctest: +SKIP
#[pyfunction]
pub fn from_mpi(datatype: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let mut decoder = Decoder { types: TypeBuilder::new(), levels: 0 };
    let root = decoder.decoded(datatype)?;
    Ok(of_datatype(decoder.types.finish(root).map_err(refused)?))
}

struct Decoder {
    types: TypeBuilder,
    /// Datatypes that are being decoded, each within the one before.
    levels: usize,
}

impl Decoder {
    fn decoded(&mut self, datatype: &Bound<'_, PyAny>) -> PyResult<TypeId> {
        let py = datatype.py();
        if self.levels == MOST_LEVELS {
            return Err(mismatch(
                "datatype",
                format_args!("at most {MOST_LEVELS} datatypes within each other"),
                "more",
            ));
        }
        let (child, combiner, arguments): (Bound<'_, PyAny>, String, Bound<'_, PyAny>) =
            datatype.call_method0(intern!(py, "decode"))?.extract()?;
        match combiner.as_str() {
            "NAMED" => return self.named(datatype),
            "F90_REAL" | "F90_INTEGER" | "F90_COMPLEX" => return self.sized(datatype),
            _ => {}
        }
        self.levels += 1;
        let arguments = Arguments { combiner: &combiner, found: &arguments };
        let made = match combiner.as_str() {
            "STRUCT" => self.structure(&arguments),
            _ => {
                let id = self.decoded(&child);
                free(&child)?;
                self.constructed(datatype, &arguments, id?)
            }
        };
        self.levels -= 1;
        made
    }

    /// A predefined datatype, by its name in the MPI standard.
    fn named(&mut self, datatype: &Bound<'_, PyAny>) -> PyResult<TypeId> {
        let name: String = datatype.getattr(intern!(datatype.py(), "name"))?.extract()?;
        match Predefined::by_name(&name) {
            Some(predefined) => Ok(self.types.named(predefined)),
            None => Err(mismatch("datatype", "a predefined datatype of C or Fortran", name)),
        }
    }

    /// A datatype of a precision of Fortran: bytes.
    fn sized(&mut self, datatype: &Bound<'_, PyAny>) -> PyResult<TypeId> {
        let size = datatype.call_method0(intern!(datatype.py(), "Get_size"))?.extract()?;
        let (lb, extent) = datatype.call_method0(intern!(datatype.py(), "Get_extent"))?.extract()?;
        let byte = self.types.named(Predefined::BYTE);
        let bytes = self.types.contiguous(size, byte).map_err(refused)?;
        self.types.resized(lb, extent, bytes).map_err(refused)
    }

    fn structure(&mut self, arguments: &Arguments<'_, '_>) -> PyResult<TypeId> {
        let children: Vec<Bound<'_, PyAny>> = arguments.get("datatypes")?;
        let ids = children.iter().map(|child| self.decoded(child)).collect::<PyResult<Vec<TypeId>>>();
        children.iter().try_for_each(free)?;
        let (lengths, displacements) = (arguments.numbers("blocklengths")?, arguments.numbers("displacements")?);
        self.types.structure(&lengths, &displacements, &ids?).map_err(refused)
    }

    /// A datatype of one other.
    fn constructed(
        &mut self,
        datatype: &Bound<'_, PyAny>,
        arguments: &Arguments<'_, '_>,
        child: TypeId,
    ) -> PyResult<TypeId> {
        let (of, types) = (arguments, &mut self.types);
        let made = match of.combiner {
            "DUP" => types.dup(child),
            "CONTIGUOUS" => types.contiguous(of.get("count")?, child),
            "VECTOR" => types.vector(of.get("count")?, of.get("blocklength")?, of.get("stride")?, child),
            "HVECTOR" => types.hvector(of.get("count")?, of.get("blocklength")?, of.get("stride")?, child),
            "INDEXED" => types.indexed(&of.numbers("blocklengths")?, &of.numbers("displacements")?, child),
            "HINDEXED" => types.hindexed(&of.numbers("blocklengths")?, &of.numbers("displacements")?, child),
            "INDEXED_BLOCK" => types.indexed_block(of.get("blocklength")?, &of.numbers("displacements")?, child),
            "HINDEXED_BLOCK" => types.hindexed_block(of.get("blocklength")?, &of.numbers("displacements")?, child),
            "SUBARRAY" => {
                let order = of.order(datatype)?;
                let [sizes, subsizes, starts] = ["sizes", "subsizes", "starts"].map(|name| of.numbers(name));
                types.subarray(&sizes?, &subsizes?, &starts?, order, child)
            }
            "DARRAY" => {
                let (order, distributions) = (of.order(datatype)?, of.distributions(datatype)?);
                let [gsizes, psizes] = ["gsizes", "psizes"].map(|name| of.numbers(name));
                types.darray(of.get("size")?, of.get("rank")?, &gsizes?, &distributions, &psizes?, order, child)
            }
            "RESIZED" => types.resized(of.get("lb")?, of.get("extent")?, child),
            other => return Err(mismatch("datatype", "a combiner of the MPI standard", other)),
        };
        made.map_err(refused)
    }
}

/// The arguments that a datatype was made with.
struct Arguments<'a, 'py> {
    combiner: &'a str,
    found: &'a Bound<'py, PyAny>,
}

impl<'py> Arguments<'_, 'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        self.found.get_item(name)?.extract().map_err(Into::into)
    }

    fn numbers(&self, name: &str) -> PyResult<Vec<i64>> {
        self.get(name)
    }

    /// The order of the axes, by the constants of the MPI that the datatype is of.
    fn order(&self, datatype: &Bound<'_, PyAny>) -> PyResult<Order> {
        let order: i64 = self.get("order")?;
        match order == constant(datatype, "ORDER_C")? {
            true => Ok(Order::C),
            false => Ok(Order::Fortran),
        }
    }

    fn distributions(&self, datatype: &Bound<'_, PyAny>) -> PyResult<Vec<Distribution>> {
        let (kinds, arguments) = (self.numbers("distribs")?, self.numbers("dargs")?);
        let [block, cyclic, default] =
            ["DISTRIBUTE_BLOCK", "DISTRIBUTE_CYCLIC", "DISTRIBUTE_DFLT_DARG"].map(|name| constant(datatype, name));
        let (block, cyclic, default) = (block?, cyclic?, default?);
        let each = kinds.iter().zip(&arguments).map(|(&kind, &argument)| {
            let argument = (argument != default).then_some(argument);
            match kind {
                kind if kind == block => Distribution::Block(argument),
                kind if kind == cyclic => Distribution::Cyclic(argument),
                _ => Distribution::None,
            }
        });
        Ok(each.collect())
    }
}

/// A constant of the module that a datatype's class is from.
fn constant(datatype: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    let py = datatype.py();
    py.import(datatype.get_type().module()?)?.getattr(name)?.extract()
}

/// Frees what `decode` returned, unless it is predefined.
fn free(datatype: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = datatype.py();
    if !datatype.getattr(intern!(py, "is_predefined"))?.is_truthy()? {
        datatype.call_method0(intern!(py, "Free"))?;
    }
    Ok(())
}
