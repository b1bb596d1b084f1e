//! Functions can be read at one sitting, and called without counting arguments.

use super::modules::Crate;
use super::workspace::packages;
use super::{root, written};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, FnArg, ImplItemFn, ItemFn, ItemMod, Signature, TraitItemFn};

/// Most lines of a function, from its name to its brace.
const MOST_LINES: usize = 80;

/// Most parameters of a function, the receiver aside; what a C interface prescribes is no choice.
const MOST_PARAMETERS: usize = 6;

/// Of 20 functions, 19 have at most so many.
const USUAL_PARAMETERS: usize = 4;

/// Functions that may have more, each with its reason.
const EXCEPTIONS: [(&str, &str); 1] = [("darray", "the arguments of MPI_Type_create_darray")];

/// The functions of a file, but not those of tests.
#[derive(Default)]
struct Functions {
    /// Names, lines and parameters. Those with the calling convention of C have none that count.
    all: Vec<(String, usize, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &Signature, body: &Block) {
        let lines = body.brace_token.span.close().end().line + 1 - signature.fn_token.span.start().line;
        let counted = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        let parameters = if signature.abi.is_some() { 0 } else { counted };
        self.all.push((signature.ident.to_string(), lines, parameters));
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || path.is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.add(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn functions(file: &Path) -> Vec<(String, usize, usize)> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut functions = Functions::default();
    functions.visit_file(&parsed);
    functions.all
}

#[test]
fn functions_are_short_and_have_few_parameters() {
    let packages = packages();
    let roots = packages.iter().flat_map(|package| &package.roots);
    // Programs and libraries, but not tests, their tools and examples.
    let roots = roots.filter(|file| file.parent().is_some_and(|folder| folder.ends_with("src")));
    let roots = roots.filter(|file| !file.starts_with(root().join("tests")) && !file.starts_with(root().join("fuzz")));
    let files: BTreeSet<_> = roots.flat_map(|file| Crate::read(file).files).collect();
    let (mut complaints, mut parameters) = (String::new(), Vec::new());
    for file in &files {
        let below = file.strip_prefix(root()).unwrap_or(file).display();
        for (name, lines, count) in functions(file) {
            if lines > MOST_LINES {
                complaints += &format!("{below}: {name}: expected at most {MOST_LINES} lines, found {lines}\n");
            }
            if count > MOST_PARAMETERS && EXCEPTIONS.iter().all(|(exception, _)| *exception != name) {
                complaints +=
                    &format!("{below}: {name}: expected at most {MOST_PARAMETERS} parameters, found {count}\n");
            }
            parameters.push(count);
        }
    }
    parameters.sort_unstable();
    let usual = parameters[parameters.len() * 19 / 20];
    assert!(complaints.is_empty(), "{complaints}");
    assert!(
        usual <= USUAL_PARAMETERS,
        "expected 19 of 20 functions with at most {USUAL_PARAMETERS} parameters, found {usual}"
    );
}

#[test]
fn lines_and_parameters_are_counted() {
    let text = "struct A;\nimpl A {\n    fn f(&self, a: u8, b: u8) {\n        g()\n    }\n}\nfn g() {}\nextern \"C\" fn c(a: u8) {}\n\
                #[cfg(test)]\nmod tests { fn t() {} }\n";
    let folder = written(&[("a.rs", text)]);
    let found = functions(&folder.path().join("a.rs"));
    assert_eq!(found, [("f".to_owned(), 3, 2), ("g".to_owned(), 1, 0), ("c".to_owned(), 1, 0)]);
}
