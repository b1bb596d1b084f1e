//! The axes of subarrays and distributed arrays.

use super::fields::{number, numbers, text};
use super::predefined::Bytes;
use serde_json::Value;

/// The indices that one axis of a grid contributes, outermost axis first.
#[derive(Clone, Debug)]
pub struct Axis {
    /// First index.
    pub first: i64,
    /// One past the last index that may appear.
    pub limit: i64,
    /// Neighbouring indices in one block; blocks are `cycle` apart.
    pub block: i64,
    /// Distance between the starts of blocks; equal to `block` when there is only one block.
    pub cycle: i64,
    /// Bytes between neighbours along this axis.
    pub stride_bytes: Bytes,
}

impl Axis {
    /// Whether the axis is one run of neighbouring indices.
    pub fn is_one_run(&self) -> bool {
        self.first + self.cycle >= self.limit || self.block == self.cycle
    }

    /// One past the last index of an axis of one run.
    pub fn end_of_run(&self) -> i64 {
        if self.block == self.cycle { self.limit } else { self.limit.min(self.first + self.block) }
    }

    /// How many indices the axis has, and the first and the last of them; nothing if there are none.
    pub fn indices(&self) -> Option<(i64, i64, i64)> {
        let (number, end) = if self.is_one_run() {
            (self.end_of_run() - self.first, self.end_of_run())
        } else {
            let before = (self.limit - self.first - 1) / self.cycle;
            let start = self.first + before * self.cycle;
            let end = self.limit.min(start + self.block);
            (before * self.block + end - start, end)
        };
        (number > 0).then_some((number, self.first, end - 1))
    }
}

/// The bytes between neighbours along each dimension, and the dimensions from the slowest to the fastest.
fn strides(sizes: &[i64], order: &str, extent: Bytes) -> (Vec<Bytes>, Vec<usize>) {
    let mut slowest_first: Vec<usize> = (0..sizes.len()).collect();
    if order == "Fortran" {
        slowest_first.reverse();
    }
    let mut strides = vec![0; sizes.len()];
    let mut stride = extent;
    for &dimension in slowest_first.iter().rev() {
        strides[dimension] = stride;
        stride *= sizes[dimension];
    }
    (strides, slowest_first)
}

pub fn subarray(tree: &Value, extent: Bytes, path: &str) -> Result<Vec<Axis>, String> {
    let sizes = numbers(tree, "sizes", path)?;
    let subsizes = numbers(tree, "subsizes", path)?;
    let starts = numbers(tree, "starts", path)?;
    if subsizes.len() != sizes.len() || starts.len() != sizes.len() {
        return Err(format!("{path}: sizes, subsizes and starts differ in length"));
    }
    let (strides, slowest_first) = strides(&sizes, text(tree, "order", path)?, extent);
    Ok(slowest_first
        .into_iter()
        .map(|dimension| Axis {
            first: starts[dimension],
            limit: starts[dimension] + subsizes[dimension],
            block: subsizes[dimension],
            cycle: subsizes[dimension],
            stride_bytes: strides[dimension],
        })
        .collect())
}

pub fn darray(tree: &Value, extent: Bytes, path: &str) -> Result<Vec<Axis>, String> {
    let sizes = numbers(tree, "gsizes", path)?;
    let processes = numbers(tree, "psizes", path)?;
    let distributions = tree
        .get("distributions")
        .and_then(Value::as_array)
        .filter(|list| list.len() == sizes.len() && processes.len() == sizes.len())
        .ok_or_else(|| format!("{path}: gsizes, psizes and distributions differ in length"))?;
    let (strides, slowest_first) = strides(&sizes, text(tree, "order", path)?, extent);
    // The grid of processes is always numbered with its last dimension fastest, whatever the order of the array.
    let mut rank = number(tree, "rank", path)?;
    let mut coordinates = vec![0; sizes.len()];
    for dimension in (0..sizes.len()).rev() {
        coordinates[dimension] = rank % processes[dimension];
        rank /= processes[dimension];
    }
    let mut axes = Vec::new();
    for dimension in slowest_first {
        let (size, along) = (sizes[dimension], processes[dimension]);
        let distribution = &distributions[dimension];
        let given = |name: &str| distribution.get(name).and_then(Value::as_i64);
        let (block, cycle) = match distribution.as_str() {
            Some("none") => (size, size),
            Some("block") => ((size + along - 1) / along, size),
            Some("cyclic") => (1, along),
            _ => match (given("block"), given("cyclic")) {
                (Some(block), None) => (block, size),
                (None, Some(block)) => (block, block * along),
                _ => {
                    return Err(format!("{path}.distributions[{dimension}]: expected block, cyclic or none"));
                }
            },
        };
        let first = (coordinates[dimension] * block).min(size);
        let stride_bytes = strides[dimension];
        axes.push(Axis { first, limit: size, block, cycle: cycle.max(block), stride_bytes });
    }
    Ok(axes)
}
