//! In someone else's process: forked children, small stacks, and its environment. Each test runs in a process of its own.

mod common;

use common::{empty_info, message};
use dtc::*;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Set in a process that runs one test alone.
const ALONE: &str = "DTC_TEST_ALONE";

/// Runs the test of this name in a process of its own and says so; or says that this is that process.
fn passes_alone(test: &str) -> bool {
    passes_alone_with(test, &[])
}

/// The same, with more variables of the environment.
fn passes_alone_with(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, test).env("DTC_CACHE_DIR", "off");
    child.envs(variables.iter().copied());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "{text}{}{:?}", String::from_utf8_lossy(&output.stderr), output.status);
    print!("{text}");
    true
}

/// A call that must succeed. Prints, since it may run where no harness catches a panic.
/// One side of a copy.
fn elements(r#type: *const dtc_type, memory: *const c_void, count: i64, offset: i64) -> dtc_elements {
    dtc_elements { r#type, memory: memory.cast_mut(), count, offset }
}

fn ok(status: c_int) {
    if status != DTC_OK {
        eprintln!("expected success, found {status}: {}", message());
        std::process::abort();
    }
}

/// Bytes of every buffer: no type here is larger.
const ROOM: usize = 1 << 20;

/// Steps with their names, in the order in which they run.
type Steps<'a> = Vec<(&'static str, Box<dyn Fn() + 'a>)>;

/// Buffers of the calls.
struct Buffers {
    memory: Cell<Vec<u8>>,
    packed: Cell<Vec<u8>>,
    other: Cell<Vec<u8>>,
}

impl Buffers {
    fn new() -> Buffers {
        let bytes = || Cell::new(vec![1; ROOM]);
        Buffers { memory: bytes(), packed: bytes(), other: bytes() }
    }

    /// The address of a buffer, which stays where it is.
    fn address(buffer: &Cell<Vec<u8>>) -> *mut u8 {
        let mut bytes = buffer.take();
        let address = bytes.as_mut_ptr();
        buffer.set(bytes);
        address
    }

    fn sides(&self) -> (*mut c_void, *mut c_void, *mut c_void) {
        let [memory, packed, other] = [&self.memory, &self.packed, &self.other].map(Buffers::address);
        (memory.cast(), packed.cast(), other.cast())
    }
}

/// Both sides are on the host, says the caller.
fn on_host() -> dtc_transfer {
    // SAFETY: integers, and a pointer that may be null.
    let mut transfer: dtc_transfer = unsafe { std::mem::zeroed() };
    (transfer.size, transfer.memory, transfer.packed) =
        (size_of::<dtc_transfer>() as i64, DTC_MEMORY_HOST, DTC_MEMORY_HOST);
    transfer
}

/// Kinds of types that [`make`] tells apart by their seeds.
const KINDS: i64 = 7;

/// A type that no other seed gives: records, which gain by a kernel; an irregular list; rows; a subarray; blocks; a long chain; a
/// long list.
fn make(engine: *mut dtc_engine, seed: i64) -> *mut dtc_type {
    let (mut double, mut record, mut made) = (null_mut(), null_mut(), null_mut());
    let create = |combiner, integers: &[i64], addresses: &[i64], children: &[*const dtc_type], made| {
        let (integers, many) = (integers.as_ptr(), integers.len() as i64);
        // SAFETY: lists of these lengths, live types, and a place.
        ok(unsafe {
            let (children, types) = (children.as_ptr(), children.len() as i64);
            dtc_type_create(
                engine,
                combiner,
                integers,
                many,
                addresses.as_ptr(),
                addresses.len() as i64,
                children,
                types,
                null(),
                made,
            )
        });
    };
    // SAFETY: a live engine, texts and places; each type is released once.
    unsafe {
        ok(dtc_type_named(engine, c"MPI_DOUBLE".as_ptr(), &mut double));
        let element = [double.cast_const(); 2];
        match seed % KINDS {
            0 => {
                create(DTC_COMBINER_STRUCT, &[2, 1, 1], &[0, 12], &element, &mut record);
                create(DTC_COMBINER_RESIZED, &[], &[0, 32 + seed % 4096], &[record.cast_const()], &mut made);
                ok(dtc_type_release(record));
                record = made;
                create(DTC_COMBINER_CONTIGUOUS, &[20], &[], &[record.cast_const()], &mut made);
                ok(dtc_type_release(record));
            }
            1 | 6 => {
                let many = if seed % KINDS == 1 { 300 } else { 5000 };
                let mut integers = vec![many];
                integers.extend((0..many).map(|at| 1 + (at * at + seed) % 4));
                integers.extend((0..many).map(|at| at * 9 + (at + seed) % 5));
                create(DTC_COMBINER_INDEXED, &integers, &[], &element[..1], &mut made);
            }
            2 => create(DTC_COMBINER_VECTOR, &[12, 5, 9 + seed % 512], &[], &element[..1], &mut made),
            3 => {
                let integers = [3, 8, 9, 20 + seed % 64, 4, 4, 5, 1, 2, 3, DTC_ORDER_C];
                create(DTC_COMBINER_SUBARRAY, &integers, &[], &element[..1], &mut made);
            }
            4 => {
                create(DTC_COMBINER_VECTOR, &[3, 2, 5 + seed % 64], &[], &element[..1], &mut made);
                for level in 0..500 {
                    record = made;
                    match level % 3 {
                        0 => create(DTC_COMBINER_HVECTOR, &[1, 1], &[seed], &[record.cast_const()], &mut made),
                        1 => create(DTC_COMBINER_RESIZED, &[], &[-level, 2048], &[record.cast_const()], &mut made),
                        _ => create(
                            DTC_COMBINER_STRUCT,
                            &[2, 1, 1],
                            &[0, 2048],
                            &[record.cast_const(), double],
                            &mut made,
                        ),
                    }
                    ok(dtc_type_release(record));
                }
            }
            _ => {
                let blocks = [8, 64, 200 + seed % 1024].map(|displacement| dtc_block {
                    displacement,
                    count: 3,
                    element: double,
                });
                ok(dtc_type_from_blocks(engine, blocks.as_ptr(), blocks.len() as i64, 0, 4096, &mut made));
            }
        }
        ok(dtc_type_release(double));
    }
    made
}

/// Every call that takes a type.
fn uses<'a>(engine: *mut dtc_engine, requested: *mut dtc_type, buffers: &'a Buffers) -> Steps<'a> {
    let (memory, packed, other) = buffers.sides();
    let most = ROOM as i64;
    macro_rules! steps {
        ($($name:literal => $body:expr;)*) => { vec![$(($name, Box::new(move || {
            #[allow(unused_unsafe, reason = "some steps call nothing unsafe")]
            // SAFETY: live handles, places on the stack, and buffers that are longer than two elements.
            unsafe { $body };
        }) as Box<dyn Fn() + 'a>)),*] };
    }
    steps! {
        "commit eagerly" => ok(dtc_type_commit(requested, DTC_COMMIT_EAGER));
        "commit again" => ok(dtc_type_commit(requested, 0));
        "retain and release" => { ok(dtc_type_retain(requested)); ok(dtc_type_release(requested)) };
        "pack one" => ok(dtc_pack(requested, memory, 1, 0, packed, most, null_mut(), null()));
        "pack one on the host" => ok(dtc_pack(requested, memory, 1, 0, packed, most, null_mut(), &on_host()));
        "pack two" => ok(dtc_pack(requested, memory, 2, 0, packed, most, null_mut(), null()));
        "pack a fragment" => ok(dtc_pack(requested, memory, 2, 13, packed, 77, null_mut(), null()));
        "unpack one" => ok(dtc_unpack(requested, other, 1, 0, packed, 64, null_mut(), null()));
        "unpack a fragment" => ok(dtc_unpack(requested, other, 2, 5, packed, 51, null_mut(), null()));
        "start a pack" => {
            let mut request = null_mut();
            ok(dtc_pack_start(requested, memory, 1, 0, packed, most, null_mut(), null(), &mut request));
            ok(dtc_wait(&mut request));
        };
        "start an unpack" => {
            let (mut request, mut done) = (null_mut(), 0);
            ok(dtc_unpack_start(requested, other, 1, 0, packed, 64, null_mut(), null(), &mut request));
            ok(dtc_test(&mut request, &mut done));
        };
        "query" => ok(dtc_type_query(requested, &mut empty_info()));
        "explain" => ok(dtc_explain(requested, other.cast(), most, null_mut()));
        "cost" => {
            let mut expense: dtc_expense = std::mem::zeroed();
            expense.size = size_of::<dtc_expense>() as i64;
            ok(dtc_cost(requested, 1, null(), &mut expense));
        };
        "count pieces" => { let (mut pieces, mut bytes) = (0, 0); ok(dtc_iov_len(requested, 2, 100, &mut pieces, &mut bytes)) };
        "list pieces" => {
            let (mut list, mut pieces, mut bytes) = ([dtc_iovec { base: null_mut(), length: 0 }; 8], 0, 0);
            ok(dtc_iov(requested, memory, 2, 3, 1, list.as_mut_ptr(), 8, &mut pieces, &mut bytes));
        };
        "find a piece" => { let (mut piece, mut skip) = (0, 0); ok(dtc_iov_at(requested, 2, 99, &mut piece, &mut skip)) };
        "leading piece" => { let (mut at, mut bytes) = (0, 0); ok(dtc_leading_piece(requested, 1, &mut at, &mut bytes)) };
        "element border" => { let mut border = 0; ok(dtc_element_border(requested, 2, 101, &mut border)) };
        "flatten" => {
            let (mut length, mut again) = (0, null_mut());
            ok(dtc_flatten_size(requested, &mut length));
            ok(dtc_flatten(requested, other, length));
            ok(dtc_unflatten(engine, other, length, &mut again));
            ok(dtc_type_commit(again, 0));
            ok(dtc_type_release(again));
        };
        "external32" => {
            let mut bytes = 0;
            ok(dtc_external_size(requested, 1, &mut bytes));
            ok(dtc_pack_external(requested, memory, 1, 0, packed, most, null_mut(), null()));
            ok(dtc_unpack_external(requested, other, 1, 0, packed, bytes, null_mut(), null()));
        };
        "copy" => {
            let mut request = null_mut();
            ok(dtc_copy(&elements(requested, memory, 1, 0), &elements(requested, other, 1, 0), most, null_mut(), null()));
            ok(dtc_copy_start(&elements(requested, memory, 1, 0), &elements(requested, other, 1, 8), 32, null_mut(), null(), &mut request));
            ok(dtc_wait(&mut request));
        };
        "accumulate" => {
            let (mut double, mut supported) = (null_mut(), 0);
            ok(dtc_type_named(engine, c"MPI_DOUBLE".as_ptr(), &mut double));
            ok(dtc_op_supported(DTC_OPERATION_SUM, double, null(), &mut supported));
            ok(dtc_accumulate(DTC_OPERATION_SUM, double, requested, other, 1, 0, packed, 64, null_mut(), null()));
            ok(dtc_type_release(double));
        };
        "fail" => assert_eq!(dtc_type_commit(requested, 99), DTC_ERROR_ARGUMENT);
    }
}

/// Every call: an engine, a type, its uses, and their ends.
fn life<'a>(
    engine: &'a Cell<*mut dtc_engine>,
    made: &'a Cell<*mut dtc_type>,
    config: &'a dtc_config,
    seed: i64,
    buffers: &'a Buffers,
) -> Steps<'a> {
    let begin: Steps = vec![
        (
            "initialise",
            Box::new(move || {
                let mut place = null_mut();
                // SAFETY: settings with their size, and a place.
                ok(unsafe { dtc_init(config, &mut place) });
                engine.set(place);
            }),
        ),
        ("create", Box::new(move || made.set(make(engine.get(), seed)))),
        (
            "commit",
            // SAFETY: a live type.
            Box::new(move || ok(unsafe { dtc_type_commit(made.get(), 0) })),
        ),
    ];
    let count = uses(null_mut(), null_mut(), buffers).len();
    let middle = (0..count).map(|at| {
        let name = uses(null_mut(), null_mut(), buffers)[at].0;
        let step: Box<dyn Fn() + 'a> = Box::new(move || uses(engine.get(), made.get(), buffers)[at].1());
        (name, step)
    });
    let end: Steps = vec![
        (
            "compile what waits",
            // SAFETY: a live engine.
            Box::new(move || ok(unsafe { dtc_compile_pending(engine.get(), 1 << 40, null_mut()) })),
        ),
        (
            "release",
            // SAFETY: the type is not used after this.
            Box::new(move || ok(unsafe { dtc_type_release(made.get()) })),
        ),
        (
            "finalise",
            // SAFETY: the engine is not used after this.
            Box::new(move || ok(unsafe { dtc_finalize(engine.get()) })),
        ),
    ];
    begin.into_iter().chain(middle).chain(end).collect()
}

/// Memory that forked children share with their parent.
fn shared_counter() -> &'static AtomicU32 {
    // SAFETY: a new mapping, which stays; zero is a value.
    unsafe {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let mapped = libc::mmap(null_mut(), 4096, access, flags, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        &*mapped.cast::<AtomicU32>()
    }
}

/// Threads of the parent.
const THREADS: usize = 4;

#[test]
fn a_forked_child_waits_for_nothing() {
    if passes_alone("a_forked_child_waits_for_nothing") {
        return;
    }
    // SAFETY: what is wrong is refused.
    let engine = unsafe {
        let mut engine = null_mut();
        ok(dtc_init(null(), &mut engine));
        engine
    };
    // The type that each thread is busy with.
    static SLOTS: [AtomicPtr<dtc_type>; THREADS] = [const { AtomicPtr::new(null_mut()) }; THREADS];
    static STOP: AtomicBool = AtomicBool::new(false);
    let step = shared_counter();
    let address = engine as usize;
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            std::thread::spawn(move || {
                let (engine, buffers) = (address as *mut dtc_engine, Buffers::new());
                let mut seed = number as i64;
                while !STOP.load(Ordering::Relaxed) {
                    seed += THREADS as i64;
                    // Long chains and lists would only make children fewer.
                    if [4, 6].contains(&(seed % KINDS)) {
                        continue;
                    }
                    let made = make(engine, seed);
                    SLOTS[number].store(made, Ordering::SeqCst);
                    uses(engine, made, &buffers).iter().for_each(|(_, step)| step());
                    // A child that finds the type in its slot finds it alive.
                    SLOTS[number].store(null_mut(), Ordering::SeqCst);
                    // SAFETY: this process does not use it after this.
                    ok(unsafe { dtc_type_release(made) });
                }
            })
        })
        .collect();
    let (start, mut children, mut hung) = (Instant::now(), 0, Vec::new());
    while children < 200 && (start.elapsed() < Duration::from_secs(3) || children < 40) {
        std::thread::sleep(Duration::from_micros(500 + children * 37 % 1000));
        // SAFETY: the child leaves by `_exit`, or by a signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child if it waits for ever.
            unsafe { libc::alarm(20) };
            let buffers = Buffers::new();
            let mut number = 0;
            let mut run = |steps: Steps| {
                steps.iter().for_each(|(_, each)| {
                    step.store(number, Ordering::SeqCst);
                    each();
                    number += 1;
                });
            };
            for slot in &SLOTS {
                let inherited = slot.load(Ordering::SeqCst);
                if !inherited.is_null() {
                    run(uses(engine, inherited, &buffers));
                }
            }
            // New types of the parent's engine, known to it or not, and an engine of the child's own.
            for seed in [7, 700_000, 700_001] {
                let made = make(engine, seed);
                run(uses(engine, made, &buffers));
                // SAFETY: it is not used after this.
                ok(unsafe { dtc_type_release(made) });
            }
            let (own, made) = (Cell::new(null_mut()), Cell::new(null_mut()));
            run(life(&own, &made, &common::config(), 7, &buffers));
            // SAFETY: ends the child without the parent's destructors, after what it may call.
            unsafe {
                ok(dtc_compile_pending(engine, 1000, null_mut()));
                ok(dtc_finalize(engine));
                libc::_exit(0)
            }
        }
        assert!(child > 0);
        children += 1;
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        if status != 0 {
            let uses = uses(null_mut(), null_mut(), &Buffers::new()).len() as u32;
            hung.push((status, step.load(Ordering::SeqCst) / uses, step.load(Ordering::SeqCst) % uses));
            if hung.len() > 2 {
                break;
            }
        }
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(hung.is_empty(), "of {children} children, these did not end (status, round, step): {hung:?}");
    println!("{children} children");
}

/// Bytes of stack that a thread needs for a call, with what the C library keeps there.
fn stack_of(call: &dyn Fn()) -> usize {
    extern "C" fn start(call: *mut c_void) -> *mut c_void {
        // SAFETY: the address of a reference that outlives the thread.
        unsafe { (*call.cast::<&dyn Fn()>())() };
        null_mut()
    }
    const STACK: usize = 1 << 20;
    const UNTOUCHED: u8 = 0xa5;
    // SAFETY: a new mapping, whose lowest page is closed; the thread has ended before the stack is read and unmapped.
    unsafe {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let stack = libc::mmap(null_mut(), STACK, access, flags, -1, 0).cast::<u8>();
        stack.write_bytes(UNTOUCHED, STACK);
        assert_eq!(libc::mprotect(stack.cast(), 4096, libc::PROT_NONE), 0);
        let mut attributes = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, stack.add(4096).cast(), STACK - 4096), 0);
        let mut thread = std::mem::zeroed();
        let argument = (&raw const call).cast_mut().cast();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, start, argument), 0);
        assert_eq!(libc::pthread_join(thread, null_mut()), 0);
        libc::pthread_attr_destroy(&mut attributes);
        let untouched = (4096..STACK).take_while(|&at| *stack.add(at) == UNTOUCHED).count();
        libc::munmap(stack.cast(), STACK);
        STACK - 4096 - untouched
    }
}

#[test]
fn every_call_fits_a_stack_of_32_kib() {
    if passes_alone("every_call_fits_a_stack_of_32_kib") {
        return;
    }
    let buffers = Buffers::new();
    let mut worst = Vec::new();
    // Threads are allowed, then not; a child of each engine is the first of its kind of type.
    for (thread, seeds) in [(DTC_THREAD_BACKGROUND, 0..KINDS), (DTC_THREAD_NONE, KINDS..2 * KINDS)] {
        for seed in seeds {
            let config = dtc_config { thread, ..common::config() };
            let (engine, made) = (Cell::new(null_mut()), Cell::new(null_mut()));
            for (name, step) in life(&engine, &made, &config, seed, &buffers) {
                worst.push((stack_of(&*step), name, thread, seed));
            }
        }
    }
    // Where the library may start no thread, kernels are compiled on the stack of the caller.
    let compiles = |&(_, name, thread, _): &(usize, &str, i32, i64)| {
        thread == DTC_THREAD_NONE && ["commit eagerly", "compile what waits"].contains(&name)
    };
    worst.sort_unstable_by(|one, other| other.cmp(one));
    let (compiling, others): (Vec<_>, Vec<_>) = worst.into_iter().partition(compiles);
    println!("bytes, call, thread, seed: {:?}, {:?}", &others[..5], &compiling[..2]);
    assert!(others[0].0 <= 32 << 10, "{:?}", &others[..5]);
    assert!(compiling[0].0 <= 256 << 10, "{:?}", &compiling[..5]);
}

/// libdtc prints nothing; the hook is told.
#[test]
fn an_unknown_level_is_logged_and_changes_nothing() {
    if passes_alone_with("an_unknown_level_is_logged_and_changes_nothing", &[("DTC_CPU", "fast")]) {
        return;
    }
    unsafe extern "C" fn log(context: *mut c_void, level: c_int, message: *const c_char) {
        // SAFETY: the context of the settings below, which no other thread uses during `dtc_init`; a text.
        let (logged, text) = unsafe { (&mut *context.cast::<Vec<String>>(), CStr::from_ptr(message)) };
        logged.push(format!("{level}: {}", text.to_string_lossy()));
    }
    let mut logged: Vec<String> = Vec::new();
    let settings = dtc_config { log: Some(log), log_context: (&raw mut logged).cast(), ..common::config() };
    let mut engine = null_mut();
    // SAFETY: settings with their size, and a place.
    ok(unsafe { dtc_init(&settings, &mut engine) });
    let expected = format!(
        "{DTC_LOG_WARNING}: DTC_CPU: expected one of portable, avx2, avx512, zen4, zen5, found \"fast\": using "
    );
    assert!(matches!(&logged[..], [line] if line.starts_with(&expected)), "{logged:?}");
    // SAFETY: an engine that is not used again.
    ok(unsafe { dtc_finalize(engine) });
}
