//! Types as they were created: nodes of trees.

use crate::builtin::Builtin;
use crate::iov::Segmented;
use crate::shape::Shape;
use crate::shared::Shared;
use dtc_runtime::{Committed, Described};
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A type. Displacements and strides are in bytes.
///
/// Laid out as declared: what a pack looks at comes first. Threads that need something first make it side by side, and none
/// waits for another: a forked child might wait for ever.
#[repr(C)]
pub(crate) struct Type {
    /// The type as the engine knows it, once it has been packed often enough; nothing if it refused the type.
    pub(crate) committed: OnceBox<Option<Committed>>,
    /// The type as it was made, for its first packs.
    pub(crate) described: OnceBox<Arc<Described>>,
    pub(crate) shape: Shape,
    pub(crate) form: Form,
    /// For I/O vectors, from the first on.
    pub(crate) segmented: OnceBox<Segmented>,
    /// Types of the tree below it, itself, and the entries of their lists. What is shared counts each time.
    entries: u64,
    /// Itself, and the entries of its own lists.
    own_entries: u64,
}

/// Types that exist, and the entries of their lists: none is made of more.
static EXISTING: AtomicU64 = AtomicU64::new(0);

/// How a type was made of others.
pub(crate) enum Form {
    /// A builtin type.
    Builtin(Builtin),
    /// `count` blocks, `stride` bytes apart, of `blocklength` copies.
    Strided { count: u64, blocklength: u64, stride: i64, child: Shared },
    /// Blocks of one length.
    Blocks { blocklength: u64, displacements: Box<[i64]>, child: Shared },
    /// Blocks of differing lengths.
    Listed { blocklengths: Box<[i64]>, displacements: Box<[i64]>, child: Shared },
    /// Differing children.
    Struct { parts: Box<[Part]> },
    /// Other bounds, which are in the shape.
    Resized { child: Shared },
    /// Another handle for a type, since callers tell types apart by their handles. No type has such a child.
    Dup { child: Shared },
}

/// A block of a struct.
pub(crate) struct Part {
    pub(crate) blocklength: i64,
    pub(crate) displacement: i64,
    pub(crate) child: Shared,
    /// The packed position at which it begins.
    pub(crate) start: u64,
}

impl Form {
    /// A child, counted in the order of the arguments.
    pub(crate) fn child(&self, at: usize) -> Option<&Shared> {
        match self {
            Form::Builtin(_) => None,
            Form::Strided { child, .. }
            | Form::Blocks { child, .. }
            | Form::Listed { child, .. }
            | Form::Resized { child }
            | Form::Dup { child } => (at == 0).then_some(child),
            Form::Struct { parts } => parts.get(at).map(|part| &part.child),
        }
    }

    /// The type, and the entries of its lists.
    fn own_entries(&self) -> u64 {
        let entries = match self {
            Form::Blocks { displacements, .. } | Form::Listed { displacements, .. } => displacements.len(),
            Form::Struct { parts } => parts.len(),
            Form::Builtin(_) | Form::Strided { .. } | Form::Resized { .. } | Form::Dup { .. } => 0,
        };
        1 + entries as u64
    }

    /// Takes the children out, and leaves a form without any.
    fn take(&mut self) -> Form {
        std::mem::replace(self, Form::Builtin(Builtin::NULL))
    }
}

impl Drop for Type {
    fn drop(&mut self) {
        EXISTING.fetch_sub(self.own_entries, Ordering::Relaxed);
        // A chain of types may be long, so it is taken apart in a loop: a child that nobody else holds gives its own
        // children up before it goes.
        let mut waiting: Vec<std::vec::IntoIter<Part>> = Vec::new();
        let mut form = self.form.take();
        loop {
            let mut next = match form {
                Form::Builtin(_) => None,
                Form::Strided { child, .. }
                | Form::Blocks { child, .. }
                | Form::Listed { child, .. }
                | Form::Resized { child }
                | Form::Dup { child } => child.into_inner(),
                Form::Struct { parts } => {
                    waiting.push(parts.into_iter());
                    None
                }
            };
            while next.is_none() {
                let Some(parts) = waiting.last_mut() else { return };
                match parts.next() {
                    Some(part) => next = part.child.into_inner(),
                    None => drop(waiting.pop()),
                }
            }
            form = next.map_or(Form::Builtin(Builtin::NULL), |mut next| next.form.take());
        }
    }
}

/// A type and everything it is made of, each once, children before parents.
pub(crate) struct Ordered<'a> {
    pub(crate) types: Vec<&'a Type>,
    places: HashMap<*const Type, usize>,
}

impl Ordered<'_> {
    /// Where a type stands; it is among them.
    pub(crate) fn place(&self, of: &Shared) -> Option<usize> {
        self.places.get(&of.address()).copied()
    }
}

impl Type {
    pub(crate) fn new(form: Form, shape: Shape) -> Type {
        let own = form.own_entries();
        let below = (0..).map_while(|at| form.child(at)).fold(own, |sum, child| sum.saturating_add(child.entries));
        EXISTING.fetch_add(own, Ordering::Relaxed);
        Type {
            committed: OnceBox::new(),
            described: OnceBox::new(),
            shape,
            form,
            segmented: OnceBox::new(),
            entries: below,
            own_entries: own,
        }
    }

    /// At most how many types it is made of, with the entries of their lists: exact for a tree.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.min(EXISTING.load(Ordering::Relaxed))
    }

    /// The type that a handle of its own was made for, or the type itself.
    pub(crate) fn origin(&self) -> &Type {
        if let Form::Dup { child } = &self.form { child } else { self }
    }

    /// The type and everything it is made of. It is the last.
    pub(crate) fn ordered(&self) -> Ordered<'_> {
        let mut ordered = Ordered { types: Vec::new(), places: HashMap::new() };
        let mut stack = vec![(self, 0)];
        while let Some((top, next)) = stack.last_mut() {
            match top.form.child(*next) {
                Some(child) => {
                    *next += 1;
                    if !ordered.places.contains_key(&child.address()) {
                        stack.push((child, 0));
                    }
                }
                None => {
                    ordered.places.insert(*top, ordered.types.len());
                    ordered.types.push(*top);
                    stack.pop();
                }
            }
        }
        ordered
    }

    /// The builtin that this is, if it is one.
    pub(crate) fn builtin(&self) -> Option<Builtin> {
        if let Form::Builtin(builtin) = self.form { Some(builtin) } else { None }
    }

    /// Whether two types are one to the rules for the bounds of structs.
    pub(crate) fn is_same(&self, other: &Type) -> bool {
        match (self.builtin(), other.builtin()) {
            (Some(one), Some(other)) => one.is_same(other),
            _ => std::ptr::eq(self, other),
        }
    }
}
