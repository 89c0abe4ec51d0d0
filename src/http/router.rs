//! Every route of the service, in one list.

use axum::Router;
use axum::extract::FromRef;
use axum::http::header;
use axum::routing::get;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::http::access::RouteTable;
use crate::http::health::{self, Draining};
use crate::http::layers::{HttpContext, HttpLayer};
use crate::http::pages::{Pages, VISITORS};
use crate::http::v1::{
    assemble, audit, bridge, calls, catalogs, configs, describe, effective, keys, limits, mcp_servers,
    reviews, search, sessions, setup,
};
use crate::http::{docs, openapi};
use crate::service::Toolrack;

/// Where the OpenAPI document is served.
const OPENAPI_PATH: &str = "/openapi.json";

/// What handlers can take out of the router.
#[derive(Debug, Clone)]
pub struct AppState {
    service: Toolrack,
    context: HttpContext,
    draining: Draining,
}

impl FromRef<AppState> for Toolrack {
    fn from_ref(state: &AppState) -> Self {
        state.service.clone()
    }
}

impl FromRef<AppState> for HttpContext {
    fn from_ref(state: &AppState) -> Self {
        state.context.clone()
    }
}

impl FromRef<AppState> for Draining {
    fn from_ref(state: &AppState) -> Self {
        state.draining.clone()
    }
}

/// Routes with their documentation.
type Routes = Vec<UtoipaMethodRouter<AppState>>;

fn routes() -> Routes {
    vec![
        routes!(assemble::assemble),
        routes!(search::search),
        routes!(describe::describe),
        routes!(calls::call),
        routes!(bridge::bridge),
        routes!(effective::read),
        routes!(setup::apply::apply),
        routes!(setup::matcher_test::test_matcher),
        routes!(setup::mcp_tools::list),
        routes!(setup::overview::read),
        routes!(setup::import::import_setup),
        routes!(setup::review::review),
        routes!(setup::proposal::propose),
        routes!(setup::proposal::preview),
        routes!(setup::skill::read),
        routes!(sessions::list),
        routes!(sessions::read, sessions::delete),
        routes!(sessions::reset),
        routes!(sessions::release),
        routes!(sessions::pin),
        routes!(sessions::unpin),
        routes!(keys::create, keys::list),
        routes!(keys::read, keys::change, keys::revoke),
        routes!(keys::rotate),
        routes!(audit::list),
        routes!(limits::read),
        routes!(health::healthz),
        routes!(health::readyz),
        routes!(health::metrics),
    ]
}

/// Routes below both `/v1/users/{user}` and `/v1/projects/{project}`.
fn scope_routes() -> Routes {
    vec![
        routes!(configs::read, configs::replace, configs::change, configs::delete),
        routes!(configs::versions),
        routes!(configs::restore),
        routes!(catalogs::read, catalogs::replace, catalogs::change, catalogs::delete),
        routes!(catalogs::read_tool),
        routes!(catalogs::lint),
        routes!(reviews::list),
        routes!(reviews::approve),
        routes!(reviews::reject),
        routes!(mcp_servers::list),
        routes!(mcp_servers::read, mcp_servers::replace, mcp_servers::delete),
        routes!(mcp_servers::sync),
    ]
}

/// All documented routes, and their document.
pub(crate) fn api() -> (Router<AppState>, utoipa::openapi::OpenApi) {
    let join = |router: OpenApiRouter<AppState>, routes| router.routes(routes);
    let scope = |kind| {
        let router = scope_routes().into_iter().fold(OpenApiRouter::default(), join);
        openapi::of_scope(router, kind)
    };
    let router = OpenApiRouter::with_openapi(openapi::base())
        .nest("/v1/users/{user}", scope("user"))
        .nest("/v1/projects/{project}", scope("project"));
    routes().into_iter().fold(router, join).split_for_parts()
}

/// The whole HTTP interface, with the pages. From the cancellation of `stop` on it is not ready any more.
pub fn app(service: Toolrack, context: HttpContext, pages: Pages, stop: CancellationToken) -> Router {
    let (api, document) = api();
    let mut table = RouteTable::of(&document);
    for (method, path) in pages.routes {
        table.add(method, path, VISITORS);
    }
    let layer = HttpLayer::new(context.clone(), table, pages.problem);
    let document = Bytes::from(openapi::json(&openapi::finished(document)));
    let serve_document = move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
    api.route(OPENAPI_PATH, get(serve_document))
        .merge(docs::router(OPENAPI_PATH))
        .merge(pages.router)
        .layer(layer)
        .with_state(AppState { service, context, draining: Draining(stop) })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn no_two_documents_share_a_name() {
        let mut seen = HashMap::new();
        for (schemas, ..) in routes().into_iter().chain(scope_routes()) {
            for (name, schema) in schemas {
                let known = seen.entry(name.clone()).or_insert_with(|| schema.clone());
                assert!(*known == schema, "two documents are called {name}");
            }
        }
        assert!(seen.len() > 20, "the schemas are gone: {seen:?}", seen = seen.keys());
    }
}
