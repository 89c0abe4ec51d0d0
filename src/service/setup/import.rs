//! Reading what administrators bring along: tools as canonical documents, settings as a config, servers. Nothing is stored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::core::catalog::read_upload;
use crate::core::format::ingest::{EntryLimits, MAX_GROUP_CHARS};
use crate::core::import::{
    self, AlwaysLoad, Imported, Kind as ImportKind, ServerSpec, Source, ToolEntry, Transport,
};
use crate::core::policy::name_fault;
use crate::core::secret_args::masked;
use crate::core::tool::Tool;
use crate::core::warning::Warning;
use crate::service::catalogs::too_many;
use crate::service::{Error, Kind, Toolrack, blocking};

/// Most texts of one import: a folder of files.
const MAX_TEXTS: usize = 50;

/// The code of the warning that there was nothing in what was imported.
pub const NOTHING_IMPORTED: &str = "nothing_imported";

/// A document to import.
pub enum ImportSource {
    /// JSON, JSON with comments, JSON Lines or YAML.
    Text(String),
    Json(Box<RawValue>),
}

/// What to import.
pub struct ImportRequest {
    /// Where two say different things, the later one holds. Faults name `/texts/0` and so on; JSON is `/document`.
    pub sources: Vec<ImportSource>,
    /// What the documents are; nothing: what they look like.
    pub kind: Option<ImportKind>,
    /// The group of tools that name none.
    pub group: Option<String>,
}

impl fmt::Debug for ImportRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The documents may hold keys.
        f.debug_struct("ImportRequest")
            .field("sources", &self.sources.len())
            .field("kind", &self.kind)
            .field("group", &self.group)
            .finish()
    }
}

impl fmt::Debug for ImportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Json(_) => "Json",
        })
    }
}

/// An import that was read, with its secrets.
#[derive(Debug)]
pub struct ReadImport {
    pub imported: Imported,
    /// By group and name.
    pub tools: Vec<Arc<Tool>>,
    pub quarantined: Vec<QuarantinedEntry>,
    /// All but those about secrets that an answer leaves out.
    pub warnings: Vec<Warning>,
}

/// What was read of the documents.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportAnswer {
    /// What the documents are: `tools`, `dsh`, `hermes`, `mcp`, or `mixed`.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The tools, by group and name, ready for `PUT .../catalog`.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Box<RawValue>>,
    /// The tools by their group.
    pub groups: Vec<ImportedGroup>,
    /// What the settings say in the keys of a config, ready for `PATCH .../config`; without secrets.
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    /// MCP servers, in the order they stood.
    pub servers: Vec<ImportedServer>,
    /// Entries that are no tools.
    pub quarantined: Vec<QuarantinedEntry>,
    /// Pointers that begin with `/texts/0` go on inside of that text.
    pub warnings: Vec<Warning>,
}

/// A group with the names of its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImportedGroup {
    pub name: String,
    pub tools: Vec<String>,
}

/// An MCP server as it was imported, without values that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ImportedServer {
    pub name: String,
    /// `http` or `stdio`.
    #[schema(value_type = String)]
    pub transport: &'static str,
    /// Without user, password and query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What was left out of `url` and has to be given again: `user`, `query`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub url_left_out: Vec<String>,
    /// Names of its headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Secrets in them as `***`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of the variables in its environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether all of its tools are core tools; `core` of `config` says it too.
    pub always_load: bool,
    /// The tools of it that are core tools, where not all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always_load_tools: Vec<String>,
    /// What its values leave to another program, as it stands there: `${env:TOKEN}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placeholders: Vec<String>,
}

/// An entry that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QuarantinedEntry {
    pub pointer: String,
    /// A stable code.
    #[schema(value_type = String)]
    pub reason: &'static str,
    /// The entry's name where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub detail: String,
}

impl Toolrack {
    /// Reads documents; what is nothing known is refused, with the place where it stops being JSON or YAML.
    pub async fn read_import(&self, request: ImportRequest) -> Result<ReadImport, Error> {
        let ImportRequest { sources, kind, group } = request;
        let texts = sources.iter().filter(|source| matches!(source, ImportSource::Text(_))).count();
        if sources.is_empty() {
            return Err(Error::invalid("/texts", "missing_key", "send `texts` or a `document`"));
        }
        if texts > MAX_TEXTS {
            return Err(Error::invalid("/texts", "too_many", format!("at most {MAX_TEXTS} texts")));
        }
        let group = group.map(|group| group.trim().to_owned());
        if group
            .as_ref()
            .is_some_and(|group| group.is_empty() || group.chars().nth(MAX_GROUP_CHARS).is_some())
        {
            let detail = format!("a group has 1 to {MAX_GROUP_CHARS} characters");
            return Err(Error::invalid("/group", "invalid_value", detail));
        }
        if let Some(fault) = group.as_deref().and_then(name_fault) {
            return Err(Error::invalid("/group", "invalid_value", fault));
        }
        let (limits, most) = (self.0.limits.entry(), self.0.limits.tools_per_catalog);
        let read = blocking(move || read(&sources, kind, group.as_deref(), limits)).await??;
        if read.tools.len() > most {
            return Err(too_many(read.tools.len(), most));
        }
        Ok(read)
    }
}

fn read(
    sources: &[ImportSource],
    kind: Option<ImportKind>,
    group: Option<&str>,
    limits: EntryLimits,
) -> Result<ReadImport, Error> {
    let mut texts = 0;
    let placed: Vec<(String, Source<'_>)> = sources
        .iter()
        .map(|source| match source {
            ImportSource::Text(text) => {
                texts += 1;
                (format!("/texts/{}", texts - 1), Source::Text(text))
            }
            ImportSource::Json(json) => ("/document".to_owned(), Source::Json(json)),
        })
        .collect();
    let imported =
        import::read(&placed, kind, group).map_err(|faults| Error::with_errors(Kind::Invalid, faults))?;
    let upload = read_upload(imported.tools.iter().map(|entry| entry.json.get()), limits, "");
    let mut warnings = imported.warnings.clone();
    let mut quarantined = Vec::new();
    let mut reasons = upload.rejected.iter();
    for mut warning in upload.warnings {
        warning.pointer = warning.pointer.map(|pointer| origin(&imported.tools, &pointer));
        match (warning.code, reasons.as_slice()) {
            ("tool_quarantined", [reason, ..]) => {
                reasons.next();
                // The detail of such a warning begins with its reason.
                let detail = warning.detail.split_once(": ").map_or(&*warning.detail, |(_, detail)| detail);
                quarantined.push(QuarantinedEntry {
                    pointer: warning.pointer.unwrap_or_default(),
                    reason,
                    name: warning.tool,
                    detail: detail.to_owned(),
                });
            }
            _ => warnings.push(warning),
        }
    }
    let tools: Vec<Arc<Tool>> = upload.tools.into_values().collect();
    // An empty list is what is left of entries that cannot be used.
    let says = |value: &Value| value.as_array().is_none_or(|list| !list.is_empty());
    if tools.is_empty() && !imported.config.values().any(says) && imported.servers.is_empty() {
        let detail = "nothing was found in it: no tool, no setting, no server that can be used";
        warnings.insert(0, Warning::new(NOTHING_IMPORTED, detail));
    }
    Ok(ReadImport { imported, tools, quarantined, warnings })
}

/// The place of an entry in the documents, for a pointer that begins with its number.
fn origin(entries: &[ToolEntry], pointer: &str) -> String {
    let rest = pointer.strip_prefix('/').unwrap_or(pointer);
    let (number, inside) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    let entry = number.parse().ok().and_then(|at: usize| entries.get(at));
    entry.map_or_else(|| pointer.to_owned(), |entry| format!("{}{inside}", entry.pointer))
}

impl ReadImport {
    /// The answer to somebody who must not get secrets back.
    pub fn answer(&self) -> Result<ImportAnswer, Error> {
        let raw = |tool: &Arc<Tool>| RawValue::from_string(tool.body().to_string()).map_err(Error::internal);
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for tool in &self.tools {
            groups.entry(tool.group()).or_default().push(tool.name().to_owned());
        }
        let groups = groups.into_iter().map(|(name, tools)| ImportedGroup { name: name.to_owned(), tools });
        let mut warnings = self.warnings.clone();
        warnings.extend(self.left_out());
        Ok(ImportAnswer {
            kind: self.imported.kind.as_str(),
            tools: self.tools.iter().map(raw).collect::<Result<_, _>>()?,
            groups: groups.collect(),
            config: self.imported.config.clone(),
            servers: self.imported.servers.iter().map(ImportedServer::from).collect(),
            quarantined: self.quarantined.clone(),
            warnings,
        })
    }

    /// Warnings of secrets that an answer does not hold.
    fn left_out(&self) -> impl Iterator<Item = Warning> {
        let key = self.imported.api_key.as_ref().map(|key| {
            let detail = "the key is not given back: send it as `matcher.api_key` with the config";
            Warning::new("secret_left_out", detail).at(key.pointer.clone())
        });
        let servers = self.imported.servers.iter().filter_map(|server| {
            let mut names = [server.transport.header_names(), server.transport.env_names()].concat();
            if server.transport.has_secret_args() {
                names.push("`args`");
            }
            names.extend(server.transport.left_out_of_url().iter().map(|part| match *part {
                "user" => "user and password in `url`",
                _ => "the query of `url`",
            }));
            let detail = format!(
                "the values of {} are not given back: send them when `{}` is stored",
                names.join(", "),
                server.name
            );
            (!names.is_empty()).then(|| Warning::new("secret_left_out", detail).at(server.pointer.clone()))
        });
        key.into_iter().chain(servers)
    }
}

impl From<&ServerSpec> for ImportedServer {
    fn from(server: &ServerSpec) -> Self {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let (command, args) = match &server.transport {
            Transport::Http { .. } => (None, Vec::new()),
            Transport::Stdio { command, args, .. } => (Some(command.clone()), masked(args)),
        };
        Self {
            name: server.name.clone(),
            transport: server.transport.kind(),
            url: command.is_none().then(|| server.transport.shown_url()),
            url_left_out: owned(server.transport.left_out_of_url()),
            headers: owned(server.transport.header_names()),
            command,
            args,
            env: owned(server.transport.env_names()),
            always_load: server.always_load == AlwaysLoad::All,
            always_load_tools: match &server.always_load {
                AlwaysLoad::Names(names) => names.clone(),
                _ => Vec::new(),
            },
            placeholders: server.placeholders.clone(),
        }
    }
}
