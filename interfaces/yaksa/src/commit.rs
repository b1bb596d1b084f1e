//! Types as the engine knows them. MPICH gives no commit event, so they are made when a type has been packed often enough.

use crate::known::{CacheEntry, Recipe};
use crate::library::engine;
use crate::memory;
use crate::status::Status;
use crate::types::{Form, Ordered, Part, Shared, Type};
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
            None => {
                // A refusal is not kept: there may be memory later.
                let _claim = memory::for_entries(self.entries())?;
                self.commit()
            }
        };
        known.as_ref().ok_or(Status::Internal)
    }

    #[cold]
    fn commit(&self) -> &Option<Committed> {
        self.committed.get_or_init(|| Box::new(self.commit_now()))
    }

    fn commit_now(&self) -> Option<Committed> {
        if let Form::Dup { child } = &self.form {
            return child.committed().ok().cloned();
        }
        let recipe = Recipe::of(self);
        if let Some(CacheEntry::Committed(known)) = recipe.as_ref().and_then(Recipe::find) {
            return Some(known);
        }
        let committed = engine().commit(&describe(&self.ordered()).ok()??);
        // Its first calls are behind it, so the canonical form is made now.
        committed.plan();
        if let Some(recipe) = recipe {
            recipe.keep(CacheEntry::Committed(committed.clone()));
        }
        Some(committed)
    }
}

/// The last type as a description, with the bounds that MPICH gives each. Nothing if it has no bytes.
fn describe(ordered: &Ordered) -> Result<Option<Datatype>, DatatypeError> {
    let mut types = TypeBuilder::new();
    let mut ids: Vec<Option<TypeId>> = Vec::with_capacity(ordered.types.len());
    for each in &ordered.types {
        let known = |child: &Shared| ordered.place(child).and_then(|place| ids[place]);
        let id = match &each.form {
            Form::Builtin(builtin) => builtin.predefined().map(|predefined| types.named(predefined)),
            Form::Struct { parts } => Some(describe_struct(&mut types, parts, known)?),
            Form::Strided { child, .. }
            | Form::Blocks { child, .. }
            | Form::Listed { child, .. }
            | Form::Resized { child }
            | Form::Dup { child } => match known(child) {
                Some(child) => Some(describe_blocks(&mut types, each, child)?),
                None => None,
            },
        };
        if let Some(id) = id {
            types.give_bounds(id, GivenBounds { lb: each.shape.lb, extent: each.shape.extent() })?;
        }
        ids.push(id);
    }
    ids.pop().flatten().map(|root| types.finish(root)).transpose()
}

/// A type with one child.
fn describe_blocks(types: &mut TypeBuilder, each: &Type, child: TypeId) -> Result<TypeId, DatatypeError> {
    match &each.form {
        Form::Strided { count, blocklength, stride, .. } => {
            types.hvector(*count as i64, *blocklength as i64, *stride, child)
        }
        Form::Blocks { blocklength, displacements, .. } => {
            types.hindexed_block(*blocklength as i64, displacements, child)
        }
        Form::Listed { blocklengths, displacements, .. } => types.hindexed(blocklengths, displacements, child),
        Form::Builtin(_) | Form::Struct { .. } | Form::Resized { .. } | Form::Dup { .. } => {
            types.resized(each.shape.lb, each.shape.extent(), child)
        }
    }
}

/// A struct of the parts that have bytes. The others have bounds alone, and those are given.
fn describe_struct(
    types: &mut TypeBuilder,
    parts: &[Part],
    known: impl Fn(&Shared) -> Option<TypeId>,
) -> Result<TypeId, DatatypeError> {
    let (mut lengths, mut offsets, mut children) = (vec![], vec![], vec![]);
    for part in parts {
        if part.blocklength > 0
            && let Some(child) = known(&part.child)
        {
            lengths.push(part.blocklength);
            offsets.push(part.displacement);
            children.push(child);
        }
    }
    types.structure(&lengths, &offsets, &children)
}
