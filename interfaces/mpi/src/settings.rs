//! Variables of the environment with fixed values. Case does not matter; an empty variable counts as unset.

use crate::print;

/// A variable and what may stand in it.
struct Setting {
    variable: &'static str,
    values: &'static [&'static str],
    /// The values, as messages say them.
    expected: &'static str,
    /// What comes of another value.
    otherwise: &'static str,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        variable: "DTC_MPI",
        values: &["off", "on", "all"],
        expected: "off, on or all",
        otherwise: "dtc stays on",
    },
    Setting {
        variable: "DTC_MPI_REPORT",
        values: &["1", "on", "0", "off"],
        expected: "1 or 0",
        otherwise: "the report comes",
    },
    Setting {
        variable: "DTC_MPI_GPU",
        values: &["host", "device"],
        expected: "host or device",
        otherwise: "the MPI says what it is given",
    },
    Setting { variable: "DTC_MPI_DIRECT", values: &["on", "off"], expected: "on or off", otherwise: "it stays on" },
];

/// Most characters of an unknown value that are printed.
const MOST_PRINTED: usize = 40;

/// Whether a variable has this value.
pub fn is_set(variable: &str, value: &str) -> bool {
    std::env::var_os(variable).is_some_and(|found| found.eq_ignore_ascii_case(value))
}

/// A message for each variable whose value is unknown: what was expected, what was found, and what comes of it.
fn unknown() -> Vec<String> {
    let message = |setting: &Setting| {
        let found = std::env::var_os(setting.variable)?;
        let known = found.is_empty() || setting.values.iter().any(|value| found.eq_ignore_ascii_case(value));
        let found: String = found.to_string_lossy().chars().take(MOST_PRINTED).collect();
        let Setting { variable, expected, otherwise, .. } = setting;
        (!known).then(|| format!("{variable}: expected {expected}, found \"{found}\": {otherwise}"))
    };
    SETTINGS.iter().filter_map(message).collect()
}

/// Says on standard error which variables have unknown values. Called by one process of the job.
pub fn say_unknown() {
    for message in unknown() {
        print(&message);
    }
}
