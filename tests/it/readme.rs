//! The tables of the README are made from the code; `UPDATE_DOCS=1 cargo test --test it readme` writes them anew.

use std::fmt::Write as _;
use std::path::Path;

use toolrack::core::format::Format;
use toolrack::core::policy;
use toolrack::rerank::RerankFault;
use toolrack::service::FALLBACK_REASONS;
use toolrack::telemetry::{Label, METRICS, MetricKind, Values};

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn keys_table() -> String {
    let mut table = String::from("| key | default | range | meaning |\n|---|---|---|---|\n");
    for key in policy::documentation() {
        let default = if key.default.is_null() { String::new() } else { format!("`{}`", key.default) };
        writeln!(
            table,
            "| `{}` | {} | {} | {} |",
            key.key,
            cell(&default),
            cell(&key.range),
            cell(key.meaning)
        )
        .unwrap();
    }
    table
}

/// The text with what stands between the markers of `name` replaced.
fn with_section(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let start = text.find(&begin).expect("the README has the marker") + begin.len();
    let stop = text.find(&end).expect("the README has the marker");
    format!("{}{section}{}", &text[..start], &text[stop..])
}

#[test]
fn the_readme_has_the_tables_that_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let present = std::fs::read_to_string(&path).unwrap();
    let current = with_section(&present, "keys", &keys_table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(
        present == current || std::env::var_os("UPDATE_DOCS").is_some(),
        "run `UPDATE_DOCS=1 cargo test --test it readme`"
    );
}

/// The rules of every provider, and what is found in schemas.
fn profiles_document() -> String {
    let mut text = String::from(
        "# Providers\n\nWhat each profile keeps, and how tools are mended for it. Made from the code: \
         `UPDATE_DOCS=1 cargo test --test it readme`.\n\n",
    );
    text.push_str(toolrack::core::profile::documentation().trim());
    text.push_str(
        "\n\n## Findings\n\nWhat `catalog/lint` tells about a schema.\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, meaning) in toolrack::core::mend::LINTS {
        writeln!(text, "| `{code}` | {} |", cell(meaning)).unwrap();
    }
    text
}

#[test]
fn the_rules_of_providers_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profiles.md");
    let current = profiles_document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == current, "run `UPDATE_DOCS=1 cargo test --test it readme`");
}

fn values(label: &Label) -> String {
    match label.values {
        Values::AtMost(most, what) => format!("{what} (at most {most})"),
        Values::Closed(values) | Values::Paired(values) => {
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Every metric with all values of its labels.
fn metrics_document() -> String {
    let mut text = String::from(
        "# Metrics\n\nWhat `GET /metrics` tells Prometheus. Made from the code: `UPDATE_DOCS=1 cargo test --test it readme`.\n\n\
         Labels are closed sets: they never hold users, projects, sessions, tools, queries, hosts or models. *Series* is how many there \
         can be at most, with the buckets, sum and count of a histogram; a series begins with its first value, but for counters \
         with one label, so that there are far fewer. Gauges are read when they are asked for. Names that begin with `process_` are those of Prometheus' client \
         libraries and are told where `/proc` is.\n\n\
         | metric | kind | unit | labels | series | meaning |\n|---|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{}`", label.name)).collect();
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            metric.name,
            metric.kind.name(),
            metric.unit(),
            labels.join(", "),
            metric.most_series(),
            cell(metric.help)
        )
        .unwrap();
    }
    text.push_str("\n## Values of labels\n\n| metric | label | values |\n|---|---|---|\n");
    for metric in METRICS {
        for label in metric.labels {
            writeln!(text, "| `{}` | `{}` | {} |", metric.name, label.name, cell(&values(label))).unwrap();
        }
    }
    text.push_str("\n## Buckets of histograms\n\n| metric | upper bounds |\n|---|---|\n");
    for metric in METRICS {
        if let MetricKind::Histogram(buckets) = metric.kind {
            let bounds: Vec<String> = buckets.iter().map(ToString::to_string).collect();
            writeln!(text, "| `{}` | {} |", metric.name, bounds.join(", ")).unwrap();
        }
    }
    text
}

#[test]
fn the_metrics_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let current = metrics_document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == current, "run `UPDATE_DOCS=1 cargo test --test it readme`");
}

/// The metrics name what other parts decide; they must not fall behind.
#[test]
fn values_of_labels_are_those_that_the_code_gives() {
    let listed = |metric: &str, label: &str| -> Vec<&str> {
        let metric = METRICS.iter().find(|known| known.name == metric).unwrap();
        let label = metric.labels.iter().find(|known| known.name == label).unwrap();
        let Values::Closed(values) = label.values else { panic!("a closed list") };
        let mut values = values.to_vec();
        values.sort_unstable();
        values
    };
    let sorted = |values: &[&'static str], more: &'static str| {
        let mut values = values.to_vec();
        values.push(more);
        values.sort_unstable();
        values
    };
    for metric in ["toolrack_search_total", "toolrack_preload_total"] {
        assert_eq!(listed(metric, "reason"), sorted(&FALLBACK_REASONS, "none"));
    }
    assert_eq!(listed("toolrack_endpoint_calls_total", "outcome"), sorted(&RerankFault::REASONS, "ok"));
    let mut formats: Vec<&str> = Format::ALL.into_iter().map(Format::as_str).collect();
    formats.sort_unstable();
    assert_eq!(listed("toolrack_assemble_total", "format"), formats);
}

/// What each role may ask, and what is said of keys beside it.
fn keys_document() -> String {
    let document = serde_json::to_value(toolrack::http::openapi::document()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(id) = operation["operationId"].as_str() {
                routes.push((method.to_uppercase(), path.clone(), id.to_owned()));
            }
        }
    }
    let rows = routes.iter().map(|(method, path, id)| (method.as_str(), path.as_str(), id.as_str()));
    format!(
        "# Keys\n\nWhat each role may ask. Made from the code, which decides by the same table: \
         `UPDATE_DOCS=1 cargo test --test it readme`.\n\n{}\n\
         A route that is not in the table is refused, whatever the key. A role that may not ask gets a 403 `forbidden`. A \
         user or project that the key does not cover is answered with the same 404 `not_found` as a path that leads \
         nowhere, so nothing shows whether there is one. Requests without a project need only the user covered.\n\n\
         Over `/v1/bridge` a key of the role `setup` is answered calls of the management tools (`toolrack_catalog`, \
         `toolrack_update_config`), where the config has them; every other call is answered with an error for the model. An agent's \
         key is answered `toolrack_catalog` and all other calls; its `toolrack_update_config` is an error for the model, and \
         nothing is written. So an agent that sets something up sends these calls with a setup key, which covers the user and \
         the project, and all others with its own.\n",
        toolrack::core::keys::documentation(rows)
    )
}

#[test]
fn the_rights_of_roles_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    let current = keys_document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == current, "run `UPDATE_DOCS=1 cargo test --test it readme`");
}

/// Rust sources below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        if path.is_dir() {
            return sources(&path);
        }
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust { vec![std::fs::read_to_string(path).unwrap()] } else { Vec::new() }
    };
    entries.flat_map(read).collect()
}

#[test]
fn every_warning_is_explained() {
    let known: Vec<&str> = toolrack::core::warning::WARNINGS.iter().map(|(code, _)| *code).collect();
    assert!(known.is_sorted(), "the table is in order");
    let texts = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let mut used = Vec::new();
    for text in &texts {
        // The warnings of an import are told through `told.add`.
        for call in
            ["Warning::new(", "told.add(", "told.add_with("].iter().flat_map(|call| text.split(call).skip(1))
        {
            let argument = call.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            used.extend(argument);
        }
    }
    assert!(used.len() > 20);
    for code in used {
        assert!(known.contains(&code), "`{code}` is missing in WARNINGS");
    }
}

/// Where the links of a Markdown text lead, without those to other sites.
fn links(text: &str) -> Vec<&str> {
    let after = text.split("](").skip(1);
    let targets = after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://")).collect()
}

/// What a heading is called in an address.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_of_the_documents_lead_somewhere_and_every_picture_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut pictures = Vec::new();
    for document in documents.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let (path, part) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            assert!(target.exists(), "{} leads to {link}", document.display());
            if !part.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line.trim_start_matches('#').trim()) == part);
                assert!(is_there, "{} leads to {link}", document.display());
            }
            pictures.extend(target.file_name().map(ToOwned::to_owned));
        }
    }
    for picture in std::fs::read_dir(root.join("docs/setup")).unwrap() {
        let picture = picture.unwrap();
        assert!(pictures.contains(&picture.file_name()), "{} is shown nowhere", picture.path().display());
    }
}

#[test]
fn chinese_texts_have_chinese_punctuation() {
    let is_chinese = |c: &char| ('\u{4e00}'..='\u{9fff}').contains(c);
    for text in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ui")) {
        for line in text.lines() {
            let before = line.chars();
            let mut pairs = before.zip(line.chars().skip(1));
            let fault = pairs.find(|(first, second)| {
                (is_chinese(first) && ",;:?!(".contains(*second))
                    || (is_chinese(second) && ",;:?!)".contains(*first))
            });
            assert_eq!(fault, None, "{line}");
        }
    }
}
