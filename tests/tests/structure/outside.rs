//! A program that depends on dtc-runtime alone can name what stands in its public signatures.

use super::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Fields, ImplItemFn, Item, ItemUse, Signature, UseTree, Visibility};

/// Names that a file imports from crates of dtc, and those in its public signatures and fields.
#[derive(Default)]
struct Names {
    imported: BTreeSet<String>,
    public: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        if let UseTree::Path(path) = &import.tree
            && path.ident.to_string().starts_with("dtc_")
        {
            leaves(&path.tree, &mut self.imported);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if matches!(function.vis, Visibility::Public(_)) {
            self.signature(&function.sig);
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(function) if matches!(function.vis, Visibility::Public(_)) => self.signature(&function.sig),
            Item::Struct(item) if matches!(item.vis, Visibility::Public(_)) => self.fields(&item.fields, false),
            Item::Enum(item) if matches!(item.vis, Visibility::Public(_)) => {
                item.variants.iter().for_each(|variant| self.fields(&variant.fields, true));
            }
            Item::Use(_) | Item::Impl(_) => visit::visit_item(self, item),
            _ => {}
        }
    }
}

impl Names {
    fn signature(&mut self, signature: &Signature) {
        let mut types = Types(&mut self.public);
        types.visit_signature(signature);
    }

    fn fields(&mut self, fields: &Fields, of_enum: bool) {
        for field in fields.iter().filter(|field| of_enum || matches!(field.vis, Visibility::Public(_))) {
            Types(&mut self.public).visit_type(&field.ty);
        }
    }
}

/// Collects the last names of paths.
struct Types<'a>(&'a mut BTreeSet<String>);

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.extend(path.segments.last().map(|last| last.ident.to_string()));
        visit::visit_path(self, path);
    }
}

/// The names that an import brings in.
fn leaves(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, names)),
        UseTree::Name(name) => _ = names.insert(name.ident.to_string()),
        UseTree::Rename(rename) => _ = names.insert(rename.rename.to_string()),
        UseTree::Glob(_) => {}
    }
}

fn names(file: &Path) -> Names {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut names = Names::default();
    names.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    names
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn signatures_of_the_runtime_are_named_by_a_crate_that_depends_on_it_alone() {
    let outside = names(&root().join("tests/outside/src/signatures.rs"));
    for file in sources(&root().join("runtime/engine/src")) {
        let Names { imported, public } = names(&file);
        let missing: Vec<_> = imported.intersection(&public).filter(|&name| !outside.imported.contains(name)).collect();
        assert!(
            missing.is_empty(),
            "tests/outside/src/signatures.rs: expected uses of the types in signatures of {}, found none of {missing:?}",
            file.display()
        );
    }
}
