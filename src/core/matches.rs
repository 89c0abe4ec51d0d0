//! From ranked hits to matches: how sure each is, what is too weak to be shown as one, and what fits the answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::lexical::{Hit, Outcome, Unmet};
use super::text::{clip, is_hidden, one_line};
use super::tool::Tool;

/// Longest description in a brief match, in characters (`product.md`, section 4).
pub const BRIEF_CHARS: usize = 200;
/// Most names in `required[]`, and the longest, in characters; an agent needs the names to call, not all of a bomb.
const MAX_REQUIRED: (usize, usize) = (32, 64);
/// Matches that are shown as possibly unrelated when nothing fits.
pub const MAX_NEAREST: usize = 3;

/// Evidence for a match is `1.1 ln(1 + score) + 1.4 sqrt(coverage) + 0.7 similarity`, less what speaks against it, with the score of the
/// words measured in the rarity of a word that one tool holds, so that catalogs of ten and of ten thousand tools compare. The form and its
/// weights come from a logistic fit on one half of the development sets (right tools against the best of requests that no tool
/// serves, and of requests whose servers were hidden); the other half confirmed it. Margins between the first tools were tried
/// and tell nothing more.
const SCORE_WEIGHT: f32 = 1.1;
const COVERAGE_WEIGHT: f32 = 1.4;
const LIKENESS_WEIGHT: f32 = 0.7;
/// Likeness of a right tool, where meaning was not compared.
const USUAL_LIKENESS: f32 = 0.45;
/// That rarity in a catalog of about a thousand tools.
const COMMON_RAREST: f32 = 12.0;
/// The tool is of another service than the one that the query names, or does nothing that the query asks to do.
const OTHER_SERVICE: f32 = 2.3;
const OTHER_ACTION: f32 = 0.9;
/// In a query of so few words each is meant.
const PLAIN_QUERY_TERMS: usize = 4;
/// Longer queries name services and actions in passing.
const SHORT_QUERY_TERMS: usize = 12;
/// Below this a tool is no match: fewer than one right tool in twenty is lost on every set, one in a hundred on that of agents' queries.
const FLOOR: f32 = 2.0;
/// Six in seven requests that nothing serves have no tool above this.
const MEDIUM: f32 = 4.9;
/// Above this the first match is right nineteen times in twenty.
const HIGH: f32 = 6.2;
/// Tools of a catalog for which these hold, and how much lower they are in a catalog of one.
const USUAL_TOOLS: f32 = 300.0;
const SMALL_FLOOR: f32 = 0.3;
const SMALL_SURE: f32 = 0.7;
/// A name that holds all of the query, or nearly all of several words, is a match whatever they weigh.
const ALL_OF_IT: f32 = 0.999;
const NEARLY_ALL: f32 = 0.85;

/// What a deviation of the endpoint's scores counts for beside one of the keyword scores. Chosen with all-MiniLM-L6-v2 as the
/// endpoint: at 1 the sets where the model is much better gain a little more, but one where it is much worse loses .015.
const ENDPOINT_SHARE: f64 = 0.5;
/// By so much the endpoint's first tool must lead to be more than a guess by itself. Weak models hardly ever tell so much: with half of
/// it, three in five requests that nothing serves got a medium match.
const CLEAR_MARGIN: f64 = 0.3;
/// The endpoint's first tool is of medium confidence with so much less evidence from its words.
const FIRST_BY_ENDPOINT: f32 = 0.3;

/// How sure a match is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// A tool of the view with its place in an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub id: u32,
    pub score: f64,
    pub confidence: Confidence,
    /// What the endpoint said, where one ranked.
    pub raw: Option<f64>,
}

/// What one query found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Best first.
    pub matches: Vec<Scored>,
    /// Tools below the floor, when there are no matches.
    pub nearest: Vec<Scored>,
    /// Content words of the query; 0 means that it says nothing to look for.
    pub terms: usize,
    /// What it demands and no tool has; there are no matches then.
    pub unmet: Option<Unmet>,
    /// It asks what tools there are: the answer is the groups, and neither matches nor nearest tools.
    pub asks_for_all: bool,
}

impl Found {
    /// Whether something was found that is more than a guess.
    pub fn is_sure(&self) -> bool {
        self.matches.iter().any(|scored| scored.confidence > Confidence::Low)
    }

    /// What an outcome says about its query; an empty answer where that decides it.
    fn about(words: &Outcome) -> Self {
        Self {
            terms: words.terms,
            unmet: words.unmet.clone(),
            asks_for_all: words.asks_for_all,
            ..Self::default()
        }
    }
}

/// What a confidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    /// What the words' score, the coverage and the similarity say for the tool.
    pub words: f32,
    pub coverage: f32,
    pub similarity: f32,
    /// What is taken off because the tool is of another service than the query names, and because it does nothing that the
    /// query asks to do.
    pub other_service: f32,
    pub other_action: f32,
    /// All of it.
    pub total: f32,
    /// From here on a tool is shown as a match, is of medium and of high confidence, in a catalog of so many tools. A name that
    /// holds all of the query is a match whatever the total.
    pub floor: f32,
    pub medium: f32,
    pub high: f32,
}

impl Evidence {
    /// How much speaks for a hit of an outcome.
    pub fn of(hit: &Hit, outcome: &Outcome) -> Self {
        let score = hit.words / outcome.rarest.max(1.0) * COMMON_RAREST;
        let against =
            |holds: bool, weight: f32| if holds && outcome.terms <= SHORT_QUERY_TERMS { weight } else { 0.0 };
        let small = smallness(outcome.tools);
        let evidence = Self {
            words: SCORE_WEIGHT * score.ln_1p(),
            coverage: COVERAGE_WEIGHT * hit.coverage.sqrt(),
            similarity: LIKENESS_WEIGHT * hit.alike.unwrap_or(USUAL_LIKENESS),
            other_service: against(hit.other_service, OTHER_SERVICE),
            other_action: against(hit.other_action, OTHER_ACTION),
            total: 0.0,
            floor: FLOOR - SMALL_FLOOR * small,
            medium: MEDIUM - SMALL_SURE * small,
            high: HIGH - SMALL_SURE * small,
        };
        let pro = evidence.words + evidence.coverage + evidence.similarity;
        Self { total: pro - evidence.other_service - evidence.other_action, ..evidence }
    }
}

/// 1 for a catalog of one tool, 0 from [`USUAL_TOOLS`] on: the fewer tools, the less likely the best of them has the words
/// of a query by chance.
fn smallness(tools: usize) -> f32 {
    (1.0 - (tools.max(1) as f32).ln() / USUAL_TOOLS.ln()).max(0.0)
}

fn confidence(hit: &Hit, outcome: &Outcome) -> Confidence {
    let evidence = Evidence::of(hit, outcome);
    // Names of function words alone, and short requests whose action the tool has not, are no sure thing whatever else they share.
    let doubtful = outcome.terms == 0 || (hit.other_action && outcome.terms <= PLAIN_QUERY_TERMS);
    if doubtful && !hit.exact && !hit.whole {
        return Confidence::Low;
    }
    let several = outcome.terms >= 2;
    let all_of_it = hit.name_coverage >= ALL_OF_IT;
    let nearly_all = several && hit.name_coverage >= NEARLY_ALL && !hit.other_service && !hit.other_action;
    if hit.exact || hit.whole || evidence.total >= evidence.high || (all_of_it && several) {
        Confidence::High
    } else if evidence.total >= evidence.medium || all_of_it || nearly_all {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

/// Scores are told to four digits, so that the same state gives the same bytes on every machine.
fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

/// The matches of a keyword ranking.
pub fn by_keywords(outcome: &Outcome) -> Found {
    let about = Found::about(outcome);
    if about.asks_for_all {
        return about;
    }
    let scored = |hit: &Hit| Scored {
        id: hit.candidate,
        score: rounded(f64::from(hit.score)),
        confidence: confidence(hit, outcome),
        raw: None,
    };
    let fits = |hit: &&Hit| {
        let sure = confidence(hit, outcome) > Confidence::Low;
        let evidence = Evidence::of(hit, outcome);
        about.unmet.is_none() && (sure || evidence.total >= evidence.floor)
    };
    let mut matches: Vec<Scored> = outcome.hits.iter().filter(fits).map(scored).collect();
    // What stands before a sure match is as sure.
    let mut surest = Confidence::Low;
    for scored in matches.iter_mut().rev() {
        surest = surest.max(scored.confidence);
        scored.confidence = surest;
    }
    let nearest = if matches.is_empty() {
        let nearest = outcome.hits.iter().take(MAX_NEAREST).map(scored);
        nearest.map(|scored| Scored { confidence: Confidence::Low, ..scored }).collect()
    } else {
        Vec::new()
    };
    Found { matches, nearest, ..about }
}

/// A tool with the score that an endpoint gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endorsed {
    pub id: u32,
    /// 0 to 1.
    pub score: f64,
    /// As the endpoint said it.
    pub raw: f64,
}

/// The matches of an endpoint's ranking, best first. Tools that the query names keep their place in front. Scores of unknown
/// models are not comparable, so confidence comes from the words, with a little trust in the endpoint's first tool, and more
/// where that leads by far.
pub fn by_endpoint(ranked: &[Endorsed], words: &Outcome, rules: &EndpointRules) -> Found {
    let EndpointRules { min_score, limit, fuse } = *rules;
    let about = Found::about(words);
    if about.asks_for_all {
        return about;
    }
    let kept = |tool: &&Endorsed| min_score.is_none_or(|least| tool.score >= least);
    let all = ranked;
    let mut ranked: Vec<Endorsed> = all.iter().filter(kept).copied().collect();
    if fuse {
        join(&mut ranked, words);
    }
    let ranked = ranked.as_slice();
    // A strong model tells the one tool from all others, whatever words they share.
    let leader = match all {
        [first, second, ..] if first.score - second.score >= CLEAR_MARGIN => Some(first.id),
        _ => None,
    };
    let hit_of = |id: u32| words.hits.iter().find(|hit| hit.candidate == id);
    let scored = |at: usize, tool: Endorsed| {
        let hit = hit_of(tool.id);
        let by_words = hit.map_or(Confidence::Low, |hit| confidence(hit, words));
        let nearly = hit.is_some_and(|hit| {
            let evidence = Evidence::of(hit, words);
            evidence.total >= evidence.medium - FIRST_BY_ENDPOINT
        });
        let by_order = at == 0 && (nearly || leader == Some(tool.id));
        let confidence = by_words.max(if by_order { Confidence::Medium } else { Confidence::Low });
        Scored { id: tool.id, score: rounded(tool.score), confidence, raw: Some(tool.raw) }
    };
    let of_name = |id: u32| {
        let ranked = ranked.iter().find(|tool| tool.id == id).copied();
        ranked.map_or_else(
            || Scored { raw: None, ..scored(0, Endorsed { id, score: 0.0, raw: 0.0 }) },
            |tool| scored(0, tool),
        )
    };
    let named: Vec<u32> =
        words.hits.iter().filter(|hit| hit.exact || hit.whole).map(|hit| hit.candidate).collect();
    let rest = ranked.iter().enumerate().filter(|(_, tool)| !named.contains(&tool.id));
    let mut matches: Vec<Scored> = named.iter().map(|id| of_name(*id)).collect();
    let room = limit.saturating_sub(matches.len());
    matches.extend(rest.map(|(at, tool)| scored(at, *tool)).take(room));
    // An endpoint that answered for fewer tools than it was asked about leaves the rest to the words, but where a least score is set.
    let unranked =
        |scored: &Scored| !all.iter().any(|tool| tool.id == scored.id) && !named.contains(&scored.id);
    if min_score.is_none() {
        let by_words = by_keywords(words).matches.into_iter().filter(unranked);
        let room = limit.saturating_sub(matches.len());
        matches.extend(by_words.map(|found| Scored { score: 0.0, ..found }).take(room));
    }
    if about.unmet.is_some() {
        matches.clear();
    }
    let nearest = if matches.is_empty() {
        let weak = all.iter().take(MAX_NEAREST);
        weak.map(|tool| Scored { confidence: Confidence::Low, ..scored(1, *tool) }).collect()
    } else {
        Vec::new()
    };
    Found { matches, nearest, ..about }
}

/// How an endpoint's ranking becomes matches.
#[derive(Debug, Clone, Copy)]
pub struct EndpointRules {
    /// Tools that score lower are left out.
    pub min_score: Option<f64>,
    /// Most matches.
    pub limit: usize,
    /// Whether the keyword order counts as well.
    pub fuse: bool,
}

/// Orders tools by both rankings: each score in deviations from its mean over these tools, summed. The sum is told in 0 to 1.
fn join(ranked: &mut [Endorsed], words: &Outcome) {
    let of_words: HashMap<u32, f64> =
        words.hits.iter().map(|hit| (hit.candidate, f64::from(hit.score))).collect();
    let by_words: Vec<f64> =
        ranked.iter().map(|tool| of_words.get(&tool.id).copied().unwrap_or(0.0)).collect();
    let by_endpoint: Vec<f64> = ranked.iter().map(|tool| tool.score).collect();
    let (of_words, of_endpoint) = (Deviations::of(&by_words), Deviations::of(&by_endpoint));
    let joined: Vec<f64> = by_words
        .iter()
        .zip(&by_endpoint)
        .map(|(words, endpoint)| of_words.z(*words) + ENDPOINT_SHARE * of_endpoint.z(*endpoint))
        .collect();
    let least = joined.iter().copied().fold(f64::INFINITY, f64::min);
    let range = joined.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    for (tool, sum) in ranked.iter_mut().zip(joined) {
        tool.score = if range > 0.0 { (sum - least) / range } else { tool.score };
    }
    // Stable: where both say the same, the endpoint's order stays.
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
}

/// Mean and deviation of some scores.
#[derive(Debug, Clone, Copy)]
struct Deviations {
    mean: f64,
    deviation: f64,
}

impl Deviations {
    fn of(scores: &[f64]) -> Self {
        let count = scores.len().max(1) as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        Self { mean, deviation: variance.sqrt() }
    }

    fn z(self, score: f64) -> f64 {
        if self.deviation > 0.0 { (score - self.mean) / self.deviation } else { 0.0 }
    }
}

/// The order in which the matches of several queries are warmed: the best of each that may be warmed, the second of
/// each, and so on; sure enough ones only, each tool once.
pub fn warming_order(found: &[Found], may_warm: impl Fn(u32) -> bool) -> Vec<u32> {
    let may_warm = &may_warm;
    let warmable = |found: &Found| -> Vec<u32> {
        let sure = found.matches.iter().filter(|scored| scored.confidence > Confidence::Low);
        sure.map(|scored| scored.id).filter(|id| may_warm(*id)).collect()
    };
    let queries: Vec<Vec<u32>> = found.iter().map(warmable).collect();
    let longest = queries.iter().map(Vec::len).max().unwrap_or(0);
    let mut order = Vec::new();
    for rank in 0..longest {
        for id in queries.iter().filter_map(|query| query.get(rank)) {
            if !order.contains(id) {
                order.push(*id);
            }
        }
    }
    order
}

/// A description on one line, as a brief match shows it.
pub fn brief_description(tool: &Tool) -> String {
    // A multiple of what is shown is cleaned: a description may be a quarter of a megabyte.
    clip(&one_line(head(&tool.description(), 8 * BRIEF_CHARS)), BRIEF_CHARS).into_owned()
}

/// The first characters of a text.
fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// A whole description without hidden characters; its lines are kept.
pub fn whole_description(tool: &Tool) -> String {
    match tool.description() {
        text if text.chars().any(is_hidden) => {
            text.chars().filter(|character| !is_hidden(*character)).collect()
        }
        text => text.into_owned(),
    }
}

/// The required arguments of a tool, bounded and cleaned.
pub fn required_arguments(tool: &Tool) -> Vec<String> {
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow)]
        required: Option<Vec<Cow<'a, str>>>,
    }
    let root: Option<Root<'_>> = serde_json::from_str(tool.parameters()).ok();
    let names = root.and_then(|root| root.required).unwrap_or_default();
    names.iter().take(MAX_REQUIRED.0).map(|name| clip(&one_line(name), MAX_REQUIRED.1).into_owned()).collect()
}

/// The text of a tool that an endpoint ranks, most important first: group, name as words and as it is, description, arguments
/// with a few words about each, other names.
pub fn endpoint_text(tool: &Tool, stored_name: &str, group: &str, aliases: &[String]) -> String {
    const MAX_CHARS: usize = 1_500;
    let mut text = format!(
        "{} {} ({stored_name}): {}",
        one_line(group),
        one_line(&words_of(stored_name)),
        // A multiple of what is sent is cleaned: a description may be a quarter of a megabyte.
        one_line(head(&tool.description(), 4 * MAX_CHARS))
    );
    let arguments = arguments(tool);
    if !arguments.is_empty() {
        text.push_str(" Arguments: ");
        text.push_str(&arguments.join(", "));
    }
    for alias in aliases.iter().chain(tool.aliases()) {
        text.push_str(" / ");
        text.push_str(alias);
    }
    clip(&one_line(&text), MAX_CHARS).into_owned()
}

/// `createIssue_v2` as `create Issue v2`.
fn words_of(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for character in name.chars() {
        if before.is_lowercase() && character.is_uppercase() {
            words.push(' ');
        }
        words.push(if character.is_alphanumeric() { character } else { ' ' });
        before = character;
    }
    words
}

/// The first arguments of a tool, each with the beginning of its description. The schema is read over, not kept: it may be a
/// quarter of a megabyte.
fn arguments(tool: &Tool) -> Vec<String> {
    const MAX_CHARS: usize = 60;
    #[derive(Deserialize)]
    struct Root<'a> {
        #[serde(borrow)]
        properties: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Argument<'a> {
        #[serde(borrow)]
        description: Option<Cow<'a, str>>,
    }
    let root: Option<Root<'_>> = serde_json::from_str(tool.parameters()).ok();
    let properties = root.and_then(|root| root.properties).map(RawValue::get);
    let first: Option<FirstMembers<'_>> = properties.and_then(|text| serde_json::from_str(text).ok());
    let told = |(name, schema): (String, &RawValue)| {
        let argument: Option<Argument<'_>> = serde_json::from_str(schema.get()).ok();
        let text = argument.and_then(|argument| argument.description).unwrap_or_default();
        let text = one_line(head(&text, 8 * MAX_CHARS));
        if text.trim().is_empty() { name } else { format!("{name} ({})", clip(&text, MAX_CHARS)) }
    };
    first.map(|first| first.0).unwrap_or_default().into_iter().map(told).collect()
}

/// The first members of an object.
struct FirstMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for FirstMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = FirstMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        const MOST: usize = 10;
        let mut members = Vec::with_capacity(MOST);
        while members.len() < MOST
            && let Some(member) = map.next_entry()?
        {
            members.push(member);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FirstMembers(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::ToolParts;

    fn hit(candidate: u32, coverage: f32) -> Hit {
        Hit {
            candidate,
            score: coverage * 100.0,
            words: coverage * 100.0,
            coverage,
            name_coverage: coverage / 2.0,
            exact: false,
            whole: false,
            other_service: false,
            other_action: false,
            alike: None,
        }
    }

    #[test]
    fn weak_hits_are_no_matches_and_are_not_lost() {
        let outcome = Outcome {
            hits: vec![hit(3, 0.02), hit(1, 0.01)],
            terms: 3,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        };
        let found = by_keywords(&outcome);
        assert!(found.matches.is_empty());
        assert_eq!(found.nearest.iter().map(|scored| scored.id).collect::<Vec<_>>(), [3, 1]);
        let strong = by_keywords(&Outcome {
            hits: vec![hit(3, 0.9), hit(1, 0.4), hit(2, 0.2)],
            terms: 3,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        });
        let sure: Vec<Confidence> = strong.matches.iter().map(|scored| scored.confidence).collect();
        assert_eq!(sure, [Confidence::High, Confidence::Medium, Confidence::Low]);
        assert!(strong.nearest.is_empty());
    }

    #[test]
    fn a_tool_of_another_service_or_action_is_less_sure() {
        let sure = |hit: Hit, terms: usize| {
            by_keywords(&Outcome { hits: vec![hit], terms, rarest: 12.0, tools: 1_000, ..Outcome::default() })
                .matches[0]
                .confidence
        };
        assert_eq!(sure(hit(1, 0.5), 3), Confidence::Medium);
        assert_eq!(sure(Hit { other_service: true, ..hit(1, 0.5) }, 3), Confidence::Low);
        assert_eq!(sure(Hit { other_action: true, ..hit(1, 0.5) }, 3), Confidence::Low);
        // A long text names services in passing; a tool's own name settles it.
        assert_eq!(sure(Hit { other_service: true, ..hit(1, 0.5) }, 30), Confidence::Medium);
        assert_eq!(sure(Hit { other_service: true, exact: true, ..hit(1, 0.5) }, 3), Confidence::High);
        assert_eq!(sure(Hit { name_coverage: 1.0, ..hit(1, 0.1) }, 1), Confidence::Medium);
    }

    #[test]
    fn a_named_tool_comes_first_whatever_the_endpoint_says() {
        let named = Hit { exact: true, ..hit(7, 0.3) };
        let words = Outcome {
            hits: vec![named, hit(1, 0.5)],
            terms: 2,
            rarest: 12.0,
            tools: 1_000,
            ..Outcome::default()
        };
        let endorsed = |id, score| Endorsed { id, score, raw: score };
        let found = by_endpoint(
            &[endorsed(1, 0.9), endorsed(2, 0.8), endorsed(7, 0.1)],
            &words,
            &EndpointRules { min_score: None, limit: 2, fuse: false },
        );
        assert_eq!(found.matches.iter().map(|scored| scored.id).collect::<Vec<_>>(), [7, 1]);
        let floor = by_endpoint(
            &[endorsed(1, 0.2)],
            &Outcome::default(),
            &EndpointRules { min_score: Some(0.5), limit: 5, fuse: true },
        );
        assert_eq!((floor.matches.len(), floor.nearest.len()), (0, 1));
    }

    #[test]
    fn the_text_for_an_endpoint_holds_the_first_arguments_of_any_schema() {
        let raw = |value: &serde_json::Value| RawValue::from_string(value.to_string()).unwrap();
        let text = |parameters: serde_json::Value| {
            let (description, parameters) = (raw(&json!("d")), raw(&parameters));
            let parts = ToolParts {
                name: "t".into(),
                description: Some(&description),
                parameters: Some(&parameters),
                ..ToolParts::default()
            };
            endpoint_text(&Tool::from_parts(&parts).unwrap(), "t", "g", &[])
        };
        let many: serde_json::Map<String, serde_json::Value> =
            (0..30).map(|at| (format!("a{at:02}"), json!({"description": format!("About {at}.")}))).collect();
        assert!(text(json!({"properties": many})).ends_with("a08 (About 8.), a09 (About 9.)"));
        for (properties, told) in [
            (json!({"a": true, "b": {"description": 7}, "c": {"description": " "}}), " Arguments: a, b, c"),
            (json!({"a": {"description": "čš\n ž"}}), " Arguments: a (čš ž)"),
            (json!([1]), ""),
            (json!({}), ""),
        ] {
            assert_eq!(text(json!({"properties": properties})), format!("g t (t): d{told}"));
        }
    }

    #[test]
    fn warming_goes_round_the_queries() {
        let found = |ids: &[u32]| Found {
            matches: ids
                .iter()
                .map(|id| Scored { id: *id, score: 1.0, confidence: Confidence::High, raw: None })
                .collect(),
            ..Found::default()
        };
        assert_eq!(warming_order(&[found(&[1, 2, 3]), found(&[4, 1])], |id| id != 3), [1, 4, 2]);
    }
}
