//! The small value types of the key table and the rules that belong to one key alone.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::reader::{Reader, shorten};
use super::rules::{Int, Named, Record, Reserved, Rule, of};
use crate::core::format::native::Exposure;
use crate::core::profile::Profile;
use crate::core::selector::Selector;

/// Longest `bridge_prefix`, in characters: `tool_describe` still fits the 64 characters of a provider's
/// tool name.
const MAX_PREFIX_CHARS: usize = 32;

/// Which layer something came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The built-in default.
    Default,
    /// The user's config.
    User,
    /// The project's config.
    Project,
    /// Both configs.
    Merged,
}

impl Origin {
    /// The name as shown: `default`, `user`, `project` or `merged`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Merged => "merged",
        }
    }
}

/// A three-way switch (`enabled`, `listing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Switch {
    Auto,
    On,
    Off,
}

impl Named for Switch {
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("on", Self::On), ("off", Self::Off)];

    fn from_bool(on: bool) -> Option<Self> {
        Some(if on { Self::On } else { Self::Off })
    }
}

/// Where the listing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListingPlacement {
    /// Beside the tools, for the caller to place.
    Separate,
    /// In the description of `tool_search`.
    Bridge,
}

impl ListingPlacement {
    /// The name in config and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Bridge => "bridge",
        }
    }
}

impl Named for ListingPlacement {
    const NAMES: &'static [(&'static str, Self)] = &[("separate", Self::Separate), ("bridge", Self::Bridge)];
}

/// When a found tool enters the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarmPolicy {
    /// At the next assembly.
    Immediate,
    /// At the next epoch; until then it is pending.
    Epoch,
    /// Never.
    Off,
}

impl Named for WarmPolicy {
    const NAMES: &'static [(&'static str, Self)] =
        &[("immediate", Self::Immediate), ("epoch", Self::Epoch), ("off", Self::Off)];
}

impl Named for Profile {
    const NAMES: &'static [(&'static str, Self)] = &{
        let mut names = [("", Self::Generic); Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = (Self::ALL[at].as_str(), Self::ALL[at]);
            at += 1;
        }
        names
    };
}

impl Named for Exposure {
    const NAMES: &'static [(&'static str, Self)] =
        &[("bridge", Self::Bridge), ("namespaced", Self::Namespaced), ("native", Self::Native)];
}

/// A named set of tools: by exact names and by name prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// 1 to 128 characters, unique in its layer.
    pub name: String,
    /// Shown in listings; at most 2,000 characters.
    pub description: Option<String>,
    /// Exact tool names.
    pub tools: Vec<String>,
    /// Beginnings of tool names, without a star; never empty texts.
    pub prefixes: Vec<String>,
}

/// A named, composable selection of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// 1 to 128 characters, unique in its layer, never `*`.
    pub name: String,
    /// At most 2,000 characters.
    pub description: Option<String>,
    pub tools: Vec<Selector>,
    /// Names of groups; `*` is everything.
    pub groups: Vec<String>,
    /// Names of other toolsets, perhaps unknown or cyclic; `*` is everything.
    pub includes: Vec<String>,
}

inner_table! {
    /// `preload` as one layer says it.
    PreloadSetting {
        enabled: bool = Some(false), by Flag,
            "Whether anything is preloaded. Needs a `matcher`, and `query` or `messages` in the assembly.";
        top_k: u32 = Some(5), by Int { min: 1, max: 64 },
            "How many tools are preloaded at most; never more than `max_warm_tools`.";
    }
}

/// `preload` with its defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preload {
    pub enabled: bool,
    /// 1 to 64 tools.
    pub top_k: u32,
}

impl super::join::Filled for PreloadSetting {
    type Full = Preload;

    fn fill(&self) -> Preload {
        let full = self.filled();
        Preload { enabled: full.enabled.unwrap_or_default(), top_k: full.top_k.unwrap_or_default() }
    }

    fn view(&self) -> Value {
        Value::Object(self.filled().write())
    }
}

inner_table! {
    /// `hot_tools` as one layer says it.
    HotToolsSetting {
        enabled: bool = Some(false), by Flag,
            "Whether the most called tools are proposed for `core`.";
        auto: bool = Some(false), by Flag,
            "Whether they join it by themselves, session by session; only with `enabled`.";
        top_k: u32 = Some(5), by Int { min: 1, max: 20 },
            "How many tools are hot at most; together they never take more than 2,000 tokens.";
        window_days: u32 = Some(14), by Int { min: 1, max: 90 },
            "Calls of so many days count, today included.";
    }
}

/// `hot_tools` with its defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotTools {
    pub enabled: bool,
    pub auto: bool,
    /// 1 to 20 tools.
    pub top_k: u32,
    /// 1 to 90 days.
    pub window_days: u32,
}

impl HotTools {
    /// Whether hot tools join the core of sessions.
    pub fn join(&self) -> bool {
        self.enabled && self.auto
    }
}

impl super::join::Filled for HotToolsSetting {
    type Full = HotTools;

    fn fill(&self) -> HotTools {
        let full = self.filled();
        HotTools {
            enabled: full.enabled.unwrap_or_default(),
            auto: full.auto.unwrap_or_default(),
            top_k: full.top_k.unwrap_or_default(),
            window_days: full.window_days.unwrap_or_default(),
        }
    }

    fn view(&self) -> Value {
        Value::Object(self.filled().write())
    }
}

/// An object of one switch (`usage_prior`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Toggle {
    pub enabled: bool,
}

/// Reads `{enabled: false}`.
pub(super) struct ToggleRule;

impl Rule for ToggleRule {
    type Out = Toggle;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Toggle> {
        let mut toggle = Toggle::default();
        reader.object(value, &["enabled"], |reader, _, value| {
            toggle.enabled = Reserved(Flag, false).read(value, reader).unwrap_or_default();
        })?;
        Some(toggle)
    }

    fn write(&self, toggle: &Toggle) -> Value {
        Value::Object(Map::from_iter([("enabled".to_owned(), Value::Bool(toggle.enabled))]))
    }

    fn range(&self) -> String {
        format!("{{enabled: {}}}", Reserved(Flag, false).range())
    }
}

/// Reads a boolean.
#[derive(Clone, Copy)]
pub(super) struct Flag;

impl Rule for Flag {
    type Out = bool;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<bool> {
        let flag = value.as_bool();
        if flag.is_none() {
            reader.wrong_type("true or false", value);
        }
        flag
    }

    fn write(&self, flag: &bool) -> Value {
        Value::Bool(*flag)
    }

    fn range(&self) -> String {
        "true, false".to_owned()
    }
}

/// Reads `bridge_prefix`: empty, or the beginning of a name that every provider accepts.
pub(super) struct BridgePrefix;

impl Rule for BridgePrefix {
    type Out = String;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<String> {
        let Some(text) = value.as_str() else {
            reader.wrong_type("a text", value);
            return None;
        };
        let first = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let good = text.len() <= MAX_PREFIX_CHARS
            && text.as_bytes().first().is_none_or(first)
            && text.bytes().all(rest);
        if !good {
            reader.fault("invalid_value", format!("{:?} is not {}", shorten(text), self.range()));
            return None;
        }
        Some(text.to_owned())
    }

    fn write(&self, prefix: &String) -> Value {
        Value::String(prefix.clone())
    }

    fn range(&self) -> String {
        "\"\" or [A-Za-z_][A-Za-z0-9_-]{0,31}".to_owned()
    }
}
