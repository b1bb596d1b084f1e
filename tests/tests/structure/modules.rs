//! The modules of a crate as its sources declare them, and the file in which a path is defined.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

/// A module: its file, and what its names mean.
#[derive(Default)]
struct Module {
    name: String,
    file: usize,
    parent: usize,
    children: HashMap<String, usize>,
    /// Names that it defines, and whether they are private.
    defined: HashMap<String, bool>,
    /// Names that `use` brings in, with the paths that they stand for.
    imports: HashMap<String, Vec<String>>,
    /// Paths that end in `*`.
    globs: Vec<Vec<String>>,
    /// Paths that the module depends on: private imports, and paths in its code.
    references: HashSet<Vec<String>>,
    /// Paths that it hands on: those of `pub use`.
    exports: HashSet<Vec<String>>,
}

/// The modules of one crate. Modules under `#[cfg(test)]` are left out.
pub struct Crate {
    pub files: Vec<PathBuf>,
    modules: Vec<Module>,
}

impl Crate {
    /// Reads the crate whose root is this file.
    pub fn read(root: &Path) -> Crate {
        let mut this = Crate { files: Vec::new(), modules: Vec::new() };
        this.read_file(root, root.parent().unwrap(), "", 0);
        this
    }

    /// Pairs of files, the first of which imports the second.
    pub fn imports(&self) -> HashSet<(usize, usize)> {
        let mut pairs = HashSet::new();
        for (index, module) in self.modules.iter().enumerate() {
            for reference in &module.references {
                if let Some(file) = self.file_of(index, reference) {
                    pairs.insert((module.file, file));
                }
            }
        }
        pairs.retain(|(from, to)| from != to);
        pairs
    }

    /// Pairs of modules with files of their own, as the names from the root to them: the first imports from the second. Private and
    /// public imports count and paths in code, and for each both the module that it leads through and the one that defines the name.
    pub fn module_imports(&self) -> HashSet<[Vec<String>; 2]> {
        let mut pairs = HashSet::new();
        for (index, module) in self.modules.iter().enumerate() {
            for path in module.references.iter().chain(&module.exports) {
                let defining = match self.find(index, path, true, &mut HashSet::new()) {
                    Found::Item { module, .. } | Found::Unknown(module) => Some(module),
                    Found::Module => None,
                };
                let found = [self.named(index, path), defining];
                pairs.extend(found.into_iter().flatten().map(|to| [self.path_to(index), self.path_to(to)]));
            }
        }
        pairs
    }

    /// The module that a path leads through as far as it names modules; `None` if it begins with another name.
    fn named(&self, module: usize, path: &[String]) -> Option<usize> {
        let step = |here: usize, name: &str| match name {
            "crate" => Some(0),
            "self" => Some(here),
            "super" => Some(self.modules[here].parent),
            name => self.modules[here].children.get(name).copied(),
        };
        let mut here = step(module, path.first()?)?;
        for name in &path[1..] {
            let Some(next) = step(here, name) else { break };
            here = next;
        }
        Some(here)
    }

    /// The types and traits by their names, each with the files that define one. Constants have no small letters.
    pub fn types(&self) -> BTreeMap<&str, BTreeSet<&Path>> {
        let mut types: BTreeMap<&str, BTreeSet<&Path>> = BTreeMap::new();
        for module in &self.modules {
            let is_type = |name: &str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
            for name in module.defined.keys().filter(|name| is_type(name)) {
                types.entry(name).or_default().insert(&self.files[module.file]);
            }
        }
        types
    }

    /// The names from the root to a module, or to the one in whose file it is written.
    fn path_to(&self, module: usize) -> Vec<String> {
        let Module { name, file, parent, .. } = &self.modules[module];
        if module == 0 {
            return Vec::new();
        }
        let mut path = self.path_to(*parent);
        if *file != self.modules[*parent].file {
            path.push(name.clone());
        }
        path
    }

    fn read_file(&mut self, path: &Path, folder: &Path, name: &str, parent: usize) -> usize {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.files.push(path.to_owned());
        self.read_module(&parsed.items, self.files.len() - 1, folder, name, parent)
    }

    /// Reads the items of a module whose child modules have their files in `folder`.
    fn read_module(&mut self, items: &[syn::Item], file: usize, folder: &Path, name: &str, parent: usize) -> usize {
        let index = self.modules.len();
        self.modules.push(Module { name: name.to_owned(), file, parent, ..Module::default() });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            self.modules[index].defined.extend(defined_name(item));
            match item {
                syn::Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let below = folder.join(&name);
                    let read = match &child.content {
                        Some((_, items)) => self.read_module(items, file, &below, &name, index),
                        None => {
                            let beside = self.files[file].parent().unwrap();
                            let (path, below) = match path_attribute(&child.attrs) {
                                Some(path) => (beside.join(&path), beside.join(path).parent().unwrap().to_owned()),
                                None => {
                                    let candidates = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
                                    let found = candidates.into_iter().find(|path| path.is_file());
                                    (
                                        found.unwrap_or_else(|| panic!("{}: mod {name}: no file", folder.display())),
                                        below,
                                    )
                                }
                            };
                            self.read_file(&path, &below, &name, index)
                        }
                    };
                    self.modules[index].children.insert(name, read);
                }
                syn::Item::Use(item) => {
                    let exported = !matches!(item.vis, syn::Visibility::Inherited);
                    self.read_use(index, &item.tree, &mut Vec::new(), exported);
                }
                _ => {
                    let mut paths = Paths(Vec::new());
                    paths.visit_item(item);
                    self.modules[index].references.extend(paths.0);
                }
            }
        }
        index
    }

    fn read_use(&mut self, index: usize, tree: &syn::UseTree, prefix: &mut Vec<String>, exported: bool) {
        let module = &mut self.modules[index];
        let (name, path) = match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.read_use(index, &path.tree, prefix, exported);
                prefix.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(index, tree, prefix, exported));
                return;
            }
            syn::UseTree::Glob(_) => {
                module.globs.push(prefix.clone());
                let paths = if exported { &mut module.exports } else { &mut module.references };
                paths.insert([&prefix[..], &["*".to_owned()]].concat());
                return;
            }
            syn::UseTree::Name(name) if name.ident == "self" => (prefix.last().cloned(), prefix.clone()),
            syn::UseTree::Name(name) => {
                (Some(name.ident.to_string()), [&prefix[..], &[name.ident.to_string()]].concat())
            }
            syn::UseTree::Rename(rename) if rename.ident == "self" => (Some(rename.rename.to_string()), prefix.clone()),
            syn::UseTree::Rename(rename) => {
                (Some(rename.rename.to_string()), [&prefix[..], &[rename.ident.to_string()]].concat())
            }
        };
        // What is only handed on is no dependency of this file: who imports it is taken to where it is defined.
        let paths = if exported { &mut module.exports } else { &mut module.references };
        paths.insert(path.clone());
        module.imports.insert(name.expect("rustc accepts no `use self`"), path);
    }

    /// The file that defines what a path means in a module; `None` for other crates, and for modules as such.
    ///
    /// A name that the sources of the module it is looked up in do not have comes from a macro there, or is `*`: the file
    /// is that of the module.
    fn file_of(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.find(module, path, true, &mut HashSet::new()) {
            Found::Item { module, .. } => Some(self.modules[module].file),
            Found::Unknown(here) => (here != module).then(|| self.modules[here].file),
            Found::Module => None,
        }
    }

    /// Follows a path from a module. Its first name may come from a glob if `by_glob`: in code, but not in `use`, where it is that of
    /// another crate unless the module names it. `visited` holds what is being looked for, since globs lead in circles.
    fn find(
        &self,
        module: usize,
        path: &[String],
        by_glob: bool,
        visited: &mut HashSet<(usize, Vec<String>)>,
    ) -> Found {
        if !visited.insert((module, path.to_vec())) {
            return Found::Unknown(module);
        }
        let mut here = module;
        let mut rest = path;
        while let [first, after @ ..] = rest {
            let current = &self.modules[here];
            match first.as_str() {
                "crate" => here = 0,
                "self" => {}
                "super" => here = current.parent,
                name => {
                    if let Some(&child) = current.children.get(name) {
                        here = child;
                    } else if let Some(&private) = current.defined.get(name) {
                        return Found::Item { module: here, private };
                    } else if let Some(import) = current.imports.get(name)
                        && import[0] != *name
                    {
                        return self.find(here, &[import, after].concat(), false, visited);
                    } else {
                        let globs = if by_glob || rest.len() < path.len() { &current.globs[..] } else { &[] };
                        for glob in globs {
                            match self.find(here, &[glob, rest].concat(), false, visited) {
                                Found::Unknown(_) => {}
                                Found::Item { module, private: true } if !self.is_within(here, module) => {}
                                found => return found,
                            }
                        }
                        return Found::Unknown(here);
                    }
                }
            }
            rest = after;
        }
        Found::Module
    }

    /// Whether a module is another one, or is inside of it.
    fn is_within(&self, mut module: usize, outer: usize) -> bool {
        while module != outer && module != 0 {
            module = self.modules[module].parent;
        }
        module == outer
    }
}

/// What a path means.
enum Found {
    /// An item that this module defines.
    Item { module: usize, private: bool },
    /// A module.
    Module,
    /// A name that the sources of this module do not tell.
    Unknown(usize),
}

/// Collects the paths of an item, also those among the tokens of macros. Single names count: they may be re-exported here, or come
/// from a glob.
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.read_tokens(call.tokens.clone());
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // An import inside a function counts like a path.
        let mut module = Crate { files: Vec::new(), modules: vec![Module::default()] };
        module.read_use(0, &item.tree, &mut Vec::new(), false);
        self.0.extend(module.modules.remove(0).references);
    }
}

impl Paths {
    /// Takes names that `::` joins as paths.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.0.push(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.0.push(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.read_tokens(group.stream());
                    }
                }
            }
        }
        self.0.push(path);
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::*;
    match item {
        Const(syn::ItemConst { attrs, .. })
        | Enum(syn::ItemEnum { attrs, .. })
        | Fn(syn::ItemFn { attrs, .. })
        | Impl(syn::ItemImpl { attrs, .. })
        | Macro(syn::ItemMacro { attrs, .. })
        | Mod(syn::ItemMod { attrs, .. })
        | Static(syn::ItemStatic { attrs, .. })
        | Struct(syn::ItemStruct { attrs, .. })
        | Trait(syn::ItemTrait { attrs, .. })
        | Type(syn::ItemType { attrs, .. })
        | Union(syn::ItemUnion { attrs, .. })
        | Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// Whether an item belongs to the tests: `#[cfg(test)]`, or `all` of this and more.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    fn requires_tests(condition: &syn::Meta) -> bool {
        match condition {
            syn::Meta::List(list) if list.path.is_ident("all") => {
                let conditions = list.parse_args_with(Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated);
                conditions.is_ok_and(|conditions| conditions.iter().any(requires_tests))
            }
            condition => condition.path().is_ident("test") || condition.path().is_ident("doctest"),
        }
    }
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|condition| requires_tests(&condition))
    })
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| match &attribute.meta {
        syn::Meta::NameValue(syn::MetaNameValue { value: syn::Expr::Lit(literal), .. }) => match &literal.lit {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The name that an item defines, and whether it is private.
fn defined_name(item: &syn::Item) -> Option<(String, bool)> {
    use syn::Item::*;
    let (ident, visibility) = match item {
        Const(item) => (&item.ident, &item.vis),
        Enum(item) => (&item.ident, &item.vis),
        Fn(item) => (&item.sig.ident, &item.vis),
        Macro(item) => (item.ident.as_ref()?, &syn::Visibility::Inherited),
        Static(item) => (&item.ident, &item.vis),
        Struct(item) => (&item.ident, &item.vis),
        Trait(item) => (&item.ident, &item.vis),
        Type(item) => (&item.ident, &item.vis),
        Union(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((ident.to_string(), matches!(visibility, syn::Visibility::Inherited)))
}
