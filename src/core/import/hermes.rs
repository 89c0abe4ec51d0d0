//! Hermes' section `tools.tool_search`: a boolean, or an object. A typo never stops Hermes, and does not stop the import.

use serde_json::{Map, Value};

use super::Reading;
use super::settings::{Config, Row, To, flag, read_rows, under};
use super::told::Told;

const DEFER: &str = "every tool that is not in `core` is deferred here: what is missing in the list belongs into `core`, and a tool that \
     nobody shall see into `deny`";

/// The keys of the section. `eager` and its like are those of forks.
pub(super) const ROWS: &[Row] = &[
    Row { foreign: "enabled", to: To::Special },
    Row { foreign: "threshold_pct", to: To::Percent("threshold_pct") },
    Row { foreign: "search_default_limit", to: To::Whole("search_default_limit") },
    Row { foreign: "max_search_limit", to: To::Whole("max_search_limit") },
    Row { foreign: "listing", to: To::Special },
    Row { foreign: "listing_max_tokens", to: To::Whole("listing_max_tokens") },
    Row { foreign: "defer", to: To::Nothing(DEFER) },
    Row { foreign: "aliases", to: To::Key("aliases") },
    Row { foreign: "eager", to: To::Special },
    Row { foreign: "never_defer", to: To::Special },
    Row { foreign: "always_visible", to: To::Special },
];

/// Reads the section.
pub(super) fn read(section: &Value, at: &str, out: &mut Reading) {
    match section {
        Value::Object(section) => read_section(section, at, out),
        // The short form: true is what an empty section says, and only false switches off.
        Value::Bool(true) => out.config.set("enabled", Value::from("auto"), at, &mut out.told),
        Value::Bool(false) => out.config.set("enabled", Value::from("off"), at, &mut out.told),
        Value::Null => {}
        other => {
            let detail = "Hermes reads this as `enabled: auto`, whatever it says; so does the import";
            out.told.add("import_adapted", at, detail);
            if flag(other) == Value::Bool(false) {
                let detail = "if tool search shall be off, write `enabled: off`";
                out.told.add("import_adapted", at, detail);
            }
            out.config.set("enabled", Value::from("auto"), at, &mut out.told);
        }
    }
}

fn read_section(section: &Map<String, Value>, at: &str, out: &mut Reading) {
    read_rows(
        section,
        at,
        ROWS,
        &mut out.config,
        &mut out.told,
        |key, value, pointer, config, told| match key {
            "enabled" => config.set("enabled", value.clone(), pointer, told),
            "listing" => config.set("listing", listing(value, pointer, told), pointer, told),
            _ => add_core(value, pointer, config),
        },
    );
}

/// `on` means the budget here and there is none for it; Hermes keeps to its budget, as `auto` does here.
fn listing(value: &Value, at: &str, told: &mut Told) -> Value {
    let is_on = value.as_str().is_some_and(|word| word.trim().eq_ignore_ascii_case("on"))
        || flag(value) == Value::Bool(true);
    if !is_on {
        return value.clone();
    }
    let detail =
        "`on` would ignore `threshold_pct` here; Hermes keeps to it, as `auto` does, so `auto` is written";
    told.add("import_adapted", at, detail);
    Value::from("auto")
}

/// Names of tools, and `mcp-<server>` for all of a server.
fn add_core(value: &Value, at: &str, config: &mut Config) {
    let one = std::slice::from_ref(value);
    let is_list = value.is_array();
    for (index, entry) in value.as_array().map_or(one, Vec::as_slice).iter().enumerate() {
        let group =
            entry.as_str().and_then(|name| name.strip_prefix("mcp-")).filter(|group| !group.is_empty());
        let entry = group.map_or_else(|| entry.clone(), |group| Value::from(format!("@{group}")));
        let pointer = if is_list { under(at, &index.to_string()) } else { at.to_owned() };
        config.add_core(&entry, &pointer);
    }
}
