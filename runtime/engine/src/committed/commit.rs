//! Committing datatypes.

use super::Committed;
use crate::engine::Engine;
use dtc_compiler::datatype::Datatype;

impl Engine {
    /// Makes a datatype usable. Equal types share one cached type, however they were described. Never waits for a compiler
    /// unless the policy is [`Policy::Eager`](crate::Policy::Eager).
    ///
    /// This does no work unless the policy wants a kernel at commit: the first packs and unpacks move the type as it was described
    /// ([`UncommittedPlan`](crate::UncommittedPlan)). Its canonical form, hash and plan are made when its calls have cost as much as making them
    /// takes, or when one of them is asked for; with [`Policy::Lazy`](crate::Policy::Lazy) by the first call, since equal types count
    /// their calls together.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.1.9.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let double = types.named(Predefined::DOUBLE);
    /// let committed = dtc_runtime::Engine::new().commit(&types.finish(double)?);
    /// assert_eq!(committed.facts().size, 8);
    /// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
    /// ```
    pub fn commit(&self, datatype: &Datatype) -> Committed {
        let committed = self.prepare(datatype.clone());
        committed.commit();
        committed
    }

    /// As [`Engine::commit`], but does no work under any policy: for callers whose types exist before they are committed, by
    /// [`Committed::commit`].
    ///
    /// ```
    /// use dtc_runtime::datatype::text;
    /// use dtc_runtime::{Engine, Policy};
    /// let engine = Engine::builder().policy(Policy::Eager).build();
    /// let made = engine.prepare(text::parse("vector 3 1 2 int")?);
    /// assert_eq!(engine.cached_types(), 0);
    /// made.commit();
    /// assert_eq!(engine.cached_types(), 1);
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    pub fn prepare(&self, datatype: Datatype) -> Committed {
        Committed::new(datatype, self.clone())
    }
}
