//! Types as they were created: nodes of trees, and references to them.

use crate::builtin::{BUILTINS, Builtin};
use crate::segmented::Segmented;
use crate::shape::Shape;
use dtc_runtime::{Committed, UncommittedPlan};
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::ops::Deref;
use std::ptr::NonNull;
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
    pub(crate) described: OnceBox<Arc<UncommittedPlan>>,
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
        // A chain of types may be long, so it is taken apart in a loop: a child without other references gives its own
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

/// A reference to a type: counted, except those to builtin types, which are never freed. Every type leads to a few builtins, and
/// counting those would be most of the work of creating one, in the same places for all threads.
///
/// Of a builtin type it is the address of a static, of another one it came from [`Arc::into_raw`].
pub(crate) struct Shared(NonNull<Type>);

// SAFETY: a `Shared` gives other threads `&Type` alone, and `Type` is `Send` and `Sync` (asserted below); references
// are counted by the atomic operations of `Arc`.
unsafe impl Send for Shared {}
// SAFETY: a shared `Shared` gives `&Type` and new references, whose count is atomic, and `Type` is `Send` and `Sync`.
unsafe impl Sync for Shared {}

const _: fn() = || {
    fn threads_may_share<T: Send + Sync>() {}
    threads_may_share::<Type>();
};

/// All builtin types, by their handles. Threads that need them first make them side by side.
#[inline]
fn builtin_types() -> &'static [Type; BUILTINS] {
    static TYPES: OnceBox<[Type; BUILTINS]> = OnceBox::new();
    TYPES.get_or_init(make_builtin_types)
}

#[cold]
#[inline(never)]
fn make_builtin_types() -> Box<[Type; BUILTINS]> {
    let mut all = Builtin::all();
    Box::new(std::array::from_fn(|_| {
        // There are as many as the array has places.
        let builtin = all.next().unwrap_or(Builtin::NULL);
        Type::new(Form::Builtin(builtin), builtin.shape())
    }))
}

impl Shared {
    /// A new type.
    pub(crate) fn new(made: Type) -> Shared {
        match made.builtin() {
            Some(builtin) => Shared::builtin(builtin),
            // SAFETY: an `Arc` is never null.
            None => Shared(unsafe { NonNull::new_unchecked(Arc::into_raw(Arc::new(made)).cast_mut()) }),
        }
    }

    /// A builtin type.
    pub(crate) fn builtin(builtin: Builtin) -> Shared {
        Shared(NonNull::from(&builtin_types()[builtin.handle() as usize]))
    }

    /// The type without bytes.
    pub(crate) fn null() -> Shared {
        Shared::builtin(Builtin::NULL)
    }

    /// Its address.
    pub(crate) fn address(&self) -> *const Type {
        self.0.as_ptr().cast_const()
    }

    /// Whether this is the only reference to the type.
    pub(crate) fn is_only(&self) -> bool {
        // SAFETY: the address came from `Arc::into_raw`; this reference stays with `self`.
        self.is_counted()
            && unsafe { Arc::strong_count(&*std::mem::ManuallyDrop::new(Arc::from_raw(self.address()))) } == 1
    }

    fn is_counted(&self) -> bool {
        Type::builtin(self).is_none()
    }

    /// The type itself, if this is the only reference to it and it is not a builtin.
    pub(crate) fn into_inner(self) -> Option<Type> {
        let address = self.address();
        let counted = self.is_counted();
        std::mem::forget(self);
        // SAFETY: the address came from `Arc::into_raw`, and the reference of `self` was not released.
        if counted { Arc::into_inner(unsafe { Arc::from_raw(address) }) } else { None }
    }

    /// The type behind a handle.
    ///
    /// # Safety
    ///
    /// The handle is a builtin's, or came from [`Shared::into_handle`] and was not released since.
    #[inline]
    pub(crate) unsafe fn of_handle<'a>(handle: u64) -> &'a Type {
        match builtin_types().get(handle as usize) {
            Some(builtin) => builtin,
            // SAFETY: a handle of no builtin is an address from `into_handle`, whose reference keeps the type alive
            // until the handle is released, and it was not (contract of this function).
            None => unsafe { &*(handle as usize as *const Type) },
        }
    }

    /// Another reference to the type behind a handle, to make others of.
    ///
    /// # Safety
    ///
    /// As for [`Shared::of_handle`].
    pub(crate) unsafe fn from_handle(handle: u64) -> Shared {
        // SAFETY: the handle is a builtin's or was not released (contract of this function, which is that of
        // `of_handle`).
        let found = unsafe { Shared::of_handle(handle) };
        match &found.form {
            Form::Dup { child } => child.clone(),
            // Cloned, since the reference of the handle stays with it.
            _ => Shared::clone(&std::mem::ManuallyDrop::new(Shared(NonNull::from(found)))),
        }
    }

    /// Gives the reference to a new handle.
    pub(crate) fn into_handle(self) -> u64 {
        if let Some(builtin) = Type::builtin(&self) {
            return builtin.handle();
        }
        // A type that others hold may have a handle. If they let go of it meanwhile, its handle is free.
        let own = if self.is_only() {
            self
        } else {
            let shape = self.shape;
            Shared::new(Type::new(Form::Dup { child: self }, shape))
        };
        std::mem::ManuallyDrop::new(own).address() as usize as u64
    }

    /// Takes back what [`Shared::into_handle`] gave.
    ///
    /// # Safety
    ///
    /// As for [`Shared::of_handle`], and this is the last use of the handle.
    pub(crate) unsafe fn release(handle: u64) {
        if handle >= BUILTINS as u64
            && let Some(address) = NonNull::new(handle as usize as *mut Type)
        {
            drop(Shared(address));
        }
    }
}

impl Deref for Shared {
    type Target = Type;

    #[inline]
    fn deref(&self) -> &Type {
        // SAFETY: the type is a static, or this holds a reference.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Shared {
    fn clone(&self) -> Shared {
        if self.is_counted() {
            // SAFETY: the address came from `Arc::into_raw`, and this holds a reference.
            unsafe { Arc::increment_strong_count(self.address()) };
        }
        Shared(self.0)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_counted() {
            // SAFETY: the address came from `Arc::into_raw`, and this is the one release of its reference.
            drop(unsafe { Arc::from_raw(self.address()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;

    fn resized(child: Shared) -> Shared {
        let shape = child.shape.resized(0, 8).unwrap();
        Shared::new(Type::new(Form::Resized { child }, shape))
    }

    /// Sees when a type goes.
    fn watch(shared: &Shared) -> Weak<Type> {
        // SAFETY: the type is no builtin; its reference stays with `shared`.
        Arc::downgrade(&std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(shared.address()) }))
    }

    #[test]
    fn a_long_chain_goes_on_a_small_stack() {
        let mut chain = resized(Shared::builtin(Builtin::of_handle(14).unwrap()));
        let bottom = watch(&chain);
        for _ in 0..100_000 {
            chain = resized(chain);
        }
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || drop(chain)).unwrap().join().unwrap();
        assert_eq!(bottom.strong_count(), 0);
    }

    #[test]
    fn handles_share_and_release() {
        let made = resized(Shared::builtin(Builtin::of_handle(14).unwrap()));
        let watched = watch(&made);
        let handle = made.into_handle();
        // SAFETY: each handle is released once, and not used after that.
        unsafe {
            let again = Shared::from_handle(handle).into_handle();
            assert_ne!(again, handle);
            let third = Shared::from_handle(again).into_handle();
            assert!(std::ptr::eq(Shared::of_handle(third).origin(), Shared::of_handle(handle)));
            Shared::release(third);
            assert_eq!(Shared::of_handle(handle).shape.extent(), 8);
            Shared::release(handle);
            assert_eq!((Shared::of_handle(again).shape.extent(), watched.strong_count()), (8, 1));
            Shared::release(again);
            assert_eq!(Shared::from_handle(14).into_handle(), 14);
            Shared::release(14);
            Shared::release(0);
        }
        assert_eq!(watched.strong_count(), 0);
    }
}
