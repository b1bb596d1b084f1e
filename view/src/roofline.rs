//! The roofline of a transfer in words.

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{DeviceCopy, Roofline};
use dtc_measure::report;

/// How fast a GPU copies, and who says so.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    /// Its copies.
    pub copy: DeviceCopy,
    /// Where the figures are from, as the end of a sentence.
    pub source: String,
}

impl Default for Bandwidth {
    /// What reports assume where no GPU was measured.
    fn default() -> Bandwidth {
        Bandwidth { copy: DeviceCopy::default(), source: "by the default model".to_owned() }
    }
}

impl Bandwidth {
    /// What the memory of a GPU allows: a sentence or two for each direction.
    pub(crate) fn sentences(&self, roofline: Option<&Roofline>, bytes: u64) -> Vec<String> {
        let Some(roofline) = roofline else { return Vec::new() };
        let Bandwidth { copy, source } = self;
        let mut sentences = Vec::new();
        for direction in [Direction::Pack, Direction::Unpack] {
            let (traffic, share) = (roofline.traffic(direction), roofline.copy_share(direction));
            let (read, written) = (report::bytes(traffic.read), report::bytes(traffic.written));
            let time = report::time(copy.microseconds(traffic) * 1e3);
            let (name, why) = match direction {
                Direction::Pack => ("A pack", "memory is read in granules of 64 bytes"),
                Direction::Unpack => (
                    "An unpack",
                    "memory is written in sectors of 32 bytes, and those that are written in part are read before",
                ),
            };
            let wanted = report::bytes(bytes);
            sentences.push(format!(
            "{name} of {wanted} reads at least {read} and writes {written}: {why}. It has at most {share:.2} of the speed of a copy, \
             and takes {time} or more."
        ));
        }
        sentences.push(format!("A copy runs at {:.0} GB/s, {source}.", copy.gigabytes / 2.0));
        match roofline.footprint().error {
            0.0 => {}
            error => sentences.push(format!("The numbers are estimated, to {:.1} %.", error * 100.0)),
        }
        sentences
    }
}
