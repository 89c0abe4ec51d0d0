//! `/v1/bridge`: the model's raw tool calls, answered or sent on.

use axum::extract::State;
use axum::{Extension, Json};
use serde_json::Value;

use super::fields::{exactly_one, grant_body};
use crate::core::keys::Principal;
use crate::http::body::ApiJson;
use crate::http::by::By;
use crate::http::problem::Problem;
use crate::http::refusal::placed;
use crate::service::{BridgeAnswer, BridgeRequest, Toolrack};

grant_body! {
    /// The model's tool calls, in the provider's own shape: exactly one of `call` and `calls`. By format: `{id, name,
    /// arguments}`, an entry of `tool_calls`, a `function_call` item, a `tool_use` block, a part with `functionCall`, a
    /// block with `toolUse`, a `tools/call` request or its params.
    pub struct BridgeBody {
        /// One tool call.
        #[schema(value_type = Option<Object>)]
        call: Option<Value>,
        /// All tool calls of a turn, at most 20.
        #[schema(max_items = 20, value_type = Option<Vec<Object>>)]
        calls: Option<Vec<Value>>,
    }
}

/// Handle the model's tool calls
///
/// Answers per call, in order: `respond` with a message for the model, or `dispatch` with the calls that the agent
/// runs. Calls of tools that are not the bridge's come back unchanged.
///
/// Calls of the management tools are answered where the config says `management_tools`. A key of the role `setup` is answered
/// these alone; with an agent's key `toolrack_update_config` is an error for the model.
#[utoipa::path(post, path = "/v1/bridge", operation_id = "bridge", tag = "agent",
    request_body = BridgeBody,
    responses((status = 200, description = "One action per call", body = BridgeAnswer), (status = 412)))]
pub(crate) async fn bridge(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    By(actor): By,
    ApiJson(mut body): ApiJson<BridgeBody>,
) -> Result<Json<BridgeAnswer>, Problem> {
    let (caller, fields) = body.take_grant(&principal);
    let (calls, sent) = exactly_one("call", body.call, "calls", body.calls)?;
    let request = BridgeRequest { caller, fields, actor, calls };
    service.bridge(request).await.map(Json).map_err(|error| placed(&error, "calls", sent))
}
