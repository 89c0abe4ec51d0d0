//! The files of deploy/ against the settings: every variable that they name is one, and they agree on port, program and
//! folder. `tests/deploy/run` runs their steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolrack::telemetry::{Label, METRICS, Values};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// Every `TOOLRACK_…` in a text.
fn variables(text: &str) -> BTreeSet<&str> {
    let ends = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    text.match_indices("TOOLRACK_").map(|(start, _)| text[start..].split(ends).next().unwrap()).collect()
}

/// The variable of every setting, as `check-config` lists them.
fn settings() -> BTreeSet<String> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_toolrack")).arg("check-config").env_clear().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let keys = String::from_utf8(output.stdout).unwrap();
    let keys = keys.lines().filter_map(|line| line.split_once(" = "));
    keys.map(|(key, _)| format!("TOOLRACK_{}", key.trim().replace('.', "_").to_uppercase())).collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_variable_is_a_setting() {
    let settings = settings();
    assert!(settings.contains("TOOLRACK_LISTEN") && settings.len() > 20, "{settings:?}");
    let mut named = 0;
    for file in files(&folder()) {
        // Its first lines tell how variables are made; `config` checks its keys.
        if file.ends_with("toolrack.default.toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for variable in variables(&text) {
            assert!(settings.contains(variable), "{file:?} names {variable}, which is no setting");
            named += 1;
        }
    }
    assert!(named >= 5, "the files name {named} variables");
}

/// Every metric that a text names, without what histograms add to it.
fn metrics(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = ["toolrack_", "process_"].into_iter().flat_map(|start| text.match_indices(start));
    let names = starts.map(|(at, _)| text[at..].split(|c| !is_part(c)).next().unwrap());
    let known = |name: &str| METRICS.iter().any(|metric| metric.name == name);
    let base = |name| {
        let ends = ["_bucket", "_count", "_sum"];
        ends.iter().filter_map(|end| str::strip_suffix(name, end)).find(|base| known(base)).unwrap_or(name)
    };
    names.map(base).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    for (file, at_least) in [("prometheus/alerts.yaml", 10), ("grafana/toolrack.json", 25)] {
        let text = text(file);
        let named = metrics(&text);
        assert!(named.len() >= at_least, "{file}: {named:?}");
        for name in named {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{file} asks for {name}");
        }
    }
}

#[test]
fn every_alert_has_its_place_in_the_runbook() {
    let alerts = text("prometheus/alerts.yaml");
    let alerts: BTreeSet<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let runbook = text("../docs/runbook.md");
    let described: BTreeSet<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(alerts, described);
    let file = text("prometheus/alerts.yaml");
    for alert in alerts {
        let line = format!("runbook: docs/runbook.md#{}\n", alert.to_lowercase());
        assert_eq!(file.matches(&line).count(), 1, "{alert}");
    }
}

#[test]
fn operators_are_told_of_settings_keys_and_reasons_that_there_are() {
    let settings = settings();
    let readme = text("../README.md");
    let values = |label: &Label| match label.values {
        Values::Closed(values) | Values::Paired(values) => values,
        Values::AtMost(..) => &[],
    };
    let reasons: Vec<&str> =
        METRICS.iter().flat_map(|metric| metric.labels).flat_map(values).copied().collect();
    let mut told = 0;
    for file in ["../docs/runbook.md", "../docs/proxies.md"] {
        let text = text(file);
        for named in text.split('`').skip(1).step_by(2) {
            let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let Some((section, key)) = named.split_once('.').filter(|(a, b)| plain(a) && plain(b)) else {
                continue;
            };
            told += 1;
            if section == "matcher" {
                assert!(
                    readme.contains(&format!("`matcher.{key}`")),
                    "{file} names {named}, which is no key of a matcher"
                );
            } else {
                let variable = format!("TOOLRACK_{section}_{key}").to_uppercase();
                assert!(settings.contains(&variable), "{file} names {named}, which is no setting");
            }
        }
    }
    assert!(told >= 8, "{told}");
    let runbook = text("../docs/runbook.md");
    for reason in ["timeout", "unreachable", "circuit_open", "unauthorized", "rate_limited"] {
        assert!(runbook.contains(&format!("`{reason}`")) && reasons.contains(&reason), "{reason}");
    }
}

#[test]
fn the_manifests_run_the_image_as_it_is() {
    let (image, deployment) = (text("Dockerfile"), text("kubernetes/deployment.yaml"));
    let user = image.split("\nUSER ").nth(1).unwrap().split(':').next().unwrap();
    assert_eq!(deployment.matches(&format!("runAsUser: {user}\n")).count(), 1);
    let port = image.split("\nEXPOSE ").nth(1).unwrap().lines().next().unwrap();
    assert!(deployment.contains(&format!("containerPort: {port}\n")));
    for path in ["/healthz", "/readyz"] {
        assert!(deployment.contains(&format!("path: {path}\n")), "{path}");
    }
    let defaults = text("toolrack.default.toml");
    let drain_ms: u64 =
        defaults.split("\ndrain_ms = ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    let number = |after: &str| -> u64 {
        deployment.split(after).nth(1).unwrap().lines().next().unwrap().parse().unwrap()
    };
    assert!(number("terminationGracePeriodSeconds: ") > number("seconds: ") + drain_ms / 1000);
    // What the service refuses cannot go live by mistake.
    assert_eq!(text("kubernetes/secret.example.yaml").matches("\"REPLACE\"").count(), 2);
}

#[test]
fn the_files_agree_with_the_settings_and_each_other() {
    let (image, compose, unit) = (text("Dockerfile"), text("compose.yaml"), text("toolrack.service"));
    let defaults = text("toolrack.default.toml");
    let port = defaults.split("\nlisten = \"127.0.0.1:").nth(1).unwrap().split('"').next().unwrap();
    for (file, line) in [
        (&image, format!("TOOLRACK_LISTEN=0.0.0.0:{port} ")),
        (&image, format!("\nEXPOSE {port}\n")),
        (&compose, format!("\"127.0.0.1:{port}:{port}\"")),
        (&text("health.sh"), format!("${{1:-{port}}}")),
    ] {
        assert!(file.contains(&line), "{line}");
    }
    let database = "TOOLRACK_DATABASE_URL=sqlite:///var/lib/toolrack/toolrack.db";
    assert!(image.contains(database) && unit.contains(database));
    assert!(image.contains("\nVOLUME /var/lib/toolrack\n") && compose.contains("state:/var/lib/toolrack"));
    let drain_ms = defaults.split("\ndrain_ms = ").nth(1).unwrap().lines().next().unwrap();
    let drain: u64 = drain_ms.parse::<u64>().unwrap() / 1000;
    for (file, before) in [(&compose, "stop_grace_period: "), (&unit, "TimeoutStopSec=")] {
        let seconds = file.split(before).nth(1).unwrap().lines().next().unwrap();
        let seconds: u64 = seconds.trim_end_matches('s').parse().unwrap();
        assert!(seconds > drain, "{before}{seconds} cuts what {drain} s of draining allow");
    }
    let stages: Vec<&str> = image.lines().filter(|line| line.starts_with("FROM ")).collect();
    assert_eq!(stages.len(), 2, "{stages:?}");
    let rust = include_str!("../../Cargo.toml")
        .split("rust-version = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(stages[0].starts_with(&format!("FROM rust:{rust}-")), "{stages:?}");
    let user = image.lines().rfind(|line| line.starts_with("USER ")).unwrap();
    assert!(text("install.sh").contains(&format!("\nid={}\n", user[5..].split(':').next().unwrap())));
    assert!(image.contains("\nHEALTHCHECK "));
}

#[test]
fn the_image_is_built_from_what_the_program_needs() {
    let ignore = std::fs::read_to_string(folder().with_file_name(".dockerignore")).unwrap();
    // Cargo looks for every target that Cargo.toml names.
    let targets = ["benches", "tests/browser/catalog.rs"];
    for needed in ["Cargo.toml", "Cargo.lock", "src", "migrations", "deploy"].into_iter().chain(targets) {
        assert!(ignore.lines().any(|line| line == format!("!{needed}")), "{needed}");
    }
    assert!(ignore.lines().any(|line| line == "*"), "all else stays out");
}
