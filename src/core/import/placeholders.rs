//! Places in a text that another program fills in: `${env:TOKEN}`, `${input:token}`, `${TOKEN:-default}`.

/// Longest placeholder, in characters.
const MAX_CHARS: usize = 200;
/// Most placeholders of one text that are told.
const MAX_NAMES: usize = 20;

/// The placeholders of a text as they stand there, each once.
pub(super) fn names_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${").filter(|_| names.len() < MAX_NAMES) {
        let tail = &rest[start..];
        let Some(end) = tail.find('}') else { break };
        let name = &tail[..=end];
        if name.len() > 3 && name.chars().nth(MAX_CHARS).is_none() && !names.contains(&name) {
            names.push(name);
        }
        rest = &tail[end + 1..];
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn placeholders_are_found_where_they_stand() {
        assert_eq!(
            names_in("Bearer ${env:A}-${input:b} ${C:-d} ${env:A}"),
            ["${env:A}", "${input:b}", "${C:-d}"]
        );
        assert!(names_in("$A ${} ${open {x $").is_empty());
    }
}
