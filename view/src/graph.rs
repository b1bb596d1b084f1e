//! Drawings of graphs without cycles: a layer below all parents of its nodes, in lines that fit a column of the page.
//!
//! Types and layouts are chains with a few parts, so layers and one sweep of barycenters are enough, and take time linear in what is drawn.

use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};

/// Nodes that are drawn, at most. More would be smaller than their letters.
pub const MOST_NODES: usize = 200;

/// Nodes beside each other: wider layers go on in the next line.
const MOST_IN_LINE: usize = 4;

/// Pixels of a letter, of the space around a text, between nodes and between lines.
const LETTER: f64 = 6.7;
const PADDING: f64 = 20.0;
const GAP: f64 = 14.0;
const NODE_HEIGHT: f64 = 40.0;
const LINE_HEIGHT: f64 = 74.0;

/// Letters of a line of a node.
const MOST_LETTERS: usize = 36;

/// What is written on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caption {
    /// What kind of node it is.
    pub title: String,
    /// Its numbers.
    pub detail: String,
}

/// A graph whose nodes are numbered.
pub trait Graph {
    /// The children of a node, each with what is written on the way to it.
    fn children(&self, node: usize) -> Vec<(usize, String)>;

    /// What is written on a node.
    fn caption(&self, node: usize) -> Caption;
}

/// A node at its place.
#[derive(Clone, Debug, Serialize)]
pub struct DrawnNode {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    title: String,
    detail: String,
    /// What the detail is short for.
    #[serde(skip_serializing_if = "String::is_empty")]
    whole: String,
    /// Whether an earlier drawing of the same graph had no such node.
    pub new: bool,
}

/// The way from a node to one below.
#[derive(Clone, Debug, Serialize)]
pub struct DrawnEdge {
    from: usize,
    to: usize,
    text: String,
}

/// A graph whose nodes have places.
#[derive(Clone, Debug, Serialize)]
pub struct Drawing {
    width: f64,
    height: f64,
    nodes: Vec<DrawnNode>,
    edges: Vec<DrawnEdge>,
    #[serde(skip)]
    captions: HashSet<Caption>,
}

/// The part of a graph that is drawn: captions, and edges between them.
struct Kept {
    captions: Vec<Caption>,
    edges: Vec<DrawnEdge>,
}

impl Drawing {
    /// Draws what can be reached from a root, which stands at the top.
    pub fn of(graph: &impl Graph, root: usize) -> Drawing {
        let kept = kept(graph, root);
        let lines = lines(&kept);
        let widths: Vec<f64> = kept.captions.iter().map(width_of).collect();
        let width_of_line = |line: &Vec<usize>| {
            line.iter().map(|&node| widths[node]).sum::<f64>() + GAP * line.len().saturating_sub(1) as f64
        };
        let width = lines.iter().map(width_of_line).fold(0.0, f64::max) + 2.0 * GAP;
        let mut places = vec![(0.0, 0.0); kept.captions.len()];
        for (row, line) in lines.iter().enumerate() {
            let mut x = (width - width_of_line(line)) / 2.0;
            for &node in line {
                places[node] = (x, GAP + row as f64 * LINE_HEIGHT);
                x += widths[node] + GAP;
            }
        }
        let node = |(index, caption): (usize, &Caption)| {
            let (x, y) = places[index];
            let detail = shortened(&caption.detail);
            let whole = if detail == caption.detail { String::new() } else { caption.detail.clone() };
            let (title, width) = (caption.title.clone(), widths[index]);
            DrawnNode { x, y, width, height: NODE_HEIGHT, title, detail, whole, new: false }
        };
        let nodes = kept.captions.iter().enumerate().map(node).collect();
        let height = 2.0 * GAP + NODE_HEIGHT + LINE_HEIGHT * lines.len().saturating_sub(1) as f64;
        Drawing { width, height, nodes, edges: kept.edges, captions: kept.captions.into_iter().collect() }
    }

    /// Marks the nodes that another drawing does not have.
    pub fn mark_new(&mut self, before: &Drawing) {
        for node in &mut self.nodes {
            let detail = if node.whole.is_empty() { &node.detail } else { &node.whole };
            node.new = !before.captions.contains(&Caption { title: node.title.clone(), detail: detail.clone() });
        }
    }
}

fn width_of(caption: &Caption) -> f64 {
    let letters = caption.title.chars().count().max(shortened(&caption.detail).chars().count());
    (letters as f64 * LETTER + PADDING).round()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_LETTERS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MOST_LETTERS - 1).chain(['\u{2026}']).collect(),
    }
}

/// The nodes nearest to the root; one node stands for all that is below them.
fn kept(graph: &impl Graph, root: usize) -> Kept {
    let mut numbers = HashMap::from([(root, 0)]);
    let mut waiting = VecDeque::from([root]);
    let (mut captions, mut edges, mut left_out) = (Vec::new(), Vec::new(), HashSet::new());
    while let Some(node) = waiting.pop_front() {
        let from = captions.len();
        captions.push(graph.caption(node));
        // Several ways to one child are one line.
        let mut ways: Vec<(Option<usize>, String, u64)> = Vec::new();
        let mut way_to: HashMap<Option<usize>, usize> = HashMap::new();
        for (child, text) in graph.children(node) {
            let next = numbers.len();
            if !numbers.contains_key(&child) && next < MOST_NODES - 1 {
                numbers.insert(child, next);
                waiting.push_back(child);
            }
            let to = numbers.get(&child).copied();
            if to.is_none() {
                left_out.insert(child);
            }
            let way = *way_to.entry(to).or_insert_with(|| {
                ways.push((to, text, 0));
                ways.len() - 1
            });
            ways[way].2 += 1;
        }
        edges.extend(ways.into_iter().map(|(to, text, number)| DrawnEdge {
            from,
            to: to.unwrap_or(usize::MAX),
            text: if number > 1 { format!("{number} \u{d7}") } else { text },
        }));
    }
    if !left_out.is_empty() {
        let rest = captions.len();
        captions.push(Caption { title: "more nodes".to_owned(), detail: "not drawn".to_owned() });
        edges.iter_mut().filter(|edge| edge.to == usize::MAX).for_each(|edge| edge.to = rest);
    }
    Kept { captions, edges }
}

/// The nodes line by line: each below its parents, and near to them.
fn lines(kept: &Kept) -> Vec<Vec<usize>> {
    let number = kept.captions.len();
    let mut parents = vec![Vec::new(); number];
    let mut below = vec![Vec::new(); number];
    let mut waits = vec![0usize; number];
    for edge in &kept.edges {
        parents[edge.to].push(edge.from);
        below[edge.from].push(edge.to);
        waits[edge.to] += 1;
    }
    let mut layers = vec![0usize; number];
    let mut ready: VecDeque<usize> = (0..number).filter(|&node| waits[node] == 0).collect();
    while let Some(node) = ready.pop_front() {
        for &child in &below[node] {
            layers[child] = layers[child].max(layers[node] + 1);
            waits[child] -= 1;
            if waits[child] == 0 {
                ready.push_back(child);
            }
        }
    }
    let depth = layers.iter().max().map_or(0, |last| last + 1);
    let mut in_layers = vec![Vec::new(); depth];
    (0..number).for_each(|node| in_layers[layers[node]].push(node));
    // The place of a node in its layer, as a share of the layer.
    let mut places = vec![0.5; number];
    let mut lines = Vec::new();
    for mut layer in in_layers {
        let centre = |node: &usize| {
            let sum: f64 = parents[*node].iter().map(|&parent| places[parent]).sum();
            sum / parents[*node].len().max(1) as f64
        };
        let mut keyed: Vec<(f64, usize)> = layer.drain(..).map(|node| (centre(&node), node)).collect();
        keyed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let length = keyed.len() as f64;
        for (at, (_, node)) in keyed.iter().enumerate() {
            places[*node] = (at as f64 + 0.5) / length;
        }
        lines.extend(keyed.chunks(MOST_IN_LINE).map(|line| line.iter().map(|&(_, node)| node).collect()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node for each list of children.
    struct Lists(Vec<Vec<usize>>);

    impl Graph for Lists {
        fn children(&self, node: usize) -> Vec<(usize, String)> {
            self.0[node].iter().map(|&child| (child, child.to_string())).collect()
        }

        fn caption(&self, node: usize) -> Caption {
            Caption { title: node.to_string(), detail: "d".repeat(node.min(50)) }
        }
    }

    #[test]
    fn children_are_below_their_parents_and_nodes_do_not_overlap() {
        let mut seed = 7u32;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        let lists = (0..700).map(|node| (0..if node > 0 { 3 } else { 0 }).map(|_| draw(node)).collect());
        let drawing = Drawing::of(&Lists(lists.collect()), 699);
        assert!(drawing.nodes.len() <= MOST_NODES && drawing.nodes.len() > 50, "{}", drawing.nodes.len());
        for edge in &drawing.edges {
            assert!(drawing.nodes[edge.from].y < drawing.nodes[edge.to].y, "{edge:?}");
        }
        for (at, one) in drawing.nodes.iter().enumerate() {
            assert!(one.x >= 0.0 && one.x + one.width <= drawing.width && one.y + one.height <= drawing.height);
            for other in &drawing.nodes[..at] {
                let apart = one.x + one.width <= other.x || other.x + other.width <= one.x;
                assert!(apart || one.y != other.y, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_node_stands_for_those_that_are_not_drawn() {
        let fan = std::iter::once(vec![]).chain((1..700).map(|_| vec![0])).chain([(0..700).collect()]);
        let drawing = Drawing::of(&Lists(fan.collect()), 700);
        assert_eq!(drawing.nodes.len(), MOST_NODES);
        assert_eq!(drawing.nodes[MOST_NODES - 1].title, "more nodes");
        let to_rest: Vec<&DrawnEdge> = drawing.edges.iter().filter(|edge| edge.to == MOST_NODES - 1).collect();
        assert_eq!(to_rest[0].text, "502 \u{d7}");
    }

    #[test]
    fn new_nodes_are_marked() {
        let chain = |length: usize| Lists((0..length).map(|node| (0..node).rev().take(1).collect()).collect());
        let (short, mut long) = (Drawing::of(&chain(3), 2), Drawing::of(&chain(4), 3));
        long.mark_new(&short);
        assert_eq!(long.nodes.iter().map(|node| node.new).collect::<Vec<_>>(), [true, false, false, false]);
    }
}
