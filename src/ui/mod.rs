//! The pages for people below `/ui`: setting up, trying, and seeing what it does.
//!
//! Owns what a page shows and what its forms mean; every decision is the service's, and the API's routes ask the same
//! functions. Pages are made on the server, read without JavaScript, and hold no script and no style themselves. Who may open
//! one is decided by `http`.

mod assets;
mod audit;
mod catalog;
mod chart;
mod deeds;
mod explain;
mod form;
mod key;
mod keys;
mod language;
mod layout;
mod overview;
mod parts;
mod playground;
mod problem;
mod reasons;
mod reviews;
mod scopes;
mod session;
mod sessions;
mod setup;
mod sign_in;
mod skill;
mod tool;
mod translate;
mod turn;
mod visitor;
mod waiting;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use maud::Markup;

use crate::http::pages::{PAGE_POLICY, Pages, is_open_page};
use crate::http::router::AppState;

/// Every page and every form.
fn routes() -> Vec<(&'static str, MethodRouter<AppState>)> {
    let mut routes = vec![
        ("/ui", get(scopes::start)),
        ("/ui/sign-in", get(sign_in::form).post(sign_in::enter)),
        ("/ui/sign-out", post(sign_in::leave)),
        ("/ui/language", get(sign_in::choose_language)),
        ("/ui/scopes", get(scopes::choose)),
        ("/ui/keys", get(keys::show).post(keys::create)),
        ("/ui/keys/{key}", get(key::show).post(key::change)),
        ("/ui/audit", get(audit::show)),
        ("/ui/{kind}/{id}/overview", get(overview::show)),
        ("/ui/{kind}/{id}/overview.csv", get(overview::export)),
        ("/ui/{kind}/{id}/reviews", get(reviews::show).post(reviews::decide)),
        ("/ui/{kind}/{id}/catalog", get(catalog::show)),
        ("/ui/{kind}/{id}/catalog/tool", get(tool::show)),
        ("/ui/{kind}/{id}/sessions", get(sessions::show)),
        ("/ui/{kind}/{id}/sessions/{session}", get(session::show).post(session::change)),
        ("/ui/{kind}/{id}/playground", get(playground::show)),
        ("/ui/{kind}/{id}/setup/skill", get(skill::text)),
    ];
    routes.extend(setup::routes());
    routes
}

/// The pages of a server.
pub fn pages() -> Pages {
    let mut router = Router::new();
    let mut guarded = Vec::new();
    for (path, handlers) in routes() {
        if !is_open_page(path) {
            // What a page does not take is answered by its handlers.
            guarded.extend([(Method::GET, path), (Method::POST, path)]);
        }
        router = router.route(path, handlers);
    }
    for (path, answer) in assets::FILES {
        router = router.route(path, get(move || async move { assets::file(answer) }));
    }
    // A form counts its own bytes.
    Pages { router: router.layer(DefaultBodyLimit::disable()), routes: guarded, problem: problem::page }
}

/// A page as an answer.
fn shown(page: Markup) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    let mut response = (headers, page.into_string()).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, PAGE_POLICY);
    response
}

/// Leads on to another page of this server.
fn go(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}

/// JSON text with one member a line; what is no JSON stays as it is.
fn pretty(json: &str) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(json);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| json.to_owned())
}
