//! `/v1/assemble`: the tools of the next model call. The route that runs before every turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::catalogs::ToolDefinition;
use super::fields::{excluded, grant_body};
use crate::core::assemble::{Counts, Tokens};
use crate::core::cache::CacheReport;
use crate::core::json::JsonLimits;
use crate::core::keys::Principal;
use crate::core::listing_base::ListingChanges;
use crate::core::plan::ArgMaps;
use crate::core::warning::{FieldError, Warning};
use crate::http::body::RawBody;
use crate::http::layers::HttpContext;
use crate::http::problem::Problem;
use crate::service::{AssembleRequest, Toolrack};

grant_body! {
    /// What the next model call is for. Each assembly states its grant anew; what is absent is the default.
    pub struct AssembleBody {
        /// The agent's live tools, in any common format, in place of the stored catalogs until the next assembly.
        /// Not beside `tools_ref`.
        #[schema(value_type = Option<Vec<ToolDefinition>>)]
        tools: Option<Box<RawValue>>,
        /// What the user asks for, at most 2000 characters: what `preload` ranks the tools for. Not beside `messages`.
        query: Option<String>,
        /// The conversation in any provider's shape, or plain strings. The tools that the model called last count as
        /// `used`; the user's last text, its first 2000 characters, is what `preload` ranks the tools for. Never stored or
        /// logged.
        #[schema(value_type = Option<Vec<Object>>)]
        messages: Option<Vec<Box<RawValue>>>,
        /// Names of tools that the agent ran natively since the last assembly, so that they are not the ones that
        /// leave the warm set.
        used: Option<Vec<String>>,
        /// The prompt cache is cold anyway (session start, compaction, model switch): found tools that wait enter the
        /// array, and the listing is made anew. Default: false.
        epoch: Option<bool>,
        /// The fingerprint of the answer that the caller still has; if it is still right, `tools`, `listing` and
        /// `name_map` are left out.
        if_fingerprint: Option<String>,
    }
}

/// The listing of deferred tools, a text for the model.
#[derive(Debug, ToSchema)]
pub struct ListingDocument {
    /// To be put where the model reads it, for example into the system prompt.
    pub text: String,
    /// `separate`, or `bridge`: inside `tool_search`'s description, nothing is left to do.
    pub placement: String,
    pub tokens: usize,
    /// `full`, `names`, `lines` or `mixed`.
    pub form: String,
    /// What the text does not tell, because the catalog was changed after this session's listing was made: it is kept
    /// until the next epoch or change of grant, config, format, profile or window, for the sake of prompt caches. Absent
    /// where there is nothing to tell.
    #[schema(required = false)]
    pub changes: Option<ListingChanges>,
}

/// The tools of the next model call, with all that the agent should know beside them.
#[derive(Debug, ToSchema)]
pub struct AssembleAnswer {
    /// The value for the provider's field (`tools`; in `bedrock_converse` `toolConfig.tools`); null when it would be
    /// empty (in `mcp` an empty array), absent when not `changed`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Value>,
    /// Null when there is none, absent when not `changed`.
    pub listing: Option<ListingDocument>,
    /// 0 inactive (all tools, no bridge), 1 listed with descriptions, 2 with names, 3 with groups in lines.
    #[schema(maximum = 3)]
    pub tier: u8,
    /// Stored names of the found tools in the array.
    pub warm: Vec<String>,
    /// Stored names of the tools of the grant that cannot run at the moment.
    pub unavailable: Vec<String>,
    pub counts: Counts,
    pub tokens: Tokens,
    /// Of format, profile, tools, listing and names, for `if_fingerprint`.
    pub fingerprint: String,
    /// False if the fingerprint is the one that the caller has.
    pub changed: bool,
    /// As `listing.changes`, and also there when `listing` is left out. The fingerprint does not cover it: put its text at
    /// the end of the conversation when it is another one than the last.
    #[schema(required = false)]
    pub listing_changes: Option<ListingChanges>,
    pub cache: CacheReport,
    /// Names the live tools in later requests; only where `tools` or `tools_ref` was sent.
    #[schema(required = false)]
    pub tools_ref: Option<String>,
    /// Name that providers see -> stored name, only where they differ; absent when not `changed`.
    #[schema(required = false)]
    pub name_map: BTreeMap<String, String>,
    /// Name that providers see -> how arguments for the schema that is sent differ from the tool's own, by JSON pointer in
    /// which `*` is every item: the original key, null where a null means that the argument is absent, true where the value
    /// is the whole of the arguments, or a list where several hold. `call` and `bridge` undo it; absent when there is
    /// nothing to undo, or when not `changed`.
    #[schema(required = false, value_type = Object)]
    pub arg_map: ArgMaps,
    pub warnings: Vec<Warning>,
}

/// Assemble the tools of the next model call
///
/// Core tools, bridge tools and what the session found, in the provider's format; and a listing of what else there is.
///
/// For prompt caches: put a breakpoint on `tools[cache.breakpoint]`, send `tools` and `listing.text` as they are, append
/// `listing_changes.text` to the conversation when it is new, and say `epoch` when the cache is cold anyway.
#[utoipa::path(post, path = "/v1/assemble", operation_id = "assemble", tag = "agent",
    request_body = AssembleBody,
    responses((status = 200, description = "What to send", body = AssembleAnswer), (status = 412)))]
pub(crate) async fn assemble(
    State(service): State<Toolrack>,
    State(context): State<HttpContext>,
    Extension(principal): Extension<Principal>,
    body: RawBody,
) -> Result<Response, Problem> {
    // Tools are checked one by one; a conversation may hold anything, and is not worth a turn.
    let limits =
        JsonLimits { opaque: &["tools", "messages"], ..JsonLimits::strict(context.limits().json_depth) };
    let mut body: AssembleBody = body.parse(limits)?;
    check_query(&body, service.limits().query_chars)?;
    let (caller, fields) = body.take_grant(&principal);
    let request = AssembleRequest {
        caller,
        fields,
        tools: body.tools.map(|tools| Arc::from(tools.get())),
        used: body.used.unwrap_or_default(),
        query: body.query,
        messages: body.messages,
        epoch: body.epoch.unwrap_or(false),
        if_fingerprint: body.if_fingerprint,
    };
    let assembled = service.assemble(request).await?;
    let content_type = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, content_type)], assembled.body).into_response())
}

fn check_query(body: &AssembleBody, most: usize) -> Result<(), Problem> {
    let Some(query) = &body.query else { return Ok(()) };
    if body.messages.is_some() {
        return Err(excluded("messages", "query"));
    }
    if query.len() > most && query.chars().nth(most).is_some() {
        let detail = format!("a query has at most {most} characters");
        return Err(Problem::invalid(vec![FieldError::new("/query", "too_long", detail)]));
    }
    Ok(())
}
