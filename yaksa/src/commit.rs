//! Types as the engine knows them: made at the first pack, since MPICH gives no commit event.

use crate::library::engine;
use crate::status::Status;
use crate::types::{Form, Ordered, Type};
use dtc_compiler::datatype::{Datatype, DatatypeError, GivenBounds, TypeBuilder, TypeId};
use dtc_runtime::Committed;

impl Type {
    /// The type as the engine knows it.
    ///
    /// # Errors
    ///
    /// The type has no bytes, or the engine refuses it.
    #[inline]
    pub(crate) fn committed(&self) -> Result<&Committed, Status> {
        let known = match self.committed.get() {
            Some(known) => known,
            None => self.commit(),
        };
        known.as_ref().ok_or(Status::Internal)
    }

    #[cold]
    fn commit(&self) -> &Option<Committed> {
        self.committed.get_or_init(|| Some(engine().commit(&describe(&self.ordered()).ok()??)))
    }
}

/// The last type as a description, with the bounds that MPICH gives each. Nothing if it has no bytes.
fn describe(ordered: &Ordered) -> Result<Option<Datatype>, DatatypeError> {
    let mut types = TypeBuilder::new();
    let mut ids: Vec<Option<TypeId>> = Vec::with_capacity(ordered.types.len());
    for each in &ordered.types {
        let known: Vec<_> =
            each.form.children().iter().map(|child| ordered.place(child).and_then(|place| ids[place])).collect();
        let id = match (&each.form, known.as_slice()) {
            (Form::Builtin(builtin), _) => builtin.predefined().map(|predefined| types.named(predefined)),
            (Form::Struct { blocklengths, displacements, .. }, parts) => {
                Some(describe_struct(&mut types, blocklengths, displacements, parts)?)
            }
            (Form::Strided { count, blocklength, stride, .. }, &[Some(child)]) => {
                Some(types.hvector(*count as i64, *blocklength as i64, *stride, child)?)
            }
            (Form::Blocks { blocklength, displacements, .. }, &[Some(child)]) => {
                Some(types.hindexed_block(*blocklength as i64, displacements, child)?)
            }
            (Form::Listed { blocklengths, displacements, .. }, &[Some(child)]) => {
                Some(types.hindexed(blocklengths, displacements, child)?)
            }
            (Form::Resized { .. }, &[Some(child)]) => Some(types.resized(each.shape.lb, each.shape.extent(), child)?),
            _ => None,
        };
        if let Some(id) = id {
            types.give_bounds(id, GivenBounds { lb: each.shape.lb, extent: each.shape.extent() })?;
        }
        ids.push(id);
    }
    Ok(ids.pop().flatten().map(|root| types.finish(root)))
}

/// A struct of the parts that have bytes. The others have bounds alone, and those are given.
fn describe_struct(
    types: &mut TypeBuilder,
    blocklengths: &[i64],
    displacements: &[i64],
    parts: &[Option<TypeId>],
) -> Result<TypeId, DatatypeError> {
    let (mut lengths, mut offsets, mut children) = (vec![], vec![], vec![]);
    for ((&length, &offset), part) in blocklengths.iter().zip(displacements).zip(parts) {
        if let Some(part) = *part {
            lengths.push(length);
            offsets.push(offset);
            children.push(part);
        }
    }
    types.structure(&lengths, &offsets, &children)
}
