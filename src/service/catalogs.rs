//! The stored catalogs of users and projects.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::audit::{Actor, Subject, names, of_catalog};
use super::catalog_change::{Edit, Planned, plan_change, plan_removal};
use super::heads::Head;
use super::provenance::{ToolProvenance, push_provenance};
use super::scopes::begun_too_many;
use super::stripes::Guard;
use super::timing::{Part, timed};
use super::{Error, Kind, Toolrack, WRITE_TRIES, blocking, now_ms};
use crate::core::catalog::{Catalog, CatalogTool, Incoming, StoredCounts, Upload, read_upload};
use crate::core::digest::Digest;
use crate::core::id::Scope;
use crate::core::lexical::Document;
use crate::core::ranking::CatalogIndex;
use crate::core::tool::Tool;
use crate::core::warning::{FieldError, Warning};
use crate::store::{AuditWrite, CatalogOwner, CatalogRows, CatalogWrite, ToolRow, WriteNotes};
use crate::telemetry;

/// Names with their number.
#[derive(Debug, Serialize, ToSchema)]
pub struct NameList {
    pub count: usize,
    /// Stored names, sorted.
    pub names: Vec<String>,
}

impl From<Vec<String>> for NameList {
    fn from(names: Vec<String>) -> Self {
        Self { count: names.len(), names }
    }
}

/// What a write changes in a catalog.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatalogDiff {
    pub added: NameList,
    pub changed: NameList,
    pub removed: NameList,
    pub unchanged: NameList,
}

/// What a write of a catalog did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatalogWritten {
    /// Hash of the catalog's content, whatever the order; also in the ETag. Empty for the empty catalog.
    pub catalog_version: String,
    #[serde(flatten)]
    pub diff: CatalogDiff,
    /// With `require_review_on_change`: tools whose uploaded version waits for an administrator. They are served in their approved
    /// version, and stand in `unchanged` or `added` as well.
    pub held: NameList,
    /// Whether nothing was written.
    pub dry_run: bool,
    pub warnings: Vec<Warning>,
}

/// A document with its version, as JSON text.
#[derive(Debug)]
pub struct ToolDocument {
    pub json: String,
    pub version: String,
}

/// What an edit of a catalog writes.
pub(super) struct PlannedCatalog {
    pub catalog: Arc<Catalog>,
    pub write: Option<CatalogWrite>,
    pub written: CatalogWritten,
}

impl Toolrack {
    /// A scope's stored catalog, from memory where it is there.
    pub(super) async fn stored_catalog(&self, scope: &Scope, head: &Head) -> Result<Arc<Catalog>, Error> {
        let mut content_id = Arc::clone(&head.content_id);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.load_catalog(&content_id, || CatalogOwner::Scope(scope.clone())).await {
                // Written since the head was read.
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {
                    content_id = Arc::clone(&self.fresh_head(scope).await?.content_id);
                }
                other => return other,
            }
        }
    }

    /// The catalog of a content id, which its owner may have replaced in the meantime: then it is a conflict, since
    /// what is remembered under a content id must be that content for everybody.
    pub(super) async fn load_catalog(
        &self,
        content_id: &Arc<str>,
        owner: impl FnOnce() -> CatalogOwner,
    ) -> Result<Arc<Catalog>, Error> {
        if content_id.is_empty() {
            return Ok(Arc::clone(&self.0.nothing.catalog));
        }
        if let Some(catalog) = self.0.caches.catalogs.get(content_id).await {
            return Ok(catalog);
        }
        let (store, owner, wanted) = (Arc::clone(&self.0.store), owner(), Arc::clone(content_id));
        let load = async move {
            let rows = timed(Part::Database, store.catalog(&owner)).await?;
            if rows.version != *wanted {
                return Err(Error::new(Kind::Conflict, "the catalog was replaced while it was read"));
            }
            blocking(move || Arc::new(read_rows(rows))).await
        };
        Ok(self.0.caches.catalogs.try_get_with(Arc::clone(content_id), load).await?)
    }

    /// The search index of a catalog.
    pub(super) async fn index(&self, catalog: &Arc<Catalog>) -> Result<Arc<CatalogIndex>, Error> {
        if let Some(index) = self.0.caches.indexes.get(&catalog.content_id()).await {
            return Ok(index);
        }
        let source = Arc::clone(catalog);
        let build = async move { blocking(move || Arc::new(build_index(&source))).await };
        Ok(self.0.caches.indexes.try_get_with(catalog.content_id(), build).await?)
    }

    /// Replaces a scope's catalog.
    pub async fn put_catalog(
        &self,
        actor: &Actor,
        scope: &Scope,
        tools: Vec<Box<RawValue>>,
        expected: Option<&str>,
        dry_run: bool,
    ) -> Result<CatalogWritten, Error> {
        let upload = self.read_catalog(tools).await?;
        self.edit_catalog(actor, scope, &Edit::Replace(upload, None), expected, dry_run).await
    }

    /// Reads the tools of a whole catalog.
    pub(super) async fn read_catalog(&self, tools: Vec<Box<RawValue>>) -> Result<Arc<Upload>, Error> {
        let upload = self.read_tools(tools, "/tools").await?;
        if upload.tools.is_empty() {
            let errors: Vec<FieldError> = upload.warnings.iter().map(quarantined).collect();
            if errors.is_empty() {
                return Err(nothing_uploaded());
            }
            return Err(Error::with_errors(Kind::EmptyUpload, errors));
        }
        Ok(Arc::new(upload))
    }

    /// Adds, replaces and removes single tools.
    pub async fn patch_catalog(
        &self,
        actor: &Actor,
        scope: &Scope,
        upsert: Vec<Box<RawValue>>,
        remove: Vec<String>,
        expected: Option<&str>,
        dry_run: bool,
    ) -> Result<CatalogWritten, Error> {
        let wanted = upsert.len();
        if remove.len() > self.0.limits.tools_per_catalog {
            let detail = format!("{} names are more than a catalog has tools", remove.len());
            return Err(Error::invalid("/remove", "too_many", detail));
        }
        let upload = self.read_tools(upsert, "/upsert").await?;
        if wanted > 0 && upload.tools.is_empty() && remove.is_empty() {
            return Err(Error::with_errors(
                Kind::EmptyUpload,
                upload.warnings.iter().map(quarantined).collect(),
            ));
        }
        self.edit_catalog(actor, scope, &Edit::Patch(Arc::new(upload), remove.into()), expected, dry_run)
            .await
    }

    pub(super) async fn read_tools(
        &self,
        entries: Vec<Box<RawValue>>,
        pointer: &'static str,
    ) -> Result<Upload, Error> {
        let limit = self.0.limits.tools_per_catalog;
        if entries.len() > limit {
            return Err(too_many(entries.len(), limit));
        }
        let limits = self.0.limits.entry();
        let upload =
            blocking(move || read_upload(entries.iter().map(|entry| entry.get()), limits, pointer)).await?;
        // An entry may be a list of tools.
        if upload.tools.len() > limit {
            return Err(too_many(upload.tools.len(), limit));
        }
        upload.rejected.iter().for_each(|reason| telemetry::quarantined(reason));
        Ok(upload)
    }

    async fn edit_catalog(
        &self,
        actor: &Actor,
        scope: &Scope,
        edit: &Edit,
        expected: Option<&str>,
        dry_run: bool,
    ) -> Result<CatalogWritten, Error> {
        let guard = self.0.scope_writes.guard(scope).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let head = self.fresh_head(scope).await?;
            check_version(&head, expected)?;
            let PlannedCatalog { catalog, write, written } =
                self.plan_catalog(actor, scope, &head, edit, dry_run).await?;
            let Some(write) = write.filter(|_| !dry_run) else { return Ok(written) };
            match self.write_catalog(scope, Arc::clone(&catalog), write, &guard).await {
                Ok(()) => return Ok(written),
                // Another version than the expected one shows above.
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What an edit of a catalog writes; nothing when that is there already.
    pub(super) async fn plan_catalog(
        &self,
        actor: &Actor,
        scope: &Scope,
        head: &Head,
        edit: &Edit,
        dry_run: bool,
    ) -> Result<PlannedCatalog, Error> {
        let before = self.before(scope, head).await?;
        let (limit, current) = (self.0.limits.tools_per_catalog, before.catalog.content_id());
        let Planned { catalog, mut write, written } =
            plan_change(before, edit, limit, actor.name(), dry_run).await?;
        if catalog.content_id() == current && write.reviews.is_empty() {
            return Ok(PlannedCatalog { catalog, write: None, written });
        }
        let action = match edit {
            Edit::Replace(..) => "catalog.put",
            Edit::Patch(..) => "catalog.patch",
        };
        let audit =
            self.audited(actor, action, &Subject::Scope(scope), &of_catalog(&written, &write.reviews));
        write.notes = self.catalog_notes(actor, audit, &write);
        Ok(PlannedCatalog { catalog, write: Some(write), written })
    }

    /// How a write of a catalog is counted and remembered: by versions as callers know them.
    pub(super) fn catalog_notes(
        &self,
        actor: &Actor,
        mut audit: AuditWrite,
        write: &CatalogWrite,
    ) -> WriteNotes {
        let version = |content_id: &str| Some(Catalog::version_of(content_id).to_owned());
        audit.entry.before = version(&write.expected_version);
        audit.entry.after = version(&write.new_version);
        WriteNotes { beginner: self.beginner(actor), audit: Some(audit) }
    }

    /// Writes, and has the index of the new catalog built.
    pub(super) async fn write_catalog(
        &self,
        scope: &Scope,
        catalog: Arc<Catalog>,
        write: CatalogWrite,
        guard: &Guard,
    ) -> Result<(), Error> {
        let (service, written, guard) = (self.clone(), scope.clone(), Guard::clone(guard));
        self.uncancelled_head(scope, async move {
            let _guard = guard;
            let most = service.0.limits.keys.scopes;
            let stored = service.0.store.write_catalog(&written, write).await;
            stored.map_err(|error| begun_too_many(error, most))?;
            service.keep_catalog(&catalog).await;
            service.read_head(&written).await
        })
        .await
        .map(drop)
    }

    /// Keeps a catalog that was written in memory, and has its index built: the first search should find it. A fault shows
    /// there.
    pub(super) async fn keep_catalog(&self, catalog: &Arc<Catalog>) {
        if catalog.is_empty() {
            return;
        }
        self.0.caches.catalogs.insert(catalog.content_id(), Arc::clone(catalog)).await;
        let (service, catalog) = (self.clone(), Arc::clone(catalog));
        drop(tokio::spawn(async move { drop(service.index(&catalog).await) }));
    }

    /// Deletes a catalog; deleting nothing is fine.
    pub async fn delete_catalog(
        &self,
        actor: &Actor,
        scope: &Scope,
        expected: Option<&str>,
    ) -> Result<(), Error> {
        let guard = self.0.scope_writes.guard(scope).await;
        let mut tries = 0;
        loop {
            tries += 1;
            let head = self.fresh_head(scope).await?;
            check_version(&head, expected)?;
            let expected_version = head.row.catalog_version.clone();
            if expected_version.is_empty() {
                return Ok(());
            }
            let before = self.before(scope, &head).await?;
            let reviews = plan_removal(&before, self.0.limits.tools_per_catalog)?;
            let removed = before.catalog.tools().iter().map(|tool| &*tool.stored_name);
            let summary = json!({"removed": names(removed)});
            let audit = self.audited(actor, "catalog.delete", &Subject::Scope(scope), &summary);
            let mut write = CatalogWrite {
                expected_version,
                new_version: String::new(),
                remove: Vec::new(),
                upsert: Vec::new(),
                reviews,
                by: String::new(),
                now_ms: now_ms(),
                notes: WriteNotes::default(),
            };
            write.notes = self.catalog_notes(actor, audit, &write);
            match self.write_catalog(scope, Arc::default(), write, &guard).await {
                Err(error) if error.kind() == Kind::Conflict && tries < WRITE_TRIES => {}
                other => return other,
            }
        }
    }

    /// The whole catalog of a scope: `{"catalog_version":…,"tools":[…]}`.
    pub async fn catalog_document(&self, scope: &Scope) -> Result<ToolDocument, Error> {
        let head = self.fresh_head(scope).await?;
        let catalog = self.stored_catalog(scope, &head).await?;
        blocking(move || {
            let mut json = String::with_capacity(catalog.bytes());
            json.push_str(&format!("{{\"catalog_version\":\"{}\",\"tools\":[", catalog.version()));
            for (at, tool) in catalog.tools().iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                tool.write_document(&mut json);
            }
            json.push_str("]}");
            ToolDocument { json, version: catalog.version().to_owned() }
        })
        .await
    }

    /// One tool of a scope's catalog, by stored, wire or unambiguous uploaded name.
    pub async fn catalog_tool(&self, scope: &Scope, name: &str) -> Result<ToolDocument, Error> {
        let head = self.fresh_head(scope).await?;
        let catalog = self.stored_catalog(scope, &head).await?;
        match catalog.resolve(name).as_slice() {
            [] => Err(Error::new(
                Kind::UnknownTool,
                format!("`{name}` is not in the catalog of this {}", scope.kind()),
            )),
            [tool] => {
                let mut json = String::new();
                tool.write_document(&mut json);
                if let Some(stored) = self.0.store.provenance(scope, &tool.tool.key()).await? {
                    push_provenance(&mut json, &ToolProvenance::from(stored));
                }
                Ok(ToolDocument { json, version: catalog.version().to_owned() })
            }
            several => Err(ambiguous(name, several.iter().map(|tool| tool.stored_name.to_string()))),
        }
    }
}

/// Several tools for one name.
pub(super) fn ambiguous(name: &str, candidates: impl Iterator<Item = String>) -> Error {
    let candidates: Vec<String> = candidates.collect();
    let detail = format!("`{name}` means several tools; use one of {}", candidates.join(", "));
    Error::new(Kind::AmbiguousName, detail)
}

pub(super) fn quarantined(warning: &Warning) -> FieldError {
    FieldError::new(warning.pointer.clone().unwrap_or_default(), "tool_quarantined", warning.detail.clone())
}

/// An upload of a whole catalog that holds nothing.
pub(super) fn nothing_uploaded() -> Error {
    let detail = "an upload holds at least one tool; DELETE empties a catalog";
    Error::with_errors(Kind::EmptyUpload, vec![FieldError::new("/tools", "empty", detail)])
}

pub(super) fn too_many(count: usize, limit: usize) -> Error {
    Error::new(Kind::TooManyTools, format!("the catalog would hold {count} tools; {limit} is the limit"))
}

pub(super) fn check_version(head: &Head, expected: Option<&str>) -> Result<(), Error> {
    match expected {
        Some(expected) if expected != Catalog::version_of(&head.row.catalog_version) => {
            Err(version_mismatch())
        }
        _ => Ok(()),
    }
}

fn version_mismatch() -> Error {
    Error::new(Kind::PreconditionFailed, "the stored catalog is not the version that If-Match names")
}

pub(super) fn tool_row(tool: &CatalogTool) -> ToolRow {
    ToolRow {
        group: tool.tool.group().to_owned(),
        name: tool.tool.name().to_owned(),
        body: Arc::clone(tool.tool.body()),
        digest: tool.tool.digest().to_string(),
        tokens: tool.counts.to_text(),
    }
}

/// A catalog from its rows. Counts that another version of the program stored are made again.
fn read_rows(rows: CatalogRows) -> Catalog {
    let incoming: Vec<Incoming> = rows
        .tools
        .into_iter()
        .filter_map(|row| {
            let counts = StoredCounts::from_text(&row.tokens);
            let tool = match Digest::from_hex(&row.digest) {
                Some(digest) => Tool::from_stored(row.body, digest),
                None => Tool::from_body(row.body),
            };
            match tool {
                Ok(tool) => Some(Incoming { tool: Arc::new(tool), counts }),
                // One bad row must not take the catalog down. The reader's own message would repeat the tool's text.
                Err(error) => {
                    let (group, name) = (&row.group, &row.name);
                    tracing::error!(group, name, cause = ?error.classify(), "a stored tool cannot be read and is left out");
                    None
                }
            }
        })
        .collect();
    Catalog::build(incoming, &[]).0
}

fn build_index(catalog: &Catalog) -> CatalogIndex {
    let texts: Vec<(Cow<'_, str>, Vec<String>)> =
        catalog.tools().iter().map(|tool| (tool.tool.description(), tool.tool.other_names())).collect();
    CatalogIndex::build(catalog.tools().iter().zip(&texts).map(|(tool, (description, aliases))| Document {
        group: tool.tool.group(),
        name: tool.tool.name(),
        description,
        parameters: tool.tool.parameters(),
        aliases,
    }))
}
