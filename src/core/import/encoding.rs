//! From the bytes of a file to its text: UTF-8, or UTF-16 as programs of Windows write it.

/// Reads a file. Without a mark at its beginning a text is UTF-16 where every other byte of its beginning is 0: what is read
/// here begins with signs of ASCII.
///
/// # Errors
/// Why it is no text, in words that go on behind the name of a file.
pub fn decode(bytes: Vec<u8>) -> Result<String, &'static str> {
    match bytes.as_slice() {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            Err("is in UTF-32, which is not read: save it as UTF-8")
        }
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [1..=255, 0, 1..=255, 0, ..] => utf16(&bytes, u16::from_le_bytes),
        [0, 1..=255, 0, 1..=255, ..] => utf16(&bytes, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|_| "is neither UTF-8 nor UTF-16 text: save it as UTF-8"),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, &'static str> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if rest.is_empty() => Ok(text),
        _ => Err("begins as UTF-16 and is broken: save it as UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str, mark: bool, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mark = mark.then_some(0xfeff);
        mark.into_iter().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn both_orders_are_read(text in "\\PC{0,40}") {
            prop_assert_eq!(decode(encoded(&text, true, u16::to_le_bytes)).unwrap(), text.as_str());
            prop_assert_eq!(decode(encoded(&text, true, u16::to_be_bytes)).unwrap(), text.as_str());
            let json = format!("{{\"{text}\"");
            prop_assert_eq!(decode(encoded(&json, false, u16::to_le_bytes)).unwrap(), json.as_str());
            prop_assert_eq!(decode(encoded(&json, false, u16::to_be_bytes)).unwrap(), json.as_str());
            prop_assert_eq!(decode(text.clone().into_bytes()).unwrap(), text);
        }

        #[test]
        fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode(bytes);
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (bytes, why) in [
            (&b"\xff\xfe\x00\xd8"[..], "broken"),
            (b"\xff\xfe{", "broken"),
            (b"\xff\xfe\x00\x00[\x00\x00\x00", "UTF-32"),
            (b"\xe4\xf6", "neither UTF-8 nor UTF-16"),
        ] {
            assert!(decode(bytes.to_vec()).unwrap_err().contains(why), "{bytes:?}");
        }
    }
}
