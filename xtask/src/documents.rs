//! Installs what users read and build on: the guides, the licences, the page of the interposer, and the examples in C.

use crate::places::Places;
use crate::steps::{Outcome, VERSION, copy_files, read, root, write};
use std::fs;

/// Guides that are for those who change dtc.
const OF_DEVELOPERS: [&str; 1] = ["testing.md"];

/// Pictures of the guides.
const PICTURES: [&str; 4] = ["matching.svg", "mpi.svg", "pipeline.svg", "view.svg"];

/// Files of the root that are installed beside the guides.
const OF_THE_ROOT: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES"];

/// Installs the documents and the examples.
pub fn install(places: &Places) -> Outcome {
    let documents = places.folder("share/doc/dtc")?;
    for name in OF_THE_ROOT {
        write(&documents.join(name), &read(&root().join(name))?)?;
    }
    let docs = root().join("docs");
    for name in PICTURES {
        write(&documents.join(name), &read(&docs.join(name))?)?;
    }
    let guides = guides()?;
    let there = |target: &str| guides.iter().chain(&OF_THE_ROOT.map(str::to_owned)).any(|name| name == target);
    let here = |target: &str| there(target) || PICTURES.contains(&target);
    for name in &guides {
        write(&documents.join(name), &with_links(&read(&docs.join(name))?, "", here))?;
    }
    write(&documents.join("README.md"), &with_links(&read(&root().join("README.md"))?, "docs/", here))?;
    write(&places.folder("share/man/man7")?.join("libdtc_mpi.7"), &page(places)?)?;
    copy_files(&root().join("interfaces/c/examples"), &places.folder("share/dtc/examples")?, &["c", "cpp", "h"])
}

/// The man page of the interposer, with the places of this installation.
fn page(places: &Places) -> Outcome<String> {
    let libraries = places.used.join(&places.libraries).display().to_string().replace('-', "\\-");
    let prefix = places.used.display().to_string().replace('-', "\\-");
    let text = read(&root().join("interfaces/mpi/pkg/libdtc_mpi.7.in"))?;
    let text = text.replace("@VERSION@", VERSION).replace("@PROGRAM@", &places.program.replace('-', "\\-"));
    Ok(text.replace("@LIBRARIES@", &libraries).replace("@PREFIX@", &prefix))
}

/// Names of the guides.
fn guides() -> Outcome<Vec<String>> {
    let folder = root().join("docs");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".md") && !OF_DEVELOPERS.contains(&name.as_str())).collect();
    names.sort();
    Ok(names)
}

/// A text whose links lead to what is installed beside it. Of a link to something else, its words stay. `folder` is where the text has
/// the guides.
fn with_links(text: &str, folder: &str, installed: impl Fn(&str) -> bool) -> String {
    let (mut rest, mut made) = (text, String::new());
    while let Some(middle) = rest.find("](") {
        let (before, target) = (&rest[..middle], &rest[middle + 2..]);
        let Some(end) = target.find(')') else { break };
        let (target, behind) = (&target[..end], &target[end + 1..]);
        let place = target.strip_prefix(folder).unwrap_or(target);
        let file = place.split('#').next().unwrap_or(place);
        // Of C++, `[&](int x)`, spaces tell.
        let leads = file.is_empty() || target.contains([':', ' ']) || installed(file);
        let opening = before.rfind('[').filter(|_| !leads);
        match opening {
            Some(at) => made.extend([&before[..at], &before[at + 1..]]),
            None => made.extend([before, "](", place, ")"]),
        }
        rest = behind;
    }
    made + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_what_is_installed() {
        let text =
            "See [the IR](docs/ir.md#masks), [results](bench/results/x.md), [here](#there) and [x](https://x.y/z).";
        let expected = "See [the IR](ir.md#masks), results, [here](#there) and [x](https://x.y/z).";
        assert_eq!(with_links(text, "docs/", |name| name == "ir.md"), expected);
    }
}
