//! What the words of layouts and plans mean.

/// The words of layouts, as `= word` introduces them, and what they mean.
pub const LAYOUT_WORDS: [(&str, &str); 7] = [
    ("layout", "lb and extent in bytes; exact: equal for every type with the same bytes in the same order"),
    ("dense", "N x KIND: N consecutive elements"),
    ("stream", "N x S of P: %K: N copies of %K, S bytes apart, the first at P"),
    ("indexed", "[A B ...] of P: %K: a copy of %K at each offset A, B ..., all moved by P"),
    ("runs", "[(A N) ...] x KIND: N consecutive elements at offset A, and so on"),
    ("record", "[A: %K, ...]: %K at offset A, and so on"),
    ("root", "P: %K: the whole is %K at P; P is left out where it is 0"),
];

/// The words of plans.
pub const PLAN_WORDS: [(&str, &str); 10] = [
    ("copy", "one contiguous piece"),
    ("rows", "N x S of B bytes: N rows of B bytes, S bytes apart"),
    ("planes", "N x S of rows: N planes of rows, S bytes apart"),
    ("tile", "planes of rows in tiles, as a transpose is moved: planes are neighbours, rows far apart"),
    ("list", "pieces of one length at listed offsets"),
    ("runs", "pieces of differing lengths: (offset bytes)"),
    ("repeat", "N x S of #K: step #K N times, S bytes apart"),
    ("scatter", "#K at listed offsets"),
    ("sequence", "[A: #K ...]: step #K at offset A, and so on"),
    ("root", "P: #K: the whole is step #K at P"),
];
