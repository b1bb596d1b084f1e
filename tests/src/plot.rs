//! Curves and bars on logarithmic axes, as SVG: for the pictures that tests draw from recorded results.
//!
//! Pictures have no background, and their colours are legible on white and on black: pages are read in light and in dark.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The colour of text, with a contrast of 4.5 to white and to black.
pub const TEXT: &str = "#767676";

/// Colours of dtc and of its peers, each legible on white and on black.
pub const DTC: &str = "#16a34a";
/// See [`DTC`].
pub const PEERS: [&str; 5] = ["#3b82f6", "#a855f7", "#ea580c", "#ef4444", "#8b949e"];

/// A part of a picture: where it is, and the numbers at its borders.
///
/// ```
/// use dtc_tests::plot::Panel;
/// let panel = Panel { left: 10.0, top: 20.0, width: 100.0, height: 50.0, across: [1.0, 100.0], up: [1.0, 10.0] };
/// assert_eq!((panel.x(10.0), panel.y(1.0)), (60.0, 70.0));
/// ```
#[derive(Clone, Copy)]
pub struct Panel {
    /// The left border.
    pub left: f64,
    /// The upper border.
    pub top: f64,
    /// From border to border.
    pub width: f64,
    /// From border to border.
    pub height: f64,
    /// The numbers at the left and right borders.
    pub across: [f64; 2],
    /// The numbers at the lower and upper borders.
    pub up: [f64; 2],
}

/// A line of a picture.
#[derive(Clone, Copy)]
pub struct Stroke {
    /// As SVG names it.
    pub colour: &'static str,
    /// Whether it has gaps.
    pub dashed: bool,
}

/// Where a number is between two others, on a logarithmic axis.
fn share(number: f64, [low, high]: [f64; 2]) -> f64 {
    (number / low).ln() / (high / low).ln()
}

impl Panel {
    /// Where a number is across.
    pub fn x(&self, number: f64) -> f64 {
        self.left + share(number, self.across) * self.width
    }

    /// Where a number is up.
    pub fn y(&self, number: f64) -> f64 {
        self.top + (1.0 - share(number, self.up)) * self.height
    }

    /// Whether the panel has room for a point.
    pub fn contains(&self, (across, up): (f64, f64)) -> bool {
        (0.0..=1.0).contains(&share(across, self.across)) && (0.0..=1.0).contains(&share(up, self.up))
    }

    /// Draws the lines of a grid, with their numbers at the left and below.
    pub fn grid(&self, picture: &mut String, across: &[f64], up: &[f64]) {
        let mut line = |[x, y]: [f64; 2], [u, v]: [f64; 2]| {
            let _ = writeln!(
                picture,
                r##"  <path d="M{x:.1} {y:.1} L{u:.1} {v:.1}" stroke="{TEXT}" stroke-opacity="0.25"/>"##
            );
        };
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        up.iter().for_each(|number| line([self.left, self.y(*number)], [right, self.y(*number)]));
        across.iter().for_each(|number| line([self.x(*number), bottom], [self.x(*number), self.top]));
        for number in up {
            label(picture, [self.left - 6.0, self.y(*number) + 4.0], "end", &written(*number));
        }
        for number in across {
            label(picture, [self.x(*number), bottom + 18.0], "middle", &written(*number));
        }
    }

    /// Draws a curve through points.
    pub fn curve(&self, picture: &mut String, points: &[(f64, f64)], stroke: Stroke) {
        let places: Vec<[f64; 2]> = points.iter().map(|(across, up)| [self.x(*across), self.y(*up)]).collect();
        path(picture, &places, stroke);
    }
}

/// Begins a picture.
pub fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" role=\"img\">\n"
    )
}

/// Ends it.
pub fn end(picture: String) -> String {
    picture + "</svg>\n"
}

fn path(picture: &mut String, places: &[[f64; 2]], Stroke { colour, dashed }: Stroke) {
    let dash = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
    let places: Vec<String> = places.iter().map(|[x, y]| format!("{x:.1} {y:.1}")).collect();
    let joined = places.join(" L");
    let _ = writeln!(picture, r#"  <path d="M{joined}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>"#);
}

/// Writes text into a picture; `anchor` is what is at the position.
pub fn label(picture: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    let _ = writeln!(
        picture,
        r##"  <text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="13" fill="{TEXT}">{text}</text>"##
    );
}

/// Names a curve beside a piece of it.
pub fn legend(picture: &mut String, [x, y]: [f64; 2], name: &str, stroke: Stroke) {
    path(picture, &[[x, y], [x + 30.0, y]], stroke);
    label(picture, [x + 38.0, y + 4.0], "start", name);
}

/// A group of bars that begin at the left border of a panel: what it is of, and a length and a colour for each bar.
pub struct Group {
    /// Stands left of the bars.
    pub name: String,
    /// The number, the colour, and what stands behind the bar.
    pub bars: Vec<(f64, &'static str, String)>,
}

impl Panel {
    /// Draws bars on the axis across, and its grid. Groups are one below the other; the panel's height is divided between them.
    pub fn bars(&self, picture: &mut String, groups: &[Group], across: &[f64]) {
        self.grid(picture, across, &[]);
        let height = self.height / groups.len() as f64;
        for (place, group) in groups.iter().enumerate() {
            let top = self.top + height * place as f64;
            let thick = (height * 0.76 / group.bars.len() as f64).min(16.0);
            let above = (height - thick * group.bars.len() as f64) / 2.0;
            label(picture, [self.left - 8.0, top + height / 2.0 + 4.0], "end", &group.name);
            for (at, (number, colour, text)) in group.bars.iter().enumerate() {
                let (y, end) = (top + above + thick * at as f64, self.x(*number));
                let _ = writeln!(
                    picture,
                    r#"  <rect x="{:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/>"#,
                    self.left,
                    end - self.left,
                    thick - 1.0
                );
                label(picture, [end + 6.0, y + thick / 2.0 + 4.0], "start", text);
            }
        }
    }
}

/// A number as the results write it, with commas.
fn written(number: f64) -> String {
    let plain = format!("{number}");
    if number < 1e4 || plain.contains('.') {
        return plain;
    }
    let (mut text, length) = (String::new(), plain.len());
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (length - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Names the colour of bars.
pub fn key(picture: &mut String, [x, y]: [f64; 2], name: &str, colour: &str) {
    let _ = writeln!(picture, r#"  <rect x="{x:.1}" y="{:.1}" width="14" height="12" fill="{colour}"/>"#, y - 8.0);
    label(picture, [x + 20.0, y + 2.0], "start", name);
}

/// A number as the results write it: with commas, in quotation marks of bold text.
///
/// # Panics
///
/// If it is none.
pub fn number(text: &str) -> f64 {
    let plain = text.trim().trim_matches('*').replace(',', "");
    plain.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A file of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Reads a file of the repository.
///
/// # Panics
///
/// If that fails.
pub fn read(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Holds a picture of the repository against what was drawn of some results by the test of this name; writes it with `DTC_BLESS`.
///
/// # Panics
///
/// If they differ.
#[track_caller]
pub fn expect_picture(name: &str, drawn: &str, results: &str, test: &str) {
    if std::env::var_os("DTC_BLESS").is_some() {
        fs::write(file(name), drawn).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let hint = format!("DTC_BLESS=1 cargo test --test {test} draws it");
    assert_eq!(read(name), drawn, "{name} is not of {results}: {hint}");
}

/// The cells of each row of the tables in a section of a document, by its heading.
///
/// # Panics
///
/// If there is no such section.
pub fn rows<'a>(document: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = document.split("\n## ").find(|part| part.starts_with(&format!("{heading}\n")));
    let section = section.unwrap_or_else(|| panic!("a section {heading}"));
    section
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect()
}
