//! Types as they were created: reference counted nodes, and their handles.

use crate::builtin::{BUILTINS, Builtin};
use crate::iov::Segmented;
use crate::shape::Shape;
use dtc_runtime::Committed;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock, OnceLock};

/// A type. Displacements and strides are in bytes.
///
/// Laid out as declared: what a pack looks at comes first.
#[repr(C)]
pub(crate) struct Type {
    /// The type as the engine knows it, from the first pack on; nothing if it refused the type.
    pub(crate) committed: OnceLock<Option<Committed>>,
    pub(crate) shape: Shape,
    pub(crate) form: Form,
    /// For I/O vectors, from the first on.
    pub(crate) segmented: OnceLock<Box<Segmented>>,
}

/// How a type was made of others.
pub(crate) enum Form {
    /// A builtin type.
    Builtin(Builtin),
    /// `count` blocks, `stride` bytes apart, of `blocklength` copies.
    Strided { count: u64, blocklength: u64, stride: i64, child: Arc<Type> },
    /// Blocks of one length.
    Blocks { blocklength: u64, displacements: Box<[i64]>, child: Arc<Type> },
    /// Blocks of differing lengths.
    Listed { blocklengths: Box<[i64]>, displacements: Box<[i64]>, child: Arc<Type> },
    /// Differing children.
    Struct { parts: Box<[Part]> },
    /// Other bounds, which are in the shape.
    Resized { child: Arc<Type> },
    /// Another handle for a type, since callers tell types apart by their handles. No type has such a child.
    Dup { child: Arc<Type> },
}

/// A block of a struct.
pub(crate) struct Part {
    pub(crate) blocklength: i64,
    pub(crate) displacement: i64,
    pub(crate) child: Arc<Type>,
    /// The packed position at which it begins.
    pub(crate) start: u64,
}

impl Form {
    /// A child, counted in the order of the arguments.
    pub(crate) fn child(&self, at: usize) -> Option<&Arc<Type>> {
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

    /// Takes the children out, and leaves a form without any.
    fn take(&mut self) -> Form {
        std::mem::replace(self, Form::Builtin(Builtin::NULL))
    }
}

impl Drop for Type {
    fn drop(&mut self) {
        // A chain of types may be long, so it is taken apart in a loop: a child that nobody else holds gives its own
        // children up before it goes.
        let mut waiting = vec![];
        let mut form = self.form.take();
        loop {
            match form {
                Form::Builtin(_) => {}
                Form::Strided { child, .. }
                | Form::Blocks { child, .. }
                | Form::Listed { child, .. }
                | Form::Resized { child }
                | Form::Dup { child } => waiting.extend(Arc::into_inner(child)),
                Form::Struct { parts } => {
                    waiting.extend(parts.into_iter().filter_map(|part| Arc::into_inner(part.child)));
                }
            }
            match waiting.pop() {
                Some(mut next) => form = next.form.take(),
                None => return,
            }
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
    pub(crate) fn place(&self, of: &Arc<Type>) -> Option<usize> {
        self.places.get(&Arc::as_ptr(of)).copied()
    }
}

/// The builtin types, which are never freed.
static BUILTIN_TYPES: LazyLock<[Arc<Type>; BUILTINS]> = LazyLock::new(|| {
    let mut all = Builtin::all();
    std::array::from_fn(|_| {
        // There are as many as the array has places.
        let builtin = all.next().unwrap_or(Builtin::NULL);
        Arc::new(Type::new(Form::Builtin(builtin), builtin.shape()))
    })
});

impl Type {
    pub(crate) fn new(form: Form, shape: Shape) -> Type {
        Type { committed: OnceLock::new(), shape, form, segmented: OnceLock::new() }
    }

    /// The type without bytes.
    pub(crate) fn null() -> Arc<Type> {
        BUILTIN_TYPES[0].clone()
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
                    if !ordered.places.contains_key(&Arc::as_ptr(child)) {
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
    pub(crate) fn is_same(self: &Arc<Type>, other: &Arc<Type>) -> bool {
        match (self.builtin(), other.builtin()) {
            (Some(one), Some(other)) => one.is_same(other),
            _ => Arc::ptr_eq(self, other),
        }
    }

    /// The type behind a handle.
    ///
    /// # Safety
    ///
    /// The handle is a builtin's, or was given out and not freed since.
    #[inline]
    pub(crate) unsafe fn of_handle<'a>(handle: u64) -> &'a Type {
        match BUILTIN_TYPES.get(handle as usize) {
            Some(builtin) => builtin,
            // SAFETY: the caller's promise; `into_handle` gave the address of a type that lives until it is freed.
            None => unsafe { &*(handle as usize as *const Type) },
        }
    }

    /// Another reference to the type behind a handle, to make others of.
    ///
    /// # Safety
    ///
    /// As for [`Type::of_handle`].
    pub(crate) unsafe fn share(handle: u64) -> Arc<Type> {
        if let Some(builtin) = BUILTIN_TYPES.get(handle as usize) {
            return builtin.clone();
        }
        let address = handle as usize as *const Type;
        // SAFETY: the handle holds a reference.
        if let Form::Dup { child } = unsafe { &(*address).form } {
            return child.clone();
        }
        // SAFETY: the address came from `Arc::into_raw`, and the handle still holds a reference.
        unsafe {
            Arc::increment_strong_count(address);
            Arc::from_raw(address)
        }
    }

    /// Gives the reference to a new handle.
    pub(crate) fn into_handle(self: Arc<Type>) -> u64 {
        if let Some(builtin) = self.builtin() {
            // Its handle is its number; the builtins themselves are never freed.
            return builtin.handle();
        }
        // A type that others hold may have a handle. If they let go of it meanwhile, its handle is free.
        let own = if Arc::strong_count(&self) == 1 {
            self
        } else {
            let shape = self.shape;
            Arc::new(Type::new(Form::Dup { child: self }, shape))
        };
        Arc::into_raw(own) as usize as u64
    }

    /// Gives back what [`Type::into_handle`] gave.
    ///
    /// # Safety
    ///
    /// As for [`Type::of_handle`], and this is the last use of the handle.
    pub(crate) unsafe fn free(handle: u64) {
        if handle >= BUILTINS as u64
            && let Some(address) = NonNull::new(handle as usize as *mut Type)
        {
            // SAFETY: the address came from `Arc::into_raw`, and this is its one release.
            drop(unsafe { Arc::from_raw(address.as_ptr().cast_const()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_goes_on_a_small_stack() {
        let bottom = BUILTIN_TYPES[14].clone();
        let mut chain = bottom.clone();
        for _ in 0..100_000 {
            let shape = chain.shape;
            chain = Arc::new(Type::new(Form::Resized { child: chain }, shape));
        }
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || drop(chain)).unwrap().join().unwrap();
        assert_eq!(Arc::strong_count(&bottom), 2);
    }

    #[test]
    fn handles_share_and_free() {
        let child = BUILTIN_TYPES[14].clone();
        let shape = child.shape.resized(0, 8).unwrap();
        let made = Arc::new(Type::new(Form::Resized { child }, shape));
        let watched = Arc::downgrade(&made);
        let handle = made.into_handle();
        // SAFETY: the handle is freed once for each reference that it holds.
        unsafe {
            let again = Type::share(handle).into_handle();
            assert_ne!(again, handle);
            let third = Type::share(again).into_handle();
            assert!(std::ptr::eq(Type::of_handle(third).origin(), Type::of_handle(handle)));
            Type::free(third);
            assert_eq!(Type::of_handle(handle).shape.extent(), 8);
            Type::free(handle);
            assert_eq!(Type::of_handle(again).shape.extent(), 8);
            Type::free(again);
            assert_eq!(Type::share(14).into_handle(), 14);
            Type::free(14);
            Type::free(0);
        }
        assert_eq!(watched.strong_count(), 0);
    }
}
