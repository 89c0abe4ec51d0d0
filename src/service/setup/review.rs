//! The review of a scope's tools: made once for what is there, then filtered and read page by page.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::input::{SetupInput, Sources};
use crate::core::catalog::Catalog;
use crate::core::digest::Digest;
use crate::core::profile::Profile;
use crate::core::remarks::{Inspection, Kind, MAIN_PROFILES, ReviewedTool, Severity, inspect, order, review};
use crate::core::text::clip;
use crate::core::warning::Warning;
use crate::service::context::GrantFields;
use crate::service::{Error, Toolrack, blocking, in_background};

/// Tools of one page: what is asked for, at most, and where nothing is asked for.
const MAX_PAGE: u32 = 1_000;
const USUAL_PAGE: u32 = 100;

/// Longest text to filter by, in characters.
const MAX_QUERY_CHARS: usize = 200;

/// Which of the reviewed tools are told.
#[derive(Debug, Clone, Default)]
pub struct ReviewQuery {
    /// The provider to look at; without it the main ones and the config's own.
    pub profile: Option<String>,
    /// Names of kinds: tools with a remark of one of them. Empty: all tools.
    pub kinds: Vec<String>,
    pub group: Option<String>,
    /// Part of a name, a group or the beginning of a description, whatever the case.
    pub query: Option<String>,
    pub cursor: Option<String>,
    pub limit: Option<u32>,
    /// Only tools that stand so in the config; what follows is for pages, and no route asks it.
    pub standing: Option<ReviewStanding>,
    /// The page of `limit` tools, from 1 on, in place of a cursor; one that is not there is the last.
    pub page: Option<usize>,
}

/// How a reviewed tool stands in the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewStanding {
    Core,
    Excluded,
}

/// A kind of remark with the number of tools that have one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemarkCount {
    pub kind: Kind,
    pub severity: Severity,
    /// Of all tools, whatever is filtered.
    pub tools: usize,
    /// What it costs, and what mends it, in a sentence each.
    #[schema(value_type = String)]
    pub costs: &'static str,
    #[schema(value_type = String)]
    pub mends: &'static str,
}

/// A page of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SetupReview)]
pub struct ReviewAnswer {
    /// Every kind, worst first.
    pub counts: Vec<RemarkCount>,
    /// All tools of the scope, and those with a remark.
    pub reviewed: usize,
    pub with_remarks: usize,
    /// Tools of the scope that are core now, and those that the config hides.
    pub core: usize,
    pub excluded: usize,
    /// Tools that pass the filters.
    pub total: usize,
    /// Worst first, then by group and name.
    pub tools: Vec<ReviewedTool>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub next_cursor: Option<String>,
    /// Of entries that were set aside, and of settings that were clamped.
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// Reviews the tools of a scope, hidden ones included. Nothing is stored.
    pub async fn review_setup(&self, draft: SetupInput, query: ReviewQuery) -> Result<ReviewAnswer, Error> {
        let mut filter = Filter::read(&query)?;
        let mut sources = self.sources(draft).await?;
        let warnings = std::mem::take(&mut sources.warnings);
        let profiles = profiles(&sources, query.profile)?;
        let tools = self.reviewed(sources, profiles).await?;
        filter.limit = filter.limit.clamp(1, MAX_PAGE as usize);
        Ok(page(&tools, &filter, warnings))
    }

    /// The stored names of all tools that pass the filters of a query, whatever page it asks for.
    pub async fn reviewed_names(&self, draft: SetupInput, query: ReviewQuery) -> Result<Vec<String>, Error> {
        let filter = Filter::read(&query)?;
        let sources = self.sources(draft).await?;
        let profiles = profiles(&sources, query.profile)?;
        let tools = self.reviewed(sources, profiles).await?;
        Ok(tools.iter().filter(|tool| filter.takes(tool)).map(|tool| tool.name.clone()).collect())
    }

    /// All tools with their remarks; the same state is reviewed once.
    async fn reviewed(
        &self,
        sources: Sources,
        profiles: Vec<Profile>,
    ) -> Result<Arc<Vec<ReviewedTool>>, Error> {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.as_str()).collect();
        let key = Digest::of_parts(&[&sources.digest()?.0, names.join(",").as_bytes()]);
        let service = self.clone();
        let make = async move {
            let mut inspections = Vec::new();
            for catalog in sources.catalogs.parts() {
                inspections.push(service.inspection(catalog, &profiles).await?);
            }
            blocking(move || {
                let (policy, core) = (sources.policy(), sources.user.core.as_deref().unwrap_or_default());
                review(&sources.catalogs, &inspections, &policy, core, &sources.selections)
            })
            .await
            .map(Arc::new)
        };
        // A large catalog takes seconds: who asks again finds what was begun.
        let reviews = self.0.caches.reviews.clone();
        in_background(async move { Ok(reviews.try_get_with(key, make).await?) }).await
    }
}

impl Toolrack {
    /// What is remarked about a catalog's tools whatever its config: an edit of a config asks for it again.
    async fn inspection(
        &self,
        catalog: &Arc<Catalog>,
        profiles: &[Profile],
    ) -> Result<Arc<Inspection>, Error> {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.as_str()).collect();
        let key = Digest::of_parts(&[catalog.content_id().as_bytes(), names.join(",").as_bytes()]);
        let (catalog, profiles) = (Arc::clone(catalog), profiles.to_vec());
        let make = async move { blocking(move || inspect(&catalog, &profiles)).await.map(Arc::new) };
        Ok(self.0.caches.inspections.try_get_with(key, make).await?)
    }
}

/// The profiles that are looked at, each once.
fn profiles(sources: &Sources, wanted: Option<String>) -> Result<Vec<Profile>, Error> {
    let own = sources.policy().profile;
    if wanted.is_some() {
        let fields = GrantFields { profile: wanted, ..GrantFields::default() };
        let target = fields.target(GrantFields::usual_target(&sources.policy()))?;
        return Ok(vec![target.profile]);
    }
    let mut profiles = MAIN_PROFILES.to_vec();
    if own != Profile::default() && !profiles.contains(&own) {
        profiles.push(own);
    }
    Ok(profiles)
}

struct Filter {
    kinds: Vec<Kind>,
    group: Option<String>,
    /// In lower case.
    query: String,
    after: Option<Place>,
    limit: usize,
    standing: Option<ReviewStanding>,
    page: Option<usize>,
}

/// Where a page ended: how bad the last tool is, its group and its name.
type Place = (u8, String, String);

impl Filter {
    fn read(query: &ReviewQuery) -> Result<Self, Error> {
        let kind = |(at, name): (usize, &String)| {
            Kind::parse(name).ok_or_else(|| {
                let known = Kind::ALL.map(Kind::as_str).join(", ");
                let detail = format!("`{}` is not a kind of remark; there are {known}", clip(name, 40));
                Error::invalid(format!("/kinds/{at}"), "invalid_value", detail)
            })
        };
        let text = query.query.as_deref().unwrap_or_default();
        if text.chars().nth(MAX_QUERY_CHARS).is_some() {
            let detail = format!("at most {MAX_QUERY_CHARS} characters are looked for");
            return Err(Error::invalid("/query", "too_long", detail));
        }
        Ok(Self {
            kinds: query.kinds.iter().enumerate().map(kind).collect::<Result<_, _>>()?,
            group: query.group.clone(),
            query: text.trim().to_lowercase(),
            after: query.cursor.as_deref().map(read_cursor).transpose()?,
            limit: query.limit.unwrap_or(USUAL_PAGE) as usize,
            standing: query.standing,
            page: query.page,
        })
    }

    fn takes(&self, tool: &ReviewedTool) -> bool {
        let has_kind = || tool.remarks.iter().any(|remark| self.kinds.contains(&remark.kind));
        let has_text = || {
            let texts = [&tool.name, &tool.group, &tool.description];
            texts.iter().any(|text| text.to_lowercase().contains(&self.query))
        };
        let stands = match self.standing {
            None => true,
            Some(ReviewStanding::Core) => tool.core,
            Some(ReviewStanding::Excluded) => tool.excluded,
        };
        stands
            && (self.kinds.is_empty() || has_kind())
            && self.group.as_ref().is_none_or(|group| *group == tool.group)
            && (self.query.is_empty() || has_text())
    }
}

fn rank(tool: &ReviewedTool) -> u8 {
    tool.worst().map_or(0, |severity| severity as u8 + 1)
}

fn is_behind(tool: &ReviewedTool, (worst, group, name): &Place) -> bool {
    (std::cmp::Reverse(rank(tool)), tool.group.as_str(), tool.name.as_str())
        > (std::cmp::Reverse(*worst), group.as_str(), name.as_str())
}

fn page(tools: &[ReviewedTool], filter: &Filter, warnings: Vec<Warning>) -> ReviewAnswer {
    debug_assert!(tools.is_sorted_by(|a, b| order(a) <= order(b)));
    let mut found: HashMap<Kind, usize> = HashMap::new();
    for tool in tools {
        tool.remarks.iter().for_each(|remark| *found.entry(remark.kind).or_default() += 1);
    }
    let total = tools.iter().filter(|tool| filter.takes(tool)).count();
    let last_page = total.div_ceil(filter.limit).max(1);
    let skipped = filter.page.map_or(0, |page| (page.clamp(1, last_page) - 1) * filter.limit);
    let behind = |tool: &&ReviewedTool| filter.after.as_ref().is_none_or(|place| is_behind(tool, place));
    let mut told: Vec<ReviewedTool> = tools
        .iter()
        .filter(|tool| filter.takes(tool))
        .filter(behind)
        .skip(skipped)
        .take(filter.limit + 1)
        .cloned()
        .collect();
    let more = told.len() > filter.limit;
    told.truncate(filter.limit);
    ReviewAnswer {
        counts: Kind::ALL
            .into_iter()
            .map(|kind| RemarkCount {
                kind,
                severity: kind.severity(),
                tools: found.get(&kind).copied().unwrap_or_default(),
                costs: kind.costs(),
                mends: kind.mends(),
            })
            .collect(),
        reviewed: tools.len(),
        with_remarks: tools.iter().filter(|tool| !tool.remarks.is_empty()).count(),
        core: tools.iter().filter(|tool| tool.core).count(),
        excluded: tools.iter().filter(|tool| tool.excluded).count(),
        total,
        next_cursor: told.last().filter(|_| more).map(cursor),
        tools: told,
        warnings,
    }
}

/// A cursor is the place of the last tool.
fn cursor(tool: &ReviewedTool) -> String {
    let place: Place = (rank(tool), tool.group.clone(), tool.name.clone());
    hex::encode(serde_json::to_string(&place).unwrap_or_default())
}

fn read_cursor(cursor: &str) -> Result<Place, Error> {
    let read = || serde_json::from_slice(&hex::decode(cursor).ok()?).ok();
    read().ok_or_else(|| Error::invalid("/cursor", "invalid_value", "this is not a cursor of this list"))
}
