//! Cleaning of text that comes from tools: one line, nothing hidden, cut at words.
//!
//! A tool's text is hostile until it went through here. The stored text is never changed; only what is shown in
//! listings, matches and messages is cleaned.

use std::borrow::Cow;

/// Longest short description in a listing, in characters, the ellipsis included (`product.md`, section 3).
pub const SHORT_DESCRIPTION_CHARS: usize = 60;

/// Whether a character is invisible or moves text around: it could hide instructions or forge a line.
///
/// Controls (C0, DEL, C1), soft hyphen, combining grapheme joiner, Hangul and Khmer fillers, zero-width and
/// bidirectional characters, variation selectors, tag characters (`security.md`, section 6).
pub fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{e}'..='\u{1b}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character counts as white space here: Unicode white space and the C0 separators.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// A count with its noun, for messages: `1 tool`, `2 tools`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A size as people say it: `16 MiB`, `1.5 KiB`, `1 byte`. One digit behind the point at most.
pub fn size_in_words(bytes: usize) -> String {
    const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((unit, size)) = UNITS.into_iter().find(|(_, size)| bytes >= *size) else {
        return counted(bytes, "byte", "bytes");
    };
    match bytes % size * 10 / size {
        0 => format!("{} {unit}", bytes / size),
        tenths => format!("{}.{tenths} {unit}", bytes / size),
    }
}

/// How many hidden characters a text holds.
pub fn hidden_characters(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| is_hidden(char::from(*byte))).count();
    }
    text.chars().filter(|character| is_hidden(*character)).count()
}

/// The text without hidden characters; its lines are kept.
pub fn visible(text: &str) -> Cow<'_, str> {
    if hidden_characters(text) == 0 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|character| !is_hidden(*character)).collect())
}

/// The text on one line: white space collapsed to single spaces, hidden characters gone.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let mut previous_space = true;
    let clean = text.chars().all(|character| {
        let space = character == ' ';
        let fine = !(is_hidden(character) || (is_space(character) && !space) || (space && previous_space));
        previous_space = space;
        fine
    });
    if clean && !text.ends_with(' ') {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !is_hidden(*character)) {
        if !is_space(character) {
            line.push(character);
        } else if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    if line.ends_with(' ') {
        line.pop();
    }
    Cow::Owned(line)
}

/// At most `limit` characters of a text, cut at a word where there is one, with an ellipsis for what is gone.
pub fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit || text.char_indices().nth(limit).is_none() {
        return Cow::Borrowed(text);
    }
    if limit == 0 {
        return Cow::Borrowed("");
    }
    let hard_end = text.char_indices().nth(limit - 1).map_or(text.len(), |(at, _)| at);
    let head = &text[..hard_end];
    let cut_inside_word = !text[hard_end..].starts_with(' ');
    // A cut at a word may cost at most half of the room: scripts without spaces and long names are cut hard.
    let word_end = match head.rfind(' ') {
        Some(at) if cut_inside_word && at * 2 >= head.len() => at,
        _ => head.len(),
    };
    let kept = head[..word_end].trim_end_matches([' ', ',', ';', ':', '-']);
    Cow::Owned(format!("{kept}…"))
}

/// The first sentence of a description on one line, at most [`SHORT_DESCRIPTION_CHARS`] characters.
pub fn short_description(description: &str) -> String {
    // Only the beginning is looked at: a description may be a quarter of a megabyte.
    let mut end = description.len().min(2_048);
    while !description.is_char_boundary(end) {
        end -= 1;
    }
    let line = one_line(&description[..end]);
    clip(first_sentence(&line), SHORT_DESCRIPTION_CHARS).into_owned()
}

/// The first sentence of a one-line text, its full stop included.
///
/// A full stop ends a sentence when white space or nothing follows and the word before it is neither an
/// abbreviation nor a single letter; `v1.2`, `api.example.com` and `Dr. Who` do not end one.
pub fn first_sentence(line: &str) -> &str {
    for (at, character) in line.char_indices() {
        let after = &line[at + character.len_utf8()..];
        let ends = match character {
            '。' | '！' | '？' | '｡' | '।' | '؟' => true,
            '!' | '?' => after.is_empty() || after.starts_with(' '),
            '.' => (after.is_empty() || after.starts_with(' ')) && !is_abbreviation(&line[..at]),
            _ => false,
        };
        if ends {
            return &line[..at + character.len_utf8()];
        }
    }
    line
}

/// Whether the text before a full stop ends in a word after which a sentence goes on.
fn is_abbreviation(before: &str) -> bool {
    const ABBREVIATIONS: [&str; 24] = [
        "e.g", "i.e", "eg", "ie", "etc", "vs", "cf", "dr", "mr", "mrs", "ms", "prof", "st", "no", "nr",
        "approx", "incl", "excl", "max", "min", "resp", "fig", "vol", "inc",
    ];
    let word = before.rsplit([' ', '(', '[', '"']).next().unwrap_or(before);
    let single_letter = word.chars().count() == 1 && word.chars().all(char::is_alphabetic);
    // "no." ends a sentence more often than it stands for a number unless a digit follows; kept simple on purpose.
    single_letter || ABBREVIATIONS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// A group's label as a listing shows it: no character that could be read as the listing's own punctuation.
pub fn label(group: &str) -> String {
    let kept: String = one_line(group)
        .chars()
        .map(|character| {
            let plain = character.is_alphanumeric() || " _./@&+'-".contains(character);
            if plain { character } else { ' ' }
        })
        .collect();
    let line = one_line(&kept).into_owned();
    let trimmed = line.trim_start_matches(['-', ' ', '.', '/', '+']);
    if trimmed.is_empty() { "other".to_owned() } else { clip(trimmed, 64).into_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_told_as_people_say_them() {
        for (bytes, told) in
            [(1, "1 byte"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (16 << 20, "16 MiB"), (3 << 30, "3 GiB")]
        {
            assert_eq!(size_in_words(bytes), told);
        }
    }

    #[test]
    fn a_line_holds_nothing_that_moves_or_hides() {
        assert_eq!(one_line("a\r\n- fake: b\u{2028}c\u{85}d\te"), "a - fake: b c d e");
        assert_eq!(one_line("x\u{202e}y\u{200b}z\u{e0041}\u{ad}!\u{0}"), "xyz!");
        assert_eq!(one_line("  already  spaced "), "already spaced");
        assert!(matches!(one_line("plain text"), Cow::Borrowed("plain text")));
    }

    #[test]
    fn the_first_sentence_survives_abbreviations_versions_and_hosts() {
        for (text, first) in [
            ("Sends mail. Needs a login.", "Sends mail."),
            ("Calls api.github.com v1.2 now. Then more.", "Calls api.github.com v1.2 now."),
            ("Asks Dr. Who, e.g. about time. More.", "Asks Dr. Who, e.g. about time."),
            ("Compares a vs. b! Fast.", "Compares a vs. b!"),
            ("検索します。次の文。", "検索します。"),
            ("no stop at all", "no stop at all"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), first);
        }
    }

    #[test]
    fn short_descriptions_are_cut_at_a_word() {
        let text =
            "Creates a new calendar event in the calendar that the user has chosen before, with guests";
        let short = short_description(text);
        assert_eq!(short, "Creates a new calendar event in the calendar that the user…");
        assert!(short.chars().count() <= SHORT_DESCRIPTION_CHARS);
        assert_eq!(short_description(&"字".repeat(90)).chars().count(), SHORT_DESCRIPTION_CHARS);
        assert_eq!(short_description(" \n "), "");
    }

    #[test]
    fn a_label_cannot_look_like_a_listing_line() {
        assert_eq!(label("- send_money: now"), "send_money now");
        assert_eq!(label("git:hub, (9 tools)"), "git hub 9 tools");
        assert_eq!(label("\u{200b}\n"), "other");
    }

    proptest! {
        #[test]
        fn cleaning_is_bounded_and_idempotent(text in any::<String>(), limit in 0usize..80) {
            let line = one_line(&text).into_owned();
            prop_assert!(!line.chars().any(|c| is_hidden(c) || (c.is_whitespace() && c != ' ')));
            prop_assert_eq!(one_line(&line).into_owned(), line.clone());
            prop_assert!(clip(&line, limit).chars().count() <= limit);
            prop_assert!(short_description(&text).chars().count() <= SHORT_DESCRIPTION_CHARS);
            prop_assert!(line.starts_with(first_sentence(&line)));
            prop_assert!(label(&text).chars().count() <= 64);
        }
    }
}
