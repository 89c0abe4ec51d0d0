//! What a request sees: config, catalogs and grant, resolved once and shared by all who ask for the same.

use std::collections::HashMap;
use std::sync::Arc;

use super::assemble::PlanEntry;
use super::away::remembered_warning;
use super::caches::PlanKey;
use super::heads::Head;
use super::sessions::Session;
use super::{Error, Kind, Toolrack, blocking, uptime_nanos};
use crate::core::digest::Digest;
use crate::core::format::Format;
use crate::core::format::native::Exposure;
use crate::core::grant::{Catalogs, Selection, View};
use crate::core::id::{Id, Scope, SessionKey};
use crate::core::lexical::Document;
use crate::core::mend::Dialect;
use crate::core::plan::Plan;
use crate::core::policy::{self, Policy};
use crate::core::profile::{NameRule, Profile};
use crate::core::ranking::CatalogIndex;
use crate::core::rate::{Allowances, Taken};
use crate::core::selector::Selector;
use crate::core::target::Target;
use crate::core::text::clip;
use crate::core::tool::ToolKey;
use crate::core::warning::Warning;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    pub user: Id,
    pub project: Option<Id>,
    pub session: Option<Id>,
    /// What the key of the request limits every grant to.
    pub limits: Option<Arc<Selection>>,
    /// How often the holder of that key may ask an endpoint.
    pub allowances: Option<Arc<Allowances>>,
}

impl Caller {
    /// Takes one rerank call of the key's allowance; false where none is left.
    pub(super) fn may_rerank(&self) -> bool {
        let allowance = self.allowances.as_ref().and_then(|allowances| allowances.rerank.as_ref());
        allowance.is_none_or(|allowance| matches!(allowance.take(uptime_nanos()), Taken::Yes { .. }))
    }

    /// The session's identity, where there is a session.
    pub fn session_key(&self) -> Option<SessionKey> {
        let session = self.session.clone()?;
        Some(SessionKey { user: self.user.clone(), project: self.project.clone(), session })
    }
}

/// What every request may say about its grant and its form.
#[derive(Debug, Clone, Default)]
pub struct GrantFields {
    pub selection: Selection,
    pub tools_ref: Option<String>,
    pub format: Option<String>,
    pub profile: Option<String>,
    pub schema_dialect: Option<String>,
    pub strict: Option<bool>,
    pub exposure: Option<String>,
    pub context_window: Option<f64>,
}

impl GrantFields {
    pub(super) fn format(&self) -> Result<Option<Format>, Error> {
        let Some(name) = &self.format else { return Ok(None) };
        Format::parse(name).map(Some).ok_or_else(|| {
            let known = Format::ALL.map(Format::as_str).join(", ");
            let detail = format!("`{name}` is not a format; there are {known}");
            Error::invalid("/format", "invalid_value", detail)
        })
    }

    /// Refuses lists that are longer than any selection needs to be.
    pub(super) fn check(&self) -> Result<(), Error> {
        let selection = &self.selection;
        for (key, count) in [
            ("toolsets", selection.toolsets.as_ref().map_or(0, Vec::len)),
            ("allow", selection.allow.len()),
            ("deny", selection.deny.len()),
            ("unavailable", selection.unavailable.len()),
        ] {
            if count > MAX_SELECTORS {
                let detail = format!(
                    "{count} entries are more than {MAX_SELECTORS}; a prefix or a group selects many tools"
                );
                return Err(Error::invalid(format!("/{key}"), "too_many", detail));
            }
        }
        Ok(())
    }

    /// For whom arrays are made: as the request says, else as `default` does.
    pub(super) fn target(&self, default: Target) -> Result<Target, Error> {
        let profile = match self.profile.as_deref() {
            None => None,
            Some(name) => Some(Profile::parse(name).ok_or_else(|| {
                let known = Profile::ALL.map(Profile::as_str).join(", ");
                let detail = format!("`{}` is not a profile; there are {known}", clip(name, 40));
                Error::invalid("/profile", "invalid_value", detail)
            })?),
        };
        let format = self.format()?.unwrap_or(default.format);
        let dialect = match self.schema_dialect.as_deref() {
            None if format == default.format => default.dialect,
            None | Some("json_schema") => Dialect::JsonSchema,
            Some("openapi") if format == Format::Gemini => Dialect::OpenApi,
            Some("openapi") => {
                let detail = "`openapi` is a dialect of the format gemini alone";
                return Err(Error::invalid("/schema_dialect", "invalid_value", detail));
            }
            Some(other) => {
                let detail =
                    format!("`{}` is not a dialect; there are json_schema and openapi", clip(other, 40));
                return Err(Error::invalid("/schema_dialect", "invalid_value", detail));
            }
        };
        Ok(Target {
            format,
            profile: profile.unwrap_or(default.profile),
            dialect,
            strict: self.strict.unwrap_or(default.strict),
            exposure: self.exposure(format, default.exposure)?,
        })
    }

    /// How deferred tools are reached in a format: what the request says must be there, a default gives way.
    fn exposure(&self, format: Format, default: Exposure) -> Result<Exposure, Error> {
        let Some(name) = self.exposure.as_deref() else {
            return Ok(if default.is_of(format) { default } else { Exposure::Bridge });
        };
        let refused = |detail| Error::invalid("/exposure", "invalid_value", detail);
        let exposure = Exposure::parse(name).ok_or_else(|| {
            let known = Exposure::ALL.map(Exposure::as_str).join(", ");
            refused(format!("`{}` is not an exposure; there are {known}", clip(name, 40)))
        })?;
        if !exposure.is_of(format) {
            let having = Format::ALL.into_iter().filter(|format| exposure.is_of(*format));
            let having: Vec<&str> = having.map(Format::as_str).collect();
            return Err(refused(format!("`{name}` is an exposure of {} alone", having.join(" and "))));
        }
        Ok(exposure)
    }

    /// For whom arrays are made where neither a request nor its session says so.
    pub(super) fn usual_target(policy: &Policy) -> Target {
        Target { profile: policy.profile, exposure: policy.exposure, ..Target::default() }
    }
}

/// Most entries of one selection of a request: sessions keep theirs.
pub const MAX_SELECTORS: usize = 5_000;

/// Smallest and largest context window, in tokens (`product.md`, section 2).
const WINDOW_RANGE: (f64, f64) = (1_000.0, 10_000_000.0);

/// Identity of a merged config: digests of both documents.
pub(super) type MergedKey = (Digest, Digest);

/// A merged config.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub policy: Policy,
    pub user_core: Vec<Selector>,
    pub digest: Digest,
    /// Memory that it takes.
    pub bytes: usize,
}

impl Merged {
    pub(super) fn of(user: &Head, project: &Head) -> Self {
        Self {
            policy: policy::merge(&user.layer, &project.layer),
            user_core: user.layer.core.clone().unwrap_or_default(),
            digest: Digest::of_parts(&[&user.digest.0, &project.digest.0]),
            // A parsed config takes two to three times as much as its text.
            bytes: size_of::<Self>() + 3 * (user.row.config.len() + project.row.config.len()),
        }
    }
}

/// Identity of a view: everything that it is a function of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ViewKey {
    contents: (Arc<str>, Arc<str>),
    inline: bool,
    config: MergedKey,
    /// Of the selections' text, which may be long.
    selections: Digest,
    /// Of the tools that a session has in core beside those of the config, where there are some.
    hot: Option<Digest>,
    /// What names look like on the wire.
    names: NameRule,
}

/// A view with what was made from it.
#[derive(Debug)]
pub(super) struct ViewEntry {
    pub id: u64,
    pub view: View,
    pub catalogs: Catalogs,
    pub aliases: Aliases,
}

impl ViewEntry {
    pub(super) fn bytes(&self) -> usize {
        self.view.bytes() + self.aliases.bytes()
    }
}

/// The config's aliases as a search index of their own, so that the catalog's index stays shared.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    pub index: CatalogIndex,
    /// The tool of each document of the index.
    pub candidates: Vec<u32>,
    /// By tool.
    phrases: HashMap<u32, Vec<String>>,
}

impl Aliases {
    fn build(view: &View, policy: &Policy) -> Self {
        let mut phrases: HashMap<u32, Vec<String>> = HashMap::new();
        for (name, aliases) in &policy.aliases {
            let visible = |id: &u32| view.get(*id).is_some_and(|tool| !tool.unavailable);
            for id in view.select(name).into_iter().filter(visible) {
                phrases.entry(id).or_default().extend(aliases.iter().cloned());
            }
        }
        let mut candidates: Vec<u32> = phrases.keys().copied().collect();
        candidates.sort_unstable();
        let texts = candidates.iter().filter_map(|id| phrases.get(id));
        let documents =
            texts.map(|aliases| Document { group: "", name: "", description: "", parameters: "", aliases });
        Self { index: CatalogIndex::of_words(documents), candidates, phrases }
    }

    /// What people call a tool, by the config.
    pub(super) fn of(&self, id: u32) -> &[String] {
        self.phrases.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let texts: usize = self.phrases.values().flatten().map(|phrase| phrase.len() + 24).sum();
        self.index.bytes() + texts + 64 * self.candidates.len()
    }
}

/// Everything that a request sees, resolved.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub merged: Arc<Merged>,
    pub entry: Arc<ViewEntry>,
    pub selections: Arc<[Selection]>,
    /// Tools that a session has in core beside those of the config, by group and name.
    pub hot: Vec<ToolKey>,
    pub target: Target,
    pub window: u32,
    /// What the request asked for and did not get.
    pub warnings: Vec<Warning>,
    pub heads: Heads,
    pub session: Option<(SessionKey, Arc<Session>)>,
}

/// What a context is made of.
pub(super) struct Seen {
    pub catalogs: Catalogs,
    pub heads: Heads,
    pub merged: Arc<Merged>,
    pub selections: Arc<[Selection]>,
    pub target: Target,
    pub window: u32,
}

/// The scopes of a request.
#[derive(Debug, Clone)]
pub(super) struct Heads {
    pub user: Arc<Head>,
    pub project: Arc<Head>,
}

impl Context {
    pub(super) fn view(&self) -> &View {
        &self.entry.view
    }

    /// Warnings of the view, then those of the request.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        self.view().warnings.iter().chain(&self.warnings).cloned().collect()
    }

    pub(super) fn plan_key(&self) -> PlanKey {
        (self.entry.id, self.target, self.window)
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.merged.policy
    }

    /// Leaves keywords to rank, for this request alone.
    pub(super) fn forget_matcher(&mut self) {
        if self.merged.policy.matcher.is_some() {
            Arc::make_mut(&mut self.merged).policy.matcher = None;
        }
    }

    /// The scope and head that a layer of the merged config came from.
    pub(super) fn layer(&self, caller: &Caller, origin: policy::Origin) -> (Scope, &Arc<Head>) {
        match (origin, &caller.project) {
            (policy::Origin::Project, Some(project)) => {
                (Scope::Project(project.clone()), &self.heads.project)
            }
            _ => (Scope::User(caller.user.clone()), &self.heads.user),
        }
    }
}

/// The window in force; one out of range is clamped, with a warning.
pub(super) fn window(asked: Option<f64>, default: u32, warnings: &mut Vec<Warning>) -> u32 {
    let Some(asked) = asked else { return default };
    let window = asked.clamp(WINDOW_RANGE.0, WINDOW_RANGE.1);
    if window != asked {
        let detail = format!("{asked} is out of range; {window} is used");
        warnings.push(Warning::new("clamped", detail).at("/context_window"));
    }
    window as u32
}

impl Toolrack {
    pub(super) async fn heads(&self, caller: &Caller) -> Result<Heads, Error> {
        let user = self.head(&Scope::User(caller.user.clone())).await?;
        let project = self.optional_head(caller.project.clone().map(Scope::Project)).await?;
        Ok(Heads { user, project })
    }

    pub(super) async fn merged(&self, heads: &Heads) -> Result<(MergedKey, Arc<Merged>), Error> {
        let key = (heads.user.digest, heads.project.digest);
        if let Some(merged) = self.0.caches.merged.get(&key).await {
            return Ok((key, merged));
        }
        let merged = Arc::new(Merged::of(&heads.user, &heads.project));
        self.0.caches.merged.insert(key, Arc::clone(&merged)).await;
        Ok((key, merged))
    }

    /// The stored catalogs of a caller.
    pub(super) async fn stored_catalogs(&self, caller: &Caller, heads: &Heads) -> Result<Catalogs, Error> {
        let user = self.stored_catalog(&Scope::User(caller.user.clone()), &heads.user).await?;
        let project = match caller.project.clone() {
            Some(project) => self.stored_catalog(&Scope::Project(project), &heads.project).await?,
            None => Arc::clone(&self.0.nothing.catalog),
        };
        Ok(Catalogs::Stored { user, project })
    }

    /// What is seen, with tools in core beside those of the config; without a session and its warnings.
    pub(super) async fn context_of(&self, seen: Seen, hot: Vec<ToolKey>) -> Result<Context, Error> {
        let Seen { catalogs, heads, merged, selections, target, window } = seen;
        let config = (heads.user.digest, heads.project.digest);
        let entry = self.view(catalogs, config, &merged, &selections, target.profile, &hot).await?;
        let (warnings, session) = (Vec::new(), None);
        Ok(Context { merged, entry, selections, hot, target, window, warnings, heads, session })
    }

    /// The view of some catalogs under a config and selections.
    async fn view(
        &self,
        catalogs: Catalogs,
        config: MergedKey,
        merged: &Arc<Merged>,
        selections: &Arc<[Selection]>,
        profile: Profile,
        hot: &[ToolKey],
    ) -> Result<Arc<ViewEntry>, Error> {
        let contents = {
            let mut parts = catalogs.parts().map(|catalog| catalog.content_id());
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        };
        let inline = matches!(catalogs, Catalogs::Inline(_));
        let digest = |text: String| Digest::of(text.as_bytes());
        let selected = digest(serde_json::to_string(&**selections).map_err(Error::internal)?);
        let hot_digest = match hot {
            [] => None,
            hot => Some(digest(serde_json::to_string(hot).map_err(Error::internal)?)),
        };
        // Profiles differ in names, and most take the same.
        let names = profile.limits().names;
        let key = ViewKey { contents, inline, config, selections: selected, hot: hot_digest, names };
        if let Some(entry) = self.0.caches.views.get(&key).await {
            return Ok(entry);
        }
        let (merged, id) = (Arc::clone(merged), self.0.caches.next_view_id());
        let (selections, hot) = (Arc::clone(selections), hot.to_vec());
        let build = async move {
            let build = move || {
                let view = View::build(&catalogs, &merged.policy, &merged.user_core, &selections, profile);
                let view = view.with_core(&hot);
                let aliases = Aliases::build(&view, &merged.policy);
                ViewEntry { id, view, catalogs, aliases }
            };
            blocking(build).await.map(Arc::new)
        };
        Ok(self.0.caches.views.try_get_with(key, build).await?)
    }

    /// The array plan of a view.
    pub(super) async fn plan(&self, context: &Context) -> Result<Arc<PlanEntry>, Error> {
        let key = context.plan_key();
        if let Some(plan) = self.0.caches.plans.get(&key).await {
            return Ok(plan);
        }
        let (entry, merged) = (Arc::clone(&context.entry), Arc::clone(&context.merged));
        let (target, window) = (context.target, context.window);
        let build = async move {
            let build = move || PlanEntry::new(Plan::build(&entry.view, &merged.policy, target, window));
            blocking(build).await.map(Arc::new)
        };
        Ok(self.0.caches.plans.try_get_with(key, build).await?)
    }

    /// Resolves what a search, describe, call or bridge request sees: its session's last assembly, narrowed by what
    /// the request says; without one, the request alone.
    pub(super) async fn context(&self, caller: &Caller, fields: &GrantFields) -> Result<Context, Error> {
        fields.check()?;
        let heads = self.heads(caller).await?;
        let (_, merged) = self.merged(&heads).await?;
        let session = match caller.session_key() {
            Some(key) => {
                let session = self.session(&key).await?;
                Some((key, session))
            }
            None => None,
        };
        let assembled = session.as_ref().and_then(|(_, session)| session.settings.assembled.as_ref());
        let tools_ref = match (assembled, &fields.tools_ref) {
            (Some(assembled), Some(wanted)) if assembled.tools_ref.as_ref() != Some(wanted) => {
                let detail = "`tools_ref` is not the one of this session's last assembly";
                return Err(Error::with_errors(
                    Kind::ToolsRefMismatch,
                    vec![crate::core::warning::FieldError::new("/tools_ref", "tools_ref_mismatch", detail)],
                ));
            }
            (Some(assembled), _) => assembled.tools_ref.clone(),
            (None, wanted) => wanted.clone(),
        };
        let catalogs = match &tools_ref {
            Some(reference) => Catalogs::Inline(self.inline_catalog(&caller.user, reference).await?),
            None => self.stored_catalogs(caller, &heads).await?,
        };
        let mut selections = vec![fields.selection.clone()];
        if let Some(assembled) = assembled {
            selections.insert(0, assembled.selection.clone());
            selections.dedup_by(|second, _| *second == Selection::default());
        }
        selections.extend(caller.limits.as_deref().cloned());
        let usual = || GrantFields::usual_target(&merged.policy);
        let target = fields.target(assembled.map_or_else(usual, |assembled| assembled.target()))?;
        let mut warnings = Vec::new();
        let default = assembled.map_or(merged.policy.context_window, |assembled| assembled.window);
        let window = window(fields.context_window, default, &mut warnings);
        let hot = assembled.filter(|_| merged.policy.hot_tools.join()).map(|assembled| assembled.hot.clone());
        let seen = Seen { catalogs, heads, merged, selections: selections.into(), target, window };
        let context = self.context_of(seen, hot.unwrap_or_default()).await?;
        warnings.extend(remembered_warning());
        Ok(Context { session, warnings, ..context })
    }
}
