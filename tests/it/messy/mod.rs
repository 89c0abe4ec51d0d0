//! Seeded generator of messy tool catalogs, shaped like collections of real MCP servers and then somewhat worse.
//!
//! Owns the mix of mess: names and texts here, parameter schemas in `schemas.rs`, entries that no one can use in
//! `broken.rs`, randomness in `rng.rs`, tables in `words.rs`. Knows nothing of the service: what comes out is what an
//! agent would upload.
//! Same seed, same output.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

mod broken;
mod checks;
mod rng;
mod schemas;
mod words;

use rng::Deck;
use schemas::{SCHEMAS, SchemaKind};

pub(crate) use broken::broken;
pub(crate) use rng::{Rng, shuffled};

/// The input shapes that an upload may mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// `{name, description, parameters, group}`
    Plain,
    /// `{type: "function", function: {...}}`
    OpenAiChat,
    /// `{type: "function", name, description, parameters, strict}`
    OpenAiResponses,
    /// `{name, description, input_schema}`
    Anthropic,
    /// `{name, title?, description, inputSchema, annotations?, outputSchema?, _meta?}`
    Mcp,
}

impl Shape {
    pub(crate) const ALL: [Self; 5] =
        [Self::Plain, Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Mcp];

    /// Which shape an entry of [`catalog`] has; without a schema, Anthropic and MCP look like plain ones.
    pub(crate) fn of(entry: &Value) -> Self {
        let is_function = entry["type"] == "function";
        match entry {
            _ if entry.get("function").is_some() => Self::OpenAiChat,
            _ if is_function => Self::OpenAiResponses,
            _ if entry.get("input_schema").is_some() => Self::Anthropic,
            _ if entry.get("inputSchema").is_some() => Self::Mcp,
            _ => Self::Plain,
        }
    }

    fn schema_key(self) -> &'static str {
        match self {
            Self::Anthropic => "input_schema",
            Self::Mcp => "inputSchema",
            Self::Plain | Self::OpenAiChat | Self::OpenAiResponses => "parameters",
        }
    }
}

/// The part of an entry that holds name, description and schema.
pub(crate) fn definition(entry: &Value) -> &Value {
    entry.get("function").unwrap_or(entry)
}

/// Group and name of an entry as uploaded; `other` where the entry has no group.
pub(crate) fn identity(entry: &Value) -> (&str, &str) {
    (entry["group"].as_str().unwrap_or("other"), definition(entry)["name"].as_str().unwrap_or_default())
}

/// The schema of an entry; None when it has none or null.
pub(crate) fn schema(entry: &Value) -> Option<&Value> {
    definition(entry).get(Shape::of(entry).schema_key()).filter(|schema| !schema.is_null())
}

#[derive(Debug, Clone, Copy)]
enum NameKind {
    Usual,
    Mapped,
    Long,
    Shared,
    EqualTwin,
    DifferentTwin,
    TailTwins,
    SeparatorTwins,
    BridgeName,
}

const NAMES: &[(usize, NameKind)] = &[
    (800, NameKind::Usual),
    (100, NameKind::Mapped),
    (15, NameKind::Long),
    (48, NameKind::Shared),
    (10, NameKind::EqualTwin),
    (8, NameKind::DifferentTwin),
    (8, NameKind::TailTwins),
    (8, NameKind::SeparatorTwins),
    (3, NameKind::BridgeName),
];

#[derive(Debug, Clone, Copy)]
enum TextKind {
    Missing,
    Null,
    Empty,
    Short,
    Paragraph,
    Lines,
    Long,
    Huge,
    Foreign,
    Emoji,
    Hostile,
}

/// Close to the real collection: median 59 characters, 95 % below 850, one in five with line breaks, 2.5 % empty.
const TEXTS: &[(usize, TextKind)] = &[
    (6, TextKind::Missing),
    (2, TextKind::Null),
    (25, TextKind::Empty),
    (572, TextKind::Short),
    (110, TextKind::Paragraph),
    (175, TextKind::Lines),
    (40, TextKind::Long),
    (2, TextKind::Huge),
    (48, TextKind::Foreign),
    (6, TextKind::Emoji),
    (14, TextKind::Hostile),
];

/// Sizes of the small groups: the quantiles of the real collection (median 5, mean 11).
const GROUP_SIZES: &[usize] =
    &[1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 35, 48, 110];

/// Upload entries of `count` tools: a huge group of one tool in nine (about 800 of 7,000) and small ones for the rest.
/// Every kind of mess is present from about 1,000 tools on. All entries are usable, except the one of two different
/// twins that has the larger digest.
pub(crate) fn catalog(seed: u64, count: usize) -> Vec<Value> {
    let mut maker = Maker::new(seed);
    maker.fill_group(count / 9, count);
    while maker.entries.len() < count {
        let size = *maker.rng.pick(GROUP_SIZES);
        maker.fill_group(size, count);
    }
    let order = maker.rng.next_u64();
    shuffled(order, maker.entries)
}

/// How the tools of one server are spelled and shipped.
struct Server {
    group: Option<String>,
    product: &'static str,
    style: Style,
    shape: Shape,
}

/// What a tool is about; its name and its texts share these words.
#[derive(Debug, Clone, Copy)]
struct Topic {
    verb: &'static str,
    adjective: &'static str,
    object: &'static str,
}

/// How the words of a name are joined.
#[derive(Debug, Clone, Copy)]
enum Style {
    Snake,
    Kebab,
    Camel,
    Pascal,
    Dots,
    Spaces,
}

impl Style {
    /// Mostly snake_case, as in reality. Dots and spaces come with the names that need a mapping.
    const OF_SERVERS: &[Self] = &[
        Self::Snake,
        Self::Snake,
        Self::Snake,
        Self::Snake,
        Self::Snake,
        Self::Kebab,
        Self::Camel,
        Self::Pascal,
    ];

    fn join(self, parts: &[&str]) -> String {
        let mut name = String::new();
        for (index, part) in parts.iter().enumerate() {
            let separator = match self {
                Self::Snake => "_",
                Self::Kebab => "-",
                Self::Dots => ".",
                Self::Spaces => " ",
                Self::Camel | Self::Pascal => "",
            };
            name.push_str(if index > 0 { separator } else { "" });
            if matches!(self, Self::Pascal) || (matches!(self, Self::Camel) && index > 0) {
                let (first, rest) = part.split_at(part.len().min(1));
                name.push_str(&first.to_uppercase());
                name.push_str(rest);
            } else {
                name.push_str(part);
            }
        }
        name
    }
}

struct Maker {
    rng: Rng,
    names: Deck<NameKind>,
    texts: Deck<TextKind>,
    schemas: Deck<SchemaKind>,
    groups: HashSet<String>,
    /// All names given so far; a usual name is never given twice.
    taken: HashSet<String>,
    entries: Vec<Value>,
    topic: Topic,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let (names, texts, schemas) = (Deck::new(NAMES), Deck::new(TEXTS), Deck::new(SCHEMAS));
        let (groups, taken, entries) = (HashSet::new(), HashSet::new(), Vec::new());
        let topic = Topic { verb: "do", adjective: "new", object: "thing" };
        Self { rng: Rng::new(seed), names, texts, schemas, groups, taken, entries, topic }
    }

    fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.rng.below(from.len())]
    }

    fn random_topic(&mut self) -> Topic {
        let (verb, adjective) = (self.word(words::VERBS), self.word(words::ADJECTIVES));
        Topic { verb, adjective, object: self.word(words::OBJECTS) }
    }

    fn fill_group(&mut self, size: usize, count: usize) {
        let server = self.server();
        let first = self.entries.len();
        let end = (first + size).min(count);
        let mut shared = shuffled(self.rng.next_u64(), words::SHARED_NAMES.to_vec());
        while self.entries.len() < end {
            let kind = self.names.deal(&mut self.rng);
            self.topic = self.random_topic();
            let room = end - self.entries.len();
            let own = self.entries.len() - first;
            match kind {
                NameKind::EqualTwin if own > 0 => {
                    let twin = self.entries[first + self.rng.below(own)].clone();
                    self.entries.push(twin);
                }
                NameKind::DifferentTwin if own > 0 => {
                    let name = identity(&self.entries[first + self.rng.below(own)]).1.to_owned();
                    self.push(&server, &name);
                }
                NameKind::TailTwins if room > 1 => {
                    let stem = self.long_name(&server);
                    self.push(&server, &format!("{stem}_create"));
                    self.push(&server, &format!("{stem}_delete"));
                }
                NameKind::SeparatorTwins if room > 1 => {
                    let stem = self.usual_name(&server).replace(['_', '-', '.', ' '], "");
                    self.push(&server, &format!("search-{stem}"));
                    self.push(&server, &format!("search_{stem}"));
                }
                NameKind::Long => {
                    let name = self.long_name(&server);
                    self.push(&server, &name);
                }
                NameKind::BridgeName => {
                    let name = *self.rng.pick(&["tool_search", "tool_call", "tool_describe"]);
                    self.push(&server, name);
                }
                NameKind::Mapped => {
                    let name = match self.rng.below(4) {
                        0 => self.spelled_name(&server, Style::Dots),
                        1 => self.spelled_name(&server, Style::Spaces),
                        _ => {
                            let pattern = self.word(words::MAPPED_NAMES);
                            pattern.replace("{}", &self.usual_name(&server))
                        }
                    };
                    self.push(&server, &name);
                }
                // A group that has no earlier tool, no room or no shared name left gets a usual one instead.
                NameKind::Shared if !shared.is_empty() => {
                    let name = shared.pop().unwrap_or_default();
                    self.push(&server, name);
                }
                _ => {
                    let name = self.usual_name(&server);
                    self.push(&server, &name);
                }
            }
        }
    }

    fn server(&mut self) -> Server {
        let product = self.word(words::PRODUCTS);
        let mut group = match self.rng.below(100) {
            0..8 => self.word(words::ODD_GROUPS).to_owned(),
            8..24 => format!("{}/{}", self.word(words::SERVER_KINDS), product.to_lowercase()),
            _ => format!("{}-{}", product.to_lowercase(), self.word(words::SERVER_KINDS)),
        };
        while !self.groups.insert(group.clone()) {
            group = format!("{group}-{}", self.word(words::OBJECTS));
        }
        // Two groups of 100 come from clients that know no groups.
        let group = (!self.rng.chance(2)).then_some(group);
        Server {
            group,
            product,
            style: *self.rng.pick(Style::OF_SERVERS),
            shape: *self.rng.pick(&Shape::ALL),
        }
    }

    /// A name that nothing else has, in the spelling of its server.
    fn usual_name(&mut self, server: &Server) -> String {
        self.spelled_name(server, server.style)
    }

    fn spelled_name(&mut self, server: &Server, style: Style) -> String {
        let prefix = server.product.to_lowercase();
        loop {
            self.topic = self.random_topic();
            let mut parts = vec![self.topic.verb];
            if self.rng.chance(35) {
                parts.push(self.topic.adjective);
            }
            parts.extend(self.topic.object.split('_'));
            if self.rng.chance(30) {
                parts.insert(0, &prefix);
            }
            let name = style.join(&parts);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    /// 65 to 260 characters, safe but for the length.
    fn long_name(&mut self, server: &Server) -> String {
        let wanted = 65 + self.rng.below(180);
        let mut name = self.usual_name(server);
        while name.len() < wanted {
            name = format!("{name}_{}", self.word(words::OBJECTS));
        }
        name
    }

    fn push(&mut self, server: &Server, name: &str) {
        // One entry in ten comes in another shape than its server's others.
        let shape = if self.rng.chance(10) { *self.rng.pick(&Shape::ALL) } else { server.shape };
        let mut tool = Map::new();
        tool.insert("name".into(), name.into());
        if shape == Shape::Mcp && self.rng.chance(40) {
            tool.insert("title".into(), name.replace('_', " ").to_uppercase().into());
        }
        let (text_kind, schema_kind) = (self.texts.deal(&mut self.rng), self.schemas.deal(&mut self.rng));
        if let Some(text) = self.text(text_kind, server) {
            tool.insert("description".into(), text);
        }
        if let Some(schema) = self.schema(schema_kind, server) {
            tool.insert(shape.schema_key().into(), schema);
        }
        if shape == Shape::Mcp {
            self.mcp_extras(&mut tool);
        }
        let mut entry = match shape {
            Shape::OpenAiChat => json!({"type": "function", "function": tool}),
            Shape::OpenAiResponses => {
                tool.insert("type".into(), "function".into());
                tool.insert(
                    "strict".into(),
                    self.rng.pick(&[json!(true), json!(false), Value::Null]).clone(),
                );
                Value::Object(tool)
            }
            Shape::Plain | Shape::Anthropic | Shape::Mcp => Value::Object(tool),
        };
        if let Some(group) = &server.group {
            entry["group"] = json!(group);
        }
        self.entries.push(entry);
    }

    fn mcp_extras(&mut self, tool: &mut Map<String, Value>) {
        if self.rng.chance(30) {
            let reads = self.rng.chance(60);
            let hints = json!({"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": true});
            tool.insert("annotations".into(), hints);
        }
        if self.rng.chance(15) {
            let output = json!({"type": "object", "properties": {"result": {"type": "string"}}});
            tool.insert("outputSchema".into(), output);
        }
        if self.rng.chance(10) {
            tool.insert("_meta".into(), json!({"vendor.example/stable": true, "icons": []}));
        }
    }

    /// A template with its places filled, mostly with the words of the present tool.
    fn fill(&mut self, template: &str, server: &Server) -> String {
        let spoken = |word: &str| word.replace('_', " ");
        let other = self.random_topic();
        let topic = if self.rng.chance(80) { self.topic } else { other };
        template
            .replace("{v}", topic.verb)
            .replace("{a}", topic.adjective)
            .replace("{o}", &spoken(topic.object))
            .replace("{p}", server.product)
    }

    fn text(&mut self, kind: TextKind, server: &Server) -> Option<Value> {
        let from = match kind {
            TextKind::Missing => return None,
            TextKind::Null => return Some(Value::Null),
            TextKind::Empty => return Some(json!(self.rng.pick(&["", "", "", " \n"]))),
            TextKind::Foreign => words::FOREIGN,
            TextKind::Emoji => words::EMOJI,
            TextKind::Hostile => words::HOSTILE,
            _ => words::SENTENCES,
        };
        let template = self.word(from);
        let mut text = self.fill(template, server);
        let wanted = match kind {
            TextKind::Short => self.rng.below(60),
            TextKind::Paragraph => 120 + self.rng.below(300),
            TextKind::Lines => 60 + self.rng.below(400),
            TextKind::Long => 800 + self.rng.below(1800),
            TextKind::Huge => 10_000,
            _ => 0,
        };
        while text.len() < wanted {
            let block = matches!(kind, TextKind::Lines | TextKind::Huge) && self.rng.chance(40);
            let template = self.word(if block { words::BLOCKS } else { words::REMARKS });
            text = format!("{text}{}{}", if block { "" } else { " " }, self.fill(template, server));
        }
        if matches!(kind, TextKind::Lines) {
            let template = self.word(words::BLOCKS);
            text.push_str(&self.fill(template, server));
        }
        Some(json!(text))
    }
}
