//! `eval`: how well searches find the right tools of a set, on a database of its own that is thrown away.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::{Map, Value, json};

use super::start::{Started, open_served};
use super::{Failure, print_line};
use crate::config::{Settings, Sources};
use crate::eval::{Goals, LIMIT_RANGE, Mode, Report, Run, Set, SetModes, SetReport, Setting, evaluate};

/// Arguments of `eval`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["tools", "suite"]))]
pub(super) struct EvalArgs {
    /// The tools: a JSON array, an object with `tools`, or one tool per line.
    #[arg(long, value_name = "FILE", requires = "queries")]
    tools: Option<PathBuf>,
    /// The queries, one per line: {id?, query, relevant[], lang?, kind?}; an empty `relevant` says that no tool serves it.
    #[arg(long, value_name = "FILE", requires = "tools")]
    queries: Option<PathBuf>,
    /// A folder of sets instead, each a folder with tools.jsonl and queries.jsonl; tells halves.
    #[arg(long, value_name = "FOLDER", conflicts_with = "queries")]
    suite: Option<PathBuf>,
    /// Config document to measure under; the default config without it.
    #[arg(long, value_name = "FILE.json")]
    config: Option<PathBuf>,
    /// A second config document, measured on the same queries and compared with the first.
    #[arg(long, value_name = "FILE.json")]
    compare: Option<PathBuf>,
    /// Rerank endpoint of the first config; private addresses are allowed.
    #[arg(long, value_name = "URL")]
    matcher_url: Option<String>,
    /// Also measure the endpoint of --matcher-url in each of its modes, which has to rank and to make vectors below one base
    /// URL, beside the words: the runs of the report itself are by the words.
    #[arg(long, requires = "matcher_url", conflicts_with = "compare")]
    modes: bool,
    /// The endpoint's model.
    #[arg(long, value_name = "MODEL", requires = "matcher_url")]
    matcher_model: Option<String>,
    /// Name of the environment variable that holds the endpoint's key.
    #[arg(long, value_name = "VARIABLE", requires = "matcher_url")]
    matcher_key_env: Option<String>,
    /// Matches per query that rankings are measured on.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = limit_parser())]
    limit: u32,
    /// Figures to reach, told beside those measured: {set: {"all", kind or language: {figure: goal}}}.
    #[arg(long, value_name = "FILE.json")]
    goals: Option<PathBuf>,
    /// Also write the report, with every query, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Tell both halves of a set, split by a hash of the queries' ids.
    #[arg(long)]
    halves: bool,
}

fn limit_parser() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*LIMIT_RANGE.start())..=i64::from(*LIMIT_RANGE.end()))
}

/// Measures, prints the report and writes its files.
pub(super) async fn eval(args: EvalArgs) -> Result<(), Failure> {
    let settings = read_settings(&args)?;
    let sets = find_sets(&args)?;
    let goals = match &args.goals {
        Some(file) => Some(
            Goals::read(&read_file(file)?)
                .map_err(|error| Failure::Failed(format!("the goals in {}: {error}", file.display())))?,
        ),
        None => None,
    };
    let folder = std::env::temp_dir().join(format!("toolrack-eval-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Failure::new)?;
    let measured = async {
        let started = open(&folder).await?;
        let report = measure(&started, &sets, &settings, &args).await;
        started.close().await?;
        report
    }
    .await;
    // As with the demo: a folder left behind is litter, failing to remove it is no fault.
    drop(std::fs::remove_dir_all(&folder));
    let mut report = measured?;
    if let Some(goals) = &goals {
        report = report.with_goals(goals);
    }
    let text = report.markdown();
    print_line(text.trim_end())?;
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&report).map_err(Failure::new)?;
        write_file(file, &format!("{json}\n"))?;
    }
    if let Some(file) = &args.markdown {
        write_file(file, &text)?;
    }
    Ok(())
}

async fn measure(
    started: &Started,
    sets: &[Files],
    settings: &[Setting],
    args: &EvalArgs,
) -> Result<Report, Failure> {
    let halves = args.halves || args.suite.is_some();
    let (mut reports, mut modes) = (Vec::new(), Vec::new());
    for files in sets {
        let set = files.read()?;
        if args.modes {
            let mut runs = measure_modes(started, &set, &settings[0], args).await?;
            modes.push(SetModes::of(&set.name, &runs));
            runs.truncate(1);
            reports.push(SetReport::of(&set, runs, halves));
            continue;
        }
        let mut runs = Vec::new();
        for setting in settings {
            runs.push(evaluate(&started.service, &set, setting, args.limit).await.map_err(Failure::new)?);
        }
        reports.push(SetReport::of(&set, runs, halves));
    }
    Ok(Report::new(args.limit, reports).with_modes(modes))
}

/// A run of each mode.
async fn measure_modes(
    started: &Started,
    set: &Set,
    setting: &Setting,
    args: &EvalArgs,
) -> Result<Vec<Run>, Failure> {
    let matcher = matcher(args.matcher_url.as_deref().unwrap_or_default(), args)?;
    let mut runs = Vec::new();
    for mode in Mode::ALL {
        let setting = mode.setting(&setting.config, &matcher);
        runs.push(evaluate(&started.service, set, &setting, args.limit).await.map_err(Failure::new)?);
    }
    Ok(runs)
}

/// A service over an empty database in a folder. Its only user is the one who runs the command, so endpoints on this
/// machine may be called.
async fn open(folder: &Path) -> Result<Started, Failure> {
    let url = format!("sqlite://{}", folder.join("eval.db").display());
    let flags = vec![("database.url", url), ("rerank.allow_private", "true".to_owned())];
    let (settings, _) =
        Settings::load(Sources { file: None, env: std::iter::empty(), flags }).map_err(Failure::new)?;
    open_served(&settings).await
}

/// The files of one set.
#[derive(Debug)]
struct Files {
    name: String,
    tools: PathBuf,
    queries: PathBuf,
}

impl Files {
    fn read(&self) -> Result<Set, Failure> {
        let (tools, queries) = (read_file(&self.tools)?, read_file(&self.queries)?);
        Set::read(self.name.clone(), &tools, &queries)
            .map_err(|error| Failure::Failed(format!("the set {}: {error}", self.name)))
    }
}

fn find_sets(args: &EvalArgs) -> Result<Vec<Files>, Failure> {
    if let (Some(tools), Some(queries)) = (&args.tools, &args.queries) {
        let folder = queries.parent().and_then(Path::file_name);
        let name = folder.map_or_else(|| "set".to_owned(), |name| name.to_string_lossy().into_owned());
        return Ok(vec![Files { name, tools: tools.clone(), queries: queries.clone() }]);
    }
    let suite = args.suite.clone().unwrap_or_default();
    let unreadable = |error| Failure::Failed(format!("cannot read {}: {error}", suite.display()));
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(&suite).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let [tools, queries] = ["tools.jsonl", "queries.jsonl"].map(|file| entry.path().join(file));
        if tools.is_file() && queries.is_file() {
            sets.push(Files { name: entry.file_name().to_string_lossy().into_owned(), tools, queries });
        }
    }
    if sets.is_empty() {
        let detail = "holds no folder with tools.jsonl and queries.jsonl";
        return Err(Failure::Failed(format!("{} {detail}", suite.display())));
    }
    sets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(sets)
}

/// The first setting, and the second where there is one to compare with.
fn read_settings(args: &EvalArgs) -> Result<Vec<Setting>, Failure> {
    let mut first = read_setting(args.config.as_deref())?;
    if let Some(url) = args.matcher_url.as_ref().filter(|_| !args.modes) {
        let Value::Object(config) = &mut first.config else {
            return Err(Failure::Failed("a config is a JSON object".to_owned()));
        };
        config.insert("matcher".to_owned(), Value::Object(matcher(url, args)?));
        first.name.push_str(" with endpoint");
    }
    let mut settings = vec![first];
    if let Some(file) = &args.compare {
        let mut second = read_setting(Some(file))?;
        if settings.iter().any(|first| first.name == second.name) {
            second.name = file.display().to_string();
        }
        settings.push(second);
    }
    Ok(settings)
}

fn matcher(url: &str, args: &EvalArgs) -> Result<Map<String, Value>, Failure> {
    let mut matcher = Map::new();
    matcher.insert("endpoint".to_owned(), json!(url));
    matcher.extend(args.matcher_model.as_ref().map(|model| ("model".to_owned(), json!(model))));
    if let Some(variable) = &args.matcher_key_env {
        let key = std::env::var(variable)
            .map_err(|_| Failure::Failed(format!("the variable {variable} holds no key")))?;
        matcher.insert("api_key".to_owned(), Value::from(key));
    }
    Ok(matcher)
}

fn read_setting(file: Option<&Path>) -> Result<Setting, Failure> {
    let Some(file) = file else {
        return Ok(Setting { name: "default".to_owned(), config: json!({}) });
    };
    let config = serde_json::from_str(&read_file(file)?)
        .map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    let name =
        file.file_stem().map_or_else(|| "config".to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(Setting { name, config })
}

fn read_file(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))
}

fn write_file(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", file.display())))
}
