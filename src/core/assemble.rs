//! Assembly: from a plan and a session's warm tools to the answer's bytes.
//!
//! An answer joins the bytes of a [`Plan`] with those of the warm tools; nothing is serialised anew but the small rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cache::{CacheReport, Sent, compare};
use super::digest::{Digest, head_text};
use super::format::Format;
use super::grant::{View, ViewTool};
use super::listing_base::ListingChanges;
use super::plan::{ArgMaps, Plan, with_envelope};
use super::policy::ListingPlacement;
use super::target::{ArrayEntry, TargetTool};
use super::tokens::TokenEstimate;
use super::told::Told;
use super::warning::Warning;

/// How many tools of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Tools that always stand in the array. In tier 0 that is every tool.
    pub core: usize,
    /// Found tools in the array.
    pub warm: usize,
    /// Tools outside core, found ones included.
    pub deferred: usize,
    /// Bridge tools in the array: 3 or 0; with the exposure `native` the search alone, and all three where a tool cannot be
    /// loaded. With `management_tools` two more, in every tier.
    pub bridge: usize,
}

/// What things cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// All visible tools of the grant with their schemas, in this format.
    pub all: usize,
    /// The array, without entries that the provider defers by itself.
    pub tools: usize,
    /// The listing; part of `tools` where it is placed in the bridge.
    pub listing: usize,
    /// `all` less what is sent. Negative where the bridge costs more than it saves.
    pub saved: i64,
    /// `o200k`: the vocabulary that counted.
    #[schema(value_type = String)]
    pub method: Method,
    /// What the provider of the profile is likely to count; `generic` is taken for the one that the format is of. Absent
    /// where o200k is its own vocabulary, and where nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub estimate: Option<TokenEstimate>,
}

impl Tokens {
    /// The array, and the listing where it stands beside it.
    pub fn sent(&self) -> usize {
        usize::try_from(self.all as i64 - self.saved).unwrap_or(0)
    }
}

/// The way tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    O200k,
}

/// What an answer was made from, told apart by digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub catalog: String,
    pub config: String,
    pub grant: String,
}

/// What one answer adds to its plan.
#[derive(Debug, Default)]
pub struct AnswerInput<'a> {
    /// Ids of the warm tools in the order of first warming.
    pub warm: &'a [u32],
    pub origin: Origin,
    /// What this session was sent last.
    pub previous: Option<&'a Sent>,
    /// Whether the caller said that the cache is cold anyway.
    pub epoch: bool,
    pub if_fingerprint: Option<&'a str>,
    pub tools_ref: Option<&'a str>,
    pub warnings: Vec<Warning>,
}

/// An answer, ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// The JSON body.
    pub body: Vec<u8>,
    pub sent: Sent,
    pub cache: CacheReport,
    pub tokens: Tokens,
}

/// The part of an answer behind `tools` and `listing`.
#[derive(Serialize)]
struct Tail<'a> {
    tier: u8,
    warm: Vec<&'a str>,
    unavailable: &'a [String],
    counts: Counts,
    tokens: Tokens,
    fingerprint: &'a str,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing_changes: Option<&'a ListingChanges>,
    cache: CacheReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools_ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_map: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arg_map: Option<&'a ArgMaps>,
    warnings: Vec<&'a Warning>,
}

/// Joins a plan and a session's warm tools to the answer's bytes.
pub fn answer(view: &View, plan: &Plan, input: &AnswerInput<'_>) -> Answer {
    let (mut told, mut strict_room) = (Told::default(), plan.strict_room);
    let made: Vec<(&ViewTool, Arc<TargetTool>)> = input
        .warm
        .iter()
        .filter_map(|id| view.get(*id))
        .map(|tool| {
            let made = tool.for_target(plan.target);
            (tool, told.fitting(tool, &made, plan.target, &mut strict_room))
        })
        .collect();
    // What the target does not take stays out, also where another one found it.
    let warm: Vec<(&ViewTool, &ArrayEntry)> = made
        .iter()
        .filter_map(|(tool, made)| Some((*tool, made.entry(tool.wire_name(), &tool.tool.tool)?)))
        .collect();
    let mut hash = plan.base_hash.clone();
    let mut name_map = Cow::Borrowed(&plan.base_names);
    let mut arg_map = Cow::Borrowed(&plan.base_args);
    for (tool, made) in made.iter().filter(|(_, made)| !made.left_out) {
        told.about(tool, made);
        let wire = tool.wire_name();
        // A deferred tool of the array is in the maps already.
        if let Some(mapped) = tool.mapped_name().filter(|wire| !plan.base_names.contains_key(*wire)) {
            name_map.to_mut().insert(mapped.to_owned(), tool.stored_name().to_owned());
            hash.add(mapped.as_bytes()).add(tool.stored_name().as_bytes());
        }
        if let Some(map) = made.arg_map_document().filter(|_| !plan.base_args.contains_key(wire)) {
            hash.add(serde_json::to_string(&map).unwrap_or_default().as_bytes());
            arg_map.to_mut().insert(wire.to_owned(), map);
        }
    }
    let told = told.warnings();
    for (_, entry) in &warm {
        hash.add(&entry.digest.to_be_bytes());
    }
    let fingerprint = hash.finish().to_string();

    let mut entries = plan.base_digests.clone();
    warm.iter().for_each(|(_, entry)| entries.push_str(&head_text(entry.digest)));
    let sent = Sent {
        format: plan.target.name(),
        catalog: input.origin.catalog.clone(),
        config: input.origin.config.clone(),
        grant: input.origin.grant.clone(),
        entries,
        found: warm.iter().map(|(tool, _)| head_text(tool.tool.tool.digest().short())).collect(),
        listing: plan.listing_digest.clone(),
    };
    let cache = compare(&sent, input.previous, input.epoch, view, plan.base_len());
    let entries = plan.tokens_base + warm.iter().map(|(_, entry)| entry.tokens).sum::<usize>();
    let tools = with_envelope(plan.target.format, entries);
    let separate = plan.listing.as_ref().filter(|listing| listing.placement == ListingPlacement::Separate);
    let all = plan.tokens_all;
    let listing = plan.listing.as_ref().map_or(0, |listing| listing.tokens);
    let paid = tools + separate.map_or(0, |listing| listing.tokens);
    let factor = plan.target.profile.token_factor(plan.target.format);
    let tokens = Tokens {
        all,
        tools,
        listing,
        saved: all as i64 - paid as i64,
        method: Method::O200k,
        estimate: factor.map(|hundredths| TokenEstimate::new(hundredths, all, tools, listing, paid)),
    };
    let changed = input.if_fingerprint != Some(fingerprint.as_str());
    let tail = Tail {
        tier: plan.tier,
        warm: warm.iter().map(|(tool, _)| tool.stored_name()).collect(),
        unavailable: &plan.unavailable,
        counts: Counts { core: plan.core, warm: warm.len(), deferred: plan.deferred, bridge: plan.bridge },
        tokens,
        fingerprint: &fingerprint,
        changed,
        listing_changes: plan.changes.as_ref(),
        cache,
        tools_ref: input.tools_ref,
        name_map: changed.then_some(&*name_map),
        arg_map: Some(&*arg_map).filter(|map| changed && !map.is_empty()),
        warnings: view
            .warnings
            .iter()
            .chain(&view.join_warnings)
            .chain(&plan.warnings)
            .chain(&told)
            .chain(&input.warnings)
            .collect(),
    };
    let tail = serde_json::to_vec(&tail).unwrap_or_default();
    let known = plan.base.len() + plan.late.bytes() + plan.listing_json.len();
    let mut body = Vec::with_capacity(known + tail.len() + 64);
    body.push(b'{');
    if changed {
        body.extend_from_slice(b"\"tools\":");
        let found = warm.iter().map(|(_, entry)| &*entry.json);
        write_array(plan.target.format, &plan.base, found.chain(plan.late.without(input.warm)), &mut body);
        body.extend_from_slice(b",\"listing\":");
        write_listing(plan, &mut body);
        body.push(b',');
    }
    body.extend_from_slice(tail.get(1..).unwrap_or_default());
    Answer { body, sent, cache, tokens }
}

/// The array that an assembly of a plan sends to who has found nothing, as the value of the provider's field.
pub fn array(plan: &Plan) -> Vec<u8> {
    let mut array = Vec::with_capacity(plan.base.len() + plan.late.bytes() + 64);
    write_array(plan.target.format, &plan.base, plan.late.without(&[]), &mut array);
    array
}

/// Writes the listing, with what it does not tell. The fingerprint leaves that out: it stands at the conversation's end.
fn write_listing(plan: &Plan, body: &mut Vec<u8>) {
    body.extend_from_slice(plan.listing_json.as_bytes());
    if let Some(changes) = plan.changes.as_ref().and_then(|changes| serde_json::to_vec(changes).ok()) {
        body.pop();
        body.extend_from_slice(b",\"changes\":");
        body.extend_from_slice(&changes);
        body.push(b'}');
    }
}

/// Writes the joined base and further entries as the value of the provider's field.
fn write_array<'a>(format: Format, base: &str, more: impl Iterator<Item = &'a str>, body: &mut Vec<u8>) {
    let array = &format.layout().array;
    let start = body.len();
    body.extend_from_slice(array.open.as_bytes());
    let first = body.len();
    body.extend_from_slice(base.as_bytes());
    for entry in more {
        if body.len() > first {
            body.push(b',');
        }
        body.extend_from_slice(entry.as_bytes());
    }
    if body.len() == first {
        body.truncate(start);
        body.extend_from_slice(array.empty.as_bytes());
    } else {
        body.extend_from_slice(array.close.as_bytes());
    }
}

/// Identity of what an answer was made from besides catalogs and config.
pub fn grant_digest(selections: &impl Serialize, window: u32) -> String {
    let text = serde_json::to_string(selections).unwrap_or_default();
    Digest::of_parts(&[text.as_bytes(), &window.to_be_bytes()]).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::core::catalog::{Catalog, read_upload, replace};
    use crate::core::format::ingest::EntryLimits;
    use crate::core::grant::Catalogs;
    use crate::core::listing_base::ListingBase;
    use crate::core::policy::{Layer, Policy, merge, parse};
    use crate::core::profile::Profile;
    use crate::core::target::Target;
    use crate::core::tokens;

    fn view(tools: usize, config: Value) -> (View, Policy) {
        let texts: Vec<String> = (0..tools)
            .map(|at| {
                let description = format!("Does the useful thing number {at} with care.");
                json!({"name": format!("tool.{at:03}"), "group": format!("g{}", at % 3), "description": description}).to_string()
            })
            .collect();
        let limits = EntryLimits { bytes: 262_144, depth: 64 };
        let upload = read_upload(texts.iter().map(String::as_str), limits, "/tools");
        let user = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let policy = merge(&parse(&config).unwrap().layer, &Layer::default());
        (
            View::build(
                &Catalogs::Stored { user, project: Arc::default() },
                &policy,
                &[],
                &[],
                Profile::Generic,
            ),
            policy,
        )
    }

    fn body(answer: &Answer) -> Value {
        serde_json::from_slice(&answer.body).unwrap()
    }

    #[test]
    fn small_grants_are_sent_whole() {
        let (view, policy) = view(12, json!({}));
        let plan = Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000);
        let answer = body(&answer(&view, &plan, &AnswerInput::default()));
        assert_eq!((answer["tier"].as_u64(), answer["tools"].as_array().unwrap().len()), (Some(0), 12));
        assert_eq!(answer["listing"], Value::Null);
        assert_eq!(answer["counts"], json!({"core": 12, "warm": 0, "deferred": 0, "bridge": 0}));
    }

    #[test]
    fn the_activation_share_keeps_cheap_grants_whole() {
        let (view, policy) = view(20, json!({"activation_pct": 10}));
        assert!(Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000).sends_all());
        assert!(!Plan::build(&view, &policy, Target::of(Format::Canonical), 5_000).sends_all());
    }

    #[test]
    fn the_array_is_core_then_bridge_then_warm() {
        let (view, policy) = view(20, json!({"core": ["tool.004", "tool.003"]}));
        let plan = Plan::build(&view, &policy, Target::of(Format::Canonical), 128_000);
        let input = AnswerInput { warm: &[9, 7], ..AnswerInput::default() };
        let first = answer(&view, &plan, &input);
        let shown = body(&first);
        let names: Vec<&str> =
            shown["name_map"].as_object().unwrap().values().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(names, ["tool.003", "tool.004", "tool.007", "tool.009"]);
        let array: Vec<&str> = shown["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"].as_str().unwrap()[..8])
            .collect();
        assert_eq!(
            array,
            ["tool_003", "tool_004", "tool_sea", "tool_des", "tool_cal", "tool_009", "tool_007"]
        );
        assert_eq!(shown["counts"], json!({"core": 2, "warm": 2, "deferred": 18, "bridge": 3}));
        assert_eq!(
            shown["cache"],
            json!({"stable_prefix_len": 5, "break": false, "reason": "first", "breakpoint": 4})
        );
        assert_eq!(shown["warm"], json!(["tool.009", "tool.007"]));

        let grown = answer(
            &view,
            &plan,
            &AnswerInput { warm: &[9, 7, 5], previous: Some(&first.sent), ..AnswerInput::default() },
        );
        assert_eq!(
            body(&grown)["cache"],
            json!({"stable_prefix_len": 7, "break": false, "reason": "warm", "breakpoint": 4})
        );
        let evicted = answer(
            &view,
            &plan,
            &AnswerInput { warm: &[7, 5], previous: Some(&grown.sent), ..AnswerInput::default() },
        );
        assert_eq!(
            body(&evicted)["cache"],
            json!({"stable_prefix_len": 5, "break": true, "reason": "evicted", "breakpoint": 4})
        );
    }

    #[test]
    fn an_equal_fingerprint_saves_the_bytes() {
        let (view, policy) = view(20, json!({}));
        let plan = Plan::build(&view, &policy, Target::of(Format::OpenaiChat), 128_000);
        let first = body(&answer(&view, &plan, &AnswerInput::default()));
        let fingerprint = first["fingerprint"].as_str();
        let again = body(&answer(
            &view,
            &plan,
            &AnswerInput { if_fingerprint: fingerprint, ..AnswerInput::default() },
        ));
        assert_eq!((again["changed"].as_bool(), &again["fingerprint"]), (Some(false), &first["fingerprint"]));
        assert!(["tools", "listing", "name_map"].iter().all(|key| again.get(*key).is_none()));
        let other = Plan::build(&view, &policy, Target::of(Format::Anthropic), 128_000);
        assert_ne!(
            body(&answer(&view, &other, &AnswerInput::default()))["fingerprint"],
            first["fingerprint"]
        );
    }

    #[test]
    fn a_listing_inside_the_bridge_needs_room_for_it() {
        let (view, policy) = view(20, json!({"listing_placement": "bridge"}));
        let inside = Plan::build(&view, &policy, Target::of(Format::Anthropic), 128_000);
        let shown = body(&answer(&view, &inside, &AnswerInput::default()));
        assert_eq!(shown["listing"]["placement"], "bridge");
        assert!(
            shown["tools"][0]["description"].as_str().unwrap().contains("Does the useful thing number 19")
        );
        let outside = Plan::build(&view, &policy, Target::of(Format::OpenaiChat), 128_000);
        let shown = body(&answer(&view, &outside, &AnswerInput::default()));
        assert_eq!(shown["listing"]["placement"], "separate");
        assert_eq!(shown["warnings"][0]["code"], "listing_placed_separately");
    }

    #[test]
    fn a_kept_listing_keeps_every_byte_of_what_is_sent() {
        for placement in ["separate", "bridge"] {
            let config = json!({"core": ["tool.003"], "listing_placement": placement});
            let (old, policy) = view(20, config.clone());
            let plan = Plan::build(&old, &policy, Target::default(), 128_000);
            let base = ListingBase::of(plan.tier, plan.listing.as_ref().unwrap(), &old, Target::default());
            let input = AnswerInput { warm: &[9], ..AnswerInput::default() };
            let first = answer(&old, &plan, &input);

            let (new, _) = view(40, config);
            let fresh = Plan::build(&new, &policy, Target::default(), 128_000);
            let kept = Plan::with_base(&new, &policy, Target::default(), 128_000, &base);
            assert_eq!((kept.listing_base, kept.tier), (plan.listing_base, plan.tier));
            assert_ne!(fresh.listing_base, plan.listing_base);
            let origin = Origin { catalog: "new".to_owned(), ..Origin::default() };
            let input = AnswerInput { origin, previous: Some(&first.sent), ..input };
            let second = answer(&new, &kept, &input);
            let (before, mut after) = (body(&first), body(&second));
            assert_eq!(after["cache"]["reason"], "none", "{placement}");
            assert_eq!((&after["fingerprint"], &after["tools"]), (&before["fingerprint"], &before["tools"]));
            assert_eq!(after["counts"]["deferred"], 39, "what can be reached is told as it is");
            let changes = after["listing"].as_object_mut().unwrap().remove("changes").unwrap();
            assert_eq!(after["listing"], before["listing"]);
            assert_eq!(
                (changes["added"].as_array().unwrap().len(), &changes),
                (20, &after["listing_changes"])
            );

            let known = AnswerInput { if_fingerprint: before["fingerprint"].as_str(), ..input };
            let short = body(&answer(&new, &kept, &known));
            assert_eq!((&short["changed"], &short["listing_changes"]), (&json!(false), &changes));
            assert!(short.get("listing").is_none());

            // The next epoch begins with the catalog as it is.
            let anew = AnswerInput { epoch: true, if_fingerprint: None, ..known };
            let anew = body(&answer(&new, &fresh, &anew));
            assert_eq!(anew["cache"]["reason"], "epoch", "{placement}");
            assert!(anew["listing"]["text"].as_str().unwrap().contains("number 39"));
        }
    }

    #[test]
    fn what_another_vocabulary_counts_is_told_as_an_estimate() {
        let (view, policy) = view(20, json!({}));
        let tokens = |target: Target| {
            let plan = Plan::build(&view, &policy, target, 128_000);
            body(&answer(&view, &plan, &AnswerInput::default()))["tokens"].take()
        };
        let exact = tokens(Target { profile: Profile::Openai, ..Target::of(Format::OpenaiChat) });
        assert!(exact.get("estimate").is_none(), "{exact}");
        let claude = tokens(Target { profile: Profile::Anthropic, ..Target::of(Format::OpenaiChat) });
        assert_eq!((&claude["all"], &claude["method"]), (&exact["all"], &json!("o200k")));
        let (all, estimated) = (claude["all"].as_f64().unwrap(), &claude["estimate"]);
        assert_eq!(
            (&estimated["factor"], &estimated["all"]),
            (&json!(1.2), &json!((all * 1.2).round() as u64))
        );
        assert_eq!(estimated.as_object().unwrap().len(), 5);
        assert!(estimated["saved"].as_i64() > claude["saved"].as_i64());
    }

    #[test]
    fn reported_tokens_are_those_of_what_is_sent() {
        let (view, policy) = view(20, json!({"core": ["tool.001"]}));
        for format in Format::ALL {
            let plan = Plan::build(&view, &policy, Target::of(format), 128_000);
            let answered = answer(&view, &plan, &AnswerInput { warm: &[3], ..AnswerInput::default() });
            let shown = body(&answered);
            let inside = shown["tools"].pointer("/0/functionDeclarations").unwrap_or(&shown["tools"]);
            let entries: usize =
                inside.as_array().unwrap().iter().map(|tool| tokens::count(&tool.to_string())).sum();
            let around = if format == Format::Gemini {
                tokens::count("{\"functionDeclarations\":[") + tokens::count("]}")
            } else {
                0
            };
            let entries = entries + around;
            assert_eq!(answered.tokens.tools, entries, "{format:?}");
            assert_eq!(answered.tokens.listing, tokens::count(shown["listing"]["text"].as_str().unwrap()));
            let saved = answered.tokens.all as i64 - entries as i64 - answered.tokens.listing as i64;
            assert_eq!(answered.tokens.saved, saved);
        }
    }
}
