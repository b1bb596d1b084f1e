//! Compiles the text of CUDA kernels with NVRTC, which needs no GPU.

use crate::skip::is_full;
use dtc_runtime::cuda::{Architecture, CudaError, Nvrtc};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Architectures that every text must compile for.
pub static ARCHITECTURES: [u32; 3] = [80, 90, 100];

/// Threads that compile; NVRTC compiles only few texts at a time in one process.
const THREADS: usize = 2;

/// A text that NVRTC refused or warned of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the text.
    pub name: String,
    /// Architecture: 90 is sm_90.
    pub architecture: u32,
    /// NVRTC's log, then the text with numbered lines.
    pub log: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{} for sm_{}:\n{}", self.name, self.architecture, self.log)
    }
}

/// Compiles every named text to a cubin for each of [`ARCHITECTURES`]. Returns errors and warnings.
///
/// # Errors
///
/// NVRTC is missing, or does not know the architectures.
///
/// ```no_run
/// let texts = [("nothing".to_owned(), "extern \"C\" __global__ void nothing() {}".to_owned())];
/// match dtc_tests::nvrtc::compile_all(&texts) {
///     Ok(refusals) => assert_eq!(refusals, []),
///     Err(missing) => dtc_tests::skip::skip("nothing compiles", &missing.to_string()),
/// }
/// ```
pub fn compile_all(texts: &[(String, String)]) -> Result<Vec<Refusal>, CudaError> {
    compile_texts(texts, |_| &ARCHITECTURES)
}

/// The same for one of [`ARCHITECTURES`] after the other, a text for each; for all of them with `./test full`.
///
/// # Errors
///
/// Those of [`compile_all`].
///
/// See [`compile_all`] for an example.
pub fn compile_in_turn(texts: &[(String, String)]) -> Result<Vec<Refusal>, CudaError> {
    let one = |at: usize| ARCHITECTURES.chunks(1).nth(at % ARCHITECTURES.len()).unwrap_or_default();
    compile_texts(texts, |at| if is_full() || texts.len() < ARCHITECTURES.len() { &ARCHITECTURES } else { one(at) })
}

fn compile_texts(
    texts: &[(String, String)],
    architectures: impl Fn(usize) -> &'static [u32] + Sync,
) -> Result<Vec<Refusal>, CudaError> {
    let nvrtc = Nvrtc::get()?;
    for architecture in ARCHITECTURES {
        if !nvrtc.supported_architectures().contains(&architecture) {
            // The error is the one that a compilation would return.
            nvrtc.compile("", "nothing", Architecture::Cubin(architecture), &[])?;
        }
    }
    let next = AtomicUsize::new(0);
    let refusals = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, text)) = texts.get(at) else { break };
                    let mut refused = compile(nvrtc, name, text, architectures(at));
                    refusals.lock().unwrap_or_else(PoisonError::into_inner).append(&mut refused);
                }
            });
        }
    });
    let mut refusals = refusals.into_inner().unwrap_or_else(PoisonError::into_inner);
    refusals.sort_by(|one: &Refusal, other| (&one.name, one.architecture).cmp(&(&other.name, other.architecture)));
    Ok(refusals)
}

fn compile(nvrtc: &Nvrtc, name: &str, text: &str, architectures: &[u32]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for &architecture in architectures {
        let said = match nvrtc.compile(text, name, Architecture::Cubin(architecture), &[]) {
            Ok(binary) if binary.log.is_empty() => continue,
            Ok(binary) => binary.log,
            Err(CudaError::Compile { log, .. }) => log,
            Err(error) => error.to_string(),
        };
        let mut log = format!("{said}\n");
        for (number, line) in text.lines().enumerate() {
            let _ = writeln!(log, "{:5}  {line}", number + 1);
        }
        refusals.push(Refusal { name: name.to_owned(), architecture, log });
    }
    refusals
}
