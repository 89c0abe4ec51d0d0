//! Finds out how an endpoint wants to be asked, with a pair of documents whose order is beyond doubt.
//!
//! Owns the control pair and the order of the attempts. Nothing is concluded from 401, 403, 429 or 5xx: they say
//! nothing about the shape of a request.

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::body::{Shape, body};
use super::fault::{Flaw, RerankFault};
use super::headers::headers;
use super::parse::{self, ReadAnswer};
use super::refusal::{Wanted, wanted};
use super::request::{Detected, RerankRequest};
use super::route::{Route, is_route};
use super::wire::{Budget, Call, Failure, Wire, max_answer};
use crate::core::policy::Dialect;

/// Requests that a probe may send, the one for TEI's `/info` included.
const MAX_CALLS: usize = 3;

const QUERY: &str = "weather forecast";
/// The miss comes first, so that a server that returns its input order is told from one that ranks.
const MISS: &str = "Send an email message to a contact";
const HIT: &str = "Get the weather forecast for a city";
const PAIR: [&str; 2] = [MISS, HIT];
const HIT_INDEX: usize = 1;

/// Asks the endpoint in the ways that its URL leaves open, the likeliest first.
///
/// # Errors
/// The fault of the last attempt, when none gave a ranking.
pub(super) async fn probe(
    wire: &Wire,
    request: &RerankRequest,
    route: &Route,
    budget: Budget,
) -> Result<Detected, RerankFault> {
    let mut attempt = Attempt { place: 0, dialect: None, sends_top: true };
    let mut may_retry = true;
    let mut notes = route.notes.clone();
    let mut calls = 0;
    loop {
        let (dialect, url) = attempt.target(route);
        calls += 1;
        let call = control_call(request, route, attempt, dialect, url)?;
        let read = |answer: &[u8], is_html| parse::ranking(answer, dialect, PAIR.len(), is_html);
        let failure = match wire.attempt(&call, &read).await {
            Ok(answer) => {
                let decided =
                    if route.dialect.is_none() { "asking the endpoint" } else { "settings and URL" };
                notes.push(format!("dialect `{}` at `{}`, by {decided}", dialect.name(), url.path()));
                if !attempt.sends_top {
                    notes.push(
                        "the endpoint refuses the number of wanted results, so it is not sent".to_owned(),
                    );
                }
                notes.extend(control_note(&answer).map(str::to_owned));
                let asks_info = dialect == Dialect::Tei && calls < MAX_CALLS;
                let limit = if asks_info { tei_limit(wire, request, url).await } else { None };
                let (url, sends_top) = (url.clone(), attempt.sends_top);
                return Ok(Detected { dialect, url, sends_top, limit, notes });
            }
            Err(failure) => failure,
        };
        if calls == MAX_CALLS {
            return Err(failure.fault);
        }
        if let Some(next) = attempt.next(route, dialect, &failure) {
            attempt = next;
        } else if let Some(pause) = failure.retry_in.filter(|pause| may_retry && budget.fits(*pause)) {
            may_retry = false;
            tokio::time::sleep(pause).await;
        } else {
            return Err(failure.fault);
        }
    }
}

/// One way to ask.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    /// Among the URLs of the route.
    place: usize,
    /// What an error told.
    dialect: Option<Dialect>,
    sends_top: bool,
}

impl Attempt {
    fn target(self, route: &Route) -> (Dialect, &Url) {
        let place = self.place.min(route.urls.len() - 1);
        let url = &route.urls[place];
        // Only TEI ranks at a path that does not say so.
        let usual = if is_route(url.path()) { Dialect::Cohere } else { Dialect::Tei };
        (route.dialect.or(self.dialect).unwrap_or(usual), url)
    }

    /// What to try after a failure; `None` when it says nothing about path or shape.
    fn next(self, route: &Route, dialect: Dialect, failure: &Failure) -> Option<Self> {
        let is_elsewhere = match failure.fault {
            RerankFault::Refused { status, .. } => matches!(status, 404 | 405),
            // A site or an interface that answers every path.
            RerankFault::WebPage => true,
            RerankFault::Malformed(flaw) => matches!(flaw, Flaw::NotJson | Flaw::NoRows),
            _ => false,
        };
        if is_elsewhere {
            return (self.place + 1 < route.urls.len()).then_some(Self { place: self.place + 1, ..self });
        }
        match wanted(failure.status(), &failure.text)? {
            Wanted::Dialect(wanted) => (route.dialect.is_none() && wanted != dialect).then_some(Self {
                dialect: Some(wanted),
                sends_top: true,
                ..self
            }),
            Wanted::WithoutTop => self.sends_top.then_some(Self { sends_top: false, ..self }),
        }
    }
}

fn control_call(
    request: &RerankRequest,
    route: &Route,
    attempt: Attempt,
    dialect: Dialect,
    url: &Url,
) -> Result<Call, RerankFault> {
    let shape = Shape::new(request, route, dialect, attempt.sends_top);
    let body = body(&shape, QUERY, &PAIR, PAIR.len());
    let max_answer = max_answer(dialect, &body, PAIR.len() + 1);
    Ok(Call { url: url.clone(), headers: headers(request, dialect)?, body: body.into(), max_answer })
}

/// The note that the text which has nothing to do with the question came first.
pub const WRONG_WAY_ROUND: &str = "the endpoint ranks a control pair the wrong way round: the model may lack its prompt template, or may be no reranker";

/// What is odd about the ranking of the pair.
fn control_note(answer: &ReadAnswer) -> Option<&'static str> {
    let score = |index| answer.rows.iter().find(|row| row.index == index).map(|row| row.raw);
    match (score(HIT_INDEX), score(1 - HIT_INDEX)) {
        (Some(hit), Some(miss)) if hit > miss => None,
        // `extra_body` may ask for one result.
        (Some(_), None) => None,
        _ => Some(WRONG_WAY_ROUND),
    }
}

/// The batch size that TEI tells at `/info`.
async fn tei_limit(wire: &Wire, request: &RerankRequest, url: &Url) -> Option<usize> {
    #[derive(Deserialize)]
    struct Info {
        max_client_batch_size: Value,
    }
    let mut info = url.clone();
    let path = url.path().trim_end_matches('/');
    info.set_path(&format!("{}/info", path.strip_suffix("/rerank").unwrap_or(path)));
    let text = wire.get(info, headers(request, Dialect::Tei).ok()?).await?;
    let info: Info = serde_json::from_str(&text).ok()?;
    let size = info.max_client_batch_size.as_u64().filter(|size| *size > 0)?;
    usize::try_from(size).ok()
}
