//! `/v1/search`: finding tools for a task.

use axum::extract::State;
use axum::{Extension, Json};

use super::fields::{OneOrMany, exactly_one, excluded, grant_body};
use crate::core::keys::Principal;
use crate::http::body::ApiJson;
use crate::http::problem::Problem;
use crate::http::refusal::{Sent, placed};
use crate::service::{SearchAnswer, SearchRequest, Toolrack};

grant_body! {
    /// What to look for: exactly one of `query` and `queries`.
    pub struct SearchBody {
        /// What is to be done, in words: one query, or an array of them. At most 2000 characters each (see
        /// `GET /v1/limits`).
        query: Option<OneOrMany>,
        /// Several queries, at most 10.
        #[schema(max_items = 10)]
        queries: Option<Vec<String>>,
        /// Matches per query, from 1 to the config's `max_search_limit`; out of range it is clamped. Default: the
        /// config's `search_default_limit`.
        #[schema(minimum = 1, maximum = 50)]
        limit: Option<f64>,
        /// How much a match tells: `names`, `brief` (default; descriptions of at most 200 characters), `signature` (the tool
        /// with its arguments on one line) or `full` (with the schema of the arguments).
        #[schema(example = "brief")]
        detail: Option<String>,
        /// Whether the session keeps what is found, so that it stands in the array from the next assembly on.
        /// Default: true.
        warm: Option<bool>,
        /// Whether each match tells how it came to its place. Default: false.
        explain: Option<bool>,
        /// What the task is about, beside the query: an endpoint is told it.
        context: Option<String>,
        /// A form in which the answer is wanted besides `results`, in `answer`: `text` (for the model's `tool` message, as much
        /// as `detail` says), `tool_references` (Anthropic's blocks that load deferred tools of the array),
        /// `tool_search_output` (the item that answers a `tool_search_call` of OpenAI's Responses) or `additional_tools` (the
        /// input item that adds definitions to a Responses conversation).
        #[schema(example = "text")]
        form: Option<String>,
        /// The id of the call that a `tool_search_output` answers.
        call_id: Option<String>,
    }
}

/// Find tools
///
/// Ranks the tools of the grant for one or several queries. Never an error because an external endpoint is down:
/// `degraded` tells, and keywords rank.
#[utoipa::path(post, path = "/v1/search", operation_id = "search", tag = "agent",
    request_body = SearchBody,
    responses((status = 200, description = "Matches per query", body = SearchAnswer), (status = 412)))]
pub(crate) async fn search(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiJson(mut body): ApiJson<SearchBody>,
) -> Result<Json<SearchAnswer>, Problem> {
    let (caller, fields) = body.take_grant(&principal);
    let (queries, sent) = match (body.query, body.queries) {
        (Some(OneOrMany::Many(queries)), None) => (queries, Sent::List("query")),
        (Some(OneOrMany::Many(_)), Some(_)) => return Err(excluded("queries", "query")),
        (Some(OneOrMany::One(query)), queries) => exactly_one("query", Some(query), "queries", queries)?,
        (None, queries) => exactly_one("query", None, "queries", queries)?,
    };
    let SearchBody { limit, detail, warm, explain, context, form, call_id, .. } = body;
    let request =
        SearchRequest { caller, fields, queries, limit, detail, warm, explain, context, form, call_id };
    service.search(request).await.map(Json).map_err(|error| placed(&error, "queries", sent))
}
