//! What the passes did.

use crate::layout::Layout;
use std::fmt;

/// A layout after passes, and what they did.
#[derive(Clone, Debug)]
pub struct Canonical {
    /// The new layout.
    pub layout: Layout,
    /// Which passes fired.
    pub report: Report,
}

/// Which passes fired, and how often.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 1 x i32\n  %1 = stream 2 x 4 of %0\n  root %1\n}")?;
/// let canonical = dtc_compiler::canonicalise(&layout);
/// assert_eq!(canonical.report.to_string(), "erase-kinds 1, fold-dense 1");
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    fired: Vec<(&'static str, u64)>,
}

impl Report {
    pub(super) fn count(&mut self, name: &'static str) {
        match self.fired.iter_mut().find(|(other, _)| *other == name) {
            Some((_, times)) => *times += 1,
            None => self.fired.push((name, 1)),
        }
    }

    /// Names and counts, in the order in which the passes first fired.
    pub fn fired(&self) -> &[(&'static str, u64)] {
        &self.fired
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fired.is_empty() {
            return f.write_str("no pass fired");
        }
        for (index, (name, times)) in self.fired.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{name} {times}")?;
        }
        Ok(())
    }
}
