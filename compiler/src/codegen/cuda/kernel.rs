//! The texts of kernels: templates, with the functions of their layouts.

use super::accumulate;
use super::place::Places;
use super::tables::{ListName, Tables};
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{GpuPlan, KernelText, LibraryPart, Variant, word_type};
use minijinja::{Value, context};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The shared memory of a batch. A block belongs to one item, so all kinds use the same.
pub(super) const POOL: &str = "pool";

/// The text of kernels, and the lists that they read.
#[derive(Clone, Debug)]
pub struct Program {
    /// CUDA C++, for NVRTC.
    pub source: String,
    /// What the parameter `tables` of the kernels points at, on a boundary of 16 bytes; empty when they read none.
    pub tables: Vec<u8>,
}

/// Kernels that share a text.
#[derive(Default)]
pub(super) struct Kernels {
    /// The lists that they read.
    pub(super) tables: Tables,
    /// A namespace for each.
    pub(super) text: String,
    /// Bytes of shared memory of a block, at most.
    pub(super) shared_bytes: u32,
    library: BTreeSet<LibraryPart>,
}

impl Kernels {
    /// Adds a namespace with what a block of a variant does, and the kernel of that name.
    pub(super) fn add(&mut self, plan: &GpuPlan, variant: &Variant, entry: &str) -> Result<(), TemplateError> {
        let namespace = entry.trim_start_matches("dtc_");
        self.write(plan, variant, variant.threads(), (namespace, Some(entry)))
    }

    /// Adds a namespace with what a block of a batch does for an item. Lists are those of another type.
    pub(super) fn add_item(
        &mut self,
        plan: &GpuPlan,
        variant: &Variant,
        item: (&str, u32),
    ) -> Result<(), TemplateError> {
        let (namespace, threads) = item;
        self.tables.next_type();
        self.write(plan, variant, threads, (namespace, None))
    }

    /// Adds a namespace of that name, and a kernel if it has a name, too.
    fn write(
        &mut self,
        plan: &GpuPlan,
        variant: &Variant,
        threads: u32,
        (namespace, entry): (&str, Option<&str>),
    ) -> Result<(), TemplateError> {
        let (instance, family) = (plan.instance(variant, threads), variant.family.kernel());
        let missing = || TemplateError(format!("{variant}: the plan has none"));
        let KernelText { template, word, functions, lists, values, library, resident_blocks } =
            family.text(&instance).ok_or_else(missing)?;
        let (shared, prefetched) = (family.shared_bytes(&instance), family.prefetches(&instance));
        self.library.extend(library);
        self.library.extend(prefetched.then_some(LibraryPart::Prefetch));
        self.shared_bytes = self.shared_bytes.max(shared.unwrap_or(0));
        let mut places = Places::new(plan, &mut self.tables);
        functions.into_iter().for_each(|function| places.write(function));
        let functions = places.into_text();
        let list = |(name, list)| {
            let at = self.tables.of_family(ListName::OfFamily(variant.family, variant.direction, name), &list);
            (name, Value::from(at))
        };
        let lists: Value = lists.into_iter().map(list).collect();
        let common = context! {
            word, prefetched, threads,
            pack => variant.direction == Direction::Pack,
            word_type => word_type(word),
            call => "Bounds",
            context => "",
            shared => shared.unwrap_or(0),
            pool => if entry.is_none() { POOL } else { "" },
        };
        // What a family says goes before what all say.
        let body = render(template, &context! { ..values, ..lists, ..common })?;
        let kernel = match entry {
            Some(entry) => {
                let (shared, capped) = (shared.is_some(), variant.capped);
                let values = context! { entry, threads, resident => resident_blocks, shared, capped, call => "Bounds" };
                render("entry", &values)? + "\n"
            }
            None => String::new(),
        };
        let index = if variant.wide { "u64" } else { "u32" };
        let _ = write!(
            self.text,
            "\nnamespace {namespace} {{\n\ntypedef {index} index;\n\n{functions}{body}\n{kernel}}}\n"
        );
        Ok(())
    }

    /// Adds parts of the library for text that is written elsewhere.
    pub(super) fn require(&mut self, parts: impl IntoIterator<Item = LibraryPart>) {
        self.library.extend(parts);
    }

    /// The types and functions that the kernels use.
    pub(super) fn library(&self) -> String {
        let mut text = dtc_templates::PRELUDE.to_owned();
        for part in &self.library {
            text.push_str(&library(*part));
        }
        text
    }
}

/// The text of functions that kernels call.
fn library(part: LibraryPart) -> Cow<'static, str> {
    match part {
        LibraryPart::LoadBytes => dtc_templates::LOAD_BYTES.into(),
        LibraryPart::StoreBytes => dtc_templates::STORE_BYTES.into(),
        LibraryPart::StorePart => dtc_templates::STORE_PART.into(),
        LibraryPart::Funnel => dtc_templates::FUNNEL.into(),
        LibraryPart::Join => dtc_templates::JOIN.into(),
        LibraryPart::Prefetch => dtc_templates::PREFETCH.into(),
        LibraryPart::PrefetchEnds => dtc_templates::PREFETCH_ENDS.into(),
        LibraryPart::Staged => dtc_templates::STAGED.into(),
        LibraryPart::Combine => accumulate::library().into(),
        LibraryPart::LoadValue => dtc_templates::LOAD_VALUE.into(),
    }
}

/// The layouts, as a comment.
pub(super) fn header(what: &str, plans: &[&GpuPlan]) -> String {
    const LONGEST: usize = 140;
    let mut text = format!("// {what} by dtc, for\n");
    for plan in plans {
        text.push_str("//\n");
        for line in plan.layout().abridged(LONGEST) {
            let _ = writeln!(text, "//     {line}");
        }
    }
    text.push_str("//\n\n");
    text
}
