//! Parser of the textual form of layouts.

use super::{Edge, Kind, Layout, LayoutBuilder, Node, NodeId, Run};
use crate::tokens::{TextError, Tokens};

type Parsed<T> = Result<T, TextError>;

fn count(tokens: &mut Tokens) -> Parsed<u64> {
    tokens.number("a count")
}

fn offset(tokens: &mut Tokens) -> Parsed<i64> {
    tokens.number("an offset in bytes")
}

fn kind(tokens: &mut Tokens) -> Parsed<Kind> {
    let token = tokens.next();
    Kind::by_name(token.text).ok_or_else(|| tokens.unexpected(token, "an element kind"))
}

/// Parses `%N`, the id of an earlier node.
fn node(tokens: &mut Tokens, nodes: &[NodeId]) -> Parsed<NodeId> {
    tokens.need("%")?;
    let place = tokens.peek();
    let number: usize = tokens.number("the number of a node")?;
    let unknown = || tokens.unexpected(place, format_args!("the number of an earlier node (below {})", nodes.len()));
    nodes.get(number).copied().ok_or_else(unknown)
}

/// Parses `%N`, or `OFFSET: %N`.
fn edge(tokens: &mut Tokens, nodes: &[NodeId]) -> Parsed<Edge> {
    let mut at = 0;
    if tokens.peek().text != "%" {
        at = offset(tokens)?;
        tokens.need(":")?;
    }
    Ok(Edge { offset: at, node: node(tokens, nodes)? })
}

fn run(tokens: &mut Tokens) -> Parsed<Run> {
    tokens.need("(")?;
    let run = Run { offset: offset(tokens)?, count: count(tokens)? };
    tokens.need(")")?;
    Ok(run)
}

fn definition(tokens: &mut Tokens, nodes: &[NodeId]) -> Parsed<Node> {
    let name = tokens.next();
    Ok(match name.text {
        "dense" => {
            let count = count(tokens)?;
            tokens.need("x")?;
            Node::Dense { count, kind: kind(tokens)? }
        }
        "stream" => {
            let count = count(tokens)?;
            tokens.need("x")?;
            let stride = offset(tokens)?;
            tokens.need("of")?;
            Node::Stream { count, stride, child: edge(tokens, nodes)? }
        }
        "indexed" => {
            let offsets = tokens.list("", offset)?.into();
            tokens.need("of")?;
            Node::Indexed { offsets, child: edge(tokens, nodes)? }
        }
        "runs" => {
            let runs = tokens.list("", run)?.into();
            tokens.need("x")?;
            Node::Runs { runs, kind: kind(tokens)? }
        }
        "record" => Node::Record { parts: tokens.list(",", |tokens| edge(tokens, nodes))?.into() },
        _ => return Err(tokens.unexpected(name, "`dense`, `stream`, `indexed`, `runs` or `record`")),
    })
}

impl Layout {
    /// Parses the textual form. A comment runs from `;` to the end of its line. The word `exact` is accepted and
    /// ignored, because only [`crate::canonicalise`] can establish it.
    ///
    /// # Errors
    ///
    /// The first syntax error, or the first break of a rule of [`Layout::verify`].
    pub fn parse(text: &str) -> Result<Layout, TextError> {
        let mut tokens = Tokens::new(text, ';');
        let mut builder = LayoutBuilder::new();
        let mut nodes = Vec::new();
        tokens.need("layout")?;
        tokens.take("exact");
        tokens.need("lb")?;
        let lb = offset(&mut tokens)?;
        tokens.need("extent")?;
        let place = tokens.peek();
        let extent = offset(&mut tokens)?;
        lb.checked_add(extent).ok_or_else(|| tokens.unexpected(place, "an extent whose upper bound fits 64 bits"))?;
        tokens.need("{")?;
        while tokens.take("%") {
            let number = tokens.next();
            if number.text.parse() != Ok(nodes.len()) {
                return Err(tokens.unexpected(number, format_args!("node number {}", nodes.len())));
            }
            tokens.need("=")?;
            let place = tokens.peek();
            let node = definition(&mut tokens, &nodes)?;
            let expected = "a node with counts of at least 1, no empty child, and sizes that fit 64 bits";
            nodes.push(builder.intern(node).ok_or_else(|| tokens.unexpected(place, expected))?);
        }
        tokens.need("root")?;
        let place = tokens.peek();
        let root = edge(&mut tokens, &nodes)?;
        let measure = builder.measure(root.node);
        let fits = |bound: i64| bound.checked_add(root.offset).is_some();
        if !fits(measure.low) || !fits(measure.high) {
            return Err(tokens.unexpected(place, "a root whose bounds fit 64 bits"));
        }
        tokens.need("}")?;
        tokens.need_end()?;
        Ok(builder.finish(root, lb, extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_NODE: &str = "layout lb -33 extent 64 {
  %0 = dense 3 x i16
  %1 = stream 4 x -16 of 2: %0
  %2 = indexed [5 -7 100] of 3: %1
  %3 = runs [(0 3) (40 1)] x i32
  %4 = record [9: %2, -20: %3, 0: %0]
  root -33: %4
}";

    #[test]
    fn the_form_round_trips() {
        let layout = Layout::parse(EVERY_NODE).unwrap();
        assert_eq!(layout.to_string(), EVERY_NODE);
        assert_eq!(layout.verify(), Ok(()));
        let empty = "layout lb 0 extent 8 {\n  %0 = record []\n  root %0\n}";
        assert_eq!(Layout::parse(empty).unwrap().to_string(), empty);
    }

    #[test]
    fn faults_are_placed() {
        let error = |text: &str| Layout::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1, column 1: expected `layout`, found the end");
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = stream 2 x 8 of %0\n  root %0\n}"),
            "line 2, column 25: expected the number of an earlier node (below 0), found `0`"
        );
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = dense 0 x byte\n  root %0\n}"),
            "line 2, column 8: expected a node with counts of at least 1, no empty child, and sizes that fit 64 bits, \
             found `dense`"
        );
        assert_eq!(
            error("layout lb 0 extent 4 {\n  %0 = blob\n}"),
            "line 2, column 8: expected `dense`, `stream`, `indexed`, `runs` or `record`, found `blob`"
        );
        assert!(
            error("layout lb 0 extent 4 {\n %0 = dense 9223372036854775807 x f64\n root %0\n}").contains("64 bits")
        );
        assert!(error("layout lb 0 extent 4 {\n %0 = dense 1 x f64\n root %0\n} more").contains("expected the end"));
    }
}
