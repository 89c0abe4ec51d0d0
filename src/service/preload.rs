//! Preloading: what the first assembly of a session warms for the user's text, before the model has searched.
//!
//! A session is new until it is assembled: after a reset, a deletion or its expiry it is new again. A request without a
//! session has no warm set, so nothing is preloaded for it.

use super::assemble::AssembleRequest;
use super::context::Context;
use super::ranking::Asking;
use super::warming::{may_warm, warmable};
use super::{Error, Toolrack};
use crate::core::id::SessionKey;
use crate::core::matches::warming_order;
use crate::core::messages::last_user_text;
use crate::core::plan::Plan;
use crate::core::policy::{Policy, WarmPolicy};
use crate::core::tool::ToolKey;
use crate::core::warning::Warning;
use crate::telemetry;

/// What an assembly brings into the warm set of its session, if it is the first.
#[derive(Debug, Default)]
pub(super) struct Preload {
    /// Best first, at most `top_k`.
    pub keys: Vec<ToolKey>,
    /// Why there are none, where something is wrong, and what the matcher's endpoint could not do.
    pub warnings: Vec<Warning>,
}

impl Preload {
    fn failed(reason: &'static str) -> Self {
        telemetry::preload("failed", reason);
        let detail = format!("{reason}: the matcher's endpoint did not rank, so nothing was preloaded");
        Self { keys: Vec::new(), warnings: vec![Warning::new("preload_failed", detail)] }
    }
}

/// What keeps an enabled preload from doing anything under these settings.
pub(super) fn preload_obstacle(policy: &Policy) -> Option<&'static str> {
    if !policy.preload.enabled {
        None
    } else if policy.matcher.is_none() {
        Some("there is no `matcher` whose endpoint could rank")
    } else if policy.warm_policy == WarmPolicy::Off {
        Some("`warm_policy` is off")
    } else if policy.max_warm_tools == 0 {
        Some("`max_warm_tools` is 0")
    } else {
        None
    }
}

impl Toolrack {
    /// Ranks the tools for the user's text, where the config wants it and the session was never assembled. Keywords do
    /// not stand in for an endpoint that does not answer: what they find is not worth a place in every array.
    pub(super) async fn preload(
        &self,
        key: &SessionKey,
        context: &Context,
        plan: &Plan,
        request: &AssembleRequest,
    ) -> Result<Preload, Error> {
        let policy = context.policy();
        if !policy.preload.enabled || self.session(key).await?.settings.assembled.is_some() {
            return Ok(Preload::default());
        }
        if let Some(obstacle) = preload_obstacle(policy) {
            let detail = format!("nothing is preloaded: {obstacle}");
            let warnings = vec![Warning::new("preload_inactive", detail)];
            return Ok(Preload { keys: Vec::new(), warnings });
        }
        let (Some(matcher), false) = (&policy.matcher, plan.sends_all()) else {
            return Ok(Preload::default());
        };
        let Some(text) = user_text(request) else { return Ok(Preload::default()) };
        // Asked before anything is searched, so that an endpoint that is left alone costs nothing here.
        if let Err(reason) = self.willing(&request.caller, context, matcher) {
            return Ok(Preload::failed(reason));
        }
        let top_k = policy.preload.top_k as usize;
        let queries = [text];
        // Some of the best may be core tools or no sure matches.
        let limit = top_k.max(matcher.top_n as usize);
        let asking = Asking { caller: &request.caller, context, queries: &queries, task: None, limit };
        let ranking = self.rank(&asking).await?;
        if let Some(reason) = ranking.fallback {
            return Ok(Preload::failed(reason));
        }
        let view = context.view();
        let found = warming_order(&ranking.found, |id| may_warm(view, context.target, id));
        let keys: Vec<ToolKey> =
            warmable(view, context.target, &found).into_iter().map(|(key, _)| key).take(top_k).collect();
        telemetry::preload(if keys.is_empty() { "nothing" } else { "found" }, "none");
        Ok(Preload { keys, warnings: ranking.warnings })
    }
}

/// What the user asks for, by the request.
fn user_text(request: &AssembleRequest) -> Option<String> {
    let query = request.query.as_ref().filter(|query| !query.trim().is_empty());
    query.cloned().or_else(|| last_user_text(request.messages.as_deref()?))
}
