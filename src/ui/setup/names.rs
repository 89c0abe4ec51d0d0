//! Names and phrases that somebody typed into one field, taken apart.

/// What separates entries, in English and Chinese text.
const SEPARATORS: [char; 6] = [',', '，', '、', ';', '；', '\n'];

/// The phrases of a field: words stay together, and commas part them.
pub(super) fn phrases(text: &str) -> Vec<&str> {
    text.split(SEPARATORS).map(str::trim).filter(|phrase| !phrase.is_empty()).collect()
}

/// The names, prefixes and groups of a field, which commas and spaces part. A tool or a group may have either in its name: what is known
/// as a whole stays whole.
pub(super) fn names(text: &str, is_known: impl Fn(&str) -> bool) -> Vec<&str> {
    let text = text.trim();
    if is_known(text) {
        return vec![text];
    }
    let parts = phrases(text).into_iter();
    parts
        .flat_map(
            |part| if is_known(part) { vec![part] } else { part.split_whitespace().collect::<Vec<_>>() },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_spaces_part_names_that_are_not_known_with_them() {
        let known = |name: &str| ["a, b", "big tool", "@my group"].contains(&name);
        for (text, expected) in [
            ("x, y*、@z  w", &["x", "y*", "@z", "w"][..]),
            (" a, b ", &["a, b"]),
            ("x, big tool，@my group", &["x", "big tool", "@my group"]),
            (" ,， ", &[]),
        ] {
            assert_eq!(names(text, known), expected, "{text}");
        }
        assert_eq!(phrases("PR, 合并请求、pull request"), ["PR", "合并请求", "pull request"]);
    }
}
