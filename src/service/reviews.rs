//! Versions of tools that wait for an administrator: listing, approving and rejecting them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::audit::{Actor, MAX_NAMES, Subject, names};
use super::catalog_change::{new_rows, read_version};
use super::catalogs::{NameList, check_version};
use super::{Error, Kind, Toolrack, WRITE_TRIES, blocking, now_ms};
use crate::core::catalog::{self, Catalog, CatalogTool};
use crate::core::digest::Digest;
use crate::core::id::Scope;
use crate::core::policy::Layer;
use crate::core::review::differing_members;
use crate::core::tool::{Tool, ToolKey};
use crate::core::warning::{FieldError, Warning};
use crate::store::{CatalogWrite, HeldRow, ReviewRows, ReviewWrite, WriteNotes};

/// Tools that one answer lists.
const MAX_LISTED: usize = 1_000;

/// Texts that one answer lists, in bytes; the first tool is listed whatever its size. Three times what a body may hold by default.
const MAX_LISTED_BYTES: usize = 48 * 1024 * 1024;

/// Places of one refusal.
const MAX_ERRORS: usize = 100;

/// Whether changed tools of a scope wait. What other layers say is nothing to its catalog.
pub(super) fn review_gate(layer: &Layer) -> bool {
    layer.require_review_on_change.unwrap_or_default()
}

/// Who could turn the gate off could pass by it: what it guards against is a change by who may write the catalog.
pub(super) fn check_gate(actor: &Actor, before: &Layer, after: bool) -> Result<(), Error> {
    if after || actor.is_admin() || !review_gate(before) {
        return Ok(());
    }
    let detail = "only an administrator turns this off; keep it as `true`";
    let error = FieldError::new("/require_review_on_change", "not_allowed", detail);
    Err(Error::with_errors(Kind::Forbidden, vec![error]))
}

/// A tool whose uploaded version waits.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeldTool {
    /// The group of the upload.
    pub group: String,
    /// Stored name.
    pub name: String,
    /// Digest of the version in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub approved_digest: Option<Digest>,
    /// Digest of the version that waits, which an approval names.
    #[schema(value_type = String)]
    pub held_digest: Digest,
    /// Who uploaded the version that waits, as `actor` in the log of changes.
    pub uploaded_by: String,
    pub held_at_ms: i64,
    /// Members of the tool in which the two versions differ, sorted; the order of keys is no difference.
    pub differs: Vec<String>,
    /// What an upload warns of in the texts of the version that waits: `suspicious_text`, `hidden_characters`.
    pub warnings: Vec<Warning>,
    /// The version in use, as the catalog shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub approved: Option<Box<RawValue>>,
    /// The version that waits.
    #[schema(value_type = Object)]
    pub held: Box<RawValue>,
}

/// The tools of a scope whose uploaded versions wait.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeldTools {
    /// Version of the catalog in use.
    pub catalog_version: String,
    /// By stored name; at most 1,000, and fewer when their texts are long.
    pub tools: Vec<HeldTool>,
    /// How many are not listed behind these; `after` with the last name lists them.
    pub more: usize,
}

/// A version that was looked at.
#[derive(Debug, Clone)]
pub struct ReviewedTool {
    pub group: Option<String>,
    /// Stored, wire or uploaded name.
    pub name: String,
    pub digest: Digest,
}

/// What is to become of versions that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Reject,
}

/// What a review did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewDone {
    /// Hash of the catalog's content; also in the ETag.
    pub catalog_version: String,
    /// The tools that were approved or rejected.
    pub done: NameList,
    /// Tools whose version still waits.
    pub left: usize,
}

/// A held row with the tool that it is a version of.
struct Held<'a> {
    row: &'a HeldRow,
    /// Nothing where the stored tool cannot be read.
    tool: Option<&'a Arc<CatalogTool>>,
}

impl Held<'_> {
    fn stored_name(&self) -> &str {
        self.tool.map_or(&*self.row.tool.name, |tool| &*tool.stored_name)
    }

    fn is_called(&self, reviewed: &ReviewedTool) -> bool {
        let key = &self.row.tool;
        let wire = self.tool.map(|tool| tool.wire_name());
        reviewed.group.as_deref().is_none_or(|group| group == &*key.group)
            && [Some(&*key.name), Some(self.stored_name()), wire].contains(&Some(&*reviewed.name))
    }
}

/// By stored name.
fn held<'a>(catalog: &'a Catalog, rows: &'a ReviewRows) -> Vec<Held<'a>> {
    let tools: HashMap<ToolKey, &Arc<CatalogTool>> =
        catalog.tools().iter().map(|tool| (tool.tool.key(), tool)).collect();
    let with_tool = |row: &'a HeldRow| Held { row, tool: tools.get(&row.tool).copied() };
    let mut held: Vec<Held<'a>> = rows.held.iter().map(with_tool).collect();
    held.sort_by(|a, b| a.stored_name().cmp(b.stored_name()));
    held
}

impl Toolrack {
    /// The tools of a scope whose uploaded versions wait; with `after` those whose stored names are behind it.
    pub async fn held_tools(&self, scope: &Scope, after: Option<String>) -> Result<HeldTools, Error> {
        let head = self.fresh_head(scope).await?;
        let catalog = self.stored_catalog(scope, &head).await?;
        let rows = self.0.store.reviews(scope).await?;
        blocking(move || {
            let all = held(&catalog, &rows);
            let mut waiting =
                all.iter().filter(|held| after.as_deref().is_none_or(|after| held.stored_name() > after));
            let (mut tools, mut bytes, mut more) = (Vec::new(), 0, 0);
            for held in waiting.by_ref() {
                let approved = held.tool.map_or(0, |tool| tool.tool.body().len());
                bytes += approved + held.row.body.len();
                if tools.len() >= MAX_LISTED || (bytes > MAX_LISTED_BYTES && !tools.is_empty()) {
                    more = 1;
                    break;
                }
                tools.extend(held_tool(held));
            }
            more += waiting.count();
            HeldTools { catalog_version: catalog.version().to_owned(), tools, more }
        })
        .await
    }

    /// Approves or rejects versions that wait: all of them, or none when one of them waits no more as it was looked at.
    pub async fn review(
        &self,
        actor: &Actor,
        scope: &Scope,
        verdict: Verdict,
        reviewed: Vec<ReviewedTool>,
        expected: Option<&str>,
    ) -> Result<ReviewDone, Error> {
        if reviewed.len() > self.0.limits.tools_per_catalog {
            let detail = format!("{} tools are more than a catalog has", reviewed.len());
            return Err(Error::invalid("/tools", "too_many", detail));
        }
        let reviewed: Arc<[ReviewedTool]> = reviewed.into();
        let guard = self.0.scope_writes.guard(scope).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let head = self.fresh_head(scope).await?;
            check_version(&head, expected)?;
            let current = self.stored_catalog(scope, &head).await?;
            let rows = self.0.store.reviews(scope).await?;
            let (version, by) = (head.row.catalog_version.clone(), actor.name());
            let reviewed = Arc::clone(&reviewed);
            let planned = blocking(move || plan(verdict, &current, version, &rows, &reviewed, by)).await??;
            let Planned { catalog, mut write, done, digests } = planned;
            if done.done.count == 0 {
                return Ok(done);
            }
            let action = match verdict {
                Verdict::Approve => "tool.approve",
                Verdict::Reject => "tool.reject",
            };
            let tools = names(done.done.names.iter().map(String::as_str));
            let summary = json!({"tools": tools, "digests": digests});
            let audit = self.audited(actor, action, &Subject::Scope(scope), &summary);
            write.notes = self.catalog_notes(actor, audit, &write);
            match self.write_catalog(scope, catalog, write, &guard).await {
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                other => return other.map(|()| done),
            }
        }
    }
}

fn document(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text)
        .inspect_err(
            |error| tracing::error!(cause = ?error.classify(), "the document of a held tool is no JSON"),
        )
        .ok()
}

/// Nothing for a version that cannot be read.
fn held_tool(held: &Held<'_>) -> Option<HeldTool> {
    let HeldRow { tool: key, body, digest, uploaded_by, held_at_ms } = held.row;
    let version = read_version(Arc::clone(body), digest)?;
    let shown = |shown: &Tool| {
        let mut text = String::new();
        match held.tool {
            Some(tool) => tool.write_version(shown, &mut text),
            None => text.push_str(shown.body()),
        }
        document(text)
    };
    let approved = held.tool.map(|tool| &*tool.tool);
    Some(HeldTool {
        group: key.group.to_string(),
        name: held.stored_name().to_owned(),
        approved_digest: approved.map(Tool::digest),
        held_digest: version.digest(),
        uploaded_by: uploaded_by.clone(),
        held_at_ms: *held_at_ms,
        differs: approved.map(|approved| differing_members(approved, &version)).unwrap_or_default(),
        warnings: catalog::text_warnings(&version),
        approved: approved.and_then(shown),
        held: shown(&version)?,
    })
}

/// A review as it is stored and answered.
struct Planned {
    catalog: Arc<Catalog>,
    write: CatalogWrite,
    done: ReviewDone,
    /// Of the versions, in the order of the names; as many as an entry of the log tells.
    digests: Vec<String>,
}

fn plan(
    verdict: Verdict,
    current: &Arc<Catalog>,
    version: String,
    rows: &ReviewRows,
    reviewed: &[ReviewedTool],
    by: String,
) -> Result<Planned, Error> {
    let all = held(current, rows);
    let picked = pick(&all, reviewed)?;
    let keys: Vec<ToolKey> = picked.values().map(|held| held.row.tool.clone()).collect();
    let reviews = ReviewWrite { expected_revision: rows.revision, ..ReviewWrite::default() };
    let (catalog, reviews) = match verdict {
        Verdict::Reject => (Arc::clone(current), ReviewWrite { drop: keys, ..reviews }),
        Verdict::Approve => {
            let read = |held: &&Held<'_>| read_version(Arc::clone(&held.row.body), &held.row.digest);
            let tools = picked
                .values()
                .map(|held| read(held).ok_or_else(|| Error::internal("a held tool cannot be read")));
            let tools: BTreeMap<ToolKey, Arc<Tool>> =
                tools.map(|tool| tool.map(|tool| (tool.key(), Arc::new(tool)))).collect::<Result<_, _>>()?;
            // Nothing is removed, so no name can be ambiguous.
            let change =
                catalog::patch(current, tools, &[]).map_err(|several| Error::internal(several.name))?;
            (Arc::new(change.catalog), ReviewWrite { approve: keys, ..reviews })
        }
    };
    let new_version =
        if verdict == Verdict::Reject { version.clone() } else { catalog.content_id().to_string() };
    let write = CatalogWrite {
        expected_version: version,
        new_version,
        remove: Vec::new(),
        upsert: new_rows(&catalog, current),
        reviews,
        by,
        now_ms: now_ms(),
        notes: WriteNotes::default(),
    };
    let digests = picked.values().take(MAX_NAMES).map(|held| held.row.digest.clone()).collect();
    let left = all.len() - picked.len();
    let names: Vec<String> = picked.into_keys().map(str::to_owned).collect();
    let done = ReviewDone { catalog_version: catalog.version().to_owned(), done: names.into(), left };
    Ok(Planned { catalog, write, done, digests })
}

/// The versions that were looked at, by stored name; the fault of each that does not wait like that any more.
fn pick<'a>(
    all: &'a [Held<'a>],
    reviewed: &[ReviewedTool],
) -> Result<BTreeMap<&'a str, &'a Held<'a>>, Error> {
    let mut by_digest: HashMap<Option<Digest>, Vec<&Held<'_>>> = HashMap::new();
    for held in all {
        by_digest.entry(Digest::from_hex(&held.row.digest)).or_default().push(held);
    }
    let (mut picked, mut errors) = (BTreeMap::new(), Vec::new());
    for (at, tool) in reviewed.iter().enumerate() {
        let same = by_digest.get(&Some(tool.digest)).into_iter().flatten();
        match same.copied().find(|held| held.is_called(tool)) {
            Some(held) => {
                picked.insert(held.stored_name(), held);
            }
            None if errors.len() < MAX_ERRORS => errors.push(not_held(all, at, tool)),
            None => {}
        }
    }
    if errors.is_empty() { Ok(picked) } else { Err(Error::with_errors(Kind::Conflict, errors)) }
}

fn not_held(all: &[Held<'_>], at: usize, tool: &ReviewedTool) -> FieldError {
    let name = &tool.name;
    match all.iter().find(|held| held.is_called(tool)) {
        Some(held) => {
            let detail =
                format!("another version of `{name}` waits by now, {}; look at that one", held.row.digest);
            FieldError::new(format!("/tools/{at}/digest"), "not_held", detail)
        }
        None => {
            let detail = format!("no version of `{name}` waits (any more)");
            FieldError::new(format!("/tools/{at}/name"), "not_held", detail)
        }
    }
}
