//! The first call of a process on a GPU. Each figure is the median of processes of its own, in which the driver's cache and the
//! store of kernels are off: what a process finds on a machine that is new.

use super::cases::runs;
use crate::arguments::Benchmark;
use dtc_compiler::datatype::{Datatype, text};
use dtc_cuda::module::Module;
use dtc_cuda::{Device, Nvrtc};
use dtc_measure::bench::table::table;
use dtc_measure::bench::tell;
use dtc_measure::failure::Failure;
use dtc_measure::first_call::FirstCall;
use dtc_measure::report;
use dtc_measure::timing::median;
use dtc_runtime::Policy;
use dtc_templates::{GENERIC_MACHINE_CODE, GENERIC_PTX, MachineCode};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::Command;
use std::time::Instant;

/// The variable that has a process make a first call, and names it.
const CALL: &str = "DTC_BENCH_FIRST_CALL";

/// What the figures are called that are no pack.
const NVRTC: &str = "NVRTC alone";
const MACHINE_CODE: &str = "machine code alone";
const PTX: &str = "PTX alone";

/// A type for each kind of generic kernel.
const TYPES: [&str; 4] = ["rows", "list", "record", "transposed"];

/// The steps of a first call, by the names of the figures.
const STEPS: [&str; 6] = ["driver", "context", "kernels", "first", "second", "compiled"];

fn datatype(name: &str) -> Result<Datatype, Failure> {
    let notation = match name {
        "rows" => "vector 1024 128 256 double",
        "list" => return runs(1 << 14, 4, 32, 1, |_, _| {}).map_err(|error| Failure::Description(error.to_string())),
        "record" => "contiguous 32768 (resized 0 24 (struct [1@0 double, 1@8 int, 5@16 char]))",
        _ => "contiguous 512 (resized 0 4 (vector 512 1 512 float))",
    };
    text::parse(notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))
}

/// Takes a figure.
type Figures<'a> = dyn FnMut(Value) -> Result<(), Failure> + 'a;

/// Measures and prints all, or makes the first call that the process was started for.
pub fn run(arguments: &Benchmark, figures: &mut Figures<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(call) = std::env::var_os(CALL) {
        return Ok(writeln!(out, "{}", make(&call.to_string_lossy())?)?);
    }
    if arguments.part.len() > 1 {
        // A context of this process would make those of the others cheaper.
        return Err(Failure::description("--part first", "no other part beside it", "others"));
    }
    let starts = arguments.shared.rounds();
    let mut packs =
        table(&["first call of a process", "driver", "context", "kernels", "pack", "another", "own kernel"]);
    let mut code = String::new();
    for name in TYPES {
        let found = started(name, starts)?;
        code = found.code.clone();
        packs.add_row([name.to_owned()].into_iter().chain(STEPS.map(|step| found.time(step))));
        figures(found.figure())?;
    }
    let mut loads = table(&["of that, alone", "unpacked", "loaded"]);
    for name in [MACHINE_CODE, PTX, NVRTC] {
        let found = started(name, starts)?;
        loads.add_row([name.to_owned(), found.time("unpacked"), found.time("loaded")]);
        figures(found.figure())?;
    }
    tell("");
    writeln!(out, "\nmedians of {starts} processes with CUDA_CACHE_DISABLE=1; generic kernels: {code}")?;
    Ok(writeln!(out, "{packs}\n{loads}")?)
}

/// What the processes of a figure said.
struct Found {
    name: &'static str,
    code: String,
    said: Vec<Map<String, Value>>,
}

impl Found {
    /// The median of a step in nanoseconds, if there is one.
    fn median(&self, step: &str) -> Option<f64> {
        let times: Vec<f64> = self.said.iter().filter_map(|said| said.get(step)?.as_f64()).collect();
        (!times.is_empty()).then(|| median(&times))
    }

    fn time(&self, step: &str) -> String {
        self.median(step).map_or_else(|| "-".to_owned(), report::time)
    }

    /// The figure as a line of results, in the form of the other parts' lines.
    fn figure(&self) -> Value {
        let mut figure =
            json!({ "peer": "dtc first call", "case": self.name, "starts": self.said.len(), "clock": "host" });
        for step in self.said.iter().flat_map(Map::keys) {
            if let Some(time) = self.median(step) {
                figure[format!("{step}_us")] = ((time.round()) / 1e3).into();
            }
        }
        if !self.code.is_empty() {
            figure["code"] = self.code.as_str().into();
        }
        figure
    }
}

/// Starts the processes of a figure, one after the other.
fn started(name: &'static str, starts: usize) -> Result<Found, Failure> {
    let mut found = Found { name, code: String::new(), said: Vec::new() };
    for start in 0..starts {
        tell(&format!("{name}, process {} of {starts}", start + 1));
        let missing = |error| Failure::Missing(format!("dtc-bench: expected a program to start, found {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(missing)?);
        command.args(["--backend", "cuda", "--part", "first"]).env(CALL, name);
        command.env("CUDA_CACHE_DISABLE", "1").env("DTC_CACHE_DIR", "off");
        let output = command.output().map_err(missing)?;
        let said = String::from_utf8_lossy(&output.stdout);
        let Ok(Value::Object(said)) = serde_json::from_str(&said) else {
            let error = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(Failure::data(format_args!("first call, {name}"), "a line of figures", error));
        };
        if let Some(code) = said.get("code").and_then(Value::as_str) {
            code.clone_into(&mut found.code);
        }
        found.said.push(said);
    }
    Ok(found)
}

/// Makes a first call; its steps in nanoseconds.
fn make(name: &str) -> Result<Value, Failure> {
    let since = |start: Instant| start.elapsed().as_nanos() as u64;
    if name == NVRTC {
        let start = Instant::now();
        // Where it is missing, that is the figure.
        let loaded = Nvrtc::get().is_ok().then(|| since(start));
        return Ok(json!({ "loaded": loaded }));
    }
    if [MACHINE_CODE, PTX].contains(&name) {
        let device = Device::get(0)?;
        let start = Instant::now();
        let known = MachineCode::serving(GENERIC_MACHINE_CODE, device.info().architecture());
        let known = known.filter(|_| name == MACHINE_CODE).and_then(MachineCode::unpack);
        let unpacked = known.as_ref().map(|_| since(start));
        if name == MACHINE_CODE && known.is_none() {
            return Ok(json!({}));
        }
        let start = Instant::now();
        let module = Module::load(&device, known.as_deref().unwrap_or(GENERIC_PTX.as_bytes()))?;
        let loaded = since(start);
        drop(module);
        return Ok(json!({ "unpacked": unpacked, "loaded": loaded }));
    }
    let call = FirstCall::make(0, Policy::Background, &datatype(name)?)?;
    let times =
        [Some(call.driver), Some(call.context), Some(call.kernels), Some(call.first), Some(call.second), call.compiled];
    let steps = STEPS.iter().zip(times).filter_map(|(step, time)| Some(((*step).to_owned(), time?.into())));
    let mut said: Map<String, Value> = steps.collect();
    said.insert("code".to_owned(), call.code.to_string().into());
    Ok(Value::Object(said))
}
