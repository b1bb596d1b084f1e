//! What error messages say about names: the closest of the possible ones, and lists of them.

/// Longer names are not compared: they are not misspelt, they are something else.
const LONGEST: usize = 64;

/// More candidates are not compared, so that an error about a hostile text comes soon.
const COMPARED: usize = 1_000;

/// Names listed in a message before the rest is cut.
const LISTED: usize = 12;

/// The candidate that a misspelt word probably means: at most a third of its letters differ.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .take(COMPARED)
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| {
            let letters = candidate.chars().count();
            distance <= letters.max(3) / 3 && distance < letters
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// A name without MPI's prefix, in lower case: `MPI_DISTRIBUTE_BLOCK` is `block`.
pub(crate) fn plain_name(name: &str, prefix: &str) -> String {
    let stripped = name.get(..prefix.len()).filter(|start| start.eq_ignore_ascii_case(prefix));
    let rest = if stripped.is_some() { &name[prefix.len()..] } else { name };
    rest.to_ascii_lowercase()
}

/// What dtc calls the constructor that MPI calls `MPI_Type_vector`, `MPI_Type_create_struct` or `MPI_COMBINER_VECTOR`.
pub(crate) fn plain_constructor(name: &str) -> String {
    // MPI's functions and combiners name the constructors as dtc does, behind one of these prefixes.
    let prefixes = ["MPI_Type_create_", "MPI_Type_", "MPI_COMBINER_"];
    let plain = prefixes.map(|prefix| plain_name(name, prefix));
    plain.into_iter().min_by_key(String::len).unwrap_or_default()
}

/// `one of a, b, c`, cut when there are many.
pub(crate) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let listed: Vec<String> = names.by_ref().take(LISTED).map(shorten).collect();
    let rest = names.count();
    match (listed.as_slice(), rest) {
        ([], _) => "nothing".to_owned(),
        ([only], 0) => only.clone(),
        (_, 0) => format!("one of {}", listed.join(", ")),
        _ => format!("one of {}, ... ({rest} more)", listed.join(", ")),
    }
}

/// The beginning of a long text, on one line.
pub(crate) fn shorten(text: &str) -> String {
    shorten_to(text, LONGEST)
}

/// The first `longest` characters of a text, on one line, with dots if there are more.
pub(crate) fn shorten_to(text: &str, longest: usize) -> String {
    let mut short = String::new();
    for letter in text.chars().take(longest) {
        if letter.is_control() {
            short.extend(letter.escape_default());
        } else {
            short.push(letter);
        }
    }
    if text.chars().nth(longest).is_some() {
        short.push_str("...");
    }
    short
}

/// Bytes of a path, or of either end of it, that messages show.
const LONGEST_PATH: usize = 400;

/// A path without its middle, if it is long.
pub(crate) fn shorten_path(path: String) -> String {
    if path.len() <= LONGEST_PATH {
        return path;
    }
    let (first, last) = (LONGEST_PATH / 2, path.len() - LONGEST_PATH / 2);
    let (first, last) = (path.floor_char_boundary(first), path.ceil_char_boundary(last));
    format!("{}...{}", &path[..first], &path[last..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised() {
        assert_eq!(closest("strid", ["count", "stride", "stride_bytes"]), Some("stride"));
        assert_eq!(closest("MPI_DUOBLE", ["MPI_DOUBLE", "MPI_INT"]), Some("MPI_DOUBLE"));
        assert_eq!(closest("stroy", ["source", "story"]), Some("story"));
        assert_eq!(closest("quaternion", ["count", "stride"]), None);
        assert_eq!(closest("", ["count"]), None);
        assert_eq!(closest("a", ["c"]), None);
    }

    #[test]
    fn names_of_mpi_are_recognised() {
        assert_eq!(plain_constructor("MPI_Type_vector"), "vector");
        assert_eq!(plain_constructor("MPI_Type_create_struct"), "struct");
        assert_eq!(plain_constructor("MPI_COMBINER_HINDEXED"), "hindexed");
        assert_eq!(plain_name("MPI_DISTRIBUTE_CYCLIC", "MPI_DISTRIBUTE_"), "cyclic");
        assert_eq!(plain_name("é", "MPI_"), "é");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(one_of(["a"]), "a");
        assert_eq!(one_of(["a", "b"]), "one of a, b");
        assert!(one_of(std::iter::repeat_n("a", 100)).ends_with("(88 more)"));
        assert_eq!(shorten(&"x".repeat(65)).len(), 67);
        assert_eq!(shorten_path("$.type".to_owned()), "$.type");
        assert!(shorten_path(format!("${}.a", ".é".repeat(1_000_000))).len() < 410);
    }
}
