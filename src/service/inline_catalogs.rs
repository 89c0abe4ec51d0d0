//! Inline catalogs: the live tools that an assembly brought, stored once per content and named by a reference.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::caches::InlineUpload;
use super::catalogs::{quarantined, too_many, tool_row};
use super::timing::{Part, timed};
use super::{Error, Kind, Toolrack, blocking, now_ms, uncancelled};
use crate::core::catalog::{self, Catalog, read_upload};
use crate::core::digest::Digest;
use crate::core::format::ingest::EntryLimits;
use crate::core::id::Id;
use crate::core::warning::FieldError;
use crate::store::{CatalogOwner, InlineKey, InlineWrite};
use crate::telemetry;

impl Toolrack {
    /// Reads the live tools of an assembly and stores them under their reference, once per content.
    pub(super) async fn take_inline(&self, user: &Id, tools: &Arc<str>) -> Result<Arc<InlineUpload>, Error> {
        let upload = self.read_live(tools).await?;
        self.keep_inline(user, &upload).await?;
        Ok(upload)
    }

    /// Reads tools without storing them.
    pub(super) async fn read_live(&self, tools: &Arc<str>) -> Result<Arc<InlineUpload>, Error> {
        let digest = Digest::of(tools.as_bytes());
        if let Some(upload) = self.0.caches.uploads.get(&digest).await {
            return Ok(upload);
        }
        let (text, limits, most) =
            (Arc::clone(tools), self.0.limits.entry(), self.0.limits.tools_per_catalog);
        let read = async move { blocking(move || read_inline(&text, limits, most)).await? };
        let upload = self.0.caches.uploads.try_get_with(digest, read).await?;
        upload.rejected.iter().for_each(|reason| telemetry::quarantined(reason));
        Ok(upload)
    }

    async fn keep_inline(&self, user: &Id, upload: &Arc<InlineUpload>) -> Result<(), Error> {
        let key = InlineKey { user: user.clone(), reference: upload.reference.clone() };
        if self.0.inline_refs.touch(&key, now_ms()).is_some() {
            return Ok(());
        }
        let (service, upload) = (self.clone(), Arc::clone(upload));
        uncancelled(async move {
            let content_id = upload.catalog.content_id();
            let write = InlineWrite {
                key: key.clone(),
                version: content_id.to_string(),
                tools: upload.catalog.tools().iter().map(|tool| tool_row(tool)).collect(),
                now_ms: now_ms(),
            };
            service.0.store.write_inline(write).await?;
            service.0.caches.catalogs.insert(Arc::clone(&content_id), Arc::clone(&upload.catalog)).await;
            service.0.inline_refs.remember(key, content_id, now_ms());
            Ok(())
        })
        .await
    }

    /// The inline catalog of a reference of this user.
    pub(super) async fn inline_catalog(&self, user: &Id, reference: &str) -> Result<Arc<Catalog>, Error> {
        if Digest::from_hex(reference).is_none() {
            return Err(unknown_reference());
        }
        let key = InlineKey { user: user.clone(), reference: reference.to_owned() };
        let content_id = match self.0.inline_refs.touch(&key, now_ms()) {
            Some(content_id) => content_id,
            None => {
                let stored = timed(Part::Database, self.0.store.inline_catalog(&key)).await?;
                let content_id = stored.ok_or_else(unknown_reference)?;
                let content_id: Arc<str> = content_id.into();
                self.0.inline_refs.remember(key.clone(), Arc::clone(&content_id), now_ms());
                content_id
            }
        };
        match self.load_catalog(&content_id, || CatalogOwner::Inline(key.clone())).await {
            // It expired between the two looks at the store.
            Err(error) if error.kind() == Kind::Conflict => {
                self.0.inline_refs.forget(&key);
                Err(unknown_reference())
            }
            other => other,
        }
    }
}

fn unknown_reference() -> Error {
    let detail = "this `tools_ref` is unknown, expired or another user's; send the tools with an assembly";
    Error::with_errors(
        Kind::UnknownToolsRef,
        vec![FieldError::new("/tools_ref", "unknown_tools_ref", detail)],
    )
}

fn read_inline(text: &str, limits: EntryLimits, most: usize) -> Result<Arc<InlineUpload>, Error> {
    let entries: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|_| Error::invalid("/tools", "wrong_type", "`tools` must be an array of tools"))?;
    if entries.len() > most {
        return Err(too_many(entries.len(), most));
    }
    let upload = read_upload(entries.iter().map(|entry| entry.get()), limits, "/tools");
    if upload.tools.is_empty() && !entries.is_empty() {
        return Err(Error::with_errors(Kind::EmptyUpload, upload.warnings.iter().map(quarantined).collect()));
    }
    if upload.tools.len() > most {
        return Err(too_many(upload.tools.len(), most));
    }
    let change = catalog::replace(&Catalog::default(), upload.tools);
    let mut warnings = upload.warnings;
    let read_warnings = warnings.len();
    warnings.extend(change.warnings);
    let reference = Digest::of(change.catalog.content_id().as_bytes()).to_string();
    Ok(Arc::new(InlineUpload {
        catalog: Arc::new(change.catalog),
        reference,
        warnings,
        read_warnings,
        rejected: upload.rejected,
    }))
}
