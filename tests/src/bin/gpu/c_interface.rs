//! libdtc on device memory: packs, copies and accumulates, blocking, started, on a CUDA stream and in a graph.

use crate::buffers::{POISON, expect_equal, poisoned_buffer, random_bytes};
use crate::faces::{Data, Form, RECORD, address, expect_bytes, holding, ranges};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc::*;
use dtc_runtime::cuda::{CaptureMode, Device, PinnedBuffer, Stream};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("{}: C: {name}", on.name), move || test(&on));
    };
    add(tests, "packs and unpacks", packs);
    add(tests, "requests", requests);
    add(tests, "copies", copies);
    add(tests, "accumulations", accumulations);
    add(tests, "on a stream", on_a_stream);
    add(tests, "in a graph", captured);
    add(tests, "batches", batches);
    add(tests, "buffers of the caller", buffers_of_the_caller);
    add(tests, "what is refused", refused);
}

/// One side of a copy.
fn elements(r#type: *const dtc_type, memory: *const c_void, count: i64, offset: i64) -> dtc_elements {
    dtc_elements { r#type, memory: memory.cast_mut(), count, offset }
}

fn message() -> String {
    // SAFETY: the message is NUL-terminated and valid until the next failure of this thread; it is copied at once.
    unsafe { CStr::from_ptr(dtc_message()) }.to_string_lossy().into_owned()
}

pub fn ok(status: c_int) -> Result<(), String> {
    if status == DTC_OK { Ok(()) } else { Err(format!("status {status}: {}", message())) }
}

/// An engine of the C interface.
pub struct Engine(pub *mut dtc_engine);

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: `with` created the engine, and this value is its only owner.
        unsafe { dtc_finalize(self.0) };
    }
}

/// A committed type of the C interface.
pub struct Type(pub *mut dtc_type);

impl Drop for Type {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference.
        unsafe { dtc_type_release(self.0) };
    }
}

impl Engine {
    /// An engine with a policy of the C interface.
    pub fn new(policy: i32) -> Result<Engine, String> {
        Engine::with(dtc_config { policy, ..config() })
    }

    fn with(config: dtc_config) -> Result<Engine, String> {
        let mut engine = null_mut();
        // SAFETY: `config` has its size set, and `engine` is a live pointer to fill.
        ok(unsafe { dtc_init(&config, &mut engine) })?;
        Ok(Engine(engine))
    }

    pub fn of(on: &OnTier) -> Result<Engine, String> {
        Engine::new(if on.is_compiled() { DTC_POLICY_EAGER } else { DTC_POLICY_OFF })
    }

    fn named(&self, name: &CStr) -> Result<Type, String> {
        let mut made = null_mut();
        // SAFETY: the engine is live, `name` is NUL-terminated, and `made` is a live pointer to fill.
        ok(unsafe { dtc_type_named(self.0, name.as_ptr(), &mut made) })?;
        let made = Type(made);
        // SAFETY: `made` is a live type.
        ok(unsafe { dtc_type_commit(made.0, 0) })?;
        Ok(made)
    }

    fn create(&self, combiner: i32, integers: &[i64], addresses: &[i64], children: &[&Type]) -> Result<Type, String> {
        let children: Vec<*const dtc_type> = children.iter().map(|child| child.0.cast_const()).collect();
        let mut made = null_mut();
        // SAFETY: every list has the given length, the children are live types, and `made` is a live pointer to fill.
        ok(unsafe {
            dtc_type_create(
                self.0,
                combiner,
                integers.as_ptr(),
                integers.len() as i64,
                addresses.as_ptr(),
                addresses.len() as i64,
                children.as_ptr(),
                children.len() as i64,
                null(),
                &mut made,
            )
        })?;
        let made = Type(made);
        // SAFETY: `made` is a live type.
        ok(unsafe { dtc_type_commit(made.0, 0) })?;
        Ok(made)
    }

    pub fn build(&self, form: &Form) -> Result<Type, String> {
        let int = self.named(c"MPI_INT")?;
        match form {
            Form::Rows { count, ints, stride } => {
                self.create(DTC_COMBINER_HVECTOR, &[*count, *ints], &[*stride], &[&int])
            }
            Form::Blocks { displacements } => {
                let integers = [displacements.len() as i64, 2];
                self.create(DTC_COMBINER_HINDEXED_BLOCK, &integers, displacements, &[&int])
            }
            Form::Records { count } => {
                let (double, character) = (self.named(c"MPI_DOUBLE")?, self.named(c"MPI_CHAR")?);
                let integers = [&[3], &RECORD.0[..]].concat();
                let record = self.create(DTC_COMBINER_STRUCT, &integers, &RECORD.1, &[&int, &double, &character])?;
                self.create(DTC_COMBINER_CONTIGUOUS, &[*count], &[], &[&record])
            }
        }
    }
}

/// Settings with every field at its default.
fn config() -> dtc_config {
    // SAFETY: the fields are integers and pointers, for which zero is valid.
    let mut config: dtc_config = unsafe { std::mem::zeroed() };
    (config.size, config.abi_version) = (size_of::<dtc_config>() as i64, DTC_ABI_VERSION);
    config
}

/// A transfer with every field at its default.
pub fn transfer() -> dtc_transfer {
    // SAFETY: the fields are integers and pointers, for which zero is valid.
    let mut transfer: dtc_transfer = unsafe { std::mem::zeroed() };
    transfer.size = size_of::<dtc_transfer>() as i64;
    transfer
}

/// A transfer with both endpoints on the first device.
pub fn on_device() -> dtc_transfer {
    dtc_transfer { memory: DTC_MEMORY_DEVICE, packed: DTC_MEMORY_DEVICE, ..transfer() }
}

/// A transfer to be enqueued on a CUDA stream.
fn enqueued(stream: &Stream) -> dtc_transfer {
    dtc_transfer { flags: DTC_TRANSFER_ENQUEUE, stream: stream.raw(), ..transfer() }
}

impl Type {
    pub fn pack(
        &self,
        source: *const c_void,
        (from, length): (usize, usize),
        packed: *mut c_void,
        transfer: *const dtc_transfer,
    ) -> Result<(), String> {
        let mut done = -1;
        // SAFETY: the tests pass a buffer of one element and one of `length` packed bytes.
        ok(unsafe { dtc_pack(self.0, source, 1, from as i64, packed, length as i64, &mut done, transfer) })?;
        expect(done == length as i64, || format!("{done} bytes were packed, expected {length}"))
    }

    fn unpack(
        &self,
        packed: *const c_void,
        (from, length): (usize, usize),
        memory: *mut c_void,
        transfer: *const dtc_transfer,
    ) -> Result<(), String> {
        let mut done = -1;
        // SAFETY: the tests pass a buffer of one element and one of `length` packed bytes.
        ok(unsafe { dtc_unpack(self.0, memory, 1, from as i64, packed, length as i64, &mut done, transfer) })?;
        expect(done == length as i64, || format!("{done} bytes were unpacked, expected {length}"))
    }

    fn add(
        &self,
        int: &Type,
        packed: *const c_void,
        (from, length): (usize, usize),
        memory: *mut c_void,
        transfer: *const dtc_transfer,
    ) -> Result<(), String> {
        let (mut done, bytes) = (-1, length as i64);
        // SAFETY: the tests pass a buffer of one element and one of `length` packed bytes of whole ints.
        ok(unsafe {
            let (sum, offset) = (DTC_OPERATION_SUM, from as i64);
            dtc_accumulate(sum, int.0, self.0, memory, 1, offset, packed, bytes, &mut done, transfer)
        })?;
        expect(done == bytes, || format!("{done} bytes were accumulated, expected {length}"))
    }

    fn copy(
        &self,
        source: *const c_void,
        to: &Type,
        target: *mut c_void,
        bytes: usize,
        transfer: *const dtc_transfer,
    ) -> Result<(), String> {
        let mut done = -1;
        // SAFETY: the tests pass one element of each type.
        ok(unsafe {
            dtc_copy(&elements(self.0, source, 1, 0), &elements(to.0, target, 1, 0), bytes as i64, &mut done, transfer)
        })?;
        expect(done == bytes as i64, || format!("{done} bytes were copied, expected {bytes}"))
    }
}

fn packs(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let known = on_device();
    for (name, form) in Form::all() {
        let (made, data) = (engine.build(&form)?, Data::new(on, &form, 71)?);
        for (from, length) in ranges(data.packed.len(), true) {
            let part = &data.packed[from..from + length];
            for transfer in [null(), &raw const known] {
                let what = format!("{name}: {length} bytes from {from}");
                let packed = poisoned_buffer(&on.gpu, length)?;
                made.pack(data.source(), (from, length), address(&packed), transfer)?;
                expect_bytes(&format!("{what}: packed"), &packed, part)?;
                let memory = poisoned_buffer(&on.gpu, data.host.len())?;
                made.unpack(address(&packed), (from, length), address(&memory), transfer)?;
                expect_bytes(&format!("{what}: unpacked"), &memory, &data.unpacked(from, part))?;
            }
            // A pack to the host, and back.
            let mut packed = vec![POISON; length];
            made.pack(data.source(), (from, length), packed.as_mut_ptr().cast(), null())?;
            expect_equal(&format!("{name}: to the host"), &packed, part)?;
            let memory = poisoned_buffer(&on.gpu, data.host.len())?;
            made.unpack(packed.as_ptr().cast(), (from, length), address(&memory), null())?;
            expect_bytes(&format!("{name}: from the host"), &memory, &data.unpacked(from, part))?;
        }
    }
    Ok(())
}

/// Waits with `dtc_test` or `dtc_wait`.
fn finish(mut request: *mut dtc_request, by_test: bool) -> Result<(), String> {
    let mut done = 0;
    while by_test && done == 0 {
        // SAFETY: `request` is live or null, and `done` is a live integer.
        ok(unsafe { dtc_test(&mut request, &mut done) })?;
    }
    // SAFETY: `request` is live or null.
    ok(unsafe { dtc_wait(&mut request) })?;
    expect(request.is_null(), || "a request that is done is not null".to_owned())
}

fn requests(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    for (name, form) in Form::all() {
        let (made, data) = (engine.build(&form)?, Data::new(on, &form, 72)?);
        let total = data.packed.len() as i64;
        let (mut done, mut request) = (-1, null_mut());
        for by_test in [true, false] {
            let packed = poisoned_buffer(&on.gpu, data.packed.len())?;
            let mut host = vec![POISON; data.packed.len()];
            for to in [address(&packed), host.as_mut_ptr().cast()] {
                let source = data.source();
                // SAFETY: the buffers hold all bytes, and live until the request is done.
                ok(unsafe { dtc_pack_start(made.0, source, 1, 0, to, total, &mut done, null(), &mut request) })?;
                expect(!request.is_null(), || format!("{name}: a device was done at once"))?;
                finish(request, by_test)?;
                expect(done == total, || format!("{name}: {done} of {total} bytes"))?;
            }
            expect_bytes(name, &packed, &data.packed)?;
            expect_equal(name, &host, &data.packed)?;
            let memory = poisoned_buffer(&on.gpu, data.host.len())?;
            let (from, to) = (address(&packed), address(&memory));
            // SAFETY: the buffers hold all bytes, and live until the request is done.
            ok(unsafe { dtc_unpack_start(made.0, to, 1, 0, from, total, &mut done, null(), &mut request) })?;
            finish(request, by_test)?;
            expect_bytes(name, &memory, &data.unpacked(0, &data.packed))?;
            // The type may be released before the request is done.
            let (released, memory) = (engine.build(&form)?, poisoned_buffer(&on.gpu, data.host.len())?);
            let (from, to) = (data.source(), address(&memory));
            // SAFETY: the buffers hold all bytes, and live until the request is done.
            ok(unsafe {
                let of = released.0;
                dtc_copy_start(
                    &elements(of, from, 1, 0),
                    &elements(made.0, to, 1, 0),
                    total,
                    &mut done,
                    null(),
                    &mut request,
                )
            })?;
            expect(!request.is_null(), || format!("{name}: a device had copied at once"))?;
            drop(released);
            finish(request, by_test)?;
            expect_bytes(name, &memory, &data.unpacked(0, &data.packed))?;
        }
    }
    Ok(())
}

/// Copies between two forms of equally many ints, each on the host or on the device.
fn copies(on: &OnTier) -> Outcome {
    let (engine, known) = (Engine::of(on)?, on_device());
    let forms = [
        Form::Rows { count: 60_000, ints: 6, stride: 40 },
        Form::Blocks { displacements: (0..180_000).map(|at| at * 12).collect() },
    ];
    for [one, other] in [[0, 1], [1, 0], [0, 0]] {
        let (from, to) = (engine.build(&forms[one])?, engine.build(&forms[other])?);
        let (source, target) = (Data::new(on, &forms[one], 73)?, Data::new(on, &forms[other], 74)?);
        let bytes = source.packed.len();
        let expected = target.unpacked(0, &source.packed);
        for transfer in [null(), &raw const known] {
            let memory = poisoned_buffer(&on.gpu, target.host.len())?;
            from.copy(source.source(), &to, address(&memory), bytes, transfer)?;
            expect_bytes("on the device", &memory, &expected)?;
        }
        let mut memory = vec![POISON; target.host.len()];
        from.copy(source.source(), &to, memory.as_mut_ptr().cast(), bytes, null())?;
        expect_equal("to the host", &memory, &expected)?;
        let memory = poisoned_buffer(&on.gpu, target.host.len())?;
        from.copy(source.host.as_ptr().cast(), &to, address(&memory), bytes, null())?;
        expect_bytes("from the host", &memory, &expected)?;
    }
    Ok(())
}

fn accumulations(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let int = engine.named(c"MPI_INT")?;
    for (name, form) in Form::all().into_iter().take(2) {
        let (made, data) = (engine.build(&form)?, Data::new(on, &form, 75)?);
        for (from, length) in ranges(data.packed.len(), false) {
            let part = random_bytes(length, 76);
            let expected = data.summed(from, &part);
            let there = holding(on, &part)?;
            let mut pinned = PinnedBuffer::new(on.gpu.device(), length).map_err(text)?;
            pinned.as_mut_slice().copy_from_slice(&part);
            let sources: [(&str, *const c_void); 3] =
                [("device", address(&there)), ("pinned", pinned.as_ptr().cast()), ("host", part.as_ptr().cast())];
            for (kind, packed) in sources {
                let what = format!("{name}: {length} bytes from {from}, packed bytes: {kind}");
                let memory = holding(on, &data.host)?;
                made.add(&int, packed, (from, length), address(&memory), null())?;
                expect_bytes(&what, &memory, &expected)?;
                let mut memory = data.host.clone();
                made.add(&int, packed, (from, length), memory.as_mut_ptr().cast(), null())?;
                expect_equal(&format!("{what}, on the host"), &memory, &expected)?;
            }
            let memory = holding(on, &data.host)?;
            made.add(&int, address(&there), (from, length), address(&memory), &on_device())?;
            expect_bytes(&format!("{name}: as the caller says"), &memory, &expected)?;
        }
    }
    Ok(())
}

fn on_a_stream(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let int = engine.named(c"MPI_INT")?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    for (name, form) in Form::all() {
        let (made, data) = (engine.build(&form)?, Data::new(on, &form, 77)?);
        let (total, transfer) = (data.packed.len(), enqueued(&stream));
        let packed = poisoned_buffer(&on.gpu, total)?;
        let pinned = PinnedBuffer::new(on.gpu.device(), total).map_err(text)?;
        let (memory, copied) = (poisoned_buffer(&on.gpu, data.host.len())?, poisoned_buffer(&on.gpu, data.host.len())?);
        made.pack(data.source(), (0, total), address(&packed), &transfer)?;
        made.pack(data.source(), (0, total), pinned.as_ptr().cast(), &transfer)?;
        made.unpack(address(&packed), (0, total), address(&memory), &transfer)?;
        made.copy(data.source(), &made, address(&copied), total, &transfer)?;
        let summed = holding(on, &data.host)?;
        let adds = !matches!(form, Form::Records { .. });
        if adds {
            made.add(&int, address(&packed), (0, total), address(&summed), &transfer)?;
        }
        stream.synchronize().map_err(text)?;
        expect_bytes(&format!("{name}: packed"), &packed, &data.packed)?;
        expect_equal(&format!("{name}: packed into pinned memory"), pinned.as_slice(), &data.packed)?;
        let expected = data.unpacked(0, &data.packed);
        expect_bytes(&format!("{name}: unpacked"), &memory, &expected)?;
        expect_bytes(&format!("{name}: copied"), &copied, &expected)?;
        let expected = if adds { data.summed(0, &data.packed) } else { data.host.clone() };
        expect_bytes(&format!("{name}: summed"), &summed, &expected)?;
    }
    Ok(())
}

/// A batch packs all types, and elsewhere once it was moved.
fn batches(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut all = Vec::new();
    for (name, form) in Form::all() {
        let (made, data) = (engine.build(&form)?, Data::new(on, &form, 79)?);
        let packed = [poisoned_buffer(&on.gpu, data.packed.len())?, poisoned_buffer(&on.gpu, data.packed.len())?];
        all.push((name, made, data, packed));
    }
    let call = |(_, made, data, packed): &(_, Type, Data, [_; 2])| dtc_batch_call {
        r#type: made.0,
        memory: data.source().cast_mut(),
        packed: address(&packed[0]),
        count: 1,
        offset: 0,
        max: data.packed.len() as i64,
        direction: DTC_DIRECTION_PACK,
        reserved: 0,
    };
    let calls: Vec<dtc_batch_call> = all.iter().map(call).collect();
    let (mut batch, mut done) = (null_mut(), -1);
    let prepare = |calls: &[dtc_batch_call], batch: &mut *mut dtc_batch| {
        // SAFETY: an engine, calls of types that live, and a place.
        unsafe { dtc_batch_prepare(engine.0, 0, calls.as_ptr(), calls.len() as i64, batch) }
    };
    let wrong = [
        dtc_batch_call { direction: 2, ..calls[0] },
        dtc_batch_call { reserved: 1, ..calls[0] },
        dtc_batch_call { count: -1, ..calls[0] },
        dtc_batch_call { packed: null_mut(), ..calls[0] },
    ];
    for wrong in wrong {
        expect(prepare(&[wrong], &mut batch) == DTC_ERROR_ARGUMENT, message)?;
    }
    let behind = dtc_batch_call { offset: i64::MAX, ..calls[0] };
    expect(prepare(&[behind], &mut batch) == DTC_ERROR_RANGE, message)?;
    ok(prepare(&calls, &mut batch))?;
    for place in 0..2 {
        for (number, (_, _, data, packed)) in all.iter().enumerate() {
            // SAFETY: a batch that one thread uses.
            ok(unsafe { dtc_batch_move(batch, number as i64, data.source().cast_mut(), address(&packed[place])) })?;
        }
        // SAFETY: a batch whose buffers hold all bytes and live until the stream was waited for, and a stream of the device.
        ok(unsafe { dtc_batch_enqueue(batch, stream.raw(), &mut done) })?;
        stream.synchronize().map_err(text)?;
        for (name, _, data, packed) in &all {
            expect_bytes(&format!("{name}: packed by a batch"), &packed[place], &data.packed)?;
        }
    }
    expect(done == all.iter().map(|(_, _, data, _)| data.packed.len() as i64).sum::<i64>(), || {
        format!("{done} bytes")
    })?;
    // SAFETY: a batch that nobody uses from here on.
    Ok(ok(unsafe { dtc_batch_free(batch) })?)
}

/// A graph packs, copies and adds at every launch, also after types and engine were freed.
fn captured(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let (_, form) = Form::all().swap_remove(1);
    let (int, made, data) = (engine.named(c"MPI_INT")?, engine.build(&form)?, Data::new(on, &form, 78)?);
    let (total, device) = (data.packed.len(), on.gpu.device());
    let (packed, copied) = (poisoned_buffer(&on.gpu, total)?, poisoned_buffer(&on.gpu, data.host.len())?);
    let summed = holding(on, &data.host)?;
    let stream = Stream::new(device).map_err(text)?;
    let transfer = enqueued(&stream);
    stream.begin_capture(CaptureMode::Global).map_err(text)?;
    let calls = made
        .pack(data.source(), (0, total), address(&packed), &transfer)
        .and_then(|()| made.copy(data.source(), &made, address(&copied), total, &transfer))
        .and_then(|()| made.add(&int, address(&packed), (0, total), address(&summed), &transfer));
    let graph = stream.end_capture();
    calls?;
    let executable = graph.and_then(|graph| graph.instantiate()).map_err(text)?;
    drop((made, int, engine));
    let mut expected = data.host.clone();
    for launch in 0..3 {
        executable.launch(&stream).map_err(text)?;
        stream.synchronize().map_err(text)?;
        let sum = Data { host: expected, ..Data::new(on, &form, 78)? };
        expected = sum.summed(0, &data.packed);
        expect_bytes(&format!("launch {launch}: packed"), &packed, &data.packed)?;
        expect_bytes(&format!("launch {launch}: copied"), &copied, &data.unpacked(0, &data.packed))?;
        expect_bytes(&format!("launch {launch}: summed"), &summed, &expected)?;
    }
    Ok(())
}

/// Staging memory that an application allocates, and the number of allocations.
struct Pool {
    device: Device,
    made: AtomicUsize,
    buffers: Mutex<Vec<PinnedBuffer>>,
}

unsafe extern "C" fn allocate(context: *mut c_void, _device: i32, bytes: i64) -> *mut c_void {
    // SAFETY: the context is the `Pool` of the test, which outlives the engine.
    let pool = unsafe { &*context.cast::<Pool>() };
    pool.made.fetch_add(1, Ordering::Relaxed);
    let (Ok(buffer), Ok(mut buffers)) = (PinnedBuffer::new(&pool.device, bytes as usize), pool.buffers.lock()) else {
        return null_mut();
    };
    let address = buffer.as_ptr();
    buffers.push(buffer);
    address.cast()
}

unsafe extern "C" fn free(context: *mut c_void, _device: i32, memory: *mut c_void, _bytes: i64) {
    // SAFETY: the context is the `Pool` of the test, which outlives the engine.
    let pool = unsafe { &*context.cast::<Pool>() };
    if let Ok(mut buffers) = pool.buffers.lock() {
        buffers.retain(|buffer| buffer.as_ptr() != memory.cast());
    }
}

/// Transfers with pageable memory use the application's staging memory, and free it.
fn buffers_of_the_caller(on: &OnTier) -> Outcome {
    let device = on.gpu.device().clone();
    let pool = Pool { device, made: AtomicUsize::new(0), buffers: Mutex::default() };
    let context = (&raw const pool).cast_mut().cast();
    let engine =
        Engine::with(dtc_config { allocate: Some(allocate), free: Some(free), memory_context: context, ..config() })?;
    let form = Form::Rows { count: 60_000, ints: 6, stride: 40 };
    let (made, data) = (engine.build(&form)?, Data::new(on, &form, 80)?);
    for _ in 0..3 {
        // Requests and copies with pageable memory need staging memory; blocking packs do not.
        let mut packed = vec![POISON; data.packed.len()];
        let (total, to) = (packed.len() as i64, packed.as_mut_ptr().cast());
        let (mut done, mut request) = (-1, null_mut());
        // SAFETY: both buffers are long enough, and live until the request is done.
        ok(unsafe { dtc_pack_start(made.0, data.source(), 1, 0, to, total, &mut done, null(), &mut request) })?;
        finish(request, false)?;
        expect_equal("packed", &packed, &data.packed)?;
        let mut memory = vec![POISON; data.host.len()];
        made.copy(data.source(), &made, memory.as_mut_ptr().cast(), packed.len(), null())?;
        expect_equal("copied", &memory, &data.unpacked(0, &data.packed))?;
    }
    let made_so_far = pool.made.load(Ordering::Relaxed);
    expect(made_so_far == 2, || format!("{made_so_far} buffers were allocated, expected 2"))?;
    drop((made, engine));
    let left = pool.buffers.lock().map_or(0, |buffers| buffers.len());
    Ok(expect(left == 0, || format!("{left} buffers were not given back"))?)
}

fn refused(on: &OnTier) -> Outcome {
    let engine = Engine::of(on)?;
    let (_, form) = Form::all().swap_remove(0);
    let (made, data) = (engine.build(&form)?, Data::new(on, &form, 79)?);
    let (int, long) = (engine.named(c"MPI_INT")?, engine.named(c"MPI_LONG_DOUBLE")?);
    let there = poisoned_buffer(&on.gpu, 64)?;
    let mut packed = vec![POISON; data.packed.len()];
    let (target, total) = (packed.as_mut_ptr().cast::<c_void>(), packed.len() as i64);
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let transfer = enqueued(&stream);
    let says = |status: c_int, expected: c_int, part: &str| {
        let message = message();
        expect(status == expected && message.contains(part), || {
            format!("status {status}, expected {expected}: {message}")
        })
    };
    // SAFETY: each call is refused before it reads or writes anything.
    unsafe {
        let source = data.source();
        // Some devices can access memory that CUDA does not know.
        if !on.gpu.device().info().reads_pageable_memory {
            let status = dtc_pack(made.0, source, 1, 0, target, total, null_mut(), &transfer);
            says(status, DTC_ERROR_MEMORY, "packed bytes: expected memory that GPU 0 reaches")?;
            let status =
                dtc_copy(&elements(made.0, source, 1, 0), &elements(int.0, target, 1, 0), 4, null_mut(), &transfer);
            says(status, DTC_ERROR_MEMORY, "destination: expected memory that GPU 0 reaches")?;
            let sum = DTC_OPERATION_SUM;
            let status = dtc_accumulate(sum, int.0, int.0, address(&there), 1, 0, target, 4, null_mut(), &transfer);
            says(status, DTC_ERROR_MEMORY, "packed bytes: expected memory that GPU 0 reaches")?;
        }
        let (sum, to) = (DTC_OPERATION_SUM, address(&there));
        let status = dtc_accumulate(sum, long.0, long.0, to, 1, 0, target, 16, null_mut(), null());
        says(status, DTC_ERROR_OPERATION, "operation")?;
        let status = dtc_pack_external(made.0, source, 1, 0, target, total, null_mut(), null());
        says(status, DTC_ERROR_MEMORY, "memory: expected memory of the host, found memory of GPU 0")?;
    }
    expect(packed.iter().all(|&byte| byte == POISON), || "a call that was refused wrote".to_owned())?;
    Ok(expect_bytes("a call that was refused", &there, &[POISON; 64])?)
}
