//! One picture of a type without scripts: memory, and the packed bytes below it. Where a type is too large to be drawn whole, its first copy
//! follows enlarged, and the first copy in that.

use crate::data::{ElementRun, View};
use crate::page::escaped;
use crate::palette;
use crate::regions::{Content, Entry, Region};
use crate::window::{WindowRun, runs_within};
use dtc_measure::report;
use std::fmt::Write;

/// Pixels of the picture, of its margins, and of the strips between them.
const WIDTH: f64 = 880.0;
const LEFT: f64 = 84.0;
const STRIP: f64 = WIDTH - LEFT - 16.0;

/// Pixels of a line of text, of a strip, and of the space in which bands lead from memory to packed bytes.
const LINE: f64 = 22.0;
const STRIP_HEIGHT: f64 = 22.0;
const BANDS_HEIGHT: f64 = 44.0;

/// Runs that are drawn one by one; more are drawn as the copies or groups that have them.
const MOST_RUNS: u64 = 400;

/// Copies that are drawn; more are drawn in groups.
const MOST_COPIES: u64 = 64;

/// Rows that memory is wrapped in; and rows with space for an offset each, between them.
const MOST_ROWS: u64 = 1024;
const LABELLED_ROWS: u64 = 24;

/// Pixels of rows without offsets, all together.
const ROWS_HEIGHT: f64 = 200.0;

/// Rows of a window of memory.
const WINDOW_ROWS: u64 = 24;

/// Bytes up to which memory is one row.
const ONE_ROW: u64 = 128;

/// Enlargements, the whole among them.
const MOST_FRAMES: usize = 4;

/// Pixels of a letter inside of a block.
const LETTER: f64 = 6.8;

/// Letters of a line, and of one in letters of equal width.
const MOST_LETTERS: usize = 112;
const MOST_CODE: usize = 98;

/// Legible on white and on black: a picture on a page does not know which of them it stands on.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#768390}.code{font-family:ui-monospace,monospace}.title{font-weight:600}\
                     .end{text-anchor:end}.in{font:11px ui-monospace,monospace;text-anchor:middle;fill:#14181d;fill-opacity:.82}.gap{fill:#8b949e;fill-opacity:.2}.band{fill-opacity:.28}.zoom{fill:#8b949e;fill-opacity:.12}\
                     .cut{stroke:#fff;stroke-opacity:.65}";

/// Consecutive bytes of memory and of the packed bytes.
struct Block {
    low: i64,
    high: i64,
    packed: u64,
    bytes: u64,
    /// The region that it is a copy of, with its origin in memory; nothing for runs and groups.
    region: Option<(usize, i64)>,
}

/// A part of a type that is drawn at one scale.
struct Frame {
    title: String,
    low: i64,
    high: i64,
    bytes: u64,
    blocks: Vec<Block>,
    /// Memory that the whole type is wrapped at, if it is.
    pitch: Option<u64>,
}

/// An entry with the bounds of its region, displaced.
fn block_of(regions: &[Region], entry: &Entry, memory: i64, packed: u64) -> Block {
    let at = memory.saturating_add(entry.memory);
    let (low, high) = match entry.region {
        Some(region) => (at.saturating_add(regions[region].low), at.saturating_add(regions[region].high)),
        None => (at, at.saturating_add(entry.bytes as i64)),
    };
    let region = entry.region.map(|region| (region, at));
    Block { low, high, packed: packed + entry.packed, bytes: entry.bytes, region }
}

/// Adds the runs below a region.
fn add_runs(regions: &[Region], number: usize, memory: i64, packed: u64, blocks: &mut Vec<Block>) {
    let mut add = |entry: &Entry, memory: i64, packed: u64| match entry.region {
        Some(region) => add_runs(regions, region, memory.saturating_add(entry.memory), packed + entry.packed, blocks),
        None => blocks.push(block_of(regions, entry, memory, packed)),
    };
    match &regions[number].content {
        Content::Entries { listed, .. } => listed.iter().for_each(|entry| add(entry, memory, packed)),
        Content::Copies { count, stride, first } => {
            (0..*count).for_each(|copy| add(first, memory + copy as i64 * stride, packed + copy * first.bytes));
        }
    }
}

/// What is drawn of a region, and its words.
fn blocks_of(regions: &[Region], number: usize, memory: i64) -> (Vec<Block>, String) {
    let region = &regions[number];
    let grouped = report::grouped;
    let mut blocks = Vec::new();
    if region.runs <= MOST_RUNS {
        add_runs(regions, number, memory, 0, &mut blocks);
        let runs = if region.runs == 1 { "run" } else { "runs" };
        return (blocks, format!("{} {runs}", grouped(region.runs)));
    }
    match &region.content {
        Content::Entries { of, listed } => {
            blocks.extend(listed.iter().map(|entry| block_of(regions, entry, memory, 0)));
            let shown = listed.len() as u64;
            let words = if shown < *of { format!(", {} of them drawn", grouped(shown)) } else { String::new() };
            let what = match shown {
                _ if shown < *of => "listed places",
                _ if shown == region.runs => "runs",
                _ => "parts",
            };
            (blocks, format!("{} {what}{words}", grouped(*of)))
        }
        Content::Copies { count, stride, first } => {
            let group = count.div_ceil(MOST_COPIES);
            let mut from = 0;
            while from < *count {
                let to = (from + group).min(*count);
                let at = |copy: u64| memory.saturating_add((copy as i64).saturating_mul(*stride));
                let (one, last) = (block_of(regions, first, at(from), 0), block_of(regions, first, at(to - 1), 0));
                blocks.push(Block {
                    low: one.low.min(last.low),
                    high: one.high.max(last.high),
                    packed: from * first.bytes,
                    bytes: (to - from) * first.bytes,
                    region: one.region,
                });
                from = to;
            }
            let words = if group > 1 { format!(", drawn in groups of {group}") } else { String::new() };
            (blocks, format!("{} copies {} bytes apart{words}", grouped(*count), grouped(stride.unsigned_abs())))
        }
    }
}

/// The whole, and the first copies in it.
fn frames(view: &View) -> Vec<Frame> {
    let regions = &view.memory.regions;
    let mut frames: Vec<Frame> = Vec::new();
    let mut next = view.memory.root.region.map(|region| (region, view.memory.root.memory));
    while let Some((number, memory)) = next.take().filter(|_| frames.len() < MOST_FRAMES) {
        let region = &regions[number];
        let (low, high) = (memory.saturating_add(region.low), memory.saturating_add(region.high));
        let (blocks, words) = blocks_of(regions, number, memory);
        if is_interleaved(&blocks)
            && let Some(window) = window(view, number, memory)
        {
            frames.push(window);
            break;
        }
        let span = report::bytes(high.abs_diff(low));
        let what = if frames.is_empty() { "memory" } else { "the first copy, enlarged" };
        let title = format!("{what}: {} in {span}, {words}", report::bytes(region.bytes));
        next = blocks.first().and_then(|block| block.region);
        let pitch = next.is_none().then(|| pitch_of(&view.memory.strides, low, high)).flatten();
        // A part of a matrix has the matrix around it, if this is a few rows.
        let (lb, ub) = (low.min(view.memory.bounds[0]), high.max(view.memory.bounds[1]));
        let is_around = frames.is_empty() && pitch.is_some_and(|pitch| rows_of(lb, ub, pitch) <= LABELLED_ROWS);
        let (low, high) = if is_around { (lb, ub) } else { (low, high) };
        frames.push(Frame { title, low, high, bytes: region.bytes, blocks, pitch });
    }
    frames
}

/// Whether a block begins inside of another one.
fn is_interleaved(blocks: &[Block]) -> bool {
    let mut sorted: Vec<&Block> = blocks.iter().collect();
    sorted.sort_by_key(|block| block.low);
    blocks.iter().any(|block| block.region.is_some()) && sorted.windows(2).any(|pair| pair[1].low < pair[0].high)
}

/// The first memory of a region, run by run, in rows of a stride that has some runs beside each other; nothing if there is no such stride.
fn window(view: &View, number: usize, memory: i64) -> Option<Frame> {
    let (regions, region) = (&view.memory.regions, &view.memory.regions[number]);
    let low = memory.checked_add(region.low)?;
    let of = |pitch: u64, rows: u64| {
        let begin = low.checked_sub(low.rem_euclid(i64::try_from(pitch).ok()?))?;
        let end = begin.checked_add_unsigned(pitch.checked_mul(rows)?)?;
        Some((begin, end, runs_within(regions, number, memory, begin..end)?))
    };
    let beside = |pitch: &u64| of(*pitch, 1).is_some_and(|(_, _, runs)| runs.len() > 2);
    let pitch = *view.memory.strides.iter().rev().find(|pitch| beside(pitch))?;
    let all = [WINDOW_ROWS, WINDOW_ROWS / 2, WINDOW_ROWS / 4, 1];
    let (begin, end, mut runs) = all.into_iter().find_map(|rows| of(pitch, rows))?;
    runs.sort_by_key(|run| run.packed);
    let block = |run: &WindowRun| {
        let (low, high) = (run.memory.max(begin), run.memory.saturating_add_unsigned(run.bytes).min(end));
        Block { low, high, packed: run.packed, bytes: run.bytes, region: None }
    };
    let blocks: Vec<Block> = runs.iter().map(block).collect();
    let (whole, span) = (report::bytes(region.bytes), report::bytes(region.high.abs_diff(region.low)));
    let title = format!(
        "a window of {} on {whole} in {span}, whose copies are interleaved: {} runs",
        report::bytes(end.abs_diff(begin)),
        report::grouped(blocks.len() as u64)
    );
    Some(Frame { title, low: begin, high: end, bytes: region.bytes, blocks, pitch: Some(pitch) })
}

/// The narrowest stride at which memory is wrapped in a few rows; nothing where it is one row.
fn pitch_of(strides: &[u64], low: i64, high: i64) -> Option<u64> {
    let span = high.abs_diff(low);
    let fits = |&&stride: &&u64| span > ONE_ROW && (2..=MOST_ROWS).contains(&rows_of(low, high, stride));
    strides.iter().rev().find(fits).copied()
}

/// Rows of `pitch` bytes, counted from offset 0, that a range of memory is in.
fn rows_of(low: i64, high: i64, pitch: u64) -> u64 {
    let (low, high, pitch) = (i128::from(low), i128::from(high), i128::from(pitch));
    ((high - 1).div_euclid(pitch) - low.div_euclid(pitch) + 1) as u64
}

/// A picture that grows downwards.
struct Canvas<'a> {
    text: String,
    y: f64,
    /// The elements of a type of one kind.
    elements: Option<&'a ElementRun>,
}

impl Canvas<'_> {
    fn rect(&mut self, class: &str, fill: &str, [x, y, width, height]: [f64; 4]) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let fill = if fill.is_empty() { String::new() } else { format!(" fill=\"{fill}\"") };
        let _ = writeln!(
            self.text,
            "<rect{class}{fill} x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"/>"
        );
    }

    fn words(&mut self, class: &str, x: f64, text: &str) {
        let most = if class.contains("code") { MOST_CODE } else { MOST_LETTERS };
        let text = escaped(&report::cut(text, most));
        let _ = writeln!(self.text, "<text class=\"{class}\" x=\"{x:.2}\" y=\"{:.2}\">{text}</text>", self.y);
    }

    /// What a block is, inside of it, if there is space.
    fn caption(&mut self, block: &Block, [x, y, width, height]: [f64; 4]) {
        let of_kind =
            self.elements.filter(|elements| block.region.is_none() && block.bytes.is_multiple_of(elements.size));
        let kind = of_kind.map(|elements| match block.bytes / elements.size {
            1 => elements.kind.to_owned(),
            number => format!("{number}\u{d7}{}", elements.kind),
        });
        let texts = [kind, Some(format!("{} B", report::grouped(block.bytes)))];
        let fits = |text: &String| height >= 14.0 && text.chars().count() as f64 * LETTER + 4.0 < width;
        if let Some(text) = texts.into_iter().flatten().find(fits) {
            let (x, y) = (x + width / 2.0, y + height / 2.0 + 4.0);
            let _ = writeln!(self.text, "<text class=\"in\" x=\"{x:.2}\" y=\"{y:.2}\">{text}</text>");
        }
    }

    /// An area between two horizontal lines.
    fn band(&mut self, class: &str, fill: &str, above: [f64; 3], below: [f64; 3]) {
        let fill = if fill.is_empty() { String::new() } else { format!(" fill=\"{fill}\"") };
        let ([from, to, top], [begin, end, bottom]) = (above, below);
        let _ = writeln!(
            self.text,
            "<path class=\"{class}\"{fill} d=\"M{from:.2} {top:.2}H{to:.2}L{end:.2} {bottom:.2}H{begin:.2}Z\"/>"
        );
    }
}

/// The place and width of a part of a strip, wide enough to be seen.
fn scaled(from: f64, to: f64, whole: f64) -> (f64, f64) {
    let scale = STRIP / whole.max(1.0);
    let width = ((to - from) * scale).max(0.75);
    ((LEFT + from * scale).min(LEFT + STRIP - width), width)
}

impl Frame {
    fn colour(&self, block: &Block) -> String {
        let middle = block.packed as f64 + block.bytes as f64 / 2.0;
        palette::colour(if self.blocks.len() == 1 { 0.0 } else { middle / self.bytes.max(1) as f64 })
    }

    /// Draws memory and packed bytes; returns where the first block is among the latter.
    fn draw(&self, canvas: &mut Canvas<'_>) -> (f64, f64) {
        canvas.y += LINE;
        canvas.words("", LEFT, &self.title);
        canvas.y += 8.0;
        match self.pitch {
            Some(pitch) => self.draw_rows(canvas, pitch),
            None => self.draw_row(canvas),
        }
        let (top, packed) = (canvas.y, self.bytes as f64);
        canvas.rect("gap", "", [LEFT, top, STRIP, STRIP_HEIGHT]);
        for block in &self.blocks {
            let (x, width) = scaled(block.packed as f64, (block.packed + block.bytes) as f64, packed);
            canvas.rect("", &self.colour(block), [x, top, width, STRIP_HEIGHT]);
            canvas.caption(block, [x, top, width, STRIP_HEIGHT]);
        }
        for at in self.cuts() {
            let x = LEFT + at as f64 * STRIP / packed.max(1.0);
            let _ = writeln!(canvas.text, "<path class=\"cut\" d=\"M{x:.2} {top:.2}v{STRIP_HEIGHT}\"/>");
        }
        canvas.y = top + STRIP_HEIGHT - 6.0;
        canvas.words("end", LEFT - 10.0, "packed");
        canvas.y = top + STRIP_HEIGHT;
        let first = self.blocks.first().map_or(0, |block| block.bytes);
        scaled(0.0, first as f64, packed)
    }

    /// Where blocks begin among the packed bytes, if there is space to show it.
    fn cuts(&self) -> Vec<u64> {
        let begins = self.blocks.iter().skip(1).map(|block| block.packed);
        let drawn: u64 = self.blocks.iter().map(|block| block.bytes).sum();
        if self.blocks.len() <= 100 && drawn == self.bytes { begins.collect() } else { Vec::new() }
    }

    fn draw_rows(&self, canvas: &mut Canvas<'_>, pitch: u64) {
        let (rows, pitch) = (rows_of(self.low, self.high, pitch), pitch as i64);
        let first = self.low.div_euclid(pitch);
        let top = canvas.y;
        let (height, space) = match rows {
            0..=12 => (18.0, 2.0),
            13..=LABELLED_ROWS => (14.0, 2.0),
            _ => (ROWS_HEIGHT / rows as f64, 0.0),
        };
        let (drawn, drawn_height) = if space > 0.0 { (rows, height) } else { (1, ROWS_HEIGHT) };
        for row in 0..drawn {
            let y = top + row as f64 * (height + space);
            canvas.rect("gap", "", [LEFT, y, STRIP, drawn_height]);
            canvas.y = y + height.max(12.0) - 3.0;
            canvas.words("end code", LEFT - 10.0, &short(first.saturating_add(row as i64).saturating_mul(pitch)));
        }
        for block in &self.blocks {
            let mut from = block.low;
            while from < block.high {
                let row = from.div_euclid(pitch);
                // Whole rows are one rectangle.
                let whole = if from == row * pitch { (block.high - from) / pitch } else { 0 }.max(1);
                let to = (row + whole).saturating_mul(pitch).min(block.high);
                let end = if whole > 1 { pitch } else { to - row * pitch };
                let (x, width) = scaled(from.rem_euclid(pitch) as f64, end as f64, pitch as f64);
                let y = top + (row - first) as f64 * (height + space);
                let down = (whole - 1) as f64 * (height + space) + height;
                // Rows thinner than a pixel would let the ground through.
                let drawn = if space > 0.0 { down } else { down + 0.5 };
                canvas.rect("", &self.colour(block), [x, y, width, drawn]);
                if to - from == block.high - block.low && whole == 1 {
                    canvas.caption(block, [x, y, width, height]);
                }
                from = to;
            }
        }
        canvas.y = top + rows as f64 * (height + space) + 10.0;
    }

    /// One row of memory, and bands to the packed bytes.
    fn draw_row(&self, canvas: &mut Canvas<'_>) {
        let (top, span) = (canvas.y, self.high.abs_diff(self.low) as f64);
        canvas.rect("gap", "", [LEFT, top, STRIP, STRIP_HEIGHT]);
        let bottom = top + STRIP_HEIGHT;
        for block in &self.blocks {
            let from = block.low.abs_diff(self.low) as f64;
            let (x, width) = scaled(from, from + block.high.abs_diff(block.low) as f64, span);
            let (packed, packed_width) =
                scaled(block.packed as f64, (block.packed + block.bytes) as f64, self.bytes as f64);
            let fill = self.colour(block);
            canvas.rect("", &fill, [x, top, width, STRIP_HEIGHT]);
            canvas.caption(block, [x, top, width, STRIP_HEIGHT]);
            let below = [packed, packed + packed_width, bottom + BANDS_HEIGHT];
            canvas.band("band", &fill, [x, x + width, bottom], below);
        }
        canvas.y = bottom - 6.0;
        canvas.words("end code", LEFT - 10.0, &short(self.low));
        canvas.y = bottom + BANDS_HEIGHT;
    }
}

/// An offset, short enough for the margin.
fn short(offset: i64) -> String {
    let sign = if offset < 0 { "\u{2212}" } else { "" };
    match offset.unsigned_abs() {
        small @ 0..=99_999 => format!("{sign}{}", report::grouped(small)),
        large => format!("{sign}{}", report::bytes(large)),
    }
}

/// The picture of a view: an SVG file without scripts.
///
/// See the [crate](crate) for an example.
pub fn svg(view: &View) -> String {
    let elements = if let [elements] = &view.memory.elements[..] { Some(elements) } else { None };
    let mut canvas = Canvas { text: String::new(), y: LINE, elements };
    let first_line = view.notation.lines().last().unwrap_or_default();
    canvas.words("title code", LEFT, first_line);
    let mut enlarged: Option<(f64, f64)> = None;
    for frame in frames(view) {
        if let Some((x, width)) = enlarged {
            let top = canvas.y;
            canvas.y += 8.0;
            let below = [LEFT, LEFT + STRIP, canvas.y + LINE + 8.0];
            canvas.band("zoom", "", [x, x + width, top], below);
        }
        enlarged = Some(frame.draw(&mut canvas));
    }
    let height = canvas.y + 14.0;
    let name = escaped(&view.name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
         role=\"img\">\n<title>{name}: memory and packed bytes</title>\n<style>{STYLE}</style>\n{}</svg>\n",
        canvas.text
    )
}
