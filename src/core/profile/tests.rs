//! The table of profiles against the field reports.

use std::collections::HashSet;

use super::*;

#[test]
fn names_read_back_and_rows_stand_where_they_belong() {
    let mut seen = HashSet::new();
    for profile in Profile::ALL {
        assert_eq!(Profile::parse(profile.as_str()), Some(profile));
        assert_eq!(profile.limits().profile, profile);
        assert!(seen.insert(profile.as_str()));
    }
    assert_eq!(Profile::parse("OpenAI"), None);
    assert_eq!(Profile::default(), Profile::Generic);
}

#[test]
fn every_figure_has_a_source() {
    for profile in Profile::ALL {
        let row = profile.limits();
        let sources = [
            row.names.source,
            row.max_tools.source,
            row.max_description_chars.source,
            row.omit_empty_description.source,
            row.omit_empty_array.source,
            row.schema.source,
            row.tokens.source,
        ];
        assert!(sources.iter().all(|source| !source.is_empty()), "{profile:?}");
        assert!(row.strict.is_none_or(|strict| !strict.source.is_empty()));
        assert!(documentation().contains(&format!("- `{}`: names: ", profile.as_str())));
    }
}

#[test]
fn counts_of_other_vocabularies_are_estimated() {
    for (profile, format, factor) in [
        (Profile::Openai, Format::OpenaiChat, None),
        (Profile::Azure, Format::OpenaiResponses, None),
        (Profile::Anthropic, Format::OpenaiChat, Some(120)),
        (Profile::Vertex, Format::Gemini, Some(104)),
        (Profile::Cohere, Format::OpenaiChat, None),
        (Profile::Generic, Format::OpenaiChat, None),
        (Profile::Generic, Format::Canonical, None),
        (Profile::Generic, Format::Anthropic, Some(120)),
        (Profile::Generic, Format::Gemini, Some(104)),
        (Profile::Generic, Format::BedrockConverse, Some(120)),
        (Profile::BedrockNova, Format::BedrockConverse, None),
        (Profile::Openai, Format::Anthropic, None),
    ] {
        assert_eq!(profile.token_factor(format), factor, "{profile:?} {format:?}");
    }
}

/// Field reports 1 to 7, 9, 19 and 49: names that one provider or another refused.
#[test]
fn every_wire_name_fits_every_profile_and_keeps_its_tool_apart() {
    let long =
        format!("mcp__plugin_chrome-devtools-mcp_chrome-devtools__{}", "get_console_message".repeat(2));
    let stored = [
        "josef.prochazka--x",
        "service.doSomething",
        "service doSomething",
        "DELETE_/loadpoints/{id}",
        "get_/whoami",
        "server/tool",
        "MyModule::PingPing",
        "1password",
        "$READFILE",
        "click_on_link(url=\"…\")",
        "search-a",
        "search_a",
        "plain",
        "",
        long.as_str(),
    ];
    for profile in Profile::ALL {
        let mut seen = HashSet::new();
        for name in stored {
            let wire = profile.wire_name(name).into_owned();
            assert!(profile.limits().names.fits(&wire), "{profile:?} {name} {wire}");
            assert!(seen.insert(wire), "{profile:?} {name}");
        }
        assert_eq!(profile.wire_name("plain"), "plain");
    }
    assert_eq!(Profile::Openai.wire_name("search-a"), "search-a");
    assert!(Profile::BedrockNova.wire_name("search-a").starts_with("search_a_"));
}

/// Field reports 13, 25, 48, 60 and 64.
#[test]
fn counts_empty_arrays_and_descriptions_are_limited_where_reports_say_so() {
    for (profile, most) in [
        (Profile::Openai, Some(128)),
        (Profile::Azure, Some(128)),
        (Profile::Generic, None),
        (Profile::Deepseek, Some(128)),
        (Profile::Ollama, None),
    ] {
        assert_eq!(profile.limits().max_tools.value, most, "{profile:?}");
    }
    assert!(Profile::ALL.iter().all(|profile| profile.limits().omit_empty_array.value));
    assert!(Profile::Bedrock.limits().omit_empty_description.value);
    assert_eq!(Profile::Openai.description_limit(None), Some(1_024));
    assert_eq!(Profile::Generic.description_limit(Some(1_024)), Some(1_024));
    assert_eq!(Profile::Deepseek.description_limit(Some(1_024)), None);
}

#[test]
fn keys_are_told_apart() {
    for (key, top, everywhere) in [
        ("plain", true, true),
        ("filter[id]", false, false),
        ("$top", false, false),
        ("@microsoft.graph.x", false, false),
        ("dotted.key-1", true, false),
        ("1st", true, false),
        ("", false, false),
        ("ключ", false, false),
    ] {
        assert_eq!(KeyRule::TopLevel.fits(key), top, "{key}");
        assert_eq!(KeyRule::Everywhere.fits(key), everywhere, "{key}");
        assert!(KeyRule::Any.fits(key));
    }
    assert!(!KeyRule::TopLevel.fits(&"x".repeat(65)));
    assert!(KeyRule::Everywhere.fits(&"x".repeat(64)));
}
