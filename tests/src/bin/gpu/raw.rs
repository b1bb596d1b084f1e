//! Driver functions that the runtime does not need: kernels that run until they are released, blocking streams, and the
//! current context.

use crate::harness::{expect, text};
use dtc_runtime::Gpu;
use dtc_runtime::cuda::{Driver, PinnedBuffer, Stream};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

type Handle = *mut c_void;

/// The functions, as `cuda.h` declares them.
pub struct Raw {
    context_get_current: unsafe extern "C" fn(*mut Handle) -> c_int,
    module_load: unsafe extern "C" fn(*mut Handle, *const c_void) -> c_int,
    module_unload: unsafe extern "C" fn(Handle) -> c_int,
    module_function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> c_int,
    stream_create: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int,
    stream_destroy: unsafe extern "C" fn(Handle) -> c_int,
    launch: unsafe extern "C" fn(
        Handle,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        Handle,
        *mut Handle,
        *mut Handle,
    ) -> c_int,
}

/// # Safety
///
/// `T` is the type of a C function pointer that fits the function's declaration.
unsafe fn symbol<T: Copy>(library: *mut c_void, name: &CStr) -> Result<T, String> {
    // SAFETY: the library is open and never closed, and `name` is NUL-terminated.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    expect(!found.is_null(), || format!("the driver has no {}", name.to_string_lossy()))?;
    // SAFETY: `T` is a function pointer type (contract of this function), which has the size of `found`.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&found) })
}

impl Raw {
    pub fn get() -> Result<&'static Raw, String> {
        static RAW: OnceLock<Result<Raw, String>> = OnceLock::new();
        RAW.get_or_init(Raw::find).as_ref().map_err(Clone::clone)
    }

    fn find() -> Result<Raw, String> {
        let path = Driver::get().map_err(text)?.path().ok_or("the driver has no path")?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(text)?;
        // SAFETY: the driver is loaded already, so no constructor runs.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        expect(!library.is_null(), || "the driver does not open".to_owned())?;
        // SAFETY: the types are those of the declarations in `cuda.h`.
        unsafe {
            Ok(Raw {
                context_get_current: symbol(library, c"cuCtxGetCurrent")?,
                module_load: symbol(library, c"cuModuleLoadData")?,
                module_unload: symbol(library, c"cuModuleUnload")?,
                module_function: symbol(library, c"cuModuleGetFunction")?,
                stream_create: symbol(library, c"cuStreamCreate")?,
                stream_destroy: symbol(library, c"cuStreamDestroy_v2")?,
                launch: symbol(library, c"cuLaunchKernel")?,
            })
        }
    }

    /// The context that is current in this thread, as a number; zero for none.
    pub fn current_context(&self) -> Result<usize, String> {
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is a live handle to fill.
        check("cuCtxGetCurrent", unsafe { (self.context_get_current)(&mut context) })?;
        Ok(context.addr())
    }
}

fn check(call: &str, code: c_int) -> Result<(), String> {
    expect(code == 0, || format!("{call}: status {code}"))
}

/// Streams that a CUDA stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// It waits for the legacy default stream, and that waits for it.
    Blocking = 0,
    /// It waits for no other stream.
    NonBlocking = 1,
}

/// A kernel that ends when the first word is not zero. It sets a second word when it runs, and a third if it gave up,
/// so that a wrong test does not hold a device for ever. Only the first block reads the first word, which is in host
/// memory, and tells the other blocks: reads of thousands of warps would leave no bandwidth of the link to copies.
const SPIN: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 released = 0;
.visible .entry dtc_test_spin(.param .u64 words, .param .u64 nanoseconds)
{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [words];
    ld.param.u64 %rd2, [nanoseconds];
    mov.u64 %rd3, %globaltimer;
    mov.u32 %r1, 1;
    st.volatile.u32 [%rd1+64], %r1;
    mov.u32 %r3, %ctaid.x;
    setp.eq.u32 %p3, %r3, 0;
    mov.u64 %rd6, released;
    cvta.global.u64 %rd6, %rd6;
AGAIN:
    @%p3 ld.volatile.u32 %r2, [%rd1];
    @!%p3 ld.volatile.u32 %r2, [%rd6];
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    mov.u64 %rd4, %globaltimer;
    sub.u64 %rd5, %rd4, %rd3;
    setp.lt.u64 %p2, %rd5, %rd2;
    nanosleep.u32 200000;
    @%p2 bra AGAIN;
    st.volatile.u32 [%rd1+128], %r1;
DONE:
    st.volatile.u32 [%rd6], %r1;
    ret;
}
";

/// Time limit of the kernel.
const PATIENCE: Duration = Duration::from_secs(40);

/// A kernel that runs until it is released, on a stream of its own.
pub struct Spinner {
    gpu: Gpu,
    words: PinnedBuffer,
    stream: Handle,
    module: Handle,
}

// SAFETY: the driver accepts the handles of stream and module from any thread.
unsafe impl Sync for Spinner {}

impl Spinner {
    /// Starts a kernel of `blocks` blocks of one warp, and waits until it runs.
    pub fn start(gpu: &Gpu, blocks: u32, kind: StreamKind) -> Result<Spinner, String> {
        let raw = Raw::get()?;
        let words = PinnedBuffer::new(gpu.device(), 192).map_err(text)?;
        let _scope = gpu.device().scope().map_err(text)?;
        let null = std::ptr::null_mut();
        let mut spinner = Spinner { gpu: gpu.clone(), words, stream: null, module: null };
        let mut function = null;
        // SAFETY: the context is current, the texts are NUL-terminated, and the handles are live.
        unsafe {
            check("cuModuleLoadData", (raw.module_load)(&mut spinner.module, SPIN.as_ptr().cast()))?;
            let name = c"dtc_test_spin".as_ptr().cast();
            check("cuModuleGetFunction", (raw.module_function)(&mut function, spinner.module, name))?;
            check("cuStreamCreate", (raw.stream_create)(&mut spinner.stream, kind as c_uint))?;
        }
        let none = std::ptr::null_mut();
        let (mut address, mut limit) = (spinner.words.address(), PATIENCE.as_nanos() as u64);
        let mut parameters: [Handle; 2] = [(&raw mut address).cast(), (&raw mut limit).cast()];
        // SAFETY: the parameters are those of the kernel, and the words live until it has ended.
        let code =
            unsafe { (raw.launch)(function, blocks, 1, 1, 32, 1, 1, 0, spinner.stream, parameters.as_mut_ptr(), none) };
        check("cuLaunchKernel", code)?;
        let start = Instant::now();
        while spinner.word(64).load(Ordering::Acquire) == 0 {
            let late = start.elapsed() > Duration::from_secs(10);
            expect(!late, || "the kernel that should spin did not start within 10 s".to_owned())?;
        }
        Ok(spinner)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the pinned buffer has the word, aligned, and host and kernel access it atomically.
        unsafe { AtomicU32::from_ptr(self.words.as_ptr().add(at).cast()) }
    }

    /// The stream that the kernel runs on.
    pub fn stream(&self) -> Stream {
        // SAFETY: the stream belongs to the device's primary context, and the tests drop the returned value before the
        // spinner.
        unsafe { Stream::borrow(self.gpu.device(), self.stream) }
    }

    /// Releases the kernel.
    pub fn release(&self) {
        self.word(0).store(1, Ordering::Release);
    }

    /// Releases the kernel and waits for it; an error if it gave up before.
    pub fn finish(self) -> Result<(), String> {
        self.release();
        self.stream().synchronize().map_err(text)?;
        let gave_up = self.word(128).load(Ordering::Acquire) != 0;
        expect(!gave_up, || format!("the kernel spun for {PATIENCE:?} without being released"))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.release();
        let (Ok(raw), Ok(_scope)) = (Raw::get(), self.gpu.device().scope()) else { return };
        if !self.stream.is_null() {
            let _ = self.stream().synchronize();
            // SAFETY: `start` created the stream, and its work is done.
            let _ = unsafe { (raw.stream_destroy)(self.stream) };
        }
        if !self.module.is_null() {
            // SAFETY: `start` loaded the module, and its kernel has ended.
            let _ = unsafe { (raw.module_unload)(self.module) };
        }
    }
}
