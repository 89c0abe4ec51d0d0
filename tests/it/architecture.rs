//! The arrows between the layers (ARCHITECTURE.md), read from the source: which part of `src/` may name which.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each part may use besides itself. A part that is not here may use nothing of ours.
const ARROWS: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    ("lib", &[]),
    (
        "cli",
        &["config", "core", "demo", "eval", "http", "mcp", "rerank", "service", "store", "telemetry", "ui"],
    ),
    ("demo", &["core", "service", "telemetry"]),
    ("eval", &["core", "service"]),
    ("http", &["core", "service", "telemetry"]),
    ("ui", &["core", "http", "service"]),
    ("service", &["core", "mcp", "rerank", "store", "telemetry"]),
    ("store", &["core"]),
    ("rerank", &["core"]),
    ("mcp", &["core", "rerank"]),
    ("core", &[]),
    ("config", &[]),
    ("fuzz_corpus", &["core", "rerank"]),
    ("telemetry", &["config"]),
];

/// Crates that belong to one part.
const CRATES: &[(&str, &[&str])] = &[
    // Telemetry names methods and statuses in its labels.
    ("axum", &["http", "ui", "cli", "telemetry"]),
    ("clap", &["cli", "main"]),
    ("hyper_util", &["http"]),
    ("opentelemetry", &["telemetry"]),
    ("opentelemetry_http", &["telemetry"]),
    ("opentelemetry_otlp", &["telemetry"]),
    ("opentelemetry_sdk", &["telemetry"]),
    ("reqwest", &["mcp", "rerank", "telemetry"]),
    ("rmcp", &["mcp"]),
    ("rustix", &["cli", "mcp", "telemetry"]),
    ("sqlx", &["store"]),
    ("tower", &["http"]),
    ("tower_http", &["http"]),
    ("tracing_opentelemetry", &["telemetry"]),
    ("tracing_subscriber", &["telemetry"]),
    ("utoipa_axum", &["http"]),
];

/// What core must not have: it is pure.
const NOT_IN_CORE: &[&str] = &[
    "async fn",
    "async move",
    ".await",
    "tokio::",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "SystemTime",
    "Instant",
    "rand::",
    "thread::sleep",
    "tracing::",
    "metrics::",
];

#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// Names of the modules from the root to the file.
    modules: Vec<String>,
    /// Without comments; unit tests are left out where they stand in the same file.
    code: String,
}

impl Source {
    fn part(&self) -> &str {
        &self.modules[0]
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(read(&root, path));
            }
        }
    }
    assert!(sources.len() > 50, "the sources are gone");
    sources
}

fn read(root: &Path, path: PathBuf) -> Source {
    let text = std::fs::read_to_string(&path).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let inner = path.strip_prefix(root).expect("below the root").with_extension("");
    let mut modules: Vec<String> =
        inner.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if modules.len() > 1 && modules.last().is_some_and(|last| last == "mod") {
        modules.pop();
    }
    Source { path, modules, code }
}

fn is_test(source: &Source) -> bool {
    source.modules.iter().any(|module| module.starts_with("tests") || module == "contract")
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The first names after each `prefix`: one, or those of a `{…}` list.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|before: char| is_word(before) || before == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(rest.chars().take_while(|next| is_word(*next)).collect());
            continue;
        };
        let (mut depth, mut start) = (0, true);
        let mut name = String::new();
        for character in list.chars() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.insert(std::mem::take(&mut name));
                    start = true;
                }
                _ if is_word(character) && depth == 0 && start => name.push(character),
                _ if !name.is_empty() => start = false,
                _ => {}
            }
        }
        names.insert(name);
    }
    names.remove("");
    names
}

/// The parts that a source names, by `crate::`, by `toolrack::` or by going up to the root.
fn used_parts(source: &Source) -> BTreeSet<String> {
    let mut used = names_after(&source.code, "crate::");
    used.extend(names_after(&source.code, "toolrack::"));
    used.extend(names_after(&source.code, &"super::".repeat(source.modules.len())));
    used.retain(|name| ARROWS.iter().any(|(part, _)| part == name));
    used
}

#[test]
fn names_are_read_from_paths_and_lists() {
    let code = "use crate::core::id::Id;\nuse crate::{demo, http::{self, app}, telemetry};\nlet x = crate::store::X;";
    let found = names_after(code, "crate::");
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        ["core", "demo", "http", "store", "telemetry"]
    );
    assert!(names_after("my_crate::x, a::crate::y", "crate::").is_empty());
}

#[test]
fn parts_use_only_what_the_arrows_allow() {
    let mut seen = BTreeSet::new();
    for source in sources() {
        let part = source.part().to_owned();
        let (_, allowed) =
            ARROWS.iter().find(|(known, _)| *known == part).unwrap_or_else(|| panic!("no arrows for {part}"));
        // Tests may build whatever they look at.
        let used_parts = if is_test(&source) { BTreeSet::new() } else { used_parts(&source) };
        for used in used_parts {
            let fine = used == part || allowed.contains(&used.as_str());
            assert!(fine, "{} uses `{used}`, which `{part}` may not", source.path.display());
        }
        seen.insert(part);
    }
    let known: BTreeSet<String> = ARROWS.iter().map(|(part, _)| (*part).to_owned()).collect();
    assert_eq!(seen, known, "a part without arrows, or arrows without a part");
}

#[test]
fn crates_stay_in_their_parts() {
    for source in sources().iter().filter(|source| !is_test(source)) {
        for (name, parts) in CRATES {
            let used = !names_after(&source.code, &format!("{name}::")).is_empty();
            assert!(!used || parts.contains(&source.part()), "{} uses `{name}`", source.path.display());
        }
    }
}

#[test]
fn the_core_is_pure() {
    for source in sources().iter().filter(|source| source.part() == "core" && !is_test(source)) {
        for word in NOT_IN_CORE {
            assert!(!source.code.contains(word), "{} has `{word}`", source.path.display());
        }
    }
}

/// What handlers take has been checked against the key of the request: no extractor of axum's own gets around that.
#[test]
fn handlers_take_checked_parts_of_requests_only() {
    let sources = sources();
    let handlers = sources.iter().filter(|source| source.modules.starts_with(&["http".into(), "v1".into()]));
    let mut count = 0;
    for source in handlers.filter(|source| !is_test(source)) {
        for name in names_after(&source.code, "axum::extract::") {
            // The scope in a path is checked where it is read.
            let is_scope =
                source.path.ends_with("fields.rs") && ["FromRequestParts", "RawPathParams"].contains(&&*name);
            assert!(name == "State" || is_scope, "{} takes `{name}`", source.path.display());
        }
        for unchecked in ["): Json<", ": Bytes,", ": Request", ": Body,", "Form<"] {
            assert!(!source.code.contains(unchecked), "{} takes `{unchecked}`", source.path.display());
        }
        count += 1;
    }
    assert!(count > 10);
}

/// The service asks traits; which database and which client stand behind them is decided where the program starts.
#[test]
fn the_service_knows_traits_and_not_what_implements_them() {
    for source in sources().iter().filter(|source| source.part() == "service" && !is_test(source)) {
        for name in
            ["SqliteStore", "PostgresStore", "HttpReranker", "McpClient", "ServeLock", "StatusCode", "http::"]
        {
            assert!(!source.code.contains(name), "{} has `{name}`", source.path.display());
        }
    }
}

#[test]
fn every_module_says_what_it_owns() {
    for source in sources().iter().filter(|source| !is_test(source)) {
        let text = std::fs::read_to_string(&source.path).expect("a source");
        assert!(text.starts_with("//! "), "{} has no header", source.path.display());
    }
}
