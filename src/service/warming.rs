//! Warming: what a session learns from a search, a description or a call.

use super::away::{away_warning, remembered_warning};
use super::context::Context;
use super::sessions::{Deed, Update, warm_limits};
use super::{Error, Kind, Toolrack};
use crate::core::grant::View;
use crate::core::policy::WarmPolicy;
use crate::core::target::Target;
use crate::core::tool::ToolKey;
use crate::core::warm::WarmSet;
use crate::core::warning::Warning;

/// What a request did to its session's warm set, and the set as it is now; empty without a session.
#[derive(Debug, Default)]
pub(super) struct Warming {
    /// Stored names of the tools that entered the array.
    pub warmed: Vec<String>,
    /// Stored names of the tools that left it.
    pub evicted: Vec<String>,
    pub warm: WarmSet,
    /// What the session could not learn.
    pub warnings: Vec<Warning>,
}

/// Whether a tool can be warm: core tools are in the array anyway, unavailable ones must not be, and what the target does not
/// take is called through the bridge.
pub(super) fn may_warm(view: &View, target: Target, id: u32) -> bool {
    view.get(id).is_some_and(|tool| !tool.core && !tool.unavailable && !tool.for_target(target).left_out)
}

/// The tools of these ids that can be warm, in order, each once.
pub(super) fn warmable(view: &View, target: Target, ids: &[u32]) -> Vec<(ToolKey, u32)> {
    let mut found: Vec<(ToolKey, u32)> = Vec::new();
    for id in ids.iter().copied().filter(|id| may_warm(view, target, *id)) {
        let key = view.get(id).map(|tool| tool.tool.tool.key());
        found.extend(key.filter(|key| !found.iter().any(|(known, _)| known == key)).map(|key| (key, id)));
    }
    found
}

impl Toolrack {
    /// Warms tools of the view, best first, where the request's session and config allow it; and notes the deed.
    pub(super) async fn warm(&self, context: &Context, ids: &[u32], deed: Deed) -> Result<Warming, Error> {
        let Some((session, _)) = &context.session else { return Ok(Warming::default()) };
        let view = context.view();
        let plan = self.plan(context).await?;
        let may_warm_here = context.policy().warm_policy != WarmPolicy::Off && !plan.plan.sends_all();
        let found = if may_warm_here { warmable(view, context.target, ids) } else { Vec::new() };
        let keys: Vec<ToolKey> = found.iter().map(|(key, _)| key.clone()).collect();
        let limits = warm_limits(context.policy(), &plan.plan);
        let updated = self.update_session(session, deed, |_, warm, now| {
            let change = warm.warm(&keys, limits, now);
            Ok((Update::of(change.clone()), (change, warm.clone())))
        });
        let is_told = || context.warnings.iter().any(|warning| warning.code == "database_away");
        let (change, warm) = match updated.await {
            // Found all the same: an agent goes on without the tool in its array.
            Err(error) if matches!(error.kind(), Kind::StorageFull | Kind::ReadOnly | Kind::Unavailable) => {
                let warm = self.session(session).await?.warm.clone();
                let warning = match error.kind() {
                    Kind::StorageFull => Some(Warning::new("storage_full", error.detail())),
                    _ if error.is_away() => (!is_told()).then(away_warning),
                    _ => Some(Warning::new("not_warmed", error.detail())),
                };
                let warnings = warning.into_iter().collect();
                return Ok(Warming { warm, warnings, ..Warming::default() });
            }
            updated => updated?,
        };
        let name = |key: &ToolKey| {
            let asked = found.iter().find(|(known, _)| known == key).map(|(_, id)| *id);
            let id = asked.or_else(|| view.by_key(key).first().copied())?;
            view.get(id).map(|tool| tool.stored_name().to_owned())
        };
        let in_array = |key: &&ToolKey| warm.get(key).is_some_and(|tool| !tool.pending);
        Ok(Warming {
            warmed: change.added.iter().filter(in_array).filter_map(name).collect(),
            evicted: change.evicted.iter().filter_map(name).collect(),
            warm,
            warnings: remembered_warning().filter(|_| !is_told()).into_iter().collect(),
        })
    }
}
