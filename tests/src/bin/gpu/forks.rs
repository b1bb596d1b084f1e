//! Forked children: CUDA fails in them, the CPU works, and the parent continues.

use crate::buffers::{Buffers, POISON};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use crate::types;
use dtc_runtime::cuda::{CudaError, Device, DeviceBuffer, Stream};
use dtc_runtime::{Committed, Range, Tier};
use std::time::{Duration, Instant};

/// Time limit of a child.
const LIMIT: Duration = Duration::from_secs(20);

pub fn add(tests: &mut Tests, on: &OnTier) {
    let on = on.clone();
    tests.add(format!("{}: a forked child", on.name), move || forked(&on));
}

fn forked(on: &OnTier) -> Outcome {
    let committed = on.engine.commit(&types::listed(131, 2000)?);
    let mut buffers = Buffers::new(&on.gpu, &committed, 1, 132)?;
    buffers.pack_and_check(&committed)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let other = types::rows(131)?;
    // SAFETY: the child makes only the calls under test, writes nothing to the parent's files, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = std::panic::AssertUnwindSafe(|| in_child(on, &committed, &buffers, &stream, &other));
        let failed = std::panic::catch_unwind(work).unwrap_or(PANIC);
        // SAFETY: `_exit` ends the child at once, without destructors of the parent's state.
        unsafe { libc::_exit(failed) };
    }
    expect(child > 0, || "the process cannot fork".to_owned())?;
    let failed = wait_for(child)?;
    let what = CHECKS.get((failed - 1) as usize).copied().unwrap_or("a panic");
    expect(failed == 0, || format!("in the child: {what} is wrong"))?;
    buffers.pack_and_check(&committed).map_err(|fault| format!("in the parent, afterwards: {fault}"))?;
    let another = on.engine.commit(&types::listed(133, 2000)?);
    let mut buffers = Buffers::new(&on.gpu, &another, 1, 134)?;
    Ok(buffers.pack_and_check(&another).map_err(|fault| format!("in the parent, another type: {fault}"))?)
}

/// Waits for a child up to a time limit; returns its status.
fn wait_for(child: libc::pid_t) -> Result<i32, String> {
    let start = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: this process forked the child and waits for it once.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 if start.elapsed() > LIMIT => {
                // SAFETY: the child was not waited for yet, so no other process can have its id.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // SAFETY: this process forked the child and has not waited for it yet.
                unsafe { libc::waitpid(child, &mut status, 0) };
                return Err(format!("the child was not done after {LIMIT:?}"));
            }
            0 => std::thread::sleep(Duration::from_millis(2)),
            -1 => return Err("the child cannot be waited for".to_owned()),
            _ if libc::WIFEXITED(status) => return Ok(libc::WEXITSTATUS(status)),
            _ => return Err(format!("the child was ended by signal {}", libc::WTERMSIG(status))),
        }
    }
}

/// Checks in the child, in order; its exit status is the number of the first that fails.
const CHECKS: [&str; 10] = [
    "a pack of host memory",
    "a pack of host memory by the call for any memory",
    "a type that is new in the child",
    "pack_enqueue",
    "unpack_enqueue",
    "prepare",
    "loading the generic kernels",
    "the tier",
    "opening a GPU or a device",
    "allocating",
];

const PANIC: i32 = 100;

fn in_child(
    on: &OnTier,
    committed: &Committed,
    buffers: &Buffers,
    stream: &Stream,
    other: &dtc_compiler::datatype::Datatype,
) -> i32 {
    let total = buffers.expected.len();
    let mut packed = vec![POISON; total];
    let host =
        committed.pack(&buffers.host, Range::elements(1), &mut packed) == Ok(total) && packed == buffers.expected;
    packed.fill(POISON);
    // SAFETY: both endpoints are host memory and long enough.
    let any = unsafe {
        committed.at(buffers.host.as_ptr(), Range::elements(1).bytes(..total as u64)).pack(packed.as_mut_ptr()).run()
    };
    let any = any == Ok(total) && packed == buffers.expected;
    let new = on.engine.commit(other);
    let span = new.span(1).map_or(0, |(_, high)| high as usize);
    let mut some = vec![POISON; new.facts().size as usize];
    let new = new.pack(&vec![7u8; span], Range::elements(1), &mut some).is_ok() && some.iter().all(|&byte| byte == 7);
    let forked = Err(CudaError::Forked.into());
    let (memory, target) = (buffers.memory.address() as *mut u8, buffers.packed.address() as *mut u8);
    // SAFETY: in a forked child, the call fails before it enqueues anything.
    let enqueued =
        unsafe { committed.at(memory, Range::elements(1).bytes(..total as u64)).pack(target).enqueue(stream) };
    // SAFETY: in a forked child, the call fails before it enqueues anything.
    let unpack =
        unsafe { committed.at(memory, Range::elements(1).bytes(..total as u64)).unpack(target).enqueue(stream) };
    let checks = [
        host,
        any,
        new,
        enqueued == forked,
        unpack == Err(CudaError::Forked.into()),
        committed.prepare(&on.gpu) == Err(CudaError::Forked),
        on.gpu.load() == Err(CudaError::Forked),
        committed.gpu_tier(&on.gpu) == Tier::Generic,
        on.engine.gpu(0).is_err() && Device::get(0) == Err(CudaError::Forked),
        DeviceBuffer::new(on.gpu.device(), 8).is_err(),
    ];
    checks.iter().position(|right| !right).map_or(0, |wrong| wrong as i32 + 1)
}
