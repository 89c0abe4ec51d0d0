//! `/v1/call`: checking calls of deferred tools.

use axum::extract::State;
use axum::{Extension, Json};
use serde_json::{Map, Value};

use super::fields::{exactly_one, excluded, grant_body};
use crate::core::keys::Principal;
use crate::http::body::ApiJson;
use crate::http::problem::Problem;
use crate::http::refusal::placed;
use crate::service::{CallAnswer, CallRequest, Toolrack};

grant_body! {
    /// Which tools to call: exactly one of `name` (with `arguments`) and `calls`.
    pub struct CallBody {
        /// Stored name of a tool, or the name that providers see.
        name: Option<String>,
        /// The arguments as the model wrote them: an object, or its JSON text. Absent: none.
        arguments: Option<Value>,
        /// Several calls `{name, arguments}` as the model wrote them, at most 20.
        #[schema(max_items = 20, value_type = Option<Vec<Object>>)]
        calls: Option<Vec<Value>>,
        /// The model's own id of the call, which the dispatched ids begin with. Default: `call`.
        call_id: Option<String>,
    }
}

/// Check calls
///
/// Answers per call what the agent should run, or an error that lets the model mend its call. Nothing is run here.
#[utoipa::path(post, path = "/v1/call", operation_id = "call", tag = "agent",
    request_body = CallBody,
    responses((status = 200, description = "One result per call", body = CallAnswer), (status = 412)))]
pub(crate) async fn call(
    State(service): State<Toolrack>,
    Extension(principal): Extension<Principal>,
    ApiJson(mut body): ApiJson<CallBody>,
) -> Result<Json<CallAnswer>, Problem> {
    let (caller, fields) = body.take_grant(&principal);
    if body.calls.is_some() && body.arguments.is_some() {
        return Err(excluded("arguments", "calls"));
    }
    let arguments = body.arguments;
    let single = body.name.map(|name| entry(name, arguments));
    let (calls, sent) = exactly_one("name", single, "calls", body.calls)?;
    let request = CallRequest { caller, fields, calls, call_id: body.call_id };
    service.call(request).await.map(Json).map_err(|error| placed(&error, "calls", sent))
}

/// A call as it would stand in a list.
fn entry(name: String, arguments: Option<Value>) -> Value {
    let name = ("name".to_owned(), Value::String(name));
    let arguments = arguments.map(|arguments| ("arguments".to_owned(), arguments));
    Value::Object(Map::from_iter([name].into_iter().chain(arguments)))
}
