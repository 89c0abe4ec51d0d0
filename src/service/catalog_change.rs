//! What a write of a scope's catalog changes, in its tools and in its reviews: planned here, written elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::catalogs::{CatalogDiff, CatalogWritten, too_many, tool_row};
use super::heads::Head;
use super::reviews::review_gate;
use super::{Error, Kind, Toolrack, blocking, now_ms};
use crate::core::catalog::{self, Catalog, CatalogTool, Change, Upload};
use crate::core::digest::Digest;
use crate::core::id::Scope;
use crate::core::review::{self, Admitted, Settled, Standing};
use crate::core::tool::{Tool, ToolKey};
use crate::core::warning::{FieldError, Warning};
use crate::store::{CatalogWrite, HeldVersion, ReviewRows, ReviewWrite, ToolRow, WriteNotes};

/// A write of a scope's catalog.
pub(super) enum Edit {
    /// With the catalog that was made of these tools when they were read, where one was.
    Replace(Arc<Upload>, Option<Arc<Catalog>>),
    Patch(Arc<Upload>, Arc<[String]>),
}

/// What stands before a write.
#[derive(Debug)]
pub(super) struct Before {
    pub catalog: Arc<Catalog>,
    standing: Standing,
    /// Of the catalog's row.
    version: String,
    /// Of the reviews.
    revision: i64,
}

/// What a write stores and answers.
#[derive(Debug)]
pub(super) struct Planned {
    pub catalog: Arc<Catalog>,
    pub write: CatalogWrite,
    pub written: CatalogWritten,
}

impl Toolrack {
    /// What stands before a write of a scope's catalog.
    pub(super) async fn before(&self, scope: &Scope, head: &Head) -> Result<Before, Error> {
        let catalog = self.stored_catalog(scope, head).await?;
        let rows = self.0.store.reviews(scope).await?;
        let (revision, gate) = (rows.revision, review_gate(&head.layer));
        let standing = blocking(move || standing(rows, gate)).await?;
        Ok(Before { catalog, standing, version: head.row.catalog_version.clone(), revision })
    }
}

fn standing(rows: ReviewRows, gate: bool) -> Standing {
    let held = rows.held.into_iter().filter_map(|row| Some((row.tool, Digest::from_hex(&row.digest)?)));
    let removed = rows.removed.into_iter().filter_map(|row| {
        let tool = read_version(row.body, &row.digest)?;
        Some((row.tool, Arc::new(tool)))
    });
    Standing { gate, held: held.collect(), removed: removed.collect() }
}

/// A tool from a stored version. One that cannot be read is logged and is as if it were not there.
pub(super) fn read_version(body: Arc<str>, digest: &str) -> Option<Tool> {
    let tool = match Digest::from_hex(digest) {
        Some(digest) => Tool::from_stored(body, digest),
        None => Tool::from_body(body),
    };
    tool.inspect_err(
        |error| tracing::error!(digest, cause = ?error.classify(), "a kept version of a tool cannot be read"),
    )
    .ok()
}

/// Plans an edit under the review gate. `most` is the number of tools that a catalog may hold.
pub(super) async fn plan_change(
    before: Before,
    edit: &Edit,
    most: usize,
    by: String,
    dry_run: bool,
) -> Result<Planned, Error> {
    let (upload, read, remove) = match edit {
        Edit::Replace(upload, read) => (Arc::clone(upload), read.clone(), None),
        Edit::Patch(upload, remove) => (Arc::clone(upload), None, Some(Arc::clone(remove))),
    };
    blocking(move || {
        let Before { catalog: current, standing, .. } = &before;
        let mut admitted = standing.admit(current, upload.tools.clone());
        let change = |served: BTreeMap<ToolKey, Arc<Tool>>| match &remove {
            None => Ok(catalog::replace_by(current, served, read.as_deref())),
            Some(remove) => {
                catalog::patch(current, served, remove).map_err(|several| ambiguous_removal(&several))
            }
        };
        let whole = change(admitted.served.clone())?;
        let moved = standing.moved(current, &admitted, &whole.removed_keys);
        let mut change = if moved.is_empty() {
            whole
        } else {
            moved.iter().for_each(|key| drop(admitted.served.remove(key)));
            change(admitted.served.clone())?
        };
        change.warnings.extend(review::told_moved(&moved));
        if change.catalog.len() > most {
            return Err(too_many(change.catalog.len(), most));
        }
        let settled = standing.settle(&admitted, &change.removed_keys);
        check_remembered(standing, &settled, most)?;
        let (held, warnings) = review::told(&change, &admitted, &settled);
        change.warnings.extend(warnings);
        change.warnings.splice(0..0, upload.warnings.iter().cloned());
        let mut planned = finish(change, &before, by, dry_run);
        planned.written.held = held.into();
        planned.write.reviews = review_write(settled, before.revision);
        Ok(planned)
    })
    .await?
}

/// What the removal of all tools does to the reviews.
pub(super) fn plan_removal(before: &Before, most: usize) -> Result<ReviewWrite, Error> {
    let gone: Vec<ToolKey> = before.catalog.tools().iter().map(|tool| tool.tool.key()).collect();
    let settled = before.standing.settle(&Admitted::default(), &gone);
    check_remembered(&before.standing, &settled, most)?;
    Ok(review_write(settled, before.revision))
}

/// Forgetting one tool for another would let it be removed, pushed out by others and added again as something else.
fn check_remembered(standing: &Standing, settled: &Settled, most: usize) -> Result<(), Error> {
    let remembered = standing.remembered(settled);
    if settled.remember.is_empty() || remembered <= most {
        return Ok(());
    }
    let detail = format!(
        "with `require_review_on_change` the approved versions of removed tools are kept; they would be {remembered}, and {most} \
         is the limit. The first write after an administrator turned that off forgets them"
    );
    Err(Error::new(Kind::TooManyTools, detail))
}

fn ambiguous_removal(several: &catalog::Ambiguous) -> Error {
    let candidates = several.candidates.join(", ");
    let detail = format!("`{}` means several tools; use one of {candidates}", several.name);
    let error = FieldError::new(format!("/remove/{}", several.at), "ambiguous_name", detail);
    Error::with_errors(Kind::AmbiguousName, vec![error])
}

fn review_write(settled: Settled, expected_revision: i64) -> ReviewWrite {
    let Settled { hold, drop, remember, restore, forget } = settled;
    let version = |tool: &Arc<Tool>| HeldVersion {
        tool: tool.key(),
        body: Arc::clone(tool.body()),
        digest: tool.digest().to_string(),
    };
    let hold = hold.iter().map(version).collect();
    ReviewWrite { expected_revision, approve: Vec::new(), drop, hold, remember, restore, forget }
}

/// The rows of a new catalog that are not those of the one before.
pub(super) fn new_rows(catalog: &Catalog, current: &Catalog) -> Vec<ToolRow> {
    let before: HashMap<&str, &Arc<CatalogTool>> =
        current.tools().iter().map(|tool| (&*tool.stored_name, tool)).collect();
    let new =
        |tool: &&Arc<CatalogTool>| before.get(&*tool.stored_name).is_none_or(|old| !Arc::ptr_eq(old, tool));
    catalog.tools().iter().filter(new).map(|tool| tool_row(tool)).collect()
}

/// The rows to write and the answer to give for a change.
fn finish(change: Change, before: &Before, by: String, dry_run: bool) -> Planned {
    let write = CatalogWrite {
        expected_version: before.version.clone(),
        new_version: change.catalog.content_id().to_string(),
        remove: change.removed_keys,
        upsert: new_rows(&change.catalog, &before.catalog),
        reviews: ReviewWrite::default(),
        by,
        now_ms: now_ms(),
        notes: WriteNotes::default(),
    };
    let mut warnings = change.warnings;
    if change.catalog.is_empty() && !before.catalog.is_empty() {
        warnings.push(Warning::new("empty_catalog", "no tool is left in the catalog"));
    }
    let written = CatalogWritten {
        catalog_version: change.catalog.version().to_owned(),
        diff: CatalogDiff {
            added: change.added.into(),
            changed: change.changed.into(),
            removed: change.removed.into(),
            unchanged: change.unchanged.into(),
        },
        held: Vec::new().into(),
        dry_run,
        warnings,
    };
    Planned { catalog: Arc::new(change.catalog), write, written }
}
