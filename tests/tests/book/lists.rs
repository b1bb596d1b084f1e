//! Pages that list what the sources have are complete.

use super::read;
use std::collections::BTreeSet;

/// The variables that a source names: between quotation marks, or as arguments of a C function.
fn variables(source: &str) -> BTreeSet<String> {
    let words = read(source);
    let words = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let named = words.filter(|word| word.starts_with("DTC_") && word.len() > 5);
    named.map(str::to_owned).collect()
}

#[test]
fn every_variable_is_in_its_page() {
    let page = read("docs/reference/variables.md");
    let mut names = variables("cli/src/commands/pages/sections.rs");
    names.extend(variables("interfaces/mpi/src/settings.rs"));
    assert!(names.len() >= 11, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}")), "docs/reference/variables.md: expected {name}");
    }
}

#[test]
fn messages_of_packs_are_those_of_the_sources() {
    let page = read("docs/reference/errors.md");
    let table = page.split("\n## ").find(|section| section.starts_with("Packs and unpacks")).expect("the section");
    let sources = read("runtime/engine/src/error.rs");
    let messages = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let of_runtime: Vec<&str> = messages.filter(|message| !message.starts_with("x axis")).collect();
    assert!(of_runtime.len() >= 8, "{of_runtime:?}");
    for message in of_runtime {
        assert!(sources.contains(message), "docs/reference/errors.md: {message}: expected a message of the runtime");
    }
}

#[test]
fn every_command_is_in_its_page() {
    let page = read("docs/reference/command.md");
    let sections = read("cli/src/commands/pages/sections.rs");
    let named = sections.split("command: \"").skip(1).filter_map(|rest| rest.split('"').next());
    // Those below another command are in its row.
    let commands: Vec<&str> = named.filter(|name| !name.is_empty() && !name.contains(' ')).collect();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in commands {
        let named = page.contains(&format!("`dtc {command}")) || page.contains(&format!("\\|{command} "));
        assert!(named, "docs/reference/command.md: expected dtc {command}");
    }
}
