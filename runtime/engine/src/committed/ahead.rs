//! What equal types share, made in the background while calls move what was described.

use crate::engine::Shared as Engine;
use crate::worker::Job;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::{Pipeline, Shared};
use once_cell::race::OnceBox;
use std::sync::{Arc, Weak};

/// What equal types share, if the background was asked for it.
#[derive(Default)]
pub(super) struct Ahead {
    asked: OnceBox<Arc<Asked>>,
}

struct Asked {
    datatype: Datatype,
    made: OnceBox<Shared>,
}

impl Ahead {
    /// Hands the work to the background of an engine, unless an earlier call did.
    pub(super) fn ask(&self, datatype: &Datatype, engine: &Engine) {
        self.asked.get_or_init(|| {
            let asked = Arc::new(Asked { datatype: datatype.clone(), made: OnceBox::new() });
            engine.later(Make(Arc::downgrade(&asked)));
            Box::new(asked)
        });
    }

    /// What the background made.
    pub(super) fn made(&self) -> Option<&Shared> {
        self.asked.get()?.made.get()
    }
}

/// The background's making it. It keeps neither the type nor its engine alive: freed here, what these have on devices would wait there
/// for what a program launches next.
struct Make(Weak<Asked>);

impl Job for Make {
    fn heat(&self) -> u32 {
        // It takes a hundredth of the time that a kernel for a GPU takes.
        u32::MAX
    }

    fn run(&self) {
        if let Some(asked) = self.0.upgrade() {
            asked.made.get_or_init(|| Box::new(Pipeline::new(asked.datatype.clone()).into_shared()));
        }
    }
}
