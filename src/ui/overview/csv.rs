//! The days of an overview as a file for spreadsheets (RFC 4180): numbers and dates, so that nothing needs quotes.

use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{Asked, named};
use crate::http::problem::Problem;
use crate::service::{Latency, Toolrack, UsageDay};
use crate::ui::visitor::Place;

/// What every line has, in this order.
const COLUMNS: &str = "date,sessions,assemblies,tokens_all,tokens_sent,tokens_listing,tokens_answers,saved,searches,\
                       searches_rerank,searches_embedding,searches_keyword,degraded,queries,missed,describes,calls,\
                       cache_breaks,warmed,evicted,search_p50_ms,search_p95_ms,assemble_p50_ms,assemble_p95_ms";

/// The file.
pub(in crate::ui) async fn export(
    State(service): State<Toolrack>,
    place: Place,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let (user, project) = named(&place.scope);
    let overview = service.overview(user, project, asked.days()).await?;
    let mut text = format!("{COLUMNS}\r\n");
    for day in &overview.series {
        text.push_str(&line(day));
        text.push_str("\r\n");
    }
    // Ids hold neither quotes nor line ends; what a file may not be called is replaced by the browser.
    let file = format!("attachment; filename=\"toolrack-{}-{}-days.csv\"", place.scope.id(), overview.days);
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_DISPOSITION, file.as_str()),
    ];
    Ok((headers, text).into_response())
}

fn line(day: &UsageDay) -> String {
    let c = &day.counts;
    let mode = |name: &str| c.searches_by_mode.get(name).copied().unwrap_or_default();
    let counts = [
        c.searches,
        mode("rerank"),
        mode("embedding"),
        mode("keyword"),
        c.degraded.values().sum(),
        c.queries,
        c.missed,
        c.describes,
        c.calls,
        c.cache_breaks.values().sum(),
        c.warmed,
        c.evicted,
    ];
    let mut fields = vec![day.date.clone()];
    fields.extend(
        [c.sessions, c.assemblies, c.tokens_all, c.tokens_sent, c.tokens_listing, c.tokens_answers]
            .map(|count| count.to_string()),
    );
    fields.push(c.saved.to_string());
    fields.extend(counts.map(|count| count.to_string()));
    fields.extend([c.search_latency, c.assemble_latency].iter().flat_map(quantiles));
    fields.join(",")
}

/// Empty where nothing was measured.
fn quantiles(latency: &Latency) -> [String; 2] {
    [latency.p50_ms, latency.p95_ms].map(|ms| ms.map(|ms| ms.to_string()).unwrap_or_default())
}
