//! Installs what users read and build on: the book, the licences, the page of the interposer, and the examples in C.

use crate::places::Places;
use crate::steps::{Outcome, VERSION, copy_files, read, root, write};
use std::fs;

/// Parts of the book that are for those who change dtc.
const OF_DEVELOPERS: [&str; 2] = ["inside", "decisions"];

/// Files of the root that are installed beside the book.
const OF_THE_ROOT: [&str; 5] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "THIRD-PARTY-NOTICES"];

/// Installs the documents and the examples.
pub fn install(places: &Places) -> Outcome {
    let documents = places.folder("share/doc/dtc")?;
    let pages = pages()?;
    let installed = |file: &str| -> Option<String> {
        let place = file.strip_prefix("docs/").unwrap_or(file);
        let there = pages.iter().any(|page| page == file) || OF_THE_ROOT.contains(&file);
        there.then(|| place.to_owned())
    };
    for file in pages.iter().map(String::as_str).chain(OF_THE_ROOT) {
        let text = read(&root().join(file))?;
        let place = installed(file).unwrap_or_default();
        if let Some((folder, _)) = place.rsplit_once('/') {
            places.folder(&format!("share/doc/dtc/{folder}"))?;
        }
        let text = if file.ends_with(".md") { with_links(&text, file, &installed) } else { text };
        write(&documents.join(place), &text)?;
    }
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

/// The pages of the book and its pictures, from the root.
fn pages() -> Outcome<Vec<String>> {
    let (mut pages, mut folders) = (Vec::new(), vec!["docs".to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root().join(&folder)).map_err(|error| format!("{folder}: {error}"))?;
        for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            let path = format!("{folder}/{name}");
            if !name.contains('.') && !OF_DEVELOPERS.contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(".md") || name.ends_with(".svg") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Where a link of a page leads, from the root.
fn target_of(page: &str, link: &str) -> String {
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(path.pop()),
            "." => {}
            name => path.push(name),
        }
    }
    path.join("/")
}

/// A page of the sources whose links lead to what is installed beside it. Of a link to something else, its words stay. `installed` has
/// where a file of the sources is among the documents.
fn with_links(text: &str, page: &str, installed: &impl Fn(&str) -> Option<String>) -> String {
    let up = "../".repeat(installed(page).unwrap_or_default().matches('/').count());
    let (mut rest, mut made) = (text, String::new());
    while let Some(middle) = rest.find("](") {
        let (before, target) = (&rest[..middle], &rest[middle + 2..]);
        let Some(end) = target.find(')') else { break };
        let (target, behind) = (&target[..end], &target[end + 1..]);
        let (file, heading) = target.find('#').map_or((target, ""), |at| target.split_at(at));
        // Of C++, `[&](int x)`, spaces tell.
        let kept = file.is_empty() || target.contains([':', ' ']);
        let place = if kept { None } else { installed(&target_of(page, file)) };
        let opening = before.rfind('[').filter(|_| !kept && place.is_none());
        match (opening, place) {
            (Some(at), _) => made.extend([&before[..at], &before[at + 1..]]),
            (None, Some(place)) => made.extend([before, "](", &up, &place, heading, ")"]),
            (None, None) => made.extend([before, "](", target, ")"]),
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
        let text = "See [the IR](../reference/ir.md#masks), [results](../../bench/x.md), [here](#there) and [x](https://x.y/z).";
        let expected = "See [the IR](../reference/ir.md#masks), results, [here](#there) and [x](https://x.y/z).";
        let installed = |file: &str| file.strip_prefix("docs/").map(str::to_owned);
        assert_eq!(with_links(text, "docs/start/c.md", &installed), expected);
        assert_eq!(
            with_links("[a](../../README.md)", "docs/start/c.md", &|_| Some("README.md".to_owned())),
            "[a](README.md)"
        );
        assert_eq!(target_of("docs/start/c.md", "../../README.md"), "README.md");
    }
}
