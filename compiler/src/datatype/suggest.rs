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
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    candidates
        .into_iter()
        .take(COMPARED)
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (candidate, candidate.chars().count()))
        // No two words are closer than their lengths.
        .filter(|&(_, letters)| word.len().abs_diff(letters) <= letters.max(3) / 3)
        .map(|(candidate, letters)| (distance(&word, candidate), letters, candidate))
        .filter(|&(distance, letters, _)| distance <= letters.max(3) / 3)
        .min_by_key(|&(distance, ..)| distance)
        .map(|(.., candidate)| candidate)
}

/// How many letters are missing, superfluous, wrong or swapped with their neighbour, ignoring case.
fn distance(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=word.len()).collect();
    for (line, letter) in candidate.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, other) in word.iter().enumerate() {
            let mut best =
                (above[column] + usize::from(letter != other)).min(above[column + 1] + 1).min(row[column] + 1);
            if line > 0 && column > 0 && *letter == word[column - 1] && candidate[line - 1] == *other {
                best = best.min(before[column - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[word.len()]
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
    let mut short = String::new();
    for letter in text.chars().take(LONGEST) {
        if letter.is_control() {
            short.extend(letter.escape_default());
        } else {
            short.push(letter);
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    short
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
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(one_of(["a"]), "a");
        assert_eq!(one_of(["a", "b"]), "one of a, b");
        assert!(one_of(std::iter::repeat_n("a", 100)).ends_with("(88 more)"));
        assert_eq!(shorten(&"x".repeat(65)).len(), 67);
    }
}
