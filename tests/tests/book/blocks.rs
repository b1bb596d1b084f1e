//! Every code block is run by some test, or says why not.

use super::{read, root};
use dtc_compiler::datatype::{Datatype, TabledDatatype};
use dtc_tests::book::{Block, blocks, pages};
use std::io::Write;
use std::process::{Command, Stdio};

/// The tests that run blocks.
///
/// - `command`: `cli/tests/book.rs`, with the command dtc.
/// - `installed`: `interfaces/mpi/tests/installed/book.rs`, with what `cargo xtask install` installs.
/// - `mpi`, `fortran`: the same under MPICH and Open MPI, by `./test mpi`.
/// - `kokkos`, `petsc`: the same, where Debian's packages of these are installed.
/// - `gpu`, `two-gpus`: `tests/gpu/book.py`, by hand on a machine with GPUs.
/// - `python`: `interfaces/python/tests/test_book.py`, by `./test python`.
const STAGES: [&str; 9] = ["command", "installed", "mpi", "fortran", "kokkos", "petsc", "gpu", "two-gpus", "python"];

/// Languages of texts that are no code.
const TEXTS: [&str; 2] = ["text", "layout"];

/// The page whose blocks are named after passes: `tests/tests/filetests.rs` runs them.
const PASSES: &str = "docs/reference/ir.md";

fn all() -> Vec<Block> {
    let pages = pages(root(), "docs").into_iter().filter(|page| !page.starts_with("docs/decisions/"));
    pages.flat_map(|page| blocks(root(), &page)).collect()
}

/// What is wrong with how a block is tested.
fn complaint(block: &Block) -> Option<String> {
    let mark = block.mark.as_ref().map(|(kind, what)| (kind.as_str(), what.as_str()));
    match (block.language.as_str(), mark) {
        ("", _) => Some("expected a language".to_owned()),
        (_, Some(("run", stage))) => {
            (!STAGES.contains(&stage)).then(|| format!("expected one of {STAGES:?}, found {stage}"))
        }
        (_, Some(("file" | "shown", ""))) => Some("expected a name or a reason behind the colon".to_owned()),
        (_, Some(("file" | "shown" | "prints", _))) => None,
        (language, _) if TEXTS.contains(&language) => None,
        // tests/outside compiles all of them, and the tests below read the types.
        ("rust" | "dtc", _) => None,
        _ if block.page == PASSES => None,
        (language, _) => {
            Some(format!("expected a comment `run`, `file`, `prints` or `shown` before a block of {language}"))
        }
    }
}

#[test]
fn every_block_is_tested_or_says_why_not() {
    let blocks = all();
    let complaints: Vec<String> = blocks
        .iter()
        .filter_map(|block| Some(format!("{}:{}: {}\n", block.page, block.line, complaint(block)?)))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.concat());
    assert!(blocks.len() > 100, "expected the blocks of the book, found {}", blocks.len());
}

#[test]
fn code_is_in_fences() {
    for page in pages(root(), "docs") {
        let text = read(&page);
        let (mut inside, mut before) = (false, "");
        for (number, line) in text.lines().enumerate() {
            inside ^= line.starts_with("```");
            let starts =
                !inside && line.starts_with("    ") && before.is_empty() && !page.starts_with("docs/decisions/");
            assert!(!starts, "{page}:{}: expected a fence with a language, found an indented block", number + 1);
            before = line;
        }
    }
}

#[test]
fn types_are_read() {
    for block in all().iter().filter(|block| block.language == "dtc" && block.mark.is_none()) {
        let place = format!("{}:{}", block.page, block.line);
        // `let` belongs to what follows; a block without it may have a type in each line.
        let whole = block.text.parse::<Datatype>().is_ok();
        let lines = block.text.lines().map(|line| line.split('#').next().unwrap_or(line).trim());
        for line in lines.filter(|line| !whole && !line.is_empty()) {
            let read = line.parse::<Datatype>().map(drop).or_else(|_| line.parse::<TabledDatatype>().map(drop));
            assert!(read.is_ok(), "{place}: {line}: {}", read.err().map(|error| error.to_string()).unwrap_or_default());
        }
    }
}

#[test]
fn scripts_that_are_shown_are_scripts() {
    for block in all() {
        let shown = block.mark.as_ref().is_some_and(|(kind, _)| kind == "shown" || kind == "file");
        if block.language != "sh" || !shown {
            continue;
        }
        let mut shell =
            Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash");
        shell.stdin.take().expect("a pipe").write_all(block.text.as_bytes()).expect("a script");
        let output = shell.wait_with_output().expect("bash");
        assert!(output.status.success(), "{}:{}: {}", block.page, block.line, String::from_utf8_lossy(&output.stderr));
    }
}
