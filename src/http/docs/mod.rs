//! `/docs`: the API browser, and the page that explains every error code.
//!
//! All assets are part of the program, so that the pages work in a closed network.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::core::warning::WARNINGS;
use crate::http::problem::{Code, ERRORS_PAGE};
use crate::service::FALLBACK_REASONS;

/// The style sheet of the page of errors: a file, because no page may hold styles (see `hygiene`).
const STYLES: &str = include_str!("errors.css");

const STYLES_PATH: &str = "/docs/errors.css";

/// The page changes only with the program.
static PAGE: LazyLock<String> = LazyLock::new(errors_page);

/// The routes at and below `/docs`. The browser reads `openapi_path`, which is served elsewhere.
pub fn router<S>(openapi_path: &'static str) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    // Without a validator, which would be a picture from elsewhere.
    let config = Config::new([openapi_path]).use_base_layout().validator_url("none");
    let browser = SwaggerUi::new("/docs").config(config);
    Router::from(browser).route(ERRORS_PAGE, get(errors)).route(STYLES_PATH, get(styles))
}

async fn errors() -> Html<&'static str> {
    Html(PAGE.as_str())
}

async fn styles() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css")], STYLES)
}

fn errors_page() -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Toolrack: errors</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"stylesheet\" href=\"{STYLES_PATH}\"></head><body>\n\
         <h1>Errors</h1>\n<p>A request that is not answered as asked gets a problem document (RFC 9457) with one of \
         these codes. <code>detail</code> says what is wrong with the very request, <code>errors</code> where, and \
         <code>request_id</code> finds it in the log.</p>\n",
    );
    for code in Code::ALL {
        let name = code.as_str();
        // Writing to a String cannot fail.
        let _written = writeln!(
            page,
            "<section id=\"{name}\"><h2><a href=\"#{name}\"><code>{name}</code></a> {title}</h2>\
             <p>Status {status}. {help}</p></section>",
            title = escaped(code.title()),
            status = code.status(),
            help = escaped(code.help()),
        );
    }
    page.push_str("<h1>Warnings</h1>\n<p>Told in <code>warnings</code> of an answer that was given all the same.</p>\n<dl>\n");
    for (code, meaning) in WARNINGS {
        let _written =
            writeln!(page, "<dt id=\"warning-{code}\"><code>{code}</code></dt><dd>{}</dd>", escaped(meaning));
    }
    let reasons: Vec<String> =
        FALLBACK_REASONS.iter().map(|reason| format!("<code>{reason}</code>")).collect();
    let _written = writeln!(
        page,
        "</dl>\n<h1>Reasons</h1>\n<p>Why a configured endpoint did not rank, in <code>reason</code> of a search that is \
         <code>degraded</code>: {}.</p>",
        reasons.join(", ")
    );
    page.push_str("</body></html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_anchor_and_nothing_is_loaded() {
        for code in Code::ALL {
            assert!(PAGE.contains(&format!("id=\"{}\"", code.as_str())));
        }
        assert!(PAGE.contains("&lt;group&gt;__&lt;name&gt;"));
        assert!(!PAGE.contains("http://") && !PAGE.contains("https://") && !PAGE.contains("<script"));
    }
}
