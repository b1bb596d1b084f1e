//! The meaning of a document.

use super::description::Description;
use super::document::{Document, Value};
use super::error::DescriptionError;
use super::members::{Members, Read, SCHEMA, doubled, items, keys_of};
use crate::datatype::constructor::KINDS;
use crate::datatype::{Constructor, Datatype, DatatypeError, GivenBounds, Predefined, ReadArguments};
use crate::suggest::{closest, one_of, plain_constructor, shorten};
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

/// The members of a tree with remarks, of named trees, and those read of a case.
const TYPE: &[&str] = &["type", "story", "source", "count", "origin_bytes", "buffer_bytes"];
const TYPES: &[&str] = &["types", "root", "story", "source", "count", "origin_bytes", "buffer_bytes"];
const CASE: &[&str] = &["tree", "story", "source", "count", "origin_bytes", "buffer_bytes"];

/// What a tree is, in messages.
const TREE: &str = "an object that describes a type";

/// Reads a whole document.
pub(super) fn description(document: &Document) -> Read<Description> {
    if !matches!(document.value(0), Value::Object) {
        return Err(document.unexpected(0, TREE));
    }
    let has = |key: &str| document.members(0).any(|(name, ..)| name == key);
    check_schema(document)?;
    if has("kind") {
        let mut trees = Trees::new(document);
        trees.collect(0)?;
        return Remarks::default().describe(trees, 0);
    }
    if has("type") {
        let members = Members::read(document, 0, TYPE)?;
        let mut trees = Trees::new(document);
        trees.collect(members.required("type")?)?;
        return Remarks::read(&members)?.describe(trees, 0);
    }
    if has("types") {
        let members = Members::read(document, 0, TYPES)?;
        let types = members.required("types")?;
        let root = members.required("root")?;
        let mut trees = Trees::new(document);
        trees.name(types)?;
        let root = trees.look_up(root)?;
        for (_, _, tree) in document.members(types) {
            trees.collect(tree)?;
        }
        return Remarks::read(&members)?.describe(trees, root);
    }
    if has("tree") {
        // A case says more about its benchmark than is used here.
        let mut keys = HashSet::new();
        if let Some((_, key, _)) = document.members(0).find(|&(name, ..)| !keys.insert(name)) {
            return Err(doubled(document, key));
        }
        let members = Members::select(document, 0, CASE)?;
        let mut trees = Trees::new(document);
        trees.collect(members.required("tree")?)?;
        return Remarks::read(&members)?.describe(trees, 0);
    }
    Err(document.error(0, "one of the keys kind, type, types, tree", keys_of(document, 0)))
}

/// The value of `$schema` is not followed, but it is a text, and there is one.
fn check_schema(document: &Document) -> Read<()> {
    let mut named = document.members(0).filter(|&(name, ..)| name == SCHEMA);
    match (named.next(), named.next()) {
        (_, Some((_, key, _))) => Err(doubled(document, key)),
        (Some((.., value)), None) if !matches!(document.value(value), Value::String(_)) => {
            Err(document.unexpected(value, "the address of a schema, a text"))
        }
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Remarks {
    story: Option<String>,
    source: Option<String>,
    count: Option<u64>,
    origin_bytes: Option<u64>,
    buffer_bytes: Option<u64>,
}

impl Remarks {
    fn read(members: &Members) -> Read<Remarks> {
        let document = members.document;
        let text = |key: &str| match members.optional(key) {
            None => Ok(None),
            Some(value) => match document.value(value) {
                Value::String(text) => Ok(Some(text.clone().into_owned())),
                _ => Err(document.unexpected(value, "a text")),
            },
        };
        let number = |key: &str| match members.optional(key) {
            None => Ok(None),
            Some(value) => match document.value(value) {
                Value::Integer(number @ 0..) => Ok(Some(*number as u64)),
                _ => Err(document.unexpected(value, "an integer of at least 0")),
            },
        };
        Ok(Remarks {
            story: text("story")?,
            source: text("source")?,
            count: number("count")?,
            origin_bytes: number("origin_bytes")?,
            buffer_bytes: number("buffer_bytes")?,
        })
    }

    fn describe(self, trees: Trees, root: usize) -> Read<Description> {
        Ok(Description {
            datatype: trees.build(root)?,
            story: self.story,
            source: self.source,
            count: self.count.unwrap_or(1),
            origin_bytes: self.origin_bytes.unwrap_or(0),
            buffer_bytes: self.buffer_bytes,
        })
    }
}

/// The trees of a document, their nodes in one list, so that depth costs no stack.
struct Trees<'d> {
    document: &'d Document<'d>,
    names: Vec<&'d str>,
    by_name: HashMap<&'d str, usize>,
    /// Of each tree, its nodes, parents before children; the first is its root.
    ranges: Vec<Range<usize>>,
    nodes: Vec<TreeNode>,
}

struct TreeNode {
    /// The object in the document.
    at: usize,
    form: Form,
    given: Option<GivenBounds>,
    /// Its children in the list of nodes.
    children: Range<usize>,
}

enum Form {
    Constructor(Constructor),
    /// To a tree.
    Reference(usize),
}

impl<'d> Trees<'d> {
    fn new(document: &'d Document<'d>) -> Trees<'d> {
        Trees { document, names: Vec::new(), by_name: HashMap::new(), ranges: Vec::new(), nodes: Vec::new() }
    }

    /// Learns the names of trees, in the order in which they are collected later.
    fn name(&mut self, types: usize) -> Read<()> {
        if !matches!(self.document.value(types), Value::Object) {
            return Err(self.document.unexpected(types, "an object with a type under each name"));
        }
        for (name, key, _) in self.document.members(types) {
            if self.by_name.insert(name, self.names.len()).is_some() {
                return Err(doubled(self.document, key));
            }
            self.names.push(name);
        }
        Ok(())
    }

    /// The tree that a value names.
    fn look_up(&self, value: usize) -> Read<usize> {
        let Value::String(name) = self.document.value(value) else {
            return Err(self.document.unexpected(value, "the name of a type"));
        };
        if let Some(&tree) = self.by_name.get(name.as_ref()) {
            return Ok(tree);
        }
        let expected = match closest(name, self.names.iter().copied()) {
            Some(meant) => format!("the name of a type in types (perhaps {meant})"),
            None if self.names.is_empty() => "no reference: there are no named types".to_owned(),
            None => format!("the name of a type in types ({})", one_of(self.names.iter().copied())),
        };
        Err(self.document.unexpected(value, expected))
    }

    /// Adds the nodes of a tree.
    fn collect(&mut self, tree: usize) -> Read<()> {
        let first = self.nodes.len();
        // Breadth first: the children of a node are neighbours, and behind it.
        let mut waiting = VecDeque::from([tree]);
        let mut next = first + 1;
        while let Some(at) = waiting.pop_front() {
            let mut node = self.node(at, &mut waiting)?;
            let end = self.nodes.len() + 1 + waiting.len();
            node.children = next..end;
            next = end;
            self.nodes.push(node);
        }
        self.ranges.push(first..self.nodes.len());
        Ok(())
    }

    /// Reads one node and appends its children to those that wait.
    fn node(&self, at: usize, waiting: &mut VecDeque<usize>) -> Read<TreeNode> {
        let document = self.document;
        if !matches!(document.value(at), Value::Object) {
            return Err(document.unexpected(at, TREE));
        }
        let named = |key: &str| document.members(at).find(|&(name, ..)| name == key).map(|(.., value)| value);
        let Some(kind) = named("kind") else {
            if named("ref").is_some() {
                let form = Form::Reference(self.look_up(Members::read(document, at, &["ref"])?.required("ref")?)?);
                return Ok(TreeNode { at, form, given: None, children: 0..0 });
            }
            return Err(document.error(at, "the key kind or ref", keys_of(document, at)));
        };
        let names = || KINDS.iter().map(|&(name, _)| name);
        let keys = match document.value(kind) {
            Value::String(kind) => KINDS.iter().find(|(name, _)| name == kind),
            _ => return Err(document.unexpected(kind, "the name of a kind")),
        };
        let Some(&(kind_name, keys)) = keys else {
            let meant = match document.value(kind) {
                Value::String(name) => closest(&plain_constructor(name), names()),
                _ => None,
            };
            let expected = match meant {
                Some(meant) => format!("the name of a kind (perhaps {meant})"),
                None => names().collect::<Vec<_>>().join(", "),
            };
            return Err(document.unexpected(kind, expected));
        };
        let mut members = Members::read(document, at, keys)?;
        let constructor = match Constructor::read(kind_name, &mut members)? {
            Some(constructor) => constructor,
            None => Constructor::Named(predefined(&members)?),
        };
        match constructor {
            Constructor::Named(_) => {}
            Constructor::Struct { .. } => {
                waiting.extend(items(document, members.required("children")?, "a list of types", TREE)?);
            }
            _ => waiting.push_back(members.required("child")?),
        }
        let given = match members.optional("facts") {
            None => None,
            Some(facts) if matches!(document.value(facts), Value::Object) => {
                let mut facts = Members::read(document, facts, &["lb", "extent"])?;
                Some(GivenBounds { lb: facts.integer("lb")?, extent: facts.integer("extent")? })
            }
            Some(facts) => return Err(document.unexpected(facts, "an object with lb and extent")),
        };
        Ok(TreeNode { at, form: Form::Constructor(constructor), given, children: 0..0 })
    }

    /// Builds every tree, those first that others refer to, and returns the root of one.
    fn build(self, root: usize) -> Read<Datatype> {
        let mut built: Vec<Option<Datatype>> = vec![None; self.nodes.len()];
        for tree in self.order()? {
            for index in self.ranges[tree].clone().rev() {
                let node = &self.nodes[index];
                let made = match &node.form {
                    Form::Reference(tree) => expect(&built[self.ranges[*tree].start]).clone(),
                    Form::Constructor(Constructor::Named(predefined)) if node.given.is_none() => {
                        Datatype::named(*predefined)
                    }
                    Form::Constructor(constructor) => {
                        let children = node.children.clone().map(|child| expect(&built[child]).clone());
                        let made = Datatype::of(constructor.clone(), children, node.given);
                        made.map_err(|error| self.blame(node.at, constructor, error))?
                    }
                };
                built[index] = Some(made);
            }
        }
        Ok(expect(&built[self.ranges[root].start]).clone())
    }

    /// The trees so that references point backwards.
    fn order(&self) -> Read<Vec<usize>> {
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        for _ in &self.ranges {
            graph.add_node(());
        }
        // An edge leads from a tree to those that need it, and carries no more than its direction.
        for (tree, range) in self.ranges.iter().enumerate() {
            for node in &self.nodes[range.clone()] {
                if let Form::Reference(needed) = node.form {
                    graph.add_edge(NodeIndex::new(needed), NodeIndex::new(tree), ());
                }
            }
        }
        toposort(&graph, None)
            .map(|order| order.into_iter().map(NodeIndex::index).collect())
            .map_err(|cycle| self.cycle(cycle.node_id().index()))
    }

    /// The error about a tree that refers to itself by way of others.
    fn cycle(&self, start: usize) -> DescriptionError {
        // Breadth first along the references, so that the shortest cycle is printed.
        let mut reached_by: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut seen = vec![false; self.ranges.len()];
        let mut waiting = VecDeque::from([start]);
        let mut path = Vec::new();
        let mut via: Vec<Option<usize>> = vec![None; self.ranges.len()];
        'search: while let Some(tree) = waiting.pop_front() {
            for index in self.ranges[tree].clone() {
                let Form::Reference(next) = self.nodes[index].form else { continue };
                reached_by[index] = Some(tree);
                if next == start {
                    path.push(index);
                    let mut at = tree;
                    while let Some(reference) = via[at] {
                        path.push(reference);
                        at = *expect(&reached_by[reference]);
                    }
                    break 'search;
                }
                if !seen[next] {
                    seen[next] = true;
                    via[next] = Some(index);
                    waiting.push_back(next);
                }
            }
        }
        path.reverse();
        let mut shown = vec![shorten(self.names[start])];
        shown.extend(path.iter().filter_map(|&index| match self.nodes[index].form {
            Form::Reference(tree) => Some(shorten(self.names[tree])),
            Form::Constructor(_) => None,
        }));
        let at = path.first().map_or(0, |&index| self.nodes[index].at);
        self.document.error(at, "types that do not contain themselves", format!("the cycle {}", shown.join(" -> ")))
    }

    /// The error of a constructor at the place in the document that holds the argument.
    fn blame(&self, at: usize, constructor: &Constructor, error: DatatypeError) -> DescriptionError {
        let argument = error.place().strip_prefix(constructor.name()).unwrap_or(error.place());
        let argument = argument.trim_start_matches('.');
        let (key, position) = match argument.split_once('[') {
            Some((key, rest)) => (key, rest.trim_end_matches(']').parse::<usize>().ok()),
            None => (argument, None),
        };
        let value = self.document.members(at).find(|&(name, ..)| name == key).map(|(.., value)| value);
        match (value, position) {
            (Some(list), Some(item)) => self.document.error_in(list, item, error.expected(), error.found()),
            _ => self.document.error(value.unwrap_or(at), error.expected(), error.found()),
        }
    }
}

/// What is built in order is there when it is needed.
fn expect<T>(built: &Option<T>) -> &T {
    built.as_ref().expect("children and referred trees are built before their users")
}

fn predefined(members: &Members) -> Read<Predefined> {
    let name = members.required("name")?;
    let Value::String(text) = members.document.value(name) else {
        return Err(members.document.unexpected(name, "the name of a predefined type"));
    };
    Predefined::by_name(text).ok_or_else(|| {
        let all = || Predefined::all().map(Predefined::name);
        // The short notation has the same names without MPI's prefix.
        let meant = closest(text, all()).or_else(|| closest(&format!("MPI_{text}"), all()));
        let expected = match meant {
            Some(meant) => format!("the name of a predefined type (perhaps {meant})"),
            None => "the name of a predefined type, such as MPI_DOUBLE".to_owned(),
        };
        members.document.unexpected(name, expected)
    })
}

#[cfg(test)]
mod tests {
    use super::super::members::MOST_MEMBERS;
    use super::*;

    #[test]
    fn the_list_of_kinds_fits_the_members() {
        assert!(KINDS.iter().all(|(_, keys)| keys.len() <= MOST_MEMBERS));
        assert!(TYPES.len() <= MOST_MEMBERS);
    }

    #[test]
    fn the_schema_has_the_kinds_of_the_table_with_their_members() {
        let schema = include_str!("../../../../docs/type-description.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let listed: Vec<&str> = KINDS.iter().map(|&(name, _)| name).collect();
        assert_eq!(schema["$defs"]["node"]["properties"]["kind"]["enum"], serde_json::json!(listed));
        for (name, keys) in KINDS {
            let members = schema["$defs"][name]["properties"].as_object().unwrap();
            let mut found: Vec<&str> = members.keys().map(String::as_str).filter(|&key| key != SCHEMA).collect();
            let mut expected = keys.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}");
        }
    }
}
