//! One object of what a library needs of rustc's archive, with all symbols hidden but its functions.

use crate::steps::{Outcome, run, tool};
use std::path::Path;

/// Names of the functions that a header declares.
pub(crate) fn declared(header: &str) -> Vec<String> {
    let name = |line: &str| {
        let (declared, _) = line.split_once('(')?;
        let name = declared.rsplit([' ', '*']).next()?;
        (name.starts_with("dtc_") && !line.starts_with([' ', '#', '/'])).then(|| name.to_owned())
    };
    header.lines().filter_map(name).collect()
}

/// Names of the global symbols that an archive defines.
pub(crate) fn defined(archive: &Path) -> Outcome<Vec<String>> {
    let mut list = tool("NM", "nm");
    list.args(["--extern-only", "--defined-only", "--format=just-symbols"]).arg(archive);
    let output = list.output().map_err(|error| format!("{list:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{list:?}: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Joins the members of an archive that the functions need into one object, and hides its other symbols.
pub(crate) fn hide(archive: &Path, functions: &[String], object: &Path) -> Outcome {
    let mut link = tool("LD", "ld");
    // Section groups are dissolved: the linker would otherwise take a group from other Rust code, and lose the one
    // hidden here.
    link.args(["-r", "--gc-sections", "--strip-debug", "--force-group-allocation", "-o"]).arg(object);
    for function in functions {
        link.args(["-u", function]);
    }
    run(link.arg(archive))?;
    // The standard library contains its bitcode, which tools would take for that of the whole joined object.
    let dropped = ["--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    let kept = functions.iter().map(|function| format!("--keep-global-symbol={function}"));
    run(tool("OBJCOPY", "objcopy").args(kept).args(dropped).arg(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_header() {
        let header = "#define DTC_X (1)\nint dtc_init(const dtc_config *config,\n             dtc_engine **engine);\n\
                      const char *dtc_message(void);\ntypedef void (*dtc_log_function)(void *context);\n";
        assert_eq!(declared(header), ["dtc_init", "dtc_message"]);
    }
}
