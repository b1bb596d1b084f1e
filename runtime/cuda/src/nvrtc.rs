//! NVRTC compiles CUDA C++ in the process. It needs neither a GPU nor the driver.

use super::binary::{Architecture, Binary};
use super::driver::Driver;
use super::error::{CudaError, Version};
use super::library::{Kind, Library};
use super::search;
use crate::fork;
use dtc_host::exit;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(test)]
#[path = "tests/nvrtc_declarations.rs"]
mod declarations;

static KIND: Kind = Kind {
    name: "NVRTC",
    variable: c"DTC_NVRTC",
    hint: "pip install nvidia-cuda-nvrtc, or install the CUDA toolkit, or name the path of libnvrtc.so in DTC_NVRTC",
};

// Values of `nvrtcResult`.
const SUCCESS: c_int = 0;
const INVALID_INPUT: c_int = 3;
const INVALID_OPTION: c_int = 5;
const COMPILATION: c_int = 6;
const BUILTIN_OPERATION_FAILURE: c_int = 7;

/// `nvrtcProgram`.
type Program = *mut c_void;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type TextOf = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

struct NvrtcFunctions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    architecture_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log: (SizeOf, TextOf),
    ptx: (SizeOf, TextOf),
    cubin: (SizeOf, TextOf),
}

/// NVRTC of this machine. One compilation takes tens of milliseconds; threads may compile concurrently.
///
/// ```
/// use dtc_cuda::Nvrtc;
/// match Nvrtc::get() {
///     Ok(nvrtc) => println!("NVRTC {}", nvrtc.version()),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub struct Nvrtc {
    functions: NvrtcFunctions,
    version: Version,
    architectures: Vec<u32>,
    path: Option<PathBuf>,
    /// Whether to pass `--minimal`, which saves a sixth of the time; cleared when NVRTC rejects it.
    minimal: AtomicBool,
    /// Whether it has compiled something.
    used: AtomicBool,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}

static NVRTC: OnceLock<Result<Nvrtc, CudaError>> = OnceLock::new();

impl Nvrtc {
    /// Loads NVRTC at the first call: by the path in the environment variable `DTC_NVRTC`, or by its usual names in the
    /// usual folders of the toolkit and of Python packages. Of several, it takes the newest that is not newer than the
    /// driver, because a driver loads no code of newer compilers.
    ///
    /// # Errors
    ///
    /// The library is missing or lacks functions; the result is the same for the whole process. [`CudaError::Forked`]
    /// in a child that was forked while NVRTC compiled.
    ///
    /// ```
    /// use dtc_cuda::{CudaError, Nvrtc};
    /// if let Err(CudaError::LibraryMissing { hint, .. }) = Nvrtc::get() {
    ///     assert!(hint.contains("pip install nvidia-cuda-nvrtc"));
    /// }
    /// ```
    pub fn get() -> Result<&'static Nvrtc, CudaError> {
        fork::NVRTC.check()?;
        // A child forked while a thread loads NVRTC could wait for that thread for ever, so the watch covers the load.
        let loaded = match NVRTC.get() {
            Some(loaded) => loaded,
            None => fork::NVRTC.during(|| NVRTC.get_or_init(Nvrtc::load)),
        };
        loaded.as_ref().map_err(CudaError::clone)
    }

    /// Its version, which is that of its CUDA toolkit.
    ///
    /// ```
    /// use dtc_cuda::{Nvrtc, Version};
    /// if let Ok(nvrtc) = Nvrtc::get() {
    ///     assert!(nvrtc.version() >= Version { major: 11, minor: 2 });
    /// }
    /// ```
    pub fn version(&self) -> Version {
        self.version
    }

    /// Path of the library, if the loader reports it.
    ///
    /// ```
    /// use dtc_cuda::Nvrtc;
    /// if let Some(path) = Nvrtc::get().ok().and_then(Nvrtc::path) {
    ///     println!("{}", path.display());
    /// }
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The architectures it compiles for, ascending: 75 is sm_75.
    ///
    /// ```
    /// use dtc_cuda::Nvrtc;
    /// if let Ok(nvrtc) = Nvrtc::get() {
    ///     assert!(nvrtc.supported_architectures().is_sorted());
    /// }
    /// ```
    pub fn supported_architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// The target to compile for so that a device of this architecture can run it: a cubin if NVRTC knows the
    /// architecture, or else PTX of the newest one before it.
    ///
    /// # Errors
    ///
    /// NVRTC supports only newer architectures.
    ///
    /// ```
    /// use dtc_cuda::{Architecture, Nvrtc};
    /// if let Ok(nvrtc) = Nvrtc::get() {
    ///     assert!(matches!(nvrtc.architecture_for(100_000), Ok(Architecture::Ptx(_))));
    ///     assert!(nvrtc.architecture_for(20).is_err());
    /// }
    /// ```
    pub fn architecture_for(&self, device: u32) -> Result<Architecture, CudaError> {
        match self.architectures.iter().rev().find(|known| **known <= device) {
            Some(known) if *known == device => Ok(Architecture::Cubin(device)),
            Some(known) => Ok(Architecture::Ptx(*known)),
            None => Err(self.unsupported(device)),
        }
    }

    /// Compiles a program. Functions without a qualifier are device functions. `name` stands for the file in messages;
    /// `options` are those of NVRTC, such as `-lineinfo`.
    ///
    /// # Errors
    ///
    /// [`CudaError::Compile`] with the compiler's log if the program or an option is wrong, [`CudaError::Architecture`]
    /// if NVRTC does not know the architecture.
    ///
    /// ```
    /// use dtc_cuda::{Architecture, CudaError, Nvrtc};
    /// if let Ok(nvrtc) = Nvrtc::get() {
    ///     let error = nvrtc.compile("int f() { return x; }", "f.cu", Architecture::Ptx(90), &[]).unwrap_err();
    ///     assert!(matches!(error, CudaError::Compile { log, .. } if log.contains("f.cu")));
    /// }
    /// ```
    pub fn compile(
        &self,
        source: &str,
        name: &str,
        architecture: Architecture,
        options: &[&str],
    ) -> Result<Binary, CudaError> {
        fork::NVRTC.check()?;
        let (Architecture::Cubin(number) | Architecture::Ptx(number)) = architecture;
        if !self.architectures.contains(&number) {
            return Err(self.unsupported(number));
        }
        let compiled = fork::NVRTC.during(|| {
            if self.minimal.load(Ordering::Relaxed) {
                let minimal = [&["--minimal"], options].concat();
                match self.attempt(source, name, architecture, &minimal) {
                    Err((INVALID_OPTION, _)) => {}
                    result => return result.map_err(|(_, error)| error),
                }
                let plain = self.attempt(source, name, architecture, options);
                // If `--minimal` was not at fault, NVRTC rejects the options again.
                if !matches!(plain, Err((INVALID_OPTION, _))) {
                    self.minimal.store(false, Ordering::Relaxed);
                }
                return plain.map_err(|(_, error)| error);
            }
            self.attempt(source, name, architecture, options).map_err(|(_, error)| error)
        });
        // The first compilation makes what NVRTC destroys at the end of the process.
        if !self.used.swap(true, Ordering::Relaxed) {
            exit::come_first();
        }
        compiled
    }

    fn attempt(
        &self,
        source: &str,
        name: &str,
        architecture: Architecture,
        options: &[&str],
    ) -> Result<Binary, (c_int, CudaError)> {
        let text = |text: &str, place| CString::new(text).map_err(|_| (INVALID_INPUT, CudaError::Nul { place }));
        let (source, name) = (text(source, "source")?, text(name, "name of the source")?);
        let mut arguments = vec![text(&format!("-arch={architecture}"), "option")?, text("-default-device", "option")?];
        for option in options {
            arguments.push(text(option, "option")?);
        }
        let arguments: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();

        let mut program = OpenProgram { nvrtc: self, program: std::ptr::null_mut() };
        let none = std::ptr::null();
        // SAFETY: `source` and `name` are NUL-terminated, there are 0 headers, and `program.program` is a live handle
        // to fill.
        let code =
            unsafe { (self.functions.create)(&mut program.program, source.as_ptr(), name.as_ptr(), 0, none, none) };
        self.check("nvrtcCreateProgram", code)?;
        let count = c_int::try_from(arguments.len()).unwrap_or(c_int::MAX);
        // SAFETY: `program` is alive, and `arguments` holds `count` NUL-terminated options.
        let code = unsafe { (self.functions.compile)(program.program, count, arguments.as_ptr()) };
        // NVRTC may have no log even for a program that it rejects.
        let log = program.take("nvrtcGetProgramLog", self.functions.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).trim_end().to_owned();
        match code {
            SUCCESS => {}
            INVALID_OPTION | COMPILATION => {
                return Err((code, CudaError::Compile { compiler: "NVRTC", name: self.describe(code), log }));
            }
            _ => self.check("nvrtcCompileProgram", code)?,
        }
        let bytes = match architecture {
            Architecture::Ptx(_) => program.take("nvrtcGetPTX", self.functions.ptx)?,
            Architecture::Cubin(_) => program.take_all("nvrtcGetCUBIN", self.functions.cubin)?,
        };
        Ok(Binary { architecture, bytes, log })
    }

    fn load() -> Result<Nvrtc, CudaError> {
        let driver = Driver::get().ok().map(Driver::version);
        let mut library = Library::open(&KIND, search::nvrtc(driver))?;
        // SAFETY: the types are those of the declarations in `nvrtc.h`.
        let functions = unsafe {
            NvrtcFunctions {
                version: library.symbol("nvrtcVersion")?,
                architecture_count: library.symbol("nvrtcGetNumSupportedArchs")?,
                architectures: library.symbol("nvrtcGetSupportedArchs")?,
                error_text: library.symbol("nvrtcGetErrorString")?,
                create: library.symbol("nvrtcCreateProgram")?,
                destroy: library.symbol("nvrtcDestroyProgram")?,
                compile: library.symbol("nvrtcCompileProgram")?,
                log: (library.symbol("nvrtcGetProgramLogSize")?, library.symbol("nvrtcGetProgramLog")?),
                ptx: (library.symbol("nvrtcGetPTXSize")?, library.symbol("nvrtcGetPTX")?),
                cubin: (library.symbol("nvrtcGetCUBINSize")?, library.symbol("nvrtcGetCUBIN")?),
            }
        };
        let mut nvrtc = Nvrtc {
            functions,
            version: Version { major: 0, minor: 0 },
            architectures: Vec::new(),
            path: library.path().map(Path::to_owned),
            minimal: AtomicBool::new(true),
            used: AtomicBool::new(false),
        };
        exit::come_first();
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: `major` and `minor` are live integers.
        nvrtc.check("nvrtcVersion", unsafe { (nvrtc.functions.version)(&mut major, &mut minor) }).map_err(second)?;
        // SAFETY: `count` is a live integer.
        let code = unsafe { (nvrtc.functions.architecture_count)(&mut count) };
        nvrtc.check("nvrtcGetNumSupportedArchs", code).map_err(second)?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: `architectures` has room for the `count` numbers that NVRTC announced.
        let code = unsafe { (nvrtc.functions.architectures)(architectures.as_mut_ptr()) };
        nvrtc.check("nvrtcGetSupportedArchs", code).map_err(second)?;
        nvrtc.version = Version { major: major.unsigned_abs(), minor: minor.unsigned_abs() };
        nvrtc.architectures = architectures.into_iter().map(c_int::unsigned_abs).collect();
        nvrtc.architectures.sort_unstable();
        // NVRTC opens its builtins by their bare name, which works only on the loader's path or if they are already
        // open.
        library.preload_beside(&format!("libnvrtc-builtins.so.{}", nvrtc.version));
        library.keep();
        Ok(nvrtc)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), (c_int, CudaError)> {
        match code {
            SUCCESS => Ok(()),
            _ => Err((code, CudaError::Call { call, code, name: self.describe(code) })),
        }
    }

    fn describe(&self, code: c_int) -> String {
        // SAFETY: NVRTC accepts any code.
        let text = unsafe { (self.functions.error_text)(code) };
        if text.is_null() {
            return "an unknown status".to_owned();
        }
        // SAFETY: NVRTC's texts are NUL-terminated constants.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        match code {
            BUILTIN_OPERATION_FAILURE => {
                format!("{text}, libnvrtc-builtins.so.{} has to lie beside libnvrtc.so", self.version)
            }
            _ => text,
        }
    }

    fn unsupported(&self, architecture: u32) -> CudaError {
        let newest = self.architectures.last().is_none_or(|newest| architecture > *newest);
        let hint = if newest {
            "pip install --upgrade nvidia-cuda-nvrtc"
        } else {
            "pip install nvidia-cuda-nvrtc-cu12, which knows architectures from sm_50 on, and name its libnvrtc.so.12 \
             in DTC_NVRTC"
        };
        CudaError::Architecture { version: self.version, architecture, supported: self.architectures.clone(), hint }
    }
}

fn second(error: (c_int, CudaError)) -> CudaError {
    error.1
}

struct OpenProgram<'nvrtc> {
    nvrtc: &'nvrtc Nvrtc,
    program: Program,
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: `program` was created once, and `drop` runs once.
            let _ = unsafe { (self.nvrtc.functions.destroy)(&mut self.program) };
        }
    }
}

impl OpenProgram<'_> {
    /// Reads a text of the program, without the NUL byte at its end.
    fn take(&self, call: &'static str, functions: (SizeOf, TextOf)) -> Result<Vec<u8>, (c_int, CudaError)> {
        let mut text = self.take_all(call, functions)?;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }

    fn take_all(&self, call: &'static str, (size, get): (SizeOf, TextOf)) -> Result<Vec<u8>, (c_int, CudaError)> {
        let mut bytes = 0;
        // SAFETY: `self` keeps the program alive, and `bytes` is a live integer.
        self.nvrtc.check(call, unsafe { size(self.program, &mut bytes) })?;
        let mut text = vec![0_u8; bytes];
        // SAFETY: `text` has the `bytes` bytes that NVRTC announced.
        self.nvrtc.check(call, unsafe { get(self.program, text.as_mut_ptr().cast()) })?;
        Ok(text)
    }
}
