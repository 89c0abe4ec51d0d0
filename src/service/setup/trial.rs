//! Trying a scope as a model would meet it: what a query finds by words and by the endpoint, and what a turn costs. Nothing
//! is warmed, and nothing counts as usage.

use serde_json::Value;
use tokio::try_join;

use crate::core::assemble::{AnswerInput, answer};
use crate::core::plan::Plan;
use crate::core::policy::ListingPlacement;
use crate::service::assemble::check_room;
use crate::service::context::{Caller, GrantFields};
use crate::service::search::{Asker, SearchAnswer, SearchRequest};
use crate::service::{Error, Toolrack};

/// A query to try.
#[derive(Debug, Clone)]
pub struct TrialRequest {
    /// Without a session.
    pub caller: Caller,
    pub fields: GrantFields,
    pub query: String,
    pub limit: Option<f64>,
}

/// What a query finds.
#[derive(Debug)]
pub struct Trial {
    pub keyword: SearchAnswer,
    /// Absent where no matcher is configured.
    pub endpoint: Option<SearchAnswer>,
}

/// What the next turn of a new session sends.
#[derive(Debug)]
pub struct Turn {
    /// The answer of an assembly.
    pub assembled: Value,
    pub shares: TurnShares,
}

/// The tokens of a turn by what they are spent on. Together they are what all tools would cost, unless more than that is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnShares {
    pub core: u64,
    pub bridge: u64,
    pub listing: u64,
    pub not_sent: u64,
}

impl Toolrack {
    /// Searches by words, and by the endpoint where there is one, with explanations.
    pub async fn try_query(&self, request: TrialRequest) -> Result<Trial, Error> {
        let search = SearchRequest {
            caller: Caller { session: None, ..request.caller },
            fields: request.fields,
            queries: vec![request.query],
            limit: request.limit,
            detail: None,
            warm: Some(false),
            explain: Some(true),
            context: None,
            form: Some("text".to_owned()),
            call_id: None,
        };
        let heads = self.heads(&search.caller).await?;
        let (_, merged) = self.merged(&heads).await?;
        if merged.policy.matcher.is_none() {
            return Ok(Trial { keyword: self.find_for(search, Asker::PersonByWords).await?, endpoint: None });
        }
        let (keyword, endpoint) = try_join!(
            self.find_for(search.clone(), Asker::PersonByWords),
            self.find_for(search, Asker::Person)
        )?;
        Ok(Trial { keyword, endpoint: Some(endpoint) })
    }

    /// The first turn of a session, which is neither kept nor counted.
    pub async fn try_turn(&self, caller: &Caller, fields: &GrantFields) -> Result<Turn, Error> {
        let caller = Caller { session: None, ..caller.clone() };
        let context = self.context(&caller, fields).await?;
        let plan = self.plan(&context).await?;
        check_room(&plan.plan)?;
        let hot = self.hot_core(&caller, &context, &plan).await;
        let context = self.with_hot(context, hot).await?;
        let plan = &self.plan(&context).await?.plan;
        let body = answer(context.view(), plan, &AnswerInput::default()).body;
        let assembled: Value = serde_json::from_slice(&body).map_err(Error::internal)?;
        let core = context.view().visible().filter(|(_, tool)| tool.core);
        let core = core.map(|(_, tool)| tool.for_target(plan.target)).filter(|made| !made.left_out);
        let core: usize = core.map(|made| made.tokens).sum();
        Ok(Turn { shares: shares(&assembled, core as u64, plan), assembled })
    }
}

/// Splits the tokens of an assembly; what an envelope around the array costs counts as bridge.
fn shares(assembled: &Value, core: u64, plan: &Plan) -> TurnShares {
    let tokens = |name: &str| assembled.pointer(&format!("/tokens/{name}")).and_then(Value::as_u64);
    let (all, tools) = (tokens("all").unwrap_or_default(), tokens("tools").unwrap_or_default());
    let listing = tokens("listing").unwrap_or_default();
    let is_inside =
        plan.listing.as_ref().is_some_and(|listing| listing.placement == ListingPlacement::Bridge);
    let core = if plan.sends_all() { tools } else { core.min(tools) };
    let inside = if is_inside { listing } else { 0 };
    TurnShares {
        core,
        bridge: tools.saturating_sub(core).saturating_sub(inside),
        listing,
        not_sent: all.saturating_sub(tools + listing - inside),
    }
}
