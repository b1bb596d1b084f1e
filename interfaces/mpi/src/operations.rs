//! Nonblocking and persistent messages that are staged. The program has the MPI's own request. What is to be done when it ends stands
//! in an operation. Calls that complete requests take it out of the table before they call the MPI, which may use a handle again as
//! soon as its request has ended, and put it back if it has not ended. Persistent ones stay.

use crate::abi::{Abi, Handle, MPI_SUCCESS};
use crate::pmpi::pmpi;
use crate::requests::{self, Tracked};
use crate::staged::Staged;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Of what was received: it has not been unpacked, a thread unpacks it, or it has been, or there is nothing yet.
const NOT_UNPACKED: u8 = 0;
const UNPACKING: u8 = 1;
const UNPACKED: u8 = 2;

/// What is staged of a collective with one request.
pub trait Collective {
    /// Packs what is sent; false if that fails.
    fn pack(&self) -> bool;
    /// Once the MPI has begun: what only the call needed is given back.
    fn posted(&mut self);
    /// Unpacks what was received.
    fn unpack(&self) -> c_int;
}

/// What is under way with a request.
#[repr(C)]
pub struct Operation<A: Abi> {
    tracked: Tracked,
    /// Elements that are sent.
    pub out: Option<Staged<A>>,
    /// Elements that are received.
    pub input: Option<Staged<A>>,
    /// Of a collective.
    pub exchange: Option<Box<dyn Collective>>,
    /// What a substitute sends.
    copy: Vec<u8>,
    unpacked: AtomicU8,
    /// The request of a program that has freed it, and the next such operation.
    freed: UnsafeCell<(A::Handle, *mut Operation<A>)>,
}

/// An operation that the library knows by the request: the program may complete it, in any thread.
pub struct OperationRef<A: Abi>(NonNull<Operation<A>>);

impl<A: Abi> Clone for OperationRef<A> {
    fn clone(&self) -> OperationRef<A> {
        *self
    }
}

impl<A: Abi> Copy for OperationRef<A> {}

impl<A: Abi> std::ops::Deref for OperationRef<A> {
    type Target = Operation<A>;

    fn deref(&self) -> &Operation<A> {
        // SAFETY: it lives until it is dropped by the call that ends it, after which the program may not name its request.
        unsafe { self.0.as_ref() }
    }
}

/// Operations that were active when the program freed their requests. Only one ABI is bound.
static FREED: AtomicPtr<Tracked> = AtomicPtr::new(null_mut());

/// Whether a request has ended, as the MPI says, for calls that do not complete it.
fn has_ended<A: Abi>(request: A::Handle, status: *mut A::Status) -> bool {
    let mut ended = 0;
    // SAFETY: a request of the MPI, and both are writable.
    let told = unsafe { (pmpi::<A>().request_get_status)(request, &mut ended, status) };
    told == MPI_SUCCESS && ended != 0
}

impl<A: Abi> Operation<A> {
    /// An operation of what is staged.
    pub fn new(out: Option<Staged<A>>, input: Option<Staged<A>>, persistent: bool) -> Box<Operation<A>> {
        poll_freed::<A>();
        Box::new(Operation {
            tracked: Tracked::new(persistent),
            out,
            input,
            exchange: None,
            copy: Vec::new(),
            unpacked: AtomicU8::new(NOT_UNPACKED),
            freed: UnsafeCell::new((A::handles().request_null, null_mut())),
        })
    }

    /// An operation of a collective.
    pub fn of_exchange(exchange: Box<dyn Collective>, persistent: bool) -> Box<Operation<A>> {
        Box::new(Operation { exchange: Some(exchange), ..*Operation::new(None, None, persistent) })
    }

    /// An operation of bytes that are sent.
    pub fn of_copy(copy: Vec<u8>) -> Box<Operation<A>> {
        Box::new(Operation { copy, ..*Operation::new(None, None, false) })
    }

    /// What is sent of a copy.
    pub fn copied(&mut self) -> &mut [u8] {
        &mut self.copy
    }

    /// Whether this thread shall unpack what was received; it waits for one that does.
    pub fn claim(&self) -> bool {
        if self.input.is_none() && self.exchange.is_none() {
            return false;
        }
        let mut state = self.unpacked.compare_exchange(NOT_UNPACKED, UNPACKING, Ordering::Acquire, Ordering::Acquire);
        if state.is_ok() {
            return true;
        }
        // Threads may ask for the status of one request at once.
        while state == Err(UNPACKING) {
            std::thread::yield_now();
            state = Err(self.unpacked.load(Ordering::Acquire));
        }
        false
    }

    /// Ends what `claim` has begun: whether what was received is unpacked.
    pub fn end_claim(&self, unpacked: bool) {
        self.unpacked.store(if unpacked { UNPACKED } else { NOT_UNPACKED }, Ordering::Release);
    }

    /// Unpacks what was received, once.
    ///
    /// # Safety
    ///
    /// `status` is that of the request.
    pub unsafe fn unpack(&self, status: *const A::Status) -> c_int {
        if !self.claim() {
            return MPI_SUCCESS;
        }
        let result = match (&self.exchange, &self.input) {
            (Some(exchange), _) => exchange.unpack(),
            // SAFETY: as the caller says.
            (None, Some(input)) => unsafe { input.unpack(status) },
            (None, None) => MPI_SUCCESS,
        };
        self.end_claim(true);
        result
    }

    /// After the call that has made the request, or has failed.
    ///
    /// # Safety
    ///
    /// `request` leads to the request, if the call has made one.
    pub unsafe fn begin(mut self: Box<Self>, request: *const A::Handle, mut result: c_int) -> c_int {
        let persistent = self.tracked.is_persistent();
        // The calls that complete requests are also given those that have not been started.
        if persistent {
            self.unpacked = AtomicU8::new(UNPACKED);
        }
        let uncounted = self.input.as_ref().is_none_or(|input| input.uncounted);
        if let Some(input) = &mut self.input {
            input.posted();
        }
        // Open MPI 4.1 and 5.0 lose the datatypes of a persistent collective if they are freed before it is.
        if let Some(exchange) = self.exchange.as_mut().filter(|_| !persistent) {
            exchange.posted();
        }
        if result != MPI_SUCCESS {
            return result;
        }
        // SAFETY: made by the call.
        let request = unsafe { *request };
        // The requests of sends, of exchanges and of collectives that have ended at once may all have one handle.
        let mut status = A::new_status();
        if !persistent && uncounted && has_ended::<A>(request, &mut status) {
            // SAFETY: the status of the request.
            result = unsafe { self.unpack(&status) };
            return result;
        }
        let operation: *mut Operation<A> = Box::into_raw(self);
        // SAFETY: in no list, and lives until a call ends it. What is tracked comes first.
        unsafe { requests::track(operation.cast(), request.word()) };
        result
    }
}

impl<A: Abi> OperationRef<A> {
    /// What is under way with a request, which stays in the table; none if the request is the MPI's alone.
    #[inline]
    pub fn find(request: A::Handle) -> Option<OperationRef<A>> {
        if !requests::any() || request == A::handles().request_null {
            return None;
        }
        NonNull::new(requests::find_tracked(request.word()).cast()).map(OperationRef)
    }

    /// The same, for a call that may complete the request.
    #[inline]
    pub fn take(request: A::Handle) -> Option<OperationRef<A>> {
        poll_freed::<A>();
        if !requests::any() || request == A::handles().request_null {
            return None;
        }
        NonNull::new(requests::take_tracked(request.word()).cast()).map(OperationRef)
    }

    /// Whether the handle stays valid when the request ends.
    pub fn is_persistent(self) -> bool {
        self.tracked.is_persistent()
    }

    /// Puts it back, after a call that has not ended it.
    pub fn keep(self) {
        if !self.is_persistent() {
            let request = self.tracked.request();
            // SAFETY: taken out by this thread.
            unsafe { requests::track(self.0.as_ptr().cast(), request) };
        }
    }

    /// After a request has ended, as `result` says: unpacks what was received.
    ///
    /// # Safety
    ///
    /// `status` is that of the request, which nobody uses any more unless it is persistent.
    pub unsafe fn end(self, status: *const A::Status, mut result: c_int) -> c_int {
        if result == MPI_SUCCESS {
            // SAFETY: as the caller says.
            result = unsafe { self.unpack(status) };
        }
        if !self.is_persistent() {
            // SAFETY: as the caller says.
            unsafe { self.drop_it() };
        }
        result
    }

    /// Gives it up.
    ///
    /// # Safety
    ///
    /// It is in no list, and nobody uses it any more.
    unsafe fn drop_it(self) {
        // SAFETY: a box that the table owned.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }

    /// Before the MPI starts a persistent operation: packs what is sent, unless that is packed, or received over; false if that fails.
    pub fn start(self, is_packed: bool) -> bool {
        if let Some(exchange) = &self.exchange {
            return exchange.pack();
        }
        let packed = is_packed || self.out.as_ref().is_none_or(Staged::pack_sent);
        packed && self.input.as_ref().is_none_or(Staged::fill)
    }

    /// After the MPI has started it, or has failed. Open MPI may start another request in its place.
    pub fn started(self, request: A::Handle, result: c_int) {
        if result == MPI_SUCCESS {
            self.unpacked.store(NOT_UNPACKED, Ordering::Relaxed);
        }
        if self.tracked.request() != request.word() {
            let tracked = self.0.as_ptr().cast();
            // SAFETY: in the table, by its former request.
            unsafe {
                requests::untrack(tracked);
                requests::track(tracked, request.word());
            }
        }
    }

    /// `MPI_Request_free`: staging memory is needed until an active request has ended, which later calls look for.
    ///
    /// # Safety
    ///
    /// `request` leads to its request, and it was taken.
    pub unsafe fn free(self, request: *mut A::Handle, free: impl FnOnce() -> c_int) -> c_int {
        let mut status = A::new_status();
        // MPICH 4.0 says of a persistent collective that was never started that it has not ended.
        let idle = self.exchange.is_some() && self.unpacked.load(Ordering::Acquire) == UNPACKED;
        // SAFETY: as the caller says.
        unsafe {
            if self.is_persistent() {
                requests::untrack(self.0.as_ptr().cast());
            }
            if !idle && !has_ended::<A>(*request, &mut status) {
                self.leave(*request);
                *request = A::handles().request_null;
                return MPI_SUCCESS;
            }
            let result = self.unpack(&status);
            let freed = free();
            self.drop_it();
            if freed == MPI_SUCCESS { result } else { freed }
        }
    }

    /// Adds it to those that later calls end.
    ///
    /// # Safety
    ///
    /// It is in no list.
    unsafe fn leave(self, request: A::Handle) {
        // SAFETY: in no list, so this thread's.
        unsafe { (*self.freed.get()).0 = request };
        let mut first = FREED.load(Ordering::Relaxed);
        loop {
            // SAFETY: as above.
            unsafe { (*self.freed.get()).1 = first.cast() };
            match FREED.compare_exchange(first, self.0.as_ptr().cast(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Sends a copy whose request the program does not see.
    pub fn leave_copy(operation: Box<Operation<A>>, request: A::Handle) {
        let operation = OperationRef(NonNull::from(Box::leak(operation)));
        // SAFETY: in no list.
        unsafe { operation.leave(request) };
    }
}

/// Takes all operations that were freed.
fn take_freed<A: Abi>() -> Vec<OperationRef<A>> {
    let mut all = Vec::new();
    let mut next: *mut Operation<A> = FREED.swap(null_mut(), Ordering::Acquire).cast();
    while let Some(operation) = NonNull::new(next) {
        all.push(OperationRef(operation));
        // SAFETY: taken by this thread.
        next = unsafe { (*operation.as_ref().freed.get()).1 };
    }
    all
}

/// Ends those that the MPI has completed.
#[cold]
#[inline(never)]
fn end_freed<A: Abi>() {
    let pmpi = pmpi::<A>();
    for operation in take_freed::<A>() {
        let (mut ended, mut status) = (0, A::new_status());
        // SAFETY: taken by this thread; a request of the MPI, and both are writable.
        unsafe {
            let mut request = (*operation.freed.get()).0;
            let result = (pmpi.test)(&mut request, &mut ended, &mut status);
            if result == MPI_SUCCESS && ended == 0 {
                operation.leave(request);
                continue;
            }
            if result == MPI_SUCCESS {
                operation.unpack(&status);
            }
            if operation.is_persistent() {
                (pmpi.request_free)(&mut request);
            }
            operation.drop_it();
        }
    }
}

#[inline]
fn poll_freed<A: Abi>() {
    if !FREED.load(Ordering::Relaxed).is_null() {
        end_freed::<A>();
    }
}

/// Before the MPI ends. Staging memory of those under way is lost: the MPI may still send from it.
pub fn release_freed<A: Abi>() {
    end_freed::<A>();
    for operation in take_freed::<A>() {
        // SAFETY: taken by this thread; a request of the MPI.
        unsafe {
            let mut request = (*operation.freed.get()).0;
            (pmpi::<A>().request_free)(&mut request);
        }
    }
}

/// What was found for an array of requests, with statuses for a program that ignores them. Those that were taken and not ended are put back when it
/// is dropped.
pub struct RequestLookup<A: Abi> {
    operations: Vec<Option<OperationRef<A>>>,
    statuses: Vec<A::Status>,
    taken: bool,
}

impl<A: Abi> RequestLookup<A> {
    /// Finds, or takes, the operations of an array; none if all of its requests are the MPI's.
    ///
    /// # Safety
    ///
    /// `requests` is null or leads to so many requests.
    #[inline]
    pub unsafe fn new(length: c_int, requests: *const A::Handle, take: bool) -> Option<RequestLookup<A>> {
        if take {
            poll_freed::<A>();
        }
        if !requests::any() || length <= 0 || requests.is_null() {
            return None;
        }
        // SAFETY: as the caller says.
        RequestLookup::look(unsafe { std::slice::from_raw_parts(requests, length as usize) }, take)
    }

    #[inline(never)]
    fn look(all: &[A::Handle], take: bool) -> Option<RequestLookup<A>> {
        let first = all.iter().position(|request| OperationRef::<A>::find(*request).is_some())?;
        let find = |request: &A::Handle| if take { OperationRef::take(*request) } else { OperationRef::find(*request) };
        let operations = std::iter::repeat_n(None, first).chain(all[first..].iter().map(find)).collect();
        let statuses = if take { vec![A::new_status(); all.len()] } else { Vec::new() };
        Some(RequestLookup { operations, statuses, taken: take })
    }

    /// The operation of each request.
    pub fn operations(&self) -> &[Option<OperationRef<A>>] {
        &self.operations
    }

    /// The place of an operation, which is empty when it has ended.
    pub fn place(&mut self, at: usize) -> Option<&mut Option<OperationRef<A>>> {
        self.operations.get_mut(at)
    }

    /// The statuses of the program, or own ones.
    pub fn statuses(&mut self, of_program: *mut A::Status) -> *mut A::Status {
        if std::ptr::eq(of_program, A::STATUS_IGNORE) { self.statuses.as_mut_ptr() } else { of_program }
    }
}

impl<A: Abi> Drop for RequestLookup<A> {
    fn drop(&mut self) {
        if self.taken {
            self.operations.iter().flatten().for_each(|operation| operation.keep());
        }
    }
}
