//! What prompt caches rest on, over 500 seeded histories of sessions: the same state gives the same bytes in two services
//! (one of them restarted now and then, and given every upload in another order), and a session's array and listing
//! change for a reason that the answer names, or not at all.
//!
//! The test keeps its own books of catalogs, configs and requests, and says from them what must have stayed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolrack::core::id::Id;
use toolrack::service::{Caller, WarmAction};

use crate::inside::Inside;
use crate::messy::{Rng, shuffled};
use crate::model::{BRIDGE, entry_name};

const HISTORIES: u64 = 500;
const STEPS: usize = 16;

const WORDS: [&str; 30] = [
    "amber",
    "auburn",
    "azure",
    "beige",
    "blue",
    "bronze",
    "brown",
    "copper",
    "coral",
    "crimson",
    "denim",
    "drab",
    "ebony",
    "emerald",
    "fawn",
    "fuchsia",
    "gold",
    "green",
    "heliotrope",
    "indigo",
    "ivory",
    "jade",
    "khaki",
    "lilac",
    "magenta",
    "navy",
    "ochre",
    "purple",
    "quartz",
    "sienna",
];

/// A tool of the catalog as the test knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Paint {
    revision: usize,
    always: bool,
}

type Catalog = BTreeMap<&'static str, Paint>;

#[derive(Debug, Clone, PartialEq)]
struct Config {
    policy: &'static str,
    placement: &'static str,
    core: &'static str,
    room: usize,
}

/// What an assembly says of its grant and form.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    format: &'static str,
    deny: &'static str,
    unavailable: &'static str,
    window: u32,
}

fn group(name: &str) -> &'static str {
    ["warm-colours", "cold-colours", "odd ones"][name.len() % 3]
}

/// Whether a selector of this test means a tool.
fn hits(selector: &str, name: &str) -> bool {
    match selector.strip_prefix('@') {
        Some(wanted) => group(name) == wanted,
        None => selector.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix)),
    }
}

impl Config {
    fn random(rng: &mut Rng) -> Self {
        Self {
            policy: *rng.pick(&["immediate", "epoch", "epoch", "off"]),
            placement: *rng.pick(&["separate", "separate", "bridge"]),
            core: *rng.pick(&["", "a*", "@cold-colours"]),
            room: 2 + rng.below(4),
        }
    }

    fn document(&self) -> Value {
        json!({
            "warm_policy": self.policy, "listing_placement": self.placement, "max_warm_tools": self.room,
            "core": if self.core.is_empty() { vec![] } else { vec![self.core] }
        })
    }
}

impl Asked {
    fn random(rng: &mut Rng) -> Self {
        Self {
            format: *rng.pick(&["canonical", "openai_chat", "anthropic"]),
            deny: *rng.pick(&["", "", "b*"]),
            unavailable: *rng.pick(&["", "", "d*", "@odd ones"]),
            window: *rng.pick(&[128_000, 128_000, 4_000]),
        }
    }

    fn body(&self, session: &str) -> Value {
        let list = |selector: &str| if selector.is_empty() { vec![] } else { vec![selector.to_owned()] };
        json!({
            "session": session, "format": self.format, "deny": list(self.deny),
            "unavailable": list(self.unavailable), "context_window": self.window
        })
    }
}

fn definition(name: &str, paint: Paint) -> Value {
    let mut tool = json!({
        "group": group(name), "name": name, "description": format!("Paints {name}, way {}.", paint.revision),
        "parameters": {"type": "object", "properties": {"coats": {"type": "integer"}}}
    });
    if paint.always {
        tool["always_load"] = json!(true);
    }
    tool
}

/// An answer, with its entries as the bytes that they are.
#[derive(Debug, Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    listing: Option<Value>,
    listing_changes: Option<Value>,
    tier: u8,
    counts: Value,
    fingerprint: String,
    changed: bool,
    cache: Cache,
}

#[derive(Debug, Deserialize)]
struct Cache {
    stable_prefix_len: usize,
    #[serde(rename = "break")]
    breaks: bool,
    reason: String,
    breakpoint: Option<usize>,
}

/// What the test knows of a session's last assembly.
#[derive(Debug, Clone)]
struct Sent {
    entries: Vec<String>,
    /// Text of the listing.
    listing: Option<String>,
    fingerprint: String,
    tier: u8,
    asked: Asked,
    config: Config,
    catalog: Catalog,
    /// The deferred tools that the listing is about.
    base: Option<Catalog>,
}

#[derive(Debug, Default)]
struct Session {
    asked: Option<Asked>,
    sent: Option<Sent>,
    /// Tools were taken out by hand since.
    released: bool,
}

struct History {
    seed: u64,
    rng: Rng,
    user: String,
    catalog: Catalog,
    config: Config,
    sessions: BTreeMap<&'static str, Session>,
    /// What was done, for a test that fails.
    log: Vec<String>,
    breaks: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let config = Config::random(&mut rng);
        let size = 10 + rng.below(18);
        let catalog = shuffled(seed, WORDS.to_vec()).into_iter().take(size);
        let catalog = catalog.map(|name| (name, Paint { revision: 0, always: false })).collect();
        let (user, sessions) = (format!("u{seed}"), BTreeMap::new());
        Self { seed, rng, user, catalog, config, sessions, log: Vec::new(), breaks: 0 }
    }

    async fn run(&mut self, one: &Inside, other: &mut Inside) {
        for inside in [one, &*other] {
            inside.put_config(&self.user, self.config.document()).await;
        }
        self.upload(one, other).await;
        for step in 0..STEPS {
            let session = if self.rng.chance(80) { "s" } else { "t" };
            match self.rng.below(100) {
                0..45 => self.assemble(session, one, other).await,
                45..65 => self.search(session, one, other).await,
                65..72 => self.describe(session, one, other).await,
                72..77 => self.change_warm(session, one, other).await,
                77..91 => {
                    self.edit();
                    self.upload(one, other).await;
                }
                91..95 => {
                    self.config = Config::random(&mut self.rng);
                    self.log.push(format!("{:?}", self.config));
                    for inside in [one, &*other] {
                        inside.put_config(&self.user, self.config.document()).await;
                    }
                }
                _ if step % 2 == 0 => other.restart().await,
                _ => {}
            }
        }
        self.assemble("s", one, other).await;
    }

    fn edit(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let name = *self.rng.pick(&WORDS);
            if self.rng.chance(40) {
                self.catalog.remove(name);
            } else {
                let revision = self.catalog.get(name).map_or(0, |paint| paint.revision) + self.rng.below(2);
                self.catalog.insert(name, Paint { revision, always: self.rng.chance(6) });
            }
        }
        if self.catalog.is_empty() {
            self.catalog.insert("amber", Paint { revision: 0, always: false });
        }
    }

    /// One service gets the whole catalog, the other what is new in it and then all of it in another order.
    async fn upload(&mut self, one: &Inside, other: &Inside) {
        self.log.push(format!("catalog {:?}", self.catalog));
        let tools: Vec<Value> = self.catalog.iter().map(|(name, paint)| definition(name, *paint)).collect();
        let mixed = shuffled(self.rng.next_u64(), tools.clone());
        one.put_catalog(&self.user, &tools).await;
        if self.rng.chance(50) {
            let (some, _) = mixed.split_at(mixed.len() / 2);
            let remove: Vec<String> = WORDS
                .iter()
                .filter(|name| !self.catalog.contains_key(*name))
                .map(|name| (*name).to_owned())
                .collect();
            other.patch_catalog(&self.user, some, &remove).await;
        }
        other.put_catalog(&self.user, &mixed).await;
    }

    async fn search(&mut self, session: &str, one: &Inside, other: &Inside) {
        let body =
            json!({"session": session, "query": self.rng.pick(&WORDS), "limit": 1 + self.rng.below(3)});
        self.log.push(format!("search {body}"));
        let [mut found, mut same] =
            [one.search(&self.user, &body).await, other.search(&self.user, &body).await];
        // How often nothing was found is forgotten with a restart.
        for answer in [&mut found, &mut same] {
            answer["results"][0].as_object_mut().unwrap().remove("hint");
        }
        assert_eq!(found, same, "{}: {:#?}", self.seed, self.log);
    }

    async fn describe(&mut self, session: &str, one: &Inside, other: &Inside) {
        let body = json!({"session": session, "names": [self.rng.pick(&WORDS), self.rng.pick(&WORDS)]});
        self.log.push(format!("describe {body}"));
        let shown = one.describe(&self.user, &body).await;
        assert_eq!(shown, other.describe(&self.user, &body).await, "{}: {:#?}", self.seed, self.log);
    }

    async fn change_warm(&mut self, session: &'static str, one: &Inside, other: &Inside) {
        let action = *self.rng.pick(&[WarmAction::Pin, WarmAction::Unpin, WarmAction::Release]);
        let names = [(*self.rng.pick(&WORDS)).to_owned()];
        self.log.push(format!("{action:?} {names:?} in {session}"));
        let caller = Caller {
            user: Id::parse(&self.user).unwrap(),
            project: None,
            session: Some(Id::parse(session).unwrap()),
            limits: None,
            allowances: None,
        };
        let mut done = Vec::new();
        for inside in [one, other] {
            // A pin of no tool, or one too many, is refused by both.
            done.push(inside.service.change_warm(&caller, action, &names).await.is_ok());
        }
        assert_eq!(done[0], done[1], "{}: {:#?}", self.seed, self.log);
        self.sessions.entry(session).or_default().released |= action == WarmAction::Release;
    }

    async fn assemble(&mut self, session: &'static str, one: &Inside, other: &Inside) {
        let mut known = std::mem::take(self.sessions.entry(session).or_default());
        let asked = match known.asked.take() {
            Some(asked) if self.rng.chance(85) => asked,
            _ => Asked::random(&mut self.rng),
        };
        let epoch = self.rng.chance(12);
        let mut body = asked.body(session);
        body["epoch"] = json!(epoch);
        if self.rng.chance(20) {
            body["used"] = json!([self.rng.pick(&self.catalog.keys().copied().collect::<Vec<_>>())]);
        }
        self.log.push(format!("assemble {body}"));
        let text = one.assemble(&self.user, &body).await;
        assert_eq!(text, other.assemble(&self.user, &body).await, "{}: {:#?}", self.seed, self.log);
        let answer: Answer<'_> = serde_json::from_str(&text).unwrap();
        let check =
            Check { answer: &answer, asked: &asked, config: &self.config, catalog: &self.catalog, epoch };
        let sent = check.against(&known, &format!("{}: {:#?}\n{text}", self.seed, self.log));
        self.breaks += usize::from(answer.cache.breaks);
        if self.rng.chance(40) {
            let mut again = asked.body(session);
            again["if_fingerprint"] = json!(sent.fingerprint);
            let text = one.assemble(&self.user, &again).await;
            let again: Answer<'_> = serde_json::from_str(&text).unwrap();
            let cache = &again.cache;
            assert!(
                !again.changed && again.fingerprint == sent.fingerprint,
                "{}: {:#?}",
                self.seed,
                self.log
            );
            assert_eq!((cache.reason.as_str(), cache.breaks), ("none", false));
            assert_eq!(cache.stable_prefix_len, sent.entries.len());
        }
        let known = Session { asked: Some(asked), sent: Some(sent), released: false };
        self.sessions.insert(session, known);
    }
}

/// One answer beside what the test knows.
struct Check<'a> {
    answer: &'a Answer<'a>,
    asked: &'a Asked,
    config: &'a Config,
    catalog: &'a Catalog,
    epoch: bool,
}

impl Check<'_> {
    fn is_core(&self, name: &str, paint: Paint) -> bool {
        paint.always || hits(self.config.core, name)
    }

    /// The tools that are to be listed now.
    fn deferred(&self) -> Catalog {
        let tools = self.catalog.iter().filter(|(name, paint)| {
            let hidden = hits(self.asked.deny, name) || hits(self.asked.unavailable, name);
            !hidden && !self.is_core(name, **paint)
        });
        tools.map(|(name, paint)| (*name, *paint)).collect()
    }

    /// Holds the answer against the session's last one, and says what was sent now.
    fn against(&self, known: &Session, at: &str) -> Sent {
        let answer = self.answer;
        let entries: Vec<String> =
            answer.tools.iter().flatten().map(|entry| entry.get().to_owned()).collect();
        let listing = answer.listing.as_ref().map(|listing| listing["text"].as_str().unwrap().to_owned());
        let base = self.base(known.sent.as_ref(), listing.as_deref(), at);
        let fixed =
            (answer.counts["core"].as_u64().unwrap() + answer.counts["bridge"].as_u64().unwrap()) as usize;
        assert_eq!(answer.cache.breakpoint, fixed.checked_sub(1), "{at}");
        let sent = Sent {
            entries,
            listing,
            fingerprint: answer.fingerprint.clone(),
            tier: answer.tier,
            asked: self.asked.clone(),
            config: self.config.clone(),
            catalog: self.catalog.clone(),
            base,
        };
        match &known.sent {
            None => {
                let cache = &answer.cache;
                let expected = (fixed, false, "first");
                assert_eq!((cache.stable_prefix_len, cache.breaks, &*cache.reason), expected, "{at}");
            }
            Some(previous) => self.cache(previous, &sent, known.released, at),
        }
        sent
    }

    /// The listing is the one of before until something begins anew, and the answer tells what it does not.
    fn base(&self, previous: Option<&Sent>, listing: Option<&str>, at: &str) -> Option<Catalog> {
        let kept = previous.filter(|previous| {
            let same = previous.asked == *self.asked && previous.config == *self.config;
            same && !self.epoch && self.answer.tier > 0
        });
        let told = self.answer.listing_changes.as_ref();
        assert_eq!(told, self.answer.listing.as_ref().and_then(|listing| listing.get("changes")), "{at}");
        let Some((previous, base)) = kept.and_then(|kept| Some((kept, kept.base.as_ref()?))) else {
            assert_eq!(told, None, "{at}");
            return listing.map(|_| self.deferred());
        };
        assert_eq!((listing, self.answer.tier), (previous.listing.as_deref(), previous.tier), "{at}");
        let now = self.deferred();
        let added: Vec<_> = now.keys().filter(|name| !base.contains_key(*name)).collect();
        let removed: Vec<_> = base.keys().filter(|name| !self.catalog.contains_key(*name)).collect();
        let changed: Vec<_> =
            now.iter().filter(|(name, paint)| base.get(*name).is_some_and(|then| then != *paint)).collect();
        let changed: Vec<_> = changed.into_iter().map(|(name, _)| name).collect();
        match told {
            None => assert!(added.is_empty() && removed.is_empty() && changed.is_empty(), "{at}"),
            Some(told) => {
                let expected = json!({"added": added, "removed": removed, "changed": changed, "more": 0});
                let mut told = told.clone();
                told.as_object_mut().unwrap().remove("text");
                assert_eq!(told, expected, "{at}");
            }
        }
        Some(base.clone())
    }

    /// The report is true, and nothing breaks without a cause.
    fn cache(&self, previous: &Sent, sent: &Sent, released: bool, at: &str) {
        let cache = &self.answer.cache;
        let stable = sent.entries.iter().zip(&previous.entries).take_while(|(now, then)| now == then).count();
        assert_eq!(cache.stable_prefix_len, stable, "{at}");
        assert_eq!(cache.breaks, stable < previous.entries.len(), "{at}");
        let same_format = sent.asked.format == previous.asked.format;
        let same = sent.entries == previous.entries && sent.listing == previous.listing;
        assert_eq!(cache.reason == "none", same, "{at}");
        assert_eq!(sent.fingerprint == previous.fingerprint, same && same_format, "{at}");
        let asked_same = |asked: &Asked| Asked { format: self.asked.format, ..asked.clone() } == *self.asked;
        let crossed = (sent.tier == 0) != (previous.tier == 0) && *self.catalog != previous.catalog;
        let edited = crossed || self.shows_an_edit(previous);
        let cause = match &*cache.reason {
            "none" => same,
            "format" => !same_format,
            "grant" => same_format && !asked_same(&previous.asked),
            "config" => *self.config != previous.config,
            "catalog" => edited && !self.epoch,
            "epoch" => self.epoch,
            "evicted" => released || self.config.policy == "immediate",
            "warm" => stable == previous.entries.len(),
            other => panic!("{other}: {at}"),
        };
        assert!(cause, "{at}");
        let anew = !same_format || !asked_same(&previous.asked) || *self.config != previous.config;
        if cache.breaks && self.config.policy != "immediate" {
            assert!(anew || edited || released || self.epoch, "{at}");
        }
    }

    /// Whether the catalog changed in tools that stood or stand in the array.
    fn shows_an_edit(&self, previous: &Sent) -> bool {
        let edited: BTreeSet<&str> =
            WORDS.into_iter().filter(|name| self.catalog.get(name) != previous.catalog.get(name)).collect();
        let shown = |entries: &[String]| {
            let names = entries.iter().map(|entry| {
                let entry: Value = serde_json::from_str(entry).unwrap();
                entry_name(&entry).to_owned()
            });
            names.filter(|name| !BRIDGE.contains(&name.as_str())).any(|name| edited.contains(name.as_str()))
        };
        let now: Vec<String> =
            self.answer.tools.iter().flatten().map(|entry| entry.get().to_owned()).collect();
        shown(&previous.entries) || shown(&now)
    }
}

/// Arrays and listings change for a reason or not at all.
async fn check(seeds: impl Iterator<Item = u64>) {
    let (one, mut other) = (Inside::start().await, Inside::start().await);
    let mut breaks = 0;
    for seed in seeds {
        let mut history = History::new(seed);
        history.run(&one, &mut other).await;
        breaks += history.breaks;
    }
    assert!(
        breaks > 100,
        "the histories break arrays, so that it means something when they do not: {breaks}"
    );
}

// Two tests, so that they run side by side.
#[tokio::test]
async fn arrays_and_listings_change_for_a_reason_or_not_at_all() {
    check((0..HISTORIES).step_by(2)).await;
}

#[tokio::test]
async fn arrays_and_listings_change_for_a_reason_or_not_at_all_in_the_other_half() {
    check((1..HISTORIES).step_by(2)).await;
}
