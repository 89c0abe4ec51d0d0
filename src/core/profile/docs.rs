//! The table as text, for the documentation.

use std::fmt::Write as _;

use super::{Enums, Items, Keywords, OPENAPI, Profile, Refs, SchemaRules, StrictRules, TokenFactor, Untyped};

/// The whole table as Markdown: limits of the array, rules for schemas, rules of strict mode, and their sources.
pub fn documentation() -> String {
    let mut text = String::new();
    limits(&mut text);
    schemas(&mut text);
    strict(&mut text);
    sources(&mut text);
    text
}

fn line(text: &mut String, cells: &[String]) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn head(text: &mut String, titles: &[&str]) {
    line(text, &titles.iter().map(|title| (*title).to_owned()).collect::<Vec<_>>());
    let _ = writeln!(text, "|{}", "---|".repeat(titles.len()));
}

fn number<T: ToString>(figure: Option<T>) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| figure.to_string())
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

fn limits(text: &mut String) {
    head(
        text,
        &["profile", "names", "most tools", "description", "empty description", "empty array", "tokens"],
    );
    for profile in Profile::ALL {
        let row = profile.limits();
        let left_out = |omit: bool| if omit { "left out" } else { "sent" }.to_owned();
        line(
            text,
            &[
                format!("`{}`", profile.as_str()),
                format!("`{}`", row.names.pattern()),
                number(row.max_tools.value),
                number(row.max_description_chars.value),
                left_out(row.omit_empty_description.value),
                left_out(row.omit_empty_array.value),
                match row.tokens.value {
                    TokenFactor::Exact => "o200k".to_owned(),
                    TokenFactor::Times(hundredths) => format!("about {:.2}", f64::from(hundredths) / 100.0),
                    TokenFactor::Unknown => number::<u32>(None),
                },
            ],
        );
    }
    text.push('\n');
}

fn schemas(text: &mut String) {
    head(
        text,
        &[
            "profile",
            "not at the root",
            "keywords",
            "`$ref`",
            "lists of types",
            "no type",
            "arrays",
            "enums",
            "formats",
            "patterns",
            "bounds",
            "keys of arguments",
        ],
    );
    for profile in Profile::ALL {
        schema_row(text, profile.as_str(), &profile.limits().schema);
    }
    schema_row(text, "Gemini's `parameters`", &OPENAPI);
    text.push('\n');
}

fn schema_row(text: &mut String, name: &str, rules: &SchemaRules) {
    let banned = rules
        .root
        .only
        .map_or_else(|| rules.root.banned.join(", "), |only| format!("anything but {}", only.join(", ")));
    let keywords = match rules.keywords {
        Keywords::Without([]) => "any".to_owned(),
        Keywords::Without(banned) => format!("not {}", banned.join(", ")),
        Keywords::Only(known) => known.join(", "),
    };
    let refs = match rules.refs {
        Refs::Keep => "kept",
        Refs::KeepAlone => "kept, alone",
        Refs::Inline => "inlined",
    };
    let untyped = match rules.untyped {
        Untyped::Allowed => "allowed",
        Untyped::Inferred => "gets what is shown",
        Untyped::Scalars => "gets one",
    };
    let items = match rules.items {
        Items::Optional => "`items` optional",
        Items::Needed => "`items` needed",
        Items::Typed => "typed `items` needed",
    };
    let enums = match rules.enums {
        Enums::Any => "any values",
        Enums::NoEmptyText => "no empty text",
        Enums::TextsOnly => "texts, none empty",
    };
    line(
        text,
        &[
            name.to_owned(),
            banned,
            keywords,
            refs.to_owned(),
            yes(rules.type_lists),
            untyped.to_owned(),
            items.to_owned(),
            enums.to_owned(),
            rules.formats.map_or_else(|| "any".to_owned(), |formats| formats.join(", ")),
            if rules.linear_patterns { "linear" } else { "any" }.to_owned(),
            rules.bounds_below.map_or_else(|| "any".to_owned(), |bound| format!("below {bound}")),
            rules.keys.pattern().replace('|', "\\|"),
        ],
    );
}

fn strict(text: &mut String) {
    head(
        text,
        &[
            "strict",
            "keywords",
            "all required",
            "properties",
            "levels",
            "characters of names",
            "enum values",
            "optional",
            "unions",
            "tools",
        ],
    );
    for profile in Profile::ALL {
        let Some(rules) = &profile.limits().strict else { continue };
        let StrictRules { keywords, all_required, max_properties, max_depth, max_name_chars, .. } = rules;
        line(
            text,
            &[
                format!("`{}`", profile.as_str()),
                keywords.join(", "),
                yes(*all_required),
                number(*max_properties),
                number(*max_depth),
                number(*max_name_chars),
                number(rules.max_enum_values),
                number(rules.max_optional),
                number(rules.max_unions),
                number(rules.max_tools),
            ],
        );
    }
    text.push('\n');
}

fn sources(text: &mut String) {
    for profile in Profile::ALL {
        let row = profile.limits();
        let _ = writeln!(
            text,
            "- `{}`: names: {}. Tools: {}. Description: {}; empty: {}. Empty array: {}. Tokens: {}. Schema: {}.{}",
            profile.as_str(),
            row.names.source,
            row.max_tools.source,
            row.max_description_chars.source,
            row.omit_empty_description.source,
            row.omit_empty_array.source,
            row.tokens.source,
            row.schema.source,
            row.strict.map(|strict| format!(" Strict: {}.", strict.source)).unwrap_or_default(),
        );
    }
    let _ = writeln!(text, "- Gemini's `parameters`: {}.", OPENAPI.source);
}
