//! What packagers build with: recipes, the citation and the list of changes name this version, and the recipe for Spack calls what
//! `cargo xtask` has.

use super::root;
use std::fs;
use std::process::Command;

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn recipes_name_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (path, line) in [
        ("packaging/spack/package.py", format!("    version(\"{version}\")")),
        ("packaging/conda-forge/recipe.yaml", format!("  version: \"{version}\"")),
        ("CITATION.cff", format!("version: {version}")),
        ("CHANGELOG.md", format!("## {version}")),
    ] {
        assert!(text(path).lines().any(|found| found == line), "{path}: expected a line {line}");
    }
    let guide = text("docs/inside/releasing.md");
    assert!(
        guide.contains(&format!("`dtc-{version}.tar.gz`")),
        "docs/inside/releasing.md: expected files of {version}"
    );
    let rust = env!("CARGO_PKG_RUST_VERSION");
    for (path, needed) in [
        ("packaging/spack/package.py", format!("depends_on(\"rust@{rust}:\", type=\"build\")")),
        ("docs/inside/releasing.md", format!("dtc needs Rust {rust}")),
    ] {
        assert!(text(path).contains(&needed), "{path}: expected {needed}");
    }
}

/// Names that Spack gives to recipes, of which the program prints those that are called.
const SPACK: &str = r#"
import sys, types
from pathlib import Path

def said(*words):
    print(" ".join(words))

package = types.ModuleType("spack.package")
for name in ["license", "version", "variant", "depends_on", "requires"]:
    setattr(package, name, lambda *args, **named: None)
for name in ["run_after", "on_package_attributes"]:
    setattr(package, name, lambda *args, **named: lambda function: function)
package.which = lambda name, required: lambda *words: said(name, *words)
package.Executable = lambda path: lambda *words: said(path, *words)
package.join_path = lambda *parts: "/".join(map(str, parts))
generic = types.ModuleType("generic")
generic.Package = object
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})
for name in ["spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]:
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack_repo.builtin.build_systems.generic"] = generic

names = {}
exec(compile(Path(sys.argv[1]).read_text(), sys.argv[1], "exec"), names)
spec = types.SimpleNamespace(satisfies=lambda what: what == "+yaksa")
names["Libdtc"]().install(spec, "/prefix")
"#;

#[test]
fn the_recipe_for_spack_calls_what_there_is() {
    let recipe = root().join("packaging/spack/package.py");
    let Ok(output) = Command::new("python3").args(["-c", SPACK]).arg(recipe).output() else {
        println!("skipped: the recipe for Spack: needs python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "cargo xtask install --prefix /prefix --program-name datatype-compiler\n\
                    cargo xtask install-yaksa --prefix /prefix\n";
    assert_eq!(said, expected);
    let recipe = text("packaging/conda-forge/recipe.yaml");
    assert!(recipe.contains("cargo xtask install --prefix $PREFIX --program-name datatype-compiler"));
}

#[test]
fn the_recipe_for_conda_is_yaml() {
    let program = "import sys, yaml; recipe = yaml.safe_load(open(sys.argv[1])); \
                   print(*[output['package']['name'] for output in recipe['outputs']])";
    if !Command::new("python3").args(["-c", "import yaml"]).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: the recipe for conda: needs python3 with PyYAML");
        return;
    }
    let recipe = root().join("packaging/conda-forge/recipe.yaml");
    let output = Command::new("python3").args(["-c", program]).arg(recipe).output().expect("python3");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "libdtc libdtc-python\n");
}
