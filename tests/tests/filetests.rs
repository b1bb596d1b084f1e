//! File tests: a stage of the compiler runs on a text and prints the expected text.
//!
//! A file `filetests/STAGE/*.dtc` begins with the line `test STAGE`. Cases follow, separated by lines `---`:
//!
//! ```text
//! ; why the case is there
//! layout lb 0 extent 8 {
//!   %0 = dense 8 x byte
//!   root %0
//! }
//! ; check
//! the expected output
//! ```
//!
//! The input is a layout, or a datatype in the short notation, which is lowered first. The stages are
//!
//! - the name of a pass: the pass alone, at every node until it no longer fires. Prints how often it fired, and the
//!   layout if it did;
//! - `canonicalise`: both sweeps. Prints the passes that fired, and the layout;
//! - `regularise`: the canonical form of the input, regularised for GPU plans;
//! - `regularise-for-cpu`: the same for a CPU;
//! - `lower`: the layout of a datatype, its bounds and its size, which are compared with the type map;
//! - `plan`: the plan of the canonical form of the input, for one fixed target;
//! - `strategy`: what processors of some levels do with that plan, for one element and for 1,000 where that differs;
//! - `cat`: the layout as parsed;
//! - `error`: the error message for the input.
//!
//! Besides the expected text, every stage must keep the bytes of the input in their order, and satisfy the verifier.
//! `DTC_BLESS=1` writes the outputs into the files.

mod texts;

use dtc_compiler::datatype::text;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::{Level, Plan, Strategy, Target};
use dtc_compiler::{canonicalise, lower, passes};
use dtc_tests::type_map::TypeMap;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use texts::{difference, moved, same_bytes};

const CHECK: &str = "; check";
const BETWEEN: &str = "---";

/// The stages that are not passes.
const STAGES: &[&str] =
    &["canonicalise", "regularise", "regularise-for-cpu", "lower", "plan", "strategy", "cat", "error"];

struct Case {
    /// Line where the case begins, from 1.
    line: usize,
    /// Comments and the input, as in the file.
    head: String,
    input: String,
    expected: String,
}

struct File {
    path: PathBuf,
    stage: String,
    cases: Vec<Case>,
}

fn read_file(path: &Path) -> Result<File, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut lines = text.lines().enumerate();
    let stage =
        lines.next().and_then(|(_, first)| first.strip_prefix("test ")).ok_or("expected a first line `test STAGE`")?;
    let mut cases = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut finish = |block: &mut Vec<(usize, &str)>| -> Result<(), String> {
        let block = std::mem::take(block);
        let Some(&(line, _)) = block.iter().find(|(_, text)| !text.trim().is_empty()) else {
            return Err("expected a case, found nothing between two lines `---`".to_owned());
        };
        let check = block.iter().position(|(_, text)| *text == CHECK);
        let check = check.ok_or(format!("line {}: expected a case with a line `{CHECK}`", line + 1))?;
        let join = |lines: &[(usize, &str)]| lines.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
        let remarks = block.iter().take_while(|(_, text)| text.trim().is_empty() || text.starts_with(';')).count();
        let remarks = remarks.min(check);
        cases.push(Case {
            line: line + 1,
            head: join(&block[..check]).trim().to_owned(),
            input: join(&block[remarks..check]),
            expected: join(&block[check + 1..]).trim().to_owned(),
        });
        Ok(())
    };
    for (number, line) in lines {
        if line == BETWEEN { finish(&mut block)? } else { block.push((number, line)) }
    }
    finish(&mut block)?;
    Ok(File { path: path.to_owned(), stage: stage.to_owned(), cases })
}

fn write_file(file: &File, found: &[String]) {
    let cases = file.cases.iter().zip(found).map(|(case, found)| format!("\n{}\n{CHECK}\n{found}\n", case.head));
    let cases: Vec<String> = cases.collect();
    let text = format!("test {}\n{}", file.stage, cases.join(&format!("\n{BETWEEN}\n")));
    fs::write(&file.path, text).unwrap();
}

fn read_input(input: &str) -> Result<Layout, String> {
    if input.trim_start().starts_with("layout") {
        Layout::parse(input).map_err(|error| error.to_string())
    } else {
        text::parse(input).map(|datatype| lower(&datatype)).map_err(|error| error.to_string())
    }
}

/// The text of a layout that a stage returned, if the layout is correct.
fn checked(input: &Layout, output: &Layout) -> Result<String, String> {
    output.verify().map_err(|error| format!("the output breaks a rule: {error}\n{output}"))?;
    if !same_bytes(input, output) {
        return Err(format!("the output means other bytes than the input\n{output}"));
    }
    Ok(output.to_string())
}

fn bytes(layout: &Layout) -> Vec<i64> {
    layout.displacements().collect()
}

/// What processors with a last-level cache of 32 MiB do with a plan.
fn strategies(plan: &Plan) -> String {
    let mut found = Vec::new();
    for level in [Level::Portable, Level::Avx512, Level::Zen5] {
        let target = Target { level, non_temporal_bytes: 16 << 20 };
        let [one, many] = [1, 1000].map(|count| Strategy::new(plan, &target, count).to_string());
        if many != one {
            found.push(format!("1000 elements: {many}"));
        }
        found.push(one);
    }
    found.join("\n")
}

/// The output of a stage for an input.
fn run(stage: &str, input: &str) -> Result<String, String> {
    if stage == "error" {
        return match read_input(input) {
            Ok(layout) => Err(format!("expected an error, found\n{layout}")),
            Err(error) => Ok(error),
        };
    }
    let layout = read_input(input)?;
    layout.verify().map_err(|error| format!("the input breaks a rule: {error}"))?;
    match stage {
        "cat" => {
            let printed = checked(&layout, &layout)?;
            let again = Layout::parse(&printed).map_err(|error| error.to_string())?;
            assert_eq!(again.to_string(), printed);
            Ok(printed)
        }
        "lower" => {
            let datatype = text::parse(input).map_err(|error| error.to_string())?;
            let map = TypeMap::new(&datatype);
            let (bounds, found) = (map.bounds(), (layout.size(), layout.lb(), layout.true_lb(), layout.true_ub()));
            if found != (bounds.size, bounds.lb, bounds.true_lb, bounds.true_ub) || map.bytes() != bytes(&layout) {
                return Err(format!("expected the bytes and bounds of the type map, {bounds:?}, found\n{layout}"));
            }
            let true_bounds = format!("true lb {} ub {}", layout.true_lb(), layout.true_ub());
            Ok(format!("size {}, {true_bounds}\n{}", layout.size(), checked(&layout, &layout)?))
        }
        "canonicalise" => {
            let canonical = canonicalise(&layout);
            let again = canonicalise(&canonical.layout).layout.to_string();
            let printed = checked(&layout, &canonical.layout)?;
            if canonical.layout.exact() && again != printed {
                return Err(format!(
                    "expected a canonical layout to stay as it is, found\n{}",
                    difference(&printed, &again)
                ));
            }
            Ok(format!("{}\n{printed}", canonical.report))
        }
        "regularise" => checked(&layout, &passes::regularise(&canonicalise(&layout).layout)),
        "regularise-for-cpu" => checked(&layout, &passes::regularise_for_cpu(&canonicalise(&layout).layout)),
        "plan" => {
            let plan = Plan::new(&canonicalise(&layout).layout);
            if moved(&plan) != bytes(&layout) {
                return Err(format!("the plan moves other bytes than the input\n{plan}"));
            }
            Ok(plan.to_string())
        }
        "strategy" => Ok(strategies(&Plan::new(&canonicalise(&layout).layout))),
        _ => {
            let pass: Vec<_> = passes::all().filter(|pass| pass.name() == stage).collect();
            if pass.is_empty() {
                return Err(format!("expected a stage or pass, found `{stage}`"));
            }
            let applied = passes::apply(&pass, &layout);
            let printed = checked(&layout, &applied.layout)?;
            let fired = !applied.report.fired().is_empty();
            Ok(if fired { format!("{}\n{printed}", applied.report) } else { applied.report.to_string() })
        }
    }
}

fn all_files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut paths = Vec::new();
    for stage in fs::read_dir(folder).unwrap() {
        paths.extend(fs::read_dir(stage.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    paths.sort();
    paths
}

#[test]
fn every_file_says_what_happens() {
    let bless = std::env::var("DTC_BLESS").is_ok_and(|value| value == "1");
    let mut faults: Vec<String> = Vec::new();
    // For every stage, the number of cases that it changed, and that it did not.
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in all_files() {
        let shown = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&path).display().to_string();
        let file = match read_file(&path) {
            Ok(file) => file,
            Err(error) => {
                faults.push(format!("{shown}: {error}"));
                continue;
            }
        };
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        if folder != file.stage.as_str() {
            faults.push(format!("{shown}: expected a test of {}, found one of {}", folder.display(), file.stage));
        }
        let mut blessed = Vec::new();
        for case in &file.cases {
            let found = run(&file.stage, &case.input);
            let counts = seen.entry(file.stage.clone()).or_default();
            match &found {
                Ok(found) if found == "no pass fired" => counts.1 += 1,
                _ => counts.0 += 1,
            }
            match &found {
                Err(error) => faults.push(format!("{shown}:{}: {error}", case.line)),
                Ok(found) if *found != case.expected && !bless => {
                    faults.push(format!("{shown}:{}:\n{}", case.line, difference(&case.expected, found)));
                }
                Ok(_) => {}
            }
            blessed.push(found.unwrap_or_else(|_| case.expected.clone()));
        }
        if bless {
            write_file(&file, &blessed);
        }
    }
    for pass in passes::all() {
        let (fires, rests) = seen.get(pass.name()).copied().unwrap_or_default();
        if fires == 0 || rests == 0 || fires + rests < 3 {
            faults.push(format!(
                "{}: expected at least three cases of the pass, one in which it fires and one in which it does not; \
                 found {fires} and {rests}",
                pass.name()
            ));
        }
    }
    for stage in STAGES {
        if !seen.contains_key(*stage) {
            faults.push(format!("{stage}: expected a file test of the stage, found none"));
        }
    }
    assert!(faults.is_empty(), "- expected, + found\n\n{}\n{} faults", faults.join("\n\n"), faults.len());
}

/// The examples of passes in `docs/reference/ir.md` hold. They are code blocks named like the pass: a layout, a line `=>`, and
/// the result.
#[test]
fn the_examples_of_the_documentation_hold() {
    let text = fs::read_to_string(texts::workspace("docs/reference/ir.md")).unwrap();
    let mut passes: Vec<&str> = passes::all().map(|pass| pass.name()).collect();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(stage) = line.strip_prefix("```").filter(|stage| !stage.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let block = block.join("\n");
        match block.split_once("\n=>\n") {
            Some((before, after)) => {
                let found = run(stage, before).unwrap_or_else(|fault| panic!("{stage}: {fault}\n{before}"));
                // The first line of the output counts how often the pass fired, or has the size.
                let (_, found) = found.split_once('\n').unwrap_or_else(|| panic!("{stage}: {found}\n{before}"));
                assert_eq!(found, after, "{stage}: {}", difference(after, found));
                passes.retain(|name| *name != stage);
            }
            None if stage == "layout" => assert_eq!(run("cat", &block).as_deref(), Ok(&*block)),
            None => assert_eq!(stage, "text", "expected an example, found\n{block}"),
        }
    }
    // Examples of these passes would need lists of dozens of entries.
    assert_eq!(passes, ["divide-runs", "split-lengths", "list-copies"], "passes without an example");
}
