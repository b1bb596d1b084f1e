//! The interface of Yaksa on device memory: requests, hints, operations and CUDA streams.

use crate::buffers::{POISON, expect_equal, poisoned_buffer, random_bytes};
use crate::faces::{Data, Form, RECORD, address, expect_bytes, holding, ranges, sums};
use crate::harness::{Outcome, Tests, expect, text};
use crate::tier::OnTier;
use dtc_runtime::cuda::Stream;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
// The functions are declared below, as a C program sees them.
use yaksa as _;

unsafe extern "C" {
    fn yaksa_init(info: *mut c_void) -> c_int;
    fn yaksa_finalize() -> c_int;
    fn yaksa_info_create(info: *mut *mut c_void) -> c_int;
    fn yaksa_info_free(info: *mut c_void) -> c_int;
    fn yaksa_info_keyval_append(info: *mut c_void, key: *const c_char, value: *const c_void, length: c_uint) -> c_int;
    fn yaksa_type_create_hvector(
        count: i64,
        blocklength: i64,
        stride: i64,
        of: u64,
        info: *mut c_void,
        made: *mut u64,
    ) -> c_int;
    fn yaksa_type_create_hindexed_block(
        count: i64,
        blocklength: i64,
        displacements: *const i64,
        of: u64,
        info: *mut c_void,
        made: *mut u64,
    ) -> c_int;
    fn yaksa_type_create_struct(
        count: i64,
        blocklengths: *const i64,
        displacements: *const i64,
        of: *const u64,
        info: *mut c_void,
        made: *mut u64,
    ) -> c_int;
    fn yaksa_type_create_contig(count: i64, of: u64, info: *mut c_void, made: *mut u64) -> c_int;
    fn yaksa_type_free(of: u64) -> c_int;
    fn yaksa_ipack(
        input: *const c_void,
        count: u64,
        of: u64,
        offset: u64,
        output: *mut c_void,
        max: u64,
        actual: *mut u64,
        info: *mut c_void,
        operation: u64,
        request: *mut u64,
    ) -> c_int;
    fn yaksa_iunpack(
        input: *const c_void,
        length: u64,
        output: *mut c_void,
        count: u64,
        of: u64,
        offset: u64,
        actual: *mut u64,
        info: *mut c_void,
        operation: u64,
        request: *mut u64,
    ) -> c_int;
    fn yaksa_pack_stream(
        input: *const c_void,
        count: u64,
        of: u64,
        offset: u64,
        output: *mut c_void,
        max: u64,
        actual: *mut u64,
        info: *mut c_void,
        operation: u64,
        stream: *mut c_void,
    ) -> c_int;
    fn yaksa_unpack_stream(
        input: *const c_void,
        length: u64,
        output: *mut c_void,
        count: u64,
        of: u64,
        offset: u64,
        actual: *mut u64,
        info: *mut c_void,
        operation: u64,
        stream: *mut c_void,
    ) -> c_int;
    fn yaksa_request_test(request: u64, completed: *mut c_int) -> c_int;
    fn yaksa_request_wait(request: u64) -> c_int;
}

/// Handles and operations of `yaksa.h`.
const CHAR: u64 = 2;
const INT: u64 = 14;
const DOUBLE: u64 = 46;
const SUM: u64 = 2;
const REPLACE: u64 = 10;

/// `YAKSA_ERR__NOT_SUPPORTED`.
const NOT_SUPPORTED: c_int = 3;

pub fn add(tests: &mut Tests, on: &OnTier) {
    let add = |tests: &mut Tests, name: &str, test: fn(&OnTier) -> Outcome| {
        let on = on.clone();
        tests.add(format!("Yaksa: {name}"), move || test(&on));
    };
    add(tests, "packs and unpacks", packs);
    add(tests, "operations", operations);
    add(tests, "on a stream", on_a_stream);
}

fn ok(status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("status {status}")) }
}

/// A type of the library, which it keeps initialised.
pub struct Type(u64);

impl Type {
    pub fn build(form: &Form) -> Result<Type, String> {
        let (mut record, mut made) = (0, 0);
        let none = null_mut();
        // SAFETY: every list has the given length, the element types are live, and the out pointers are to live
        // handles.
        unsafe {
            ok(yaksa_init(none))?;
            ok(match form {
                Form::Rows { count, ints, stride } => {
                    yaksa_type_create_hvector(*count, *ints, *stride, INT, none, &mut made)
                }
                Form::Blocks { displacements } => {
                    let (count, places) = (displacements.len() as i64, displacements.as_ptr());
                    yaksa_type_create_hindexed_block(count, 2, places, INT, none, &mut made)
                }
                Form::Records { count } => {
                    let (lengths, places) = (RECORD.0.as_ptr(), RECORD.1.as_ptr());
                    let members = [INT, DOUBLE, CHAR];
                    ok(yaksa_type_create_struct(3, lengths, places, members.as_ptr(), none, &mut record))?;
                    let status = yaksa_type_create_contig(*count, record, none, &mut made);
                    ok(yaksa_type_free(record))?;
                    status
                }
            })?;
        }
        Ok(Type(made))
    }
}

impl Drop for Type {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle, and `build` has initialised the library once for it.
        unsafe {
            yaksa_type_free(self.0);
            yaksa_finalize();
        }
    }
}

/// The hints of MPICH on its buffers: their pointer attributes in CUDA's runtime.
pub struct Info(*mut c_void);

impl Info {
    /// Hints for two buffers on the first device.
    pub fn on_device() -> Result<Info, String> {
        let mut info = null_mut();
        // `cudaMemoryTypeDevice`, the device, and two addresses that are not read.
        let attributes = [2i32, 0, 0, 0, 0, 0];
        let keys = [c"yaksa_gpu_driver", c"yaksa_cuda_inbuf_ptr_attr", c"yaksa_cuda_outbuf_ptr_attr"];
        // SAFETY: keys are NUL-terminated, values have the given lengths, and `info` is a live pointer to fill.
        unsafe {
            ok(yaksa_info_create(&mut info))?;
            let info = Info(info);
            let append = |key: &CStr, value: *const c_void, length| {
                ok(yaksa_info_keyval_append(info.0, key.as_ptr(), value, length))
            };
            append(keys[0], c"cuda".as_ptr().cast(), 5)?;
            for key in &keys[1..] {
                append(key, attributes.as_ptr().cast(), 24)?;
            }
            Ok(info)
        }
    }

    pub fn none() -> Info {
        Info(null_mut())
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: this value owns the info object.
            unsafe { yaksa_info_free(self.0) };
        }
    }
}

/// How a request is waited for.
#[derive(Clone, Copy)]
pub enum Finish {
    Wait,
    Test,
}

fn finish(request: u64, how: Finish) -> Result<(), String> {
    let mut completed = 0;
    match how {
        // SAFETY: the request is live and was not waited for.
        Finish::Wait => ok(unsafe { yaksa_request_wait(request) }),
        Finish::Test => {
            while completed == 0 {
                // SAFETY: the request is live, and `completed` is a live integer.
                ok(unsafe { yaksa_request_test(request, &mut completed) })?;
            }
            Ok(())
        }
    }
}

impl Type {
    /// Packs and waits; returns the status and the number of packed bytes.
    pub fn ipack(
        &self,
        source: *const c_void,
        (from, length): (usize, usize),
        packed: *mut c_void,
        info: &Info,
        operation: u64,
        how: Finish,
    ) -> Result<(c_int, u64), String> {
        let (mut actual, mut request) = (u64::MAX, 0);
        let (from, length) = (from as u64, length as u64);
        // SAFETY: the tests pass a buffer of one element and one of `length` packed bytes; both live until the request
        // is done.
        let status = unsafe {
            yaksa_ipack(source, 1, self.0, from, packed, length, &mut actual, info.0, operation, &mut request)
        };
        if status == 0 {
            finish(request, how)?;
        }
        Ok((status, actual))
    }

    pub fn pack(&self, source: *const c_void, length: usize, packed: *mut c_void, info: &Info) -> Result<(), String> {
        let result = self.ipack(source, (0, length), packed, info, REPLACE, Finish::Wait)?;
        expect(result == (0, length as u64), || format!("status and bytes {result:?}, expected {length}"))
    }

    fn iunpack(
        &self,
        packed: *const c_void,
        (from, length): (usize, usize),
        memory: *mut c_void,
        info: &Info,
        operation: u64,
        how: Finish,
    ) -> Result<(c_int, u64), String> {
        let (mut actual, mut request) = (u64::MAX, 0);
        let (from, length) = (from as u64, length as u64);
        // SAFETY: the tests pass a buffer of one element and one of `length` packed bytes; both live until the request
        // is done.
        let status = unsafe {
            yaksa_iunpack(packed, length, memory, 1, self.0, from, &mut actual, info.0, operation, &mut request)
        };
        if status == 0 {
            finish(request, how)?;
        }
        Ok((status, actual))
    }
}

/// Checks that a call has moved everything.
fn moved(what: &str, result: (c_int, u64), length: usize) -> Result<(), String> {
    expect(result == (0, length as u64), || format!("{what}: status and bytes {result:?}, expected {length}"))
}

fn packs(on: &OnTier) -> Outcome {
    for (name, form) in Form::all() {
        let (made, data) = (Type::build(&form)?, Data::new(on, &form, 81)?);
        for (from, length) in ranges(data.packed.len(), false) {
            let part = &data.packed[from..from + length];
            // Records can only be cut between members, so they are packed whole.
            if matches!(form, Form::Records { .. }) && length < data.packed.len() {
                continue;
            }
            for (info, how) in [(Info::none(), Finish::Test), (Info::on_device()?, Finish::Wait)] {
                let what = format!("{name}: {length} bytes from {from}");
                let (packed, memory) = (poisoned_buffer(&on.gpu, length)?, poisoned_buffer(&on.gpu, data.host.len())?);
                let result = made.ipack(data.source(), (from, length), address(&packed), &info, REPLACE, how)?;
                moved(&what, result, length)?;
                expect_bytes(&what, &packed, part)?;
                let result = made.iunpack(address(&packed), (from, length), address(&memory), &info, REPLACE, how)?;
                moved(&what, result, length)?;
                expect_bytes(&what, &memory, &data.unpacked(from, part))?;
            }
            let mut host = vec![POISON; length];
            let to = host.as_mut_ptr().cast();
            let result = made.ipack(data.source(), (from, length), to, &Info::none(), REPLACE, Finish::Test)?;
            moved(name, result, length)?;
            expect_equal(&format!("{name}: to the host"), &host, part)?;
        }
    }
    // A pack stops before the int that does not fit, also on a device.
    let (_, form) = Form::all().swap_remove(0);
    let (made, data, packed) = (Type::build(&form)?, Data::new(on, &form, 82)?, poisoned_buffer(&on.gpu, 16)?);
    let result = made.ipack(data.source(), (4, 11), address(&packed), &Info::none(), REPLACE, Finish::Wait)?;
    moved("a range that ends inside an int", result, 8)?;
    let expected = [&data.packed[4..12], &[POISON; 8]].concat();
    Ok(expect_bytes("a range that ends inside an int", &packed, &expected)?)
}

fn operations(on: &OnTier) -> Outcome {
    for (name, form) in Form::all().into_iter().take(2) {
        let (made, data) = (Type::build(&form)?, Data::new(on, &form, 83)?);
        for (from, length) in ranges(data.packed.len(), false) {
            let part = random_bytes(length, 84);
            for (info, how) in [(Info::none(), Finish::Test), (Info::on_device()?, Finish::Wait)] {
                let what = format!("{name}: {length} bytes from {from}");
                let (packed, memory) = (holding(on, &part)?, holding(on, &data.host)?);
                let result = made.iunpack(address(&packed), (from, length), address(&memory), &info, SUM, how)?;
                moved(&what, result, length)?;
                expect_bytes(&format!("{what}: unpacked"), &memory, &data.summed(from, &part))?;
                // The reverse: memory is added to packed elements.
                let result = made.ipack(data.source(), (from, length), address(&packed), &info, SUM, how)?;
                moved(&what, result, length)?;
                let expected = sums(&part, &data.packed[from..from + length]);
                expect_bytes(&format!("{what}: packed"), &packed, &expected)?;
            }
            // Packed elements on the host, and then memory on the host.
            let memory = holding(on, &data.host)?;
            let from_host = part.as_ptr().cast();
            let result = made.iunpack(from_host, (from, length), address(&memory), &Info::none(), SUM, Finish::Wait)?;
            moved(name, result, length)?;
            expect_bytes(&format!("{name}: from the host"), &memory, &data.summed(from, &part))?;
            let mut host = part.clone();
            let to = host.as_mut_ptr().cast();
            let result = made.ipack(data.source(), (from, length), to, &Info::none(), SUM, Finish::Wait)?;
            moved(name, result, length)?;
            expect_equal(&format!("{name}: to the host"), &host, &sums(&part, &data.packed[from..from + length]))?;
        }
    }
    // No kernel adds structs of ints and doubles.
    let (_, form) = Form::all().swap_remove(2);
    let (made, data) = (Type::build(&form)?, Data::new(on, &form, 85)?);
    let (packed, memory) = (holding(on, &data.packed)?, holding(on, &data.host)?);
    let total = data.packed.len();
    let result = made.iunpack(address(&packed), (0, total), address(&memory), &Info::none(), SUM, Finish::Wait)?;
    expect(result.0 == NOT_SUPPORTED, || format!("records: {result:?}"))?;
    Ok(expect_bytes("records that were refused", &memory, &data.host)?)
}

fn on_a_stream(on: &OnTier) -> Outcome {
    let stream = Stream::new(on.gpu.device()).map_err(text)?;
    let mut raw = stream.raw();
    let stream_argument = (&raw mut raw).cast::<c_void>();
    for (name, form) in Form::all() {
        let (made, data) = (Type::build(&form)?, Data::new(on, &form, 86)?);
        let total = data.packed.len() as u64;
        for info in [Info::none(), Info::on_device()?] {
            let (packed, memory) =
                (poisoned_buffer(&on.gpu, data.packed.len())?, poisoned_buffer(&on.gpu, data.host.len())?);
            let summed = holding(on, &data.host)?;
            let adds = !matches!(form, Form::Records { .. });
            let mut actual = [0; 3];
            let (between, source, info) = (address(&packed), data.source(), info.0);
            let [one, other, third] = &mut actual;
            // SAFETY: the buffers hold the bytes, and live until the stream is synchronised.
            unsafe {
                let (of, to, stream) = (made.0, address(&memory), stream_argument);
                ok(yaksa_pack_stream(source, 1, of, 0, between, total, one, info, REPLACE, stream))?;
                ok(yaksa_unpack_stream(between, total, to, 1, of, 0, other, info, REPLACE, stream))?;
                if adds {
                    let to = address(&summed);
                    ok(yaksa_unpack_stream(between, total, to, 1, of, 0, third, info, SUM, stream))?;
                }
            }
            stream.synchronize().map_err(text)?;
            expect(actual[..2] == [total; 2], || format!("{name}: {actual:?}, expected {total}"))?;
            expect_bytes(&format!("{name}: packed"), &packed, &data.packed)?;
            expect_bytes(&format!("{name}: unpacked"), &memory, &data.unpacked(0, &data.packed))?;
            let expected = if adds { data.summed(0, &data.packed) } else { data.host.clone() };
            expect_bytes(&format!("{name}: summed"), &summed, &expected)?;
        }
    }
    // SAFETY: the call refuses a null pointer to a stream.
    let status =
        unsafe { yaksa_pack_stream(null(), 1, INT, 0, null_mut(), 4, &mut 0, null_mut(), REPLACE, null_mut()) };
    Ok(expect(status != 0, || "a null stream was taken".to_owned())?)
}
