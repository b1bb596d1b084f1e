//! Digests: what compiled code is found by.
//!
//! A fingerprint identifies the bytes of a type, and can be forged. A digest is the BLAKE3 hash of everything that plans of a
//! layout depend on: code that was compiled for a layout with the same digest moves the bytes of this one.

use super::Layout;

impl Layout {
    /// The hash of everything that plans of the layout depend on: its nodes, root and extent; and, where the layout is not the
    /// canonical form, the length of its description, by which plans decide how much of it they write out.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let rows = |stride: u64| {
    ///     Layout::parse(&format!("layout lb 0 extent 90 {{\n  %0 = dense 4 x byte\n  %1 = stream 9 x {stride} of %0\n  root %1\n}}"))
    /// };
    /// assert_eq!(rows(10)?.digest(), rows(10)?.digest());
    /// assert_ne!(rows(10)?.digest(), rows(9)?.digest());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn digest(&self) -> [u8; 32] {
        let mut bytes = self.to_flat();
        bytes.extend_from_slice(&(if self.exact { 0 } else { self.entries }).to_le_bytes());
        *blake3::hash(&bytes).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn whatever_differs_has_another_digest() {
        let texts = [
            "extent 64 {\n %0 = dense 3 x byte\n root %0\n}",
            "extent 65 {\n %0 = dense 3 x byte\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n root 1: %0\n}",
            "extent 64 {\n %0 = dense 3 x i16\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = stream 2 x 7 of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = stream 2 x -7 of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7] of 1: %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 -121] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 127] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 128] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 -128] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 65664] of %0\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 4294967424] of %0\n root %1\n}",
            "extent 64 {\n %0 = runs [(0 3) (7 3)] x byte\n root %0\n}",
            "extent 64 {\n %0 = runs [(0 3) (7 4)] x byte\n root %0\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = record [0: %0, 7: %0]\n root %1\n}",
            "extent 64 {\n %0 = dense 3 x byte\n %1 = record [0: %0, 7: %0, 14: %0]\n root %1\n}",
        ];
        let layouts = texts.map(|text| Layout::parse(&format!("layout lb 0 {text}")).unwrap());
        let digests: HashSet<_> = layouts.iter().map(Layout::digest).collect();
        assert_eq!(digests.len(), texts.len());
    }

    /// Plans write out as much of a kept structure as its description is long.
    #[test]
    fn lengths_of_descriptions_count_where_structure_was_kept() {
        let text = "layout lb 0 extent 64 {\n %0 = dense 3 x byte\n %1 = indexed [0 7 11] of %0\n root %1\n}";
        let layout = Layout::parse(text).unwrap();
        let longer = |layout: &Layout| layout.clone().with_entries(1000).digest();
        assert_ne!(longer(&layout), layout.digest());
        let canonical = crate::canonicalise(&layout).layout;
        assert!(canonical.exact());
        assert_eq!(longer(&canonical), canonical.digest());
    }
}
