//! Curves on two logarithmic axes, as SVG: for the pictures that tests draw from recorded results.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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
            let _ = writeln!(picture, r##"  <path d="M{x:.1} {y:.1} L{u:.1} {v:.1}" stroke="#e5e7eb"/>"##);
        };
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        up.iter().for_each(|number| line([self.left, self.y(*number)], [right, self.y(*number)]));
        across.iter().for_each(|number| line([self.x(*number), bottom], [self.x(*number), self.top]));
        for number in up {
            label(picture, [self.left - 6.0, self.y(*number) + 4.0], "end", &format!("{number}"));
        }
        for number in across {
            label(picture, [self.x(*number), bottom + 18.0], "middle", &format!("{number}"));
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
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n  \
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
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
        r##"  <text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="12" fill="#111827">{text}</text>"##
    );
}

/// Names a curve beside a piece of it.
pub fn legend(picture: &mut String, [x, y]: [f64; 2], name: &str, stroke: Stroke) {
    path(picture, &[[x, y], [x + 30.0, y]], stroke);
    label(picture, [x + 38.0, y + 4.0], "start", name);
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
