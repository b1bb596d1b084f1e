//! How soon types have the kernels that `dtc build` made of them, on the host's clock.

use dtc_measure::bench::case::Case;
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::timing::median;
use dtc_runtime::store::Config;
use dtc_runtime::{Engine, Tier};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Nanoseconds of a type, one for each round.
#[derive(Default)]
struct Times {
    /// From the commit until the CPU's kernel is there, or the type is known to need none.
    cpu: Vec<f64>,
    /// From then on until the GPU's kernels are there; empty where there is no GPU, or the type has no kernels.
    gpu: Vec<f64>,
}

/// Commits all types, in an engine for each round, with a bundle and neither store nor thread, and prepares them for GPU 0 where there is
/// one. The first type of the first round finds whatever a process does once not done.
pub fn measure(bundle: &Path, cases: &[Case], rounds: usize, out: &mut dyn Write) -> Result<(), Failure> {
    let mut all: Vec<Times> = cases.iter().map(|_| Times::default()).collect();
    for _ in 0..rounds {
        let engine = Engine::builder().background_thread(false).store(Config::none()).build();
        engine.load_bundle(bundle).map_err(|finding| Failure::Data(finding.to_string()))?;
        let gpu = engine.gpu(0).ok();
        for (case, times) in cases.iter().zip(&mut all) {
            let start = Instant::now();
            let committed = engine.commit(&case.datatype);
            // A commit does no work before its result is asked for.
            committed.type_hash();
            times.cpu.push(start.elapsed().as_nanos() as f64);
            let Some(gpu) = &gpu else { continue };
            let start = Instant::now();
            if committed.prepare(gpu)? == Tier::Specialised {
                times.gpu.push(start.elapsed().as_nanos() as f64);
            }
        }
    }
    writeln!(out, "from a commit until kernels of the bundle are there: medians of {rounds} rounds, and the first")?;
    let row =
        |name: &str, cells: [String; 4]| format!("{name:<32}{}", cells.map(|cell| format!("{cell:>12}")).concat());
    writeln!(out, "{}", row("type", ["CPU", "first", "then GPU", "first"].map(str::to_owned)))?;
    for (case, Times { cpu, gpu }) in cases.iter().zip(&all) {
        let of = |times: &[f64]| match times {
            [] => [String::new(), String::new()],
            [first, ..] => [median(times), *first].map(report::time),
        };
        let ([cpu, first_cpu], [gpu, first_gpu]) = (of(cpu), of(gpu));
        writeln!(out, "{}", row(&case.name, [cpu, first_cpu, gpu, first_gpu]))?;
    }
    for (what, times) in [
        ("CPU", all.iter().map(|times| &times.cpu).collect()),
        ("GPU", all.iter().map(|times| &times.gpu).collect::<Vec<_>>()),
    ] {
        let medians: Vec<f64> =
            times.into_iter().filter(|times| !times.is_empty()).map(|times| median(times)).collect();
        let most = medians.iter().copied().fold(0.0, f64::max);
        writeln!(
            out,
            "{what}: {} types, median {}, most {}",
            medians.len(),
            report::time(median(&medians)),
            report::time(most)
        )?;
    }
    Ok(())
}
