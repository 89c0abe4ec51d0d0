//! `import`: a list of tools from a file into the catalog of a user or project.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::value::RawValue;

use super::start::open_beside;
use super::{Failure, SettingArgs, print_line};
use crate::config::Settings;
use crate::core::id::{Id, Scope};
use crate::core::import::decode;
use crate::service::Actor;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// A JSON array of tools, an object with `tools` (such as an MCP tools/list result), or one tool per line; - reads
    /// standard input.
    file: PathBuf,
    /// The user whose catalog is written.
    #[arg(long, value_name = "USER", required_unless_present = "project", conflicts_with = "project")]
    user: Option<String>,
    /// The project whose catalog is written.
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Add and replace tools, and keep all others. Without it the whole catalog is replaced.
    #[arg(long)]
    merge: bool,
    /// Only say what would change.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) settings: SettingArgs,
}

/// Runs the import and prints what changed.
pub(super) async fn import(settings: Settings, args: ImportArgs) -> Result<(), Failure> {
    let scope = scope(&args)?;
    let tools = read_tools(&read_file(&args)?)?;
    let started = open_beside(&settings).await?;
    let actor = Actor::program();
    let written = if args.merge {
        started.service.patch_catalog(&actor, &scope, tools, Vec::new(), None, args.dry_run).await
    } else {
        started.service.put_catalog(&actor, &scope, tools, None, args.dry_run).await
    };
    let written = match written {
        Ok(written) => written,
        Err(error) => {
            error
                .errors()
                .iter()
                .for_each(|fault| eprintln!("toolrack: {}: {}", fault.pointer, fault.detail));
            return Err(Failure::new(error));
        }
    };
    for warning in &written.warnings {
        let place = warning.tool.as_deref().or(warning.pointer.as_deref()).unwrap_or_default();
        eprintln!("toolrack: warning: {} {place}: {}", warning.code, warning.detail);
    }
    let diff = &written.diff;
    let verb = if args.dry_run { "would have" } else { "has" };
    print_line(&format!(
        "the catalog of {} {} {verb} {} added, {} changed, {} removed, {} unchanged tools; version {}",
        scope.kind(),
        scope.id(),
        diff.added.count,
        diff.changed.count,
        diff.removed.count,
        diff.unchanged.count,
        written.catalog_version
    ))?;
    started.close().await
}

fn scope(args: &ImportArgs) -> Result<Scope, Failure> {
    let parse = |text: &str| Id::parse(text).map_err(|error| Failure::Failed(format!("`{text}`: {error}")));
    match (&args.user, &args.project) {
        (Some(user), _) => Ok(Scope::User(parse(user)?)),
        (None, Some(project)) => Ok(Scope::Project(parse(project)?)),
        (None, None) => Err(Failure::Failed("name a --user or a --project".to_owned())),
    }
}

fn read_file(args: &ImportArgs) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if args.file.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(&args.file).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    let file = args.file.display();
    read.map_err(|error| Failure::Failed(format!("cannot read {file}: {error}")))?;
    decode(bytes).map_err(|why| Failure::Failed(format!("cannot read {file}: it {why}")))
}

/// Finds the tools in a document: an array, an object with `tools` or `result.tools`, or lines of JSON.
fn read_tools(text: &str) -> Result<Vec<Box<RawValue>>, Failure> {
    #[derive(serde::Deserialize)]
    struct List {
        tools: Option<Vec<Box<RawValue>>>,
        result: Option<Box<List>>,
    }
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    if trimmed.starts_with('[') {
        return serde_json::from_str(trimmed).map_err(Failure::new);
    }
    if let Ok(list) = serde_json::from_str::<List>(trimmed)
        && let Some(tools) = list.tools.or_else(|| list.result.and_then(|inner| inner.tools))
    {
        return Ok(tools);
    }
    let lines = trimmed.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| Failure::Failed(format!("line {}: {error}", at + 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_found_in_every_form() {
        for text in [
            r#"[{"name":"a"},{"name":"b"}]"#,
            r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"x"}"#,
            r#"{"jsonrpc":"2.0","result":{"tools":[{"name":"a"},{"name":"b"}]}}"#,
            "{\"name\":\"a\"}\n\n{\"name\":\"b\"}\n",
        ] {
            let tools = read_tools(text).unwrap();
            assert_eq!(
                tools.iter().map(|tool| tool.get()).collect::<Vec<_>>(),
                [r#"{"name":"a"}"#, r#"{"name":"b"}"#],
                "{text}"
            );
        }
        assert!(
            matches!(read_tools("{\"name\":\"a\"}\nnonsense"), Err(Failure::Failed(message)) if message.starts_with("line 2"))
        );
    }
}
