//! References to types: counted, except those to builtin types, which are never freed. Every type leads to a few builtins, and
//! counting those would be most of the work of creating one, in the same places for all threads.

use crate::builtin::{BUILTINS, Builtin};
use crate::types::{Form, Type};
use once_cell::race::OnceBox;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A reference to a type. Of a builtin type it is the address of a static, of another one it came from [`Arc::into_raw`].
pub(crate) struct Shared(NonNull<Type>);

// SAFETY: as for an `Arc` of a type, which threads may share.
unsafe impl Send for Shared {}
// SAFETY: as above.
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

    /// Whether nobody else refers to the type.
    pub(crate) fn is_only(&self) -> bool {
        // SAFETY: the address came from `Arc::into_raw`; this reference stays with `self`.
        self.is_counted()
            && unsafe { Arc::strong_count(&*std::mem::ManuallyDrop::new(Arc::from_raw(self.address()))) } == 1
    }

    fn is_counted(&self) -> bool {
        Type::builtin(self).is_none()
    }

    /// The type itself, if nobody else refers to it and it is not a builtin.
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
            // SAFETY: the caller's promise; the handle holds a reference.
            None => unsafe { &*(handle as usize as *const Type) },
        }
    }

    /// Another reference to the type behind a handle, to make others of.
    ///
    /// # Safety
    ///
    /// As for [`Shared::of_handle`].
    pub(crate) unsafe fn from_handle(handle: u64) -> Shared {
        // SAFETY: the caller's promise.
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
