//! What equal types share, made in the background while calls move what was described.

use crate::engine::EngineState;
use crate::worker::Job;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::{Pipeline, Shared};
use once_cell::race::OnceBox;
use std::sync::{Arc, Weak};

/// What equal types share, if the background was requested for it.
#[derive(Default)]
pub(super) struct Ahead {
    requested: OnceBox<Arc<Requested>>,
}

struct Requested {
    datatype: Datatype,
    made: OnceBox<Shared>,
}

impl Ahead {
    /// Hands the work to the background of an engine, unless an earlier call did.
    pub(super) fn request(&self, datatype: &Datatype, engine: &EngineState) {
        self.requested.get_or_init(|| {
            let requested = Arc::new(Requested { datatype: datatype.clone(), made: OnceBox::new() });
            engine.later(Make(Arc::downgrade(&requested)));
            Box::new(requested)
        });
    }

    /// What the background made.
    pub(super) fn made(&self) -> Option<&Shared> {
        self.requested.get()?.made.get()
    }
}

/// The background's making it. It keeps neither the type nor its engine alive: freed here, what these have on devices would wait there
/// for what a program launches next.
struct Make(Weak<Requested>);

impl Job for Make {
    fn priority(&self) -> u32 {
        // It takes a hundredth of the time that a kernel for a GPU takes.
        u32::MAX
    }

    fn run(&self) {
        if let Some(requested) = self.0.upgrade() {
            requested.made.get_or_init(|| Box::new(Pipeline::new(requested.datatype.clone()).into_shared()));
        }
    }
}
