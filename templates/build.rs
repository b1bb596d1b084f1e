//! Lists the templates of `kernels/`: a file there is a template of its name.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=kernels");
    let mut names = Vec::new();
    for entry in fs::read_dir("kernels")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cu") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    let mut list = String::from("/// Every way of moving bytes.\npub const KERNELS: &[Template] = &[\n");
    for name in names {
        let text = format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/kernels/{name}.cu\"))");
        // Writing to a text cannot fail.
        let _ = writeln!(list, "    Template {{ name: \"{name}\", text: {text} }},");
    }
    list.push_str("];\n");
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR: expected a folder"))?;
    fs::write(Path::new(&folder).join("kernels.rs"), list)
}
