//! Web addresses in a query: a value of an argument, of which the site alone says something about the tool.

use std::borrow::Cow;

/// Parts of a host's name that many sites have.
const COMMON_LABELS: [&str; 5] = ["www", "api", "app", "web", "m"];

/// `query` with each web address replaced by the name of its site and the word `url`; borrowed when there is none.
pub(super) fn name_addresses(query: &str) -> Cow<'_, str> {
    if !query.contains("://") && !query.contains("www.") {
        return Cow::Borrowed(query);
    }
    let mut text = String::with_capacity(query.len());
    for token in query.split_inclusive(char::is_whitespace) {
        let address = token.trim_start_matches(|c: char| !c.is_alphanumeric());
        let Some(host) = host_of(address) else {
            text.push_str(token);
            continue;
        };
        text.push_str(&token[..token.len() - address.len()]);
        let labels: Vec<&str> = host.split('.').collect();
        let named = labels[..labels.len() - 1].iter();
        let numbers = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        for label in named.filter(|label| !COMMON_LABELS.contains(label) && !numbers(label)) {
            text.push_str(label);
            text.push(' ');
        }
        text.push_str("url ");
    }
    Cow::Owned(text)
}

fn host_of(address: &str) -> Option<&str> {
    let rest = match address.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        _ if address.starts_with("www.") => address,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A name and a password may stand before the host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = host.find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-'))).unwrap_or(host.len());
    let host = host[..end].trim_end_matches('.');
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_its_site_and_no_more() {
        let read = |query| name_addresses(query).trim_end().to_owned();
        assert_eq!(read("summarize https://www.youtube.com/watch?v=bar"), "summarize youtube url");
        assert_eq!(
            read("open (http://docs.example.org/foo/bar), then stop"),
            "open (docs example url then stop"
        );
        assert_eq!(read("www.example.com"), "example url");
        assert_eq!(read("https://admin:secret@shop.example/x http://10.0.0.1/"), "shop url url");
        assert_eq!(read("https://localhost:3000/list_files"), "url");
        for plain in ["send mail", "a://", "://", "https://", "key:value", ""] {
            assert_eq!(read(plain), plain);
        }
    }
}
