//! Pages of `dtc view` in a headless browser, which `./test view` runs. `DTC_BROWSER` names another one, and `DTC_SCREENSHOTS` a folder that
//! keeps what was seen.
#![cfg(unix)]

mod chromium;
#[path = "../common/mod.rs"]
mod common;

use chromium::Browser;
use common::{dtc, is_full};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::tempdir;

/// A name, and a type: each draws something that the others do not.
const TYPES: [(&str, &str); 5] = [
    ("vector", "vector 12 1 14 double"),
    ("subarray", "subarray c [512@256 of 1024, 512@0 of 1024, 512@100 of 1024] double"),
    ("struct", "resized 0 72 (struct [2@0 int, 1@16 (vector 3 1 2 double), 3@64 char])"),
    ("list", "indexed_block 2 [0, 50, 7, 31, 90, 12, 120, 4, 61, 140] int"),
    ("tables", "hvector 2 1 512 (table 0 8 4 64 (contiguous 8 double))"),
];

/// Runs `visit` on the page of each type.
fn each_page(visit: impl Fn(&mut Browser, &str)) {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    for (name, notation) in TYPES {
        let file = folder.path().join(format!("{name}.html"));
        dtc(folder.path(), &["view", notation, "-o", file.to_str().expect("a name")]).fine();
        browser.resize(1400, 1000);
        browser.open(&file);
        visit(&mut browser, name);
        assert_eq!(browser.errors(), Vec::<String>::new(), "{name}");
    }
}

/// The numbers of the marked blocks on one side.
fn marked(browser: &mut Browser, side: &str) -> Value {
    browser.evaluate(&format!(
        "[...document.querySelectorAll('#map .block.on[data-side={side}]')].map((block) => Number(block.dataset.block))"
    ))
}

/// The middle of a block's first rectangle.
fn middle(browser: &mut Browser, side: &str, block: usize) -> (f64, f64) {
    browser.middle(&format!("#map [data-side={side}][data-block=\"{block}\"] rect"))
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn clicks_mark_a_block_and_its_packed_bytes() {
    each_page(|browser, name| {
        let blocks = browser.evaluate("map.blocks.length").as_u64().expect("a number") as usize;
        assert!(blocks >= 5, "{name}: {blocks}");
        let (block, other) = (blocks / 2, 1);
        let place = middle(browser, "memory", block);
        browser.click(place);
        assert_eq!(marked(browser, "packed"), serde_json::json!([block]), "{name}");
        let info = browser.text("#info");
        assert!(info.contains(&format!("{} of {blocks}", block + 1)), "{name}: {info}");
        // The other way, while the first stays until then.
        let place = middle(browser, "packed", other);
        browser.hover(place);
        assert_eq!(marked(browser, "memory"), serde_json::json!([other]), "{name}");
        browser.hover((5.0, 5.0));
        assert_eq!(marked(browser, "memory"), serde_json::json!([block]), "{name}");
        browser.click(place);
        assert_eq!(marked(browser, "memory"), serde_json::json!([other]), "{name}");
        // A second click takes the mark away.
        browser.click(place);
        browser.hover((5.0, 5.0));
        assert_eq!(marked(browser, "memory"), serde_json::json!([]), "{name}");
    });
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn keys_move_through_the_blocks() {
    each_page(|browser, name| {
        browser.evaluate("document.getElementById('map').focus()");
        for (keys, expected) in
            [(&["ArrowRight"][..], 0), (&["ArrowRight", "ArrowRight"], 2), (&["ArrowLeft"], 1), (&["Home"], 0)]
        {
            keys.iter().for_each(|key| browser.key(key));
            assert_eq!(marked(browser, "packed"), serde_json::json!([expected]), "{name} {keys:?}");
        }
        browser.key("End");
        let last = browser.evaluate("map.blocks.length - 1");
        assert_eq!(marked(browser, "memory"), serde_json::json!([last]), "{name}");
        // In the order of memory.
        browser.key("Home");
        let low = |browser: &mut Browser| browser.evaluate("map.blocks[map.pinned].low").as_i64().expect("an offset");
        let before = low(browser);
        browser.key("ArrowDown");
        assert!(low(browser) > before, "{name}");
        browser.key("ArrowUp");
        assert_eq!(low(browser), before, "{name}");
        browser.key("Escape");
        assert_eq!(marked(browser, "memory"), serde_json::json!([]), "{name}");
    });
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn parts_are_enlarged_down_to_runs() {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let file = folder.path().join("page.html");
    dtc(folder.path(), &["view", TYPES[1].1, "-o", file.to_str().expect("a name")]).fine();
    browser.open(&file);
    browser.evaluate("document.getElementById('map').focus()");
    // The 100th group of planes, the second plane of it, the third row.
    let mut path = vec![browser.evaluate("map.words")];
    for steps in [100, 2] {
        (0..steps).for_each(|_| browser.key("ArrowRight"));
        browser.key("Enter");
        path.push(browser.evaluate("map.words"));
    }
    assert_eq!(path, ["group of copies", "copy", "run"]);
    (0..3).for_each(|_| browser.key("ArrowRight"));
    let plane = 99 * 4 + 1u64;
    let memory = ((256 + plane) * 1024 + 2) * 1024 * 8 + 100 * 8;
    let packed = (plane * 512 + 2) * 512 * 8;
    let found = browser.evaluate("[map.blocks[map.pinned].low, map.blocks[map.pinned].packed]");
    assert_eq!(found, serde_json::json!([memory, packed]));
    browser.key("Escape");
    assert_eq!(browser.evaluate("map.words"), "copy");
    let place = browser.middle("#path button");
    browser.click(place);
    assert_eq!(browser.evaluate("map.words"), "group of copies");
    // The button does what Enter does.
    let place = middle(&mut browser, "memory", 7);
    browser.click(place);
    let place = browser.middle("#enlarge");
    browser.click(place);
    assert_eq!(browser.evaluate("map.words"), "copy");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn threads_have_their_words_in_memory_and_packed() {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let file = folder.path().join("page.html");
    dtc(folder.path(), &["view", "vector 12 5 14 double", "-o", file.to_str().expect("a name")]).fine();
    browser.open(&file);
    browser.evaluate("byId('colours').value = 'threads'; byId('colours').dispatchEvent(new Event('change'))");
    let labels = browser.evaluate(
        "[...document.querySelectorAll('#map [data-side=memory][data-block=\"2\"] .label')].map((each) => each.textContent)",
    );
    assert_eq!(labels, serde_json::json!(["T10", "T11", "T12", "T13", "T14"]));
    let place = middle(&mut browser, "packed", 6);
    browser.click(place);
    assert!(browser.text("#info").contains("0.30 \u{2026} 0.34"), "{}", browser.text("#info"));
    // Other rows keep what is marked.
    browser.evaluate("byId('pitch').value = '0'; byId('pitch').dispatchEvent(new Event('change'))");
    assert_eq!(marked(&mut browser, "memory"), serde_json::json!([6]));
    // More words than a browser draws at once are seen through a window.
    dtc(folder.path(), &["view", "vector 600 512 1024 double", "-o", file.to_str().expect("a name")]).fine();
    browser.open(&file);
    assert_eq!(browser.text("#window"), "");
    browser.evaluate("byId('colours').value = 'threads'; byId('colours').dispatchEvent(new Event('change'))");
    assert!(browser.text("#window").contains("window 1 of 25"), "{}", browser.text("#window"));
    let words = browser.evaluate("document.querySelectorAll('#map [data-side=memory] .word').length").as_u64();
    assert!(words.is_some_and(|words| (1000..10_000).contains(&words)), "{words:?}");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

/// Types without bytes, without strides, with copies at one place, before the origin, and beyond what browsers count exactly.
const ODD: [&str; 12] = [
    "contiguous 0 int",
    "double",
    "hvector 10000000000 1 0 byte",
    "hvector 10000000000 1 0 (vector 2 1 2 byte)",
    "hvector 50 1 -4000 (hvector 40 1 100 int)",
    "hvector 5000 1 -4000 (hvector 40 1 100 int)",
    "resized -8 64 (hvector 3 1 -24 int)",
    "hindexed [1@4611686018427387000, 3@-4611686018427387000] byte",
    "contiguous 1000000000000 (resized 0 9 int)",
    "contiguous 700 (resized 0 8 (vector 100000 1 700 double))",
    "addresses 0 64 256 (table 1 32 5 100 (vector 2000 1 2 int))",
    "table 0 2048 512 32768 (hvector 64 1 67108864 (contiguous 32768 byte))",
];

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn odd_types_are_drawn_without_errors() {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let file = folder.path().join("page.html");
    for notation in ODD {
        dtc(folder.path(), &["view", notation, "-o", file.to_str().expect("a name")]).fine();
        browser.open(&file);
        browser.evaluate("document.getElementById('map').focus()");
        for key in
            ["ArrowRight", "ArrowDown", "Enter", "End", "Enter", "ArrowLeft", "ArrowUp", "Escape", "Home", "Escape"]
        {
            browser.key(key);
        }
        for select in ["colours", "pitch"] {
            browser.evaluate(&format!(
                "for (const option of byId('{select}') ? [...byId('{select}').options] : []) {{ byId('{select}').value = option.value; \
                 byId('{select}').dispatchEvent(new Event('change')) }}"
            ));
        }
        let shapes = browser.evaluate("document.querySelectorAll('#map svg *').length").as_u64().expect("a number");
        assert!((1..20_000).contains(&shapes), "{notation}: {shapes}");
        let wrong = browser.evaluate(
            "[...document.querySelectorAll('#map svg *')].filter((each) => /NaN|Infinity/.test(each.outerHTML)).length",
        );
        assert_eq!(wrong, 0, "{notation}");
        assert_eq!(browser.errors(), Vec::<String>::new(), "{notation}");
    }
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn windows_show_interleaved_copies_run_by_run() {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let file = folder.path().join("page.html");
    let notation =
        "struct [1@0 (hvector 4096 1 24 double), 1@8 (hvector 4096 1 24 int), 1@16 (hvector 4096 1 24 char)]";
    dtc(folder.path(), &["view", notation, "-o", file.to_str().expect("a name")]).fine();
    browser.open(&file);
    assert!(browser.text("#window").contains("window 1 of 171"), "{}", browser.text("#window"));
    let second = |browser: &mut Browser| browser.evaluate("map.blocks.filter((block) => block.bytes === 4)[1]");
    let before = second(&mut browser);
    assert_eq!((&before["low"], &before["packed"]), (&32.into(), &(4096 * 8 + 4).into()));
    let place = browser.middle("#window-on");
    browser.click(place);
    let behind = second(&mut browser);
    assert_eq!((&behind["low"], &behind["packed"]), (&(32 + 576).into(), &(4096 * 8 + 4 + 24 * 4).into()));
    let place = middle(&mut browser, "memory", 30);
    browser.click(place);
    assert_eq!(marked(&mut browser, "packed"), serde_json::json!([30]));
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn the_slider_shows_each_pass() {
    each_page(|browser, name| {
        if name == "tables" {
            assert_eq!(browser.evaluate("document.getElementById('stage')"), Value::Null);
            return;
        }
        let stages = browser.evaluate("view.stages.length").as_u64().expect("a number");
        assert!(stages >= 3, "{name}");
        browser.evaluate("document.getElementById('stage').focus()");
        browser.key("Home");
        assert!(browser.text("#stage-text").starts_with("lowered"), "{name}");
        for stage in 1..stages {
            browser.key("ArrowRight");
            let pass = browser.evaluate(&format!("view.stages[{stage}].pass"));
            assert!(browser.text("#stage-text").starts_with(pass.as_str().expect("a name")), "{name} {stage}");
            assert!(browser.text("#layouts").contains(&format!("after {}", pass.as_str().expect("a name"))), "{name}");
        }
        let new = browser.evaluate("document.querySelectorAll('#layouts .column:nth-child(2) .new').length");
        assert!(new.as_u64() > Some(0), "{name}");
        let place = browser.middle("#slider button");
        browser.click(place);
        assert_eq!(browser.evaluate("document.getElementById('stage').value"), "0", "{name}");
    });
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn entries_of_tables_mark_their_blocks() {
    let folder = tempdir().expect("a folder");
    let mut browser = Browser::start(folder.path());
    let file = folder.path().join("page.html");
    dtc(folder.path(), &["view", TYPES[4].1, "-o", file.to_str().expect("a name")]).fine();
    browser.open(&file);
    let place = browser.middle("[data-table=\"0\"][data-entry=\"1\"]");
    browser.hover(place);
    assert_eq!(marked(&mut browser, "memory"), serde_json::json!([1, 4]));
    let place = middle(&mut browser, "packed", 5);
    browser.click(place);
    let chips =
        browser.evaluate("[...document.querySelectorAll('.chip.on')].map((chip) => Number(chip.dataset.entry))");
    assert_eq!(chips, serde_json::json!([3]));
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
#[ignore = "needs a browser; ./test view runs it"]
fn pages_fit_their_windows_light_and_dark_and_print() {
    let kept = std::env::var_os("DTC_SCREENSHOTS").map(PathBuf::from);
    let schemes: &[&str] = if is_full() || kept.is_some() { &["light", "dark"] } else { &["dark"] };
    each_page(|browser, name| {
        for (width, height) in [(1400, 1000), (420, 900)] {
            for scheme in schemes {
                browser.resize(width, height);
                browser.prefer(scheme);
                browser.evaluate("window.scrollTo(0, 0)");
                let wide = browser.evaluate("document.documentElement.scrollWidth").as_u64().expect("a width");
                assert!(wide <= width, "{name}: {wide} of {width}");
                let cut = browser.evaluate(
                    "[...document.querySelectorAll('#map text.end')].filter((text) => text.getBBox().x < 0).map((text) => text.textContent)",
                );
                assert_eq!(cut, serde_json::json!([]), "{name}: labels that the left edge cuts, {width} wide");
                let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
                assert_eq!(ground == "rgb(14, 17, 22)", *scheme == "dark", "{name}: {ground}");
                if let Some(folder) = &kept {
                    browser.screenshot(&folder.join(format!("{name}-{width}-{scheme}.png")), false);
                    browser.screenshot(&folder.join(format!("{name}-{width}-{scheme}-whole.png")), true);
                }
            }
        }
        // The button overrides what the system prefers.
        let dark = "getComputedStyle(document.body).backgroundColor === 'rgb(14, 17, 22)'";
        let before = browser.evaluate(dark);
        let place = browser.middle("#theme");
        browser.click(place);
        assert_ne!(browser.evaluate(dark), before, "{name}");
        let pages = browser.print();
        assert!(pages.starts_with(b"%PDF"), "{name}");
        if let Some(folder) = &kept {
            std::fs::write(folder.join(format!("{name}.pdf")), pages).expect("a file");
        }
    });
}
