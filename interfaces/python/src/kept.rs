//! Memory of frameworks that know nothing of the stream of a call, held until the stream has run.
//!
//! Allocators of PyTorch and CuPy give memory to later work of the same stream alone. That of JAX gives it to work of streams of its own,
//! which wait for none of ours.

use crate::errors::refused;
use dtc_runtime::cuda::{CaptureStatus, CudaError, Event, Stream};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
#[expect(clippy::disallowed_types, reason = "as for its use")]
use std::sync::Mutex;
use std::sync::PoisonError;

/// What is held, and the event that its stream reaches behind the work.
type Pending = (Event, Vec<Py<PyAny>>);

#[expect(clippy::disallowed_types, reason = "a forked child has no stream to keep memory for: CUDA is refused there")]
static KEPT: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// Holds objects until `stream` has run what is enqueued, and lets go of what earlier calls held and their streams have run. Graphs hold
/// nothing: who has captured one keeps its arrays.
pub fn keep(py: Python<'_>, stream: &Stream, objects: Vec<Py<PyAny>>) -> PyResult<()> {
    if objects.is_empty() {
        return Ok(());
    }
    let kept = match event(stream).map_err(refused)? {
        Some(event) => (event, objects),
        None => return Ok(()),
    };
    let mut held = KEPT.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
    // An event that cannot be asked stays: its memory may be in use.
    let finished: Vec<Pending> = held.extract_if(.., |(event, _)| event.query().unwrap_or(false)).collect();
    held.push(kept);
    drop(held);
    // Freeing an array runs code of its framework, which may call this function.
    drop(finished);
    Ok(())
}

fn event(stream: &Stream) -> Result<Option<Event>, CudaError> {
    if stream.capture_status()? != CaptureStatus::None {
        return Ok(None);
    }
    let event = Event::new(stream.device())?;
    event.record(stream)?;
    Ok(Some(event))
}
