//! The fields that an MCP server is told by, and what they mean.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::core::secret_args::masked;
use crate::core::warning::{FieldError, pointer_push};
use crate::http::problem::Problem;
use crate::service::McpServerDocument;
use crate::ui::form::Form;
use crate::ui::language::Language;

/// Rows for headers or variables that a page has where nothing was typed; more come by a button, or after these were stored.
const ROWS: usize = 3;

/// What stands in the fields of a server. Values of headers are never given back.
#[derive(Debug, Default)]
pub(super) struct Typed {
    pub(super) name: String,
    pub(super) url: String,
    /// Names of headers or variables.
    pub(super) headers: Vec<String>,
    /// Names of those that are stored, which stay.
    pub(super) kept: Vec<String>,
    /// Whether something of the address has to be typed again.
    pub(super) is_url_short: bool,
}

impl Typed {
    pub(super) fn of(form: &Form) -> Self {
        let name = form.text("name").to_owned();
        // A secret argument is typed anew, as the value of a header is.
        let url = form.text("url");
        let url = if url.contains("://") { url.to_owned() } else { line(masked(&words(url)).iter()) };
        let headers = form.all("header").map(|name| name.trim().to_owned()).collect();
        Self { name, url, headers, ..Self::default() }
    }

    /// With the names of what is stored for a server.
    pub(super) fn with_kept(self, known: Option<&McpServerDocument>) -> Self {
        let texts = known.into_iter().flat_map(|known| known.headers.iter().chain(&known.env));
        let kept = texts.flat_map(|texts| texts.keys().cloned()).collect();
        Self { kept, ..self }
    }
}

/// The fields; `refused`: pointers of those that were not taken.
pub(super) fn server_fields(language: Language, typed: &Typed, refused: &[&str]) -> Markup {
    let is_bad = |ends: &[&str]| {
        let is_bad = refused.iter().any(|pointer| ends.iter().any(|end| pointer.ends_with(end)));
        is_bad.then_some("true")
    };
    let rows = typed.headers.len().max(ROWS);
    html! {
        div.two {
            div.field {
                label for="server-name" { (language.say("Name", "名称")) }
                input #server-name type="text" name="name" value=(typed.name) required maxlength="128" placeholder="github" autocomplete="off" spellcheck="false"
                    aria-invalid=[is_bad(&["/name"])];
            }
            div.field.wide {
                label for="server-url" { (language.say("Address", "地址")) }
                input #server-url.mono type="text" inputmode="url" name="url" value=(typed.url) required placeholder="https://mcp.example.com/mcp"
                    spellcheck="false" autocomplete="off" aria-describedby="server-hint" aria-invalid=[is_bad(&["/url", "/command"])];
                @if typed.is_url_short { p.hint { strong { (left_out_of_address(language)) } } }
                p.hint #server-hint {
                    (language.say("Or a command that the operator allows: npx -y @scope/server", "或运维允许的命令：npx -y @scope/server"))
                    (language.say(". An address is stored and shown as it stands, with its query; a header's value is sealed.", "。地址连同其查询部分按原样保存并显示；请求头的值则加密保存。"))
                }
            }
        }
        fieldset.choice {
            legend { (language.say("Headers, or variables of a command", "请求头，或命令的变量")) }
            @for name in &typed.kept {
                label {
                    input type="checkbox" name="forget" value=(name); " "
                    code { (name) } " " span.note { (language.say("is stored and stays; tick to take it away", "已保存并保留；勾选则移除")) }
                }
            }
            div.rows-of-fields #server-headers {
                @for at in 0..rows {
                    div.two {
                        div.field {
                            input.mono type="text" name="header" value=(typed.headers.get(at).map_or("", String::as_str)) placeholder="Authorization"
                                autocomplete="off" spellcheck="false" aria-label={(language.say("Name of header or variable ", "请求头或变量名称 ")) (at + 1)};
                        }
                        div.field {
                            input type="password" name="header_value" placeholder="Bearer …" autocomplete="off" spellcheck="false"
                                aria-label={(language.say("Its value ", "对应的值 ")) (at + 1)};
                        }
                    }
                }
            }
            button.btn.small type="button" hidden data-more="server-headers" { (language.say("One more", "再加一行")) }
            p.hint { (language.say("A value without a name is Authorization. Values are sealed and never shown.", "未填名称的值视为 Authorization。值加密保存，不再显示。")) }
        }
    }
}

/// What is said of an address that was imported without a part that may be a key.
pub(super) fn left_out_of_address(language: Language) -> &'static str {
    language.say(
        "Its address had a query, or user and password, which may hold a key: they were left out, type them again.",
        "其地址含有查询部分或用户名和密码，可能包含密钥：已略去，请重新填写。",
    )
}

/// What the page calls the field at a pointer into a spec.
pub(super) fn field_name(language: Language, pointer: &str) -> Option<String> {
    let inside = pointer.strip_prefix("/server").unwrap_or(pointer);
    let mut parts = inside.trim_start_matches('/').splitn(2, '/');
    let name = match parts.next()? {
        "name" => language.say("Name", "名称"),
        "url" | "command" | "args" => language.say("Address", "地址"),
        "resync_minutes" => language.say("Again every … minutes", "每隔…分钟"),
        "watch" => language.say("Listen", "监听"),
        "headers" => language.say("Header", "请求头"),
        "env" => language.say("Variable", "变量"),
        _ => return None,
    };
    Some(match parts.next() {
        Some(of) if name != language.say("Address", "地址") => format!("{name} {of}"),
        _ => name.to_owned(),
    })
}

/// Where a server is, as it was typed: an address, or a command with its arguments, which the operator has to allow. What is
/// beside it are headers of the one and variables of the other; those that are stored and were not typed stay, unless they were
/// ticked to go.
pub(super) fn server_spec(
    form: &Form,
    known: Option<&McpServerDocument>,
) -> Result<Map<String, Value>, Problem> {
    let place = form.text("url");
    let mut spec = Map::new();
    let is_address = place.contains("://");
    if is_address {
        spec.insert("url".to_owned(), place.into());
    } else {
        let mut words = words(place).into_iter();
        spec.insert("command".to_owned(), words.next().unwrap_or_default().into());
        spec.insert("args".to_owned(), words.collect());
    }
    let (key, stored) = if is_address {
        ("headers", known.and_then(|known| known.headers.as_ref()))
    } else {
        ("env", known.and_then(|known| known.env.as_ref()))
    };
    let stored: Vec<&String> = stored.into_iter().flatten().map(|(name, _)| name).collect();
    let mut texts = Map::new();
    let mut faults = Vec::new();
    for (name, text) in form.all("header").zip(form.all("header_value")) {
        let (name, text) = (name.trim(), text.trim());
        let name = match name {
            "" if text.is_empty() => continue,
            "" if is_address => "Authorization",
            name => name,
        };
        let mut fault = |code, detail: &str| {
            let mut pointer = format!("/{key}");
            pointer_push(&mut pointer, name);
            faults.push(FieldError::new(pointer, code, detail));
        };
        if texts.keys().any(|known: &String| known.eq_ignore_ascii_case(name)) {
            fault("duplicate_name", "the name is there twice");
        } else if !text.is_empty() {
            texts.insert(name.to_owned(), text.into());
        } else if !stored.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            fault("missing_value", "its value is missing");
        }
    }
    let gone: Vec<&str> = form.all("forget").collect();
    for name in stored {
        let is_typed = texts.keys().any(|typed| typed.eq_ignore_ascii_case(name));
        if !is_typed && !gone.contains(&name.as_str()) {
            texts.insert(name.clone(), json!({"set": true}));
        }
    }
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    // Named even where there is none: what is not named at all stays as it is.
    spec.insert(key.to_owned(), Value::Object(texts));
    Ok(spec)
}

/// Where a server is, as it is typed.
pub(super) fn place_of(server: &McpServerDocument) -> String {
    line(server.url.iter().chain(&server.command).chain(server.args.iter().flatten()))
}

/// Words on one line that [`words`] takes apart again.
pub(super) fn line<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let quoted = |word: &String| {
        let is_plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "\"'\\".contains(c));
        if is_plain {
            word.clone()
        } else {
            format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    all.map(quoted).collect::<Vec<_>>().join(" ")
}

/// The words of a command line: what stands in quotes is one, and inside of double quotes a backslash takes a
/// quote or a backslash as it is.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (Some('"'), '\\') => {
                let next = characters.next();
                let is_plain = next.is_none_or(|next| !"\"\\".contains(next));
                word.get_or_insert_default().extend(is_plain.then_some('\\').into_iter().chain(next));
            }
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, character) if character.is_whitespace() => words.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_hold_an_argument_together() {
        assert_eq!(
            words(r#"npx -y  x --header "A: b c" 'd "e"' "" C:\dir"#),
            ["npx", "-y", "x", "--header", "A: b c", "d \"e\"", "", "C:\\dir"]
        );
    }

    proptest! {
        #[test]
        fn a_line_is_taken_apart_as_it_was_made(all in proptest::collection::vec("[a-z \"'\\\\:ä]{0,12}", 0..6)) {
            prop_assert_eq!(words(&line(all.iter())), all);
        }
    }
}
