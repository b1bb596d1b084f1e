//! Runs tests one after the other, lists skipped ones, and ends a program that hangs.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a test.
const LONGEST: Duration = Duration::from_secs(100);

/// Reason why a test did not pass.
#[derive(Debug)]
pub enum Fault {
    /// A check failed.
    Failed(String),
    /// The machine lacks something that the test needs.
    Skipped(String),
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault::Failed(text)
    }
}

impl From<&str> for Fault {
    fn from(text: &str) -> Fault {
        Fault::Failed(text.to_owned())
    }
}

pub type Outcome = Result<(), Fault>;

/// The message of an error, as the result of a failed test.
pub fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Fails with a message unless a condition holds.
pub fn expect(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

struct Test {
    name: String,
    run: Box<dyn Fn() -> Outcome>,
}

/// Tests by name, in the order in which they run.
#[derive(Default)]
pub struct Tests {
    tests: Vec<Test>,
}

/// The current test, and when it began.
type Running = Arc<Mutex<Option<(String, Instant)>>>;

impl Tests {
    pub fn add(&mut self, name: impl Into<String>, run: impl Fn() -> Outcome + 'static) {
        self.tests.push(Test { name: name.into(), run: Box::new(run) });
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().map(|test| test.name.as_str())
    }

    /// Runs the tests whose names contain `part`, then a last check.
    pub fn run(&self, part: &str, last: &dyn Fn() -> Outcome) -> ExitCode {
        let start = Instant::now();
        let running = Running::default();
        watch(running.clone());
        let (mut passed, mut failures, mut skipped) = (0, Vec::new(), 0);
        for Test { name, run } in self.tests.iter().filter(|test| test.name.contains(part)) {
            let start = Instant::now();
            let now = |test| *running.lock().unwrap_or_else(PoisonError::into_inner) = test;
            now(Some((name.clone(), start)));
            let outcome = run();
            now(None);
            let milliseconds = start.elapsed().as_millis();
            match outcome {
                Ok(()) => {
                    passed += 1;
                    println!("test {name} ... ok ({milliseconds} ms)");
                }
                Err(Fault::Skipped(reason)) => {
                    skipped += 1;
                    println!("test {name} ... ignored, {reason}");
                }
                Err(Fault::Failed(fault)) => {
                    println!("test {name} ... FAILED ({milliseconds} ms): {fault}");
                    failures.push(name.as_str());
                }
            }
        }
        if let Err(Fault::Failed(fault) | Fault::Skipped(fault)) = last() {
            println!("{fault}");
            failures.push("the last check");
        }
        for name in &failures {
            println!("failed: {name}");
        }
        let (word, failed) = (if failures.is_empty() { "ok" } else { "FAILED" }, failures.len());
        let seconds = start.elapsed().as_secs();
        println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored; {seconds} s");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Ends the program with a message if a test exceeds its time limit. A call that waits for a device forever cannot be
/// ended otherwise.
fn watch(running: Running) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let running = running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((name, since)) = &*running
                && since.elapsed() > LONGEST
            {
                println!("test {name} ... FAILED: not done after {} s", LONGEST.as_secs());
                println!("test result: FAILED. the run ended there");
                // SAFETY: `_exit` ends the process at once; exit handlers of the driver would wait for the device.
                unsafe { libc::_exit(1) };
            }
        }
    });
}
