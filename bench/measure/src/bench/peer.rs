//! A peer: a process that packs and unpacks on request, line by line. `bench/README.md` documents the protocol.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A peer that takes longer for an answer is given up, unless its driver has less patience.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest that a peer may take to end after it was told to.
const FAREWELL: Duration = Duration::from_secs(5);

/// A running peer.
pub struct Peer {
    /// What it is: `mpich` or `openmpi`.
    pub kind: &'static str,
    /// What its library calls itself.
    pub version: String,
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
    patience: Duration,
}

impl Peer {
    /// Starts a peer, if it was built.
    pub fn start(directory: &Path, kind: &'static str) -> Result<Option<Peer>, String> {
        Peer::start_within(directory, kind, PATIENCE)
    }

    /// Starts a peer, if it was built, which is given up when it takes longer than `patience` for any answer.
    pub fn start_within(directory: &Path, kind: &'static str, patience: Duration) -> Result<Option<Peer>, String> {
        let program = std::path::absolute(directory.join(kind));
        let program = program.map_err(|error| error.to_string())?;
        if !program.is_file() {
            return Ok(None);
        }
        // MPI libraries warn of networks that are missing; the log takes their warnings.
        let log = File::options().create(true).append(true).open(directory.join("peers.log"));
        let mut child = Command::new(&program)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.map_or_else(|_| Stdio::null(), Stdio::from))
            .spawn()
            .map_err(|error| format!("{kind} does not start: {error}"))?;
        let (Some(questions), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{kind} has no pipes"));
        };
        let (sender, answers) = channel();
        // Reads in a thread of its own, asleep while others are measured, so that a peer that hangs can be given up.
        let reader = std::thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        reader.map_err(|error| format!("{kind} cannot be listened to: {error}"))?;
        let mut peer = Peer { kind, version: String::new(), child, questions, answers, patience };
        let version = peer.ask("version", "version ")?;
        peer.version = version.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Some(peer))
    }

    /// Has it read the type that it packs from now on.
    pub fn read(&mut self, calls: &Path) -> Result<(), String> {
        let path = std::path::absolute(calls).map_err(|error| error.to_string())?;
        self.ask(&format!("type {}", path.display()), "ok").map(drop)
    }

    /// Asks, and returns what follows the expected word of the answer.
    fn ask(&mut self, question: &str, word: &str) -> Result<String, String> {
        let (kind, patience) = (self.kind, self.patience);
        writeln!(self.questions, "{question}").map_err(|_| format!("{kind} ended before \"{question}\""))?;
        let answer = self.answers.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("{kind} took more than {} s for \"{question}\"", patience.as_secs()),
            RecvTimeoutError::Disconnected => format!("{kind} ended during \"{question}\""),
        })?;
        match answer.strip_prefix(word) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None => Err(format!("{kind} answers \"{answer}\" to \"{question}\"")),
        }
    }

    /// Maps the buffers of a file, and packs once; the packed bytes.
    pub fn setup(&mut self, buffer: usize, origin: usize, count: u64, file: &str) -> Result<u64, String> {
        let answer = self.ask(&format!("setup {buffer} {origin} {count} 0 {file}"), "packed ")?;
        answer.parse().map_err(|_| format!("{} answers \"{answer}\" to setup", self.kind))
    }

    /// A time, in nanoseconds: of `pack N`, `unpack N` or `commit N`.
    pub fn time(&mut self, what: &str, repetitions: u64) -> Result<f64, String> {
        let answer = self.ask(&format!("{what} {repetitions}"), "nanoseconds ")?;
        answer.parse().map_err(|_| format!("{} answers \"{answer}\" to {what}", self.kind))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer that is already gone cannot be asked, and need not be.
        let _ = writeln!(self.questions, "quit");
        let start = Instant::now();
        while start.elapsed() < FAREWELL.min(self.patience) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
