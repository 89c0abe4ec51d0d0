//! Importing what administrators bring along.

use std::fmt;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::core::id::Id;
use crate::core::import::Kind;
use crate::core::json::JsonLimits;
use crate::core::warning::FieldError;
use crate::http::body::RawBody;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::http::scoped::Scoped;
use crate::service::{ImportAnswer, ImportRequest, ImportSource, Toolrack};

/// Documents to import.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportBody {
    /// The user who is set up.
    #[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    user: Id,
    /// The project that is set up, if one is.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._@:-]+$")]
    project: Option<Id>,
    /// Files as they are, 1 to 50: JSON (with comments and trailing commas too), JSON Lines or YAML. A file and what stands
    /// beside it are joined; where two say different things, the later one holds.
    #[schema(min_items = 1, max_items = 50)]
    texts: Option<Vec<String>>,
    /// The same as JSON, in place of texts.
    #[schema(value_type = Option<Value>)]
    document: Option<Box<RawValue>>,
    /// What the documents are. Default: `auto`, what they look like.
    #[serde(default, rename = "as")]
    kind: ImportAs,
    /// The group of tools that name none, 1 to 128 characters: usually their MCP server.
    group: Option<String>,
}

/// What documents are.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportAs {
    #[default]
    Auto,
    /// A list of tools: in any format, in a request body, as a result of `tools/list`, or lists by server.
    Tools,
    /// `dsh-tool-search.json`, or its static part.
    Dsh,
    /// Hermes' `tools.tool_search`.
    Hermes,
    /// `mcp.json`.
    Mcp,
}

impl ImportAs {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Auto => None,
            Self::Tools => Some(Kind::Tools),
            Self::Dsh => Some(Kind::Dsh),
            Self::Hermes => Some(Kind::Hermes),
            Self::Mcp => Some(Kind::Mcp),
        }
    }
}

impl Scoped for ImportBody {
    fn scope(&self) -> (Option<&Id>, Option<&Id>) {
        (Some(&self.user), self.project.as_ref())
    }
}

impl fmt::Debug for ImportBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The documents may hold keys.
        let (user, project) = (&self.user, &self.project);
        f.debug_struct("ImportBody").field("user", user).field("project", project).finish_non_exhaustive()
    }
}

/// Read tools and settings of other programs
///
/// Takes lists of tools in whatever they stand in, `dsh-tool-search.json` with its static part in YAML, Hermes'
/// `tools.tool_search`, and `mcp.json` as Claude, Cursor and VS Code keep it. Nothing is stored: `tools` can be sent to
/// `PUT .../catalog` and `config` to `PATCH .../config`. What has no counterpart is a warning that tells what there is instead;
/// keys and the values of headers and environments are not given back.
#[utoipa::path(post, path = "/v1/setup/import", operation_id = "import_setup", tag = "configs",
    request_body = ImportBody,
    responses((status = 200, description = "What was read", body = ImportAnswer)))]
pub(crate) async fn import_setup(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    body: RawBody,
) -> Result<Json<ImportAnswer>, Problem> {
    let depth = context.limits().json_depth;
    // Tools are checked one by one, so that a bad one does not cost the others.
    let read: ImportBody = body.parse(JsonLimits { opaque: &["document"], ..JsonLimits::strict(depth) })?;
    drop(body);
    let ImportBody { texts, document, kind, group, .. } = read;
    if texts.is_some() && document.is_some() {
        let detail = "send either `texts` or a `document`";
        return Err(Problem::invalid(vec![FieldError::new("/document", "invalid_value", detail)]));
    }
    let texts = texts.into_iter().flatten().map(ImportSource::Text);
    let sources = texts.chain(document.map(ImportSource::Json)).collect();
    let read = service.read_import(ImportRequest { sources, kind: kind.kind(), group }).await?;
    Ok(Json(read.answer()?))
}
