//! What `dtc explain` says of the least traffic of a transfer.

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{DeviceCopy, Roofline};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use serde_json::{Map, Value, json};
use std::io::Write;

const DIRECTIONS: [Direction; 2] = [Direction::Pack, Direction::Unpack];

/// The figures of both directions for `--json`.
pub fn to_json(roofline: &Roofline, copy: DeviceCopy) -> Map<String, Value> {
    let figures = |direction: Direction| {
        let traffic = roofline.traffic(direction);
        let figures = json!({
            "read_bytes": traffic.read,
            "written_bytes": traffic.written,
            "copy_share": roofline.copy_share(direction),
            "least_us": copy.microseconds(traffic),
            "error": roofline.footprint().error,
        });
        (direction.to_string(), figures)
    };
    DIRECTIONS.map(figures).into_iter().collect()
}

/// A line for each direction.
pub fn print(roofline: &Roofline, copy: DeviceCopy, out: &mut dyn Write) -> Result<(), Failure> {
    for direction in DIRECTIONS {
        let (traffic, share) = (roofline.traffic(direction), roofline.copy_share(direction));
        let (read, written) = (report::bytes(traffic.read), report::bytes(traffic.written));
        let time = report::time(copy.microseconds(traffic) * 1e3);
        let direction = direction.to_string();
        write!(out, "    {direction:<7}reads {read}, writes {written}: at most {share:.2} of a copy's speed, {time}")?;
        match roofline.footprint().error {
            0.0 => writeln!(out)?,
            error => writeln!(out, " (estimated, to {:.1} %)", error * 100.0)?,
        }
    }
    Ok(())
}

/// The title of those lines.
pub fn title(copy: DeviceCopy, source: &str) -> String {
    format!("least traffic of a transfer on a GPU that copies at {:.0} GB/s, {source}", copy.gigabytes / 2.0)
}
