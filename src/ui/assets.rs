//! The files of the pages, all part of the program.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A file and its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    text: &'static str,
    kind: &'static str,
}

/// Every file by its path.
pub(super) const FILES: [(&str, File); 4] = [
    ("/ui/assets/ui.css", File { text: include_str!("assets/ui.css"), kind: "text/css; charset=utf-8" }),
    ("/ui/assets/ui.js", File { text: include_str!("assets/ui.js"), kind: "text/javascript; charset=utf-8" }),
    (
        "/ui/assets/htmx.min.js",
        File { text: include_str!("assets/htmx.min.js"), kind: "text/javascript; charset=utf-8" },
    ),
    ("/ui/assets/icon.svg", File { text: include_str!("assets/icon.svg"), kind: "image/svg+xml" }),
];

/// A file as an answer. It changes with the program only, so a browser asks again after a while.
pub(super) fn file(file: File) -> Response {
    let headers = [(header::CONTENT_TYPE, file.kind), (header::CACHE_CONTROL, "max-age=300")];
    (headers, file.text).into_response()
}
