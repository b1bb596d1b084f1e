//! Compiles kernel texts into one program and runs cases with it.

use super::case::{Access, Buffer, Case, Range};
use super::outcome::{Accesses, Outcome, Traffic};
use dtc_emulator::SHIM;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

/// Texts in one file for g++; several files are compiled at once.
const TEXTS_AT_ONCE: usize = 64;
/// Prefix of the namespace of a text.
const NAMESPACE: &str = "text_";

struct Text {
    text: String,
    name: String,
    entries: Vec<(usize, String)>,
}

/// A variable in shared memory.
#[derive(Clone, Debug)]
struct Variable {
    address: u64,
    length: u64,
    name: String,
}

pub(super) struct Program {
    build: Build,
    texts: Vec<Text>,
    /// Index of the text of each entry.
    entries: Vec<usize>,
}

/// Kernels read bytes through wide types, as GPU compilers allow. Without PIE, symbols are addresses.
const FLAGS: [&str; 5] = ["-std=c++17", "-fno-strict-aliasing", "-no-pie", "-fno-pie", "-g1"];

/// Compiler settings for the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Optimised, for many and large cases. Contents are compared, vector accesses must be aligned, and closed pages
    /// guard gaps and ends.
    Fast,
    /// Every load and store is checked against the case, byte by byte. Races in shared memory and undefined behaviour
    /// are faults. Accesses are counted.
    Checked,
    /// With the address sanitizer, which also detects accesses beyond single variables, and the undefined behaviour
    /// sanitizer.
    Sanitized,
}

impl Build {
    /// Compiler flags for the texts.
    fn texts(self) -> &'static [&'static str] {
        match self {
            Build::Fast => &["-O1", "-fsanitize=alignment", "-fno-sanitize-recover=all"],
            // Optimised code would make fewer loads and stores than the text.
            Build::Checked => &[
                "-O0",
                "-fsanitize=thread,undefined",
                "-fno-sanitize=pointer-overflow,vptr",
                "-fno-sanitize-recover=all",
                "--param",
                "tsan-instrument-func-entry-exit=0",
            ],
            Build::Sanitized => &[
                "-O1",
                "-fsanitize=address,undefined",
                "-fno-sanitize=pointer-overflow,vptr",
                "-fno-sanitize-recover=all",
            ],
        }
    }

    /// Flags for the driver and for linking. The driver replaces the library of the thread sanitizer.
    fn driver(self) -> &'static [&'static str] {
        match self {
            Build::Fast | Build::Checked => &["-O2"],
            Build::Sanitized => &["-O1", "-fsanitize=address"],
        }
    }

    fn libraries(self) -> &'static [&'static str] {
        match self {
            Build::Fast | Build::Checked => &["-fsanitize=undefined"],
            Build::Sanitized => &["-fsanitize=address,undefined"],
        }
    }
}

/// Runs a tool; its output is the error.
fn tool(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn compiler() -> Command {
    let mut command = Command::new("g++");
    command.args(FLAGS).arg("-I").arg(SHIM);
    command
}

/// The compiled driver, which is reused until its source changes.
fn driver(build: Build) -> Result<PathBuf, String> {
    let source = Path::new(SHIM).join("driver.cpp");
    let mut hasher = DefaultHasher::new();
    for file in ["driver.cpp", "cuda_on_cpu.h", "stop.h"] {
        fs::read(Path::new(SHIM).join(file)).map_err(|error| format!("{file}: {error}"))?.hash(&mut hasher);
    }
    tool(Command::new("g++").arg("--version"))?.stdout.hash(&mut hasher);
    build.driver().hash(&mut hasher);
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    let object = tests.with_file_name(format!("cuda-on-cpu-{:016x}.o", hasher.finish()));
    if !object.exists() {
        // Several tests may compile it at once.
        let own =
            tempfile::NamedTempFile::new_in(tests.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
        tool(compiler().args(build.driver()).args(["-Wall", "-Wextra", "-c"]).arg(source).arg("-o").arg(own.path()))?;
        own.persist(&object).map_err(|error| error.to_string())?;
    }
    Ok(object)
}

impl Program {
    pub(super) fn new(build: Build) -> Program {
        Program { build, texts: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn add_text(&mut self, text: &str, name: &str) -> usize {
        self.texts.push(Text { text: text.to_owned(), name: name.to_owned(), entries: Vec::new() });
        self.texts.len() - 1
    }

    pub(super) fn add_entry(&mut self, text: usize, entry: &str) -> usize {
        self.texts[text].entries.push((self.entries.len(), entry.to_owned()));
        self.entries.push(text);
        self.entries.len() - 1
    }

    /// C++ for some texts, each in its own namespace, so that functions and macros do not clash.
    fn source(&self, from: usize, to: usize) -> String {
        let mut source = String::from("#include \"cuda_on_cpu.h\"\n");
        for (number, Text { text, name, entries }) in self.texts.iter().enumerate().take(to).skip(from) {
            let name = name.replace(['"', '\\'], "'");
            let _ = writeln!(
                source,
                "namespace {{ namespace {NAMESPACE}{number} {{\n#line 1 \"text {number}, first used by {name}\""
            );
            // `extern "C"` functions of one name are one function in all namespaces, so they become C++.
            let _ = writeln!(source, "{}\n}} }}", text.replace("extern \"C\"", "extern \"C++\""));
            for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("#define ")) {
                let end = line.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(line.len());
                let _ = writeln!(source, "#undef {}", &line[..end]);
            }
            for (index, entry) in entries {
                let _ = writeln!(
                    source,
                    "__attribute__((constructor)) static void enroll_{index}() {{ using namespace {NAMESPACE}{number};"
                );
                // As a C function, the kernel would be found without its namespace.
                for inside in namespaces(text) {
                    let _ = writeln!(source, "using namespace {NAMESPACE}{number}::{inside};");
                }
                let _ = writeln!(source, "shim::enroll({index}, shim::Call<&{entry}>::with); }}");
            }
        }
        source
    }

    fn compile(&self, directory: &Path) -> Result<PathBuf, String> {
        let starts: Vec<usize> = (0..self.texts.len()).step_by(TEXTS_AT_ONCE).collect();
        let mut objects = vec![driver(self.build)?];
        let workers = thread::available_parallelism().map_or(1, usize::from);
        for group in starts.chunks(workers) {
            let compile = |from: usize| {
                let (source, object) = (directory.join(format!("{from}.cpp")), directory.join(format!("{from}.o")));
                fs::write(&source, self.source(from, from + TEXTS_AT_ONCE)).map_err(|error| error.to_string())?;
                tool(compiler().args(self.build.texts()).args(["-w", "-c"]).arg(source).arg("-o").arg(&object))?;
                Ok(object)
            };
            let compiled: Vec<Result<PathBuf, String>> = thread::scope(|scope| {
                let threads: Vec<_> = group.iter().map(|&from| scope.spawn(move || compile(from))).collect();
                threads.into_iter().map(|thread| thread.join().expect("compiling does not panic")).collect()
            });
            for object in compiled {
                objects.push(object?);
            }
        }
        let program = directory.join("kernels");
        tool(compiler().args(&objects).arg("-o").arg(&program).args(self.build.libraries()))?;
        Ok(program)
    }

    /// Variables in shared memory, by text.
    fn shared(&self, program: &Path) -> Result<Vec<Vec<Variable>>, String> {
        let symbols = tool(Command::new("nm").args(["-C", "-S", "--defined-only"]).arg(program))?;
        let mut shared = vec![Vec::new(); self.texts.len()];
        for line in String::from_utf8_lossy(&symbols.stdout).lines() {
            let mut fields = line.splitn(4, ' ');
            let (Some(address), Some(length), Some("b"), Some(name)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let number = |digits| u64::from_str_radix(digits, 16).map_err(|error| format!("{line}: {error}"));
            let Some((_, inside)) = name.split_once(&format!("::{NAMESPACE}")) else { continue };
            let Some((text, variable)) = inside.split_once("::") else { continue };
            let text: usize = text.parse().map_err(|error| format!("{line}: {error}"))?;
            let variable = variable.rsplit("::").next().unwrap_or(variable);
            shared[text].push(Variable {
                address: number(address)?,
                length: number(length)?,
                name: variable.to_owned(),
            });
        }
        Ok(shared)
    }

    pub(super) fn run(&self, cases: &[Case], kernels: &[usize], limit_seconds: u32) -> Result<Vec<Outcome>, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = self.compile(directory.path())?;
        let file = self.file(cases, kernels, limit_seconds, &self.shared(&program)?);
        let path = directory.path().join("cases");
        fs::write(&path, file).map_err(|error| error.to_string())?;

        let mut results: Vec<Result<Traffic, String>> = Vec::new();
        while results.len() < cases.len() {
            let output = Command::new(&program)
                .arg(&path)
                .arg(results.len().to_string())
                .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
                .output()
                .map_err(|error| format!("{}: {error}", program.display()))?;
            let lines = String::from_utf8_lossy(&output.stdout);
            for line in lines.lines() {
                results.push(parse(line, results.len(), &program)?);
            }
            // A process that ends early has reported a fault, or its current case killed it.
            let explained = lines.lines().last().is_some_and(|line| line.contains(" fault "));
            if results.len() < cases.len() && !explained {
                results.push(Err(last_words(&output)));
            }
        }
        Ok(cases.iter().zip(results).map(|(case, result)| Outcome { name: case.name.clone(), result }).collect())
    }

    fn file(&self, cases: &[Case], kernels: &[usize], limit_seconds: u32, shared: &[Vec<Variable>]) -> Vec<u8> {
        let mut file = File::default();
        file.number(u64::from(self.build == Build::Checked));
        file.number(u64::from(limit_seconds));
        file.number(shared.len() as u64);
        for variables in shared {
            file.number(variables.len() as u64);
            for Variable { address, length, name } in variables {
                file.number(*address);
                file.number(*length);
                file.number(name.len() as u64);
                file.0.extend_from_slice(name.as_bytes());
            }
        }
        file.number(cases.len() as u64);
        for (case, kernel) in cases.iter().zip(kernels) {
            let mut body = File::default();
            body.case(case, *kernel, self.entries[*kernel]);
            file.number(body.0.len() as u64);
            file.0.append(&mut body.0);
        }
        file.0
    }
}

/// The outermost namespaces of a text.
fn namespaces(text: &str) -> BTreeSet<&str> {
    fn name(line: &str) -> Option<&str> {
        line.strip_prefix("namespace ")?.split(['{', ' ']).next()
    }
    text.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

/// Whether the threads of a text wait for each other.
fn cooperates(text: &str) -> bool {
    ["__syncthreads", "__syncwarp", "_sync("].into_iter().any(|word| text.contains(word))
}

/// The input file of the driver: 64-bit numbers, and byte strings with their length.
#[derive(Default)]
struct File(Vec<u8>);

impl File {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    fn case(&mut self, case: &Case, entry: usize, text: usize) {
        let kernel = &case.kernel;
        self.number(entry as u64);
        self.number(text as u64);
        self.number(u64::from(cooperates(&kernel.text)));
        kernel.blocks.into_iter().chain(kernel.threads).for_each(|size| self.number(size.into()));
        self.number(case.first);
        self.number(case.bytes);
        self.number(kernel.extra.len() as u64);
        self.0.extend_from_slice(&kernel.extra);
        self.buffer(&case.memory);
        self.buffer(&case.packed);
        let lists = Range { position: 0, access: Access::Read, before: kernel.tables.to_vec(), after: Vec::new() };
        let ranges = if lists.before.is_empty() { Vec::new() } else { vec![lists] };
        // Allocations of a device are aligned to exactly 256 bytes.
        self.buffer(&Buffer { alignment: 256, ranges });
    }

    fn buffer(&mut self, buffer: &Buffer) {
        self.number(buffer.alignment as u64);
        self.number(buffer.ranges.len() as u64);
        for Range { position, access, before, after } in &buffer.ranges {
            self.number(*position as u64);
            self.number(before.len() as u64);
            self.number(match access {
                Access::Read => 1,
                Access::Write => 2,
                Access::WriteAny => 2 | 4,
                Access::Update => 1 | 2,
                Access::UpdateAny => 1 | 2 | 4,
            });
            self.0.extend_from_slice(before);
            if *access != Access::Read {
                assert_eq!(before.len(), after.len(), "contents before and after have one length");
                self.0.extend_from_slice(after);
            }
        }
    }
}

/// Parses one line of the driver: `NUMBER ok COUNTS` or `NUMBER fault ADDRESS MESSAGE`.
fn parse(line: &str, expected: usize, program: &Path) -> Result<Result<Traffic, String>, String> {
    let strange = || format!("the driver of the shim said {line:?} of case {expected}");
    let mut fields = line.splitn(4, ' ');
    let number: usize = fields.next().and_then(|number| number.parse().ok()).ok_or_else(strange)?;
    if number != expected {
        return Err(strange());
    }
    if fields.next() == Some("fault") {
        let (Some(address), Some(message)) = (fields.next(), fields.next()) else { return Err(strange()) };
        let place = if address == "0x0" { String::new() } else { source_line(program, address) };
        return Ok(Err(format!("{message}{place}")));
    }
    let counts: Vec<u64> = line.split(' ').skip(2).map_while(|count| count.parse().ok()).collect();
    let accesses = |from: usize| -> Option<Accesses> {
        let take = |from: usize| counts.get(from..from + 5)?.try_into().ok();
        Some(Accesses { loads: take(from)?, stores: take(from + 5)?, stored_again: *counts.get(from + 10)? })
    };
    let traffic = || Some(Traffic { memory: accesses(0)?, packed: accesses(11)?, tables: accesses(22)? });
    traffic().map(Ok).ok_or_else(strange)
}

/// The lines of the text at an address, innermost call first; empty if the tool is missing.
fn source_line(program: &Path, address: &str) -> String {
    // A return address is the one after the call.
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap_or(1) - 1;
    let output = Command::new("addr2line").args(["-i", "-e"]).arg(program).arg(format!("{address:#x}")).output();
    let Ok(output) = output else { return String::new() };
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| line.rsplit_once('/').map_or(line, |(_, file)| file).to_owned();
    lines.lines().filter(|at| !at.contains("??")).map(|at| format!("\n  at {}", line(at))).collect()
}

/// The output of a process that a case has killed.
fn last_words(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    // The sanitizer's first lines name the error; maps of its shadow memory follow.
    let words: Vec<&str> = errors
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.contains("swapcontext"))
        .take_while(|line| !line.starts_with("Shadow bytes"))
        .take(16)
        .collect();
    format!("the process ended with {}\n{}", output.status, words.join("\n"))
}
