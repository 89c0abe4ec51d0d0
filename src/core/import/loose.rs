//! JSON as editors keep it: comments and trailing commas become spaces, so that every other byte stays in its place.

/// Blanks comments (`//`, `/* */`) and commas before a closing bracket. Line breaks stay, and with them line and column.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    // Where the last comma stands while nothing but space has come after it.
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' => {
                comma = None;
                end_of_string(bytes, at)
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = end_of_comment(bytes, at);
                for byte in &mut out[at..end] {
                    if !matches!(byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
                end
            }
            byte => {
                match byte {
                    b',' => comma = Some(at),
                    b' ' | b'\t' | b'\n' | b'\r' => {}
                    b']' | b'}' => {
                        if let Some(comma) = comma.take() {
                            out[comma] = b' ';
                        }
                    }
                    _ => comma = None,
                }
                at + 1
            }
        };
    }
    // Whole comments were replaced, never a part of a character.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The place after a string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The place after a comment that begins at `start`; one that is not closed goes on to the end.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 2..];
    let length = if bytes[start + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_trailing_commas_go_and_places_stay() {
        for (text, expected) in [
            ("{\"a\": 1, // č\n}", "{\"a\": 1       \n}"),
            ("[1, /* , ] */ 2,]", "[1,           2 ]"),
            ("{\"u\": \"http://x, }\", \"q\": \"\\\",}\"}", "{\"u\": \"http://x, }\", \"q\": \"\\\",}\"}"),
            ("[1,,]", "[1, ]"),
            ("[1] // end", "[1]       "),
            ("[/* open", "[       "),
            ("\"open \\", "\"open \\"),
        ] {
            assert_eq!(blank(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is(value in crate::core::import::tests::any_json()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(blank(&text), text);
        }

        #[test]
        fn lines_and_length_stay(text in "[\\[\\]{},/*\"\\\\\n a\\PC]{0,60}") {
            let blanked = blank(&text);
            prop_assert_eq!(blanked.len(), text.len());
            prop_assert_eq!(blanked.matches('\n').count(), text.matches('\n').count());
        }
    }
}
