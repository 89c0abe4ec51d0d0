//! Uploads: a JSON array of tools in any format, or one entry.
//!
//! Whatever the order, the catalog is the same; what it shows can be uploaded again and changes nothing; names on the wire are
//! unique, as each provider takes them, and lead back to their tools; what stands in an array is sound, counted exactly, and
//! uploaded again for the same provider it is the same.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::catalog::{Catalog, CatalogTool, Upload, read_upload, replace};
use crate::core::format::Format;
use crate::core::format::ingest::EntryLimits;
use crate::core::grant::{Catalogs, Resolved, View};
use crate::core::json::{self, JsonLimits};
use crate::core::mend::{Dialect, MAX_OUT_DEPTH};
use crate::core::policy::Policy;
use crate::core::profile::Profile;
use crate::core::target::{Target, TargetTool};
use crate::core::tokens;

/// Of the service (`limits.tool_bytes`, `limits.depth`).
const LIMITS: EntryLimits = EntryLimits { bytes: 256 * 1024, depth: 64 };

/// Most tools that are written for every provider.
const MOST: usize = 3;

pub(crate) fn check(input: &[u8]) {
    // What stands inside the list is checked by itself.
    let Ok(text) = std::str::from_utf8(input) else { return };
    let list = serde_json::from_str::<Vec<&RawValue>>(text);
    let entries = list.map_or_else(|_| vec![text], |list| list.into_iter().map(RawValue::get).collect());
    let upload = read(entries.iter().copied());
    let told = upload.warnings.iter().filter(|warning| warning.code == "tool_quarantined").count();
    assert_eq!(upload.rejected.len(), told, "{:?}", upload.warnings);
    let catalog = replace(&Catalog::default(), upload.tools).catalog;
    let backwards = replace(&Catalog::default(), read(entries.iter().rev().copied()).tools).catalog;
    assert_eq!(catalog.version(), backwards.version(), "the order of an upload shows");
    assert_eq!(names(&catalog), names(&backwards), "the order of an upload shows");
    again(&catalog);
    let catalog = Arc::new(catalog);
    for profile in Profile::ALL {
        wire_names(&catalog, profile);
    }
    for (at, tool) in catalog.tools().iter().take(MOST).enumerate() {
        for target in targets(at) {
            entry(tool, target);
        }
    }
}

/// The catalog of an upload.
pub(super) fn catalog(list: &str) -> Catalog {
    let entries: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    replace(&Catalog::default(), read(entries.iter().map(|entry| entry.get())).tools).catalog
}

fn read<'a>(entries: impl Iterator<Item = &'a str>) -> Upload {
    read_upload(entries, LIMITS, "/tools")
}

/// Stored and wire names.
fn names(catalog: &Catalog) -> Vec<(&str, &str)> {
    catalog.tools().iter().map(|tool| (&*tool.stored_name, tool.wire_name())).collect()
}

/// What the catalog shows is an upload of itself.
fn again(catalog: &Catalog) {
    let mut documents = Vec::new();
    for tool in catalog.tools() {
        assert!(catalog.get(&tool.stored_name).is_some_and(|found| Arc::ptr_eq(found, tool)));
        let mut document = String::new();
        tool.write_document(&mut document);
        documents.push(document);
    }
    let upload = read(documents.iter().map(String::as_str));
    assert!(upload.rejected.is_empty(), "{:?}\n{documents:?}", upload.warnings);
    let change = replace(catalog, upload.tools);
    let others = [&change.added, &change.changed, &change.removed];
    assert!(others.iter().all(|names| names.is_empty()), "{others:?}\n{documents:?}");
    assert_eq!((change.catalog.version(), names(&change.catalog)), (catalog.version(), names(catalog)));
}

fn wire_names(catalog: &Arc<Catalog>, profile: Profile) {
    let view = View::build(&Catalogs::Inline(Arc::clone(catalog)), &Policy::default(), &[], &[], profile);
    let mut seen = HashSet::new();
    for (id, tool) in view.visible() {
        let name = tool.wire_name();
        assert!(profile.limits().names.fits(name), "{profile:?} refuses {name:?}");
        assert!(seen.insert(name.to_owned()), "{name:?} stands twice");
        assert!(
            matches!(view.resolve(name), Resolved::Tool(found) if found == id),
            "{name:?} is another tool"
        );
    }
    assert_eq!(seen.len(), catalog.len());
}

/// Every format and every provider, not each with each.
fn targets(at: usize) -> Vec<Target> {
    let mut targets: Vec<Target> = Format::ALL.map(Target::of).into();
    for (turn, profile) in Profile::ALL.into_iter().enumerate() {
        let format = Format::ALL[(at + turn) % Format::ALL.len()];
        targets.push(Target { profile, strict: turn % 2 == 0, ..Target::of(format) });
    }
    targets.push(Target { profile: Profile::Openai, strict: true, ..Target::of(Format::OpenaiChat) });
    targets.push(Target { profile: Profile::Anthropic, strict: true, ..Target::of(Format::Anthropic) });
    targets.push(Target { dialect: Dialect::OpenApi, ..Target::of(Format::Gemini) });
    targets
}

fn entry(tool: &CatalogTool, target: Target) {
    let made = tool.for_target(target);
    let Some(entry) = made.entry(tool.wire_name(), &tool.tool) else {
        assert!(!made.lints.is_empty(), "left out without a word");
        return;
    };
    // An entry is some levels deeper than the schema in it.
    let sound = json::check(entry.json.as_bytes(), JsonLimits::strict(MAX_OUT_DEPTH + 10));
    assert!(sound.is_ok(), "{sound:?}: {}", entry.json);
    assert_eq!(entry.tokens, tokens::count(&entry.json), "{}", entry.json);
    // A declaration of Gemini is told by the list that it stands in.
    let array = match target.format {
        Format::Gemini => format!("{{\"functionDeclarations\":[{}]}}", entry.json),
        _ => entry.json.to_string(),
    };
    let upload = read(std::iter::once(&*array));
    let Some(read) = upload.tools.values().next() else {
        // Only what is nested deeper or longer than what came.
        let reasons = ["too_deep", "too_large"];
        assert!(upload.rejected.iter().all(|reason| reasons.contains(reason)), "{:?}", upload.warnings);
        return;
    };
    assert_eq!(read.name(), tool.wire_name(), "{}", entry.json);
    let same = TargetTool::make(target, tool.wire_name(), read, None);
    let same = same.entry(tool.wire_name(), read).map(|entry| entry.json.clone());
    assert_eq!(same.as_deref(), Some(&*entry.json), "{target:?}");
    let shown: Value = serde_json::from_str(&entry.json).expect("an entry is JSON");
    assert!(shown.is_object());
}
