//! Stuffing: descriptions and aliases that are written to be found rather than to be read.
//!
//! Owns the rules. A text about something repeats what it is about and joins it with function words; one that wants to be found by
//! any query repeats too much, or nothing at all. Words that the name, the names of arguments or their values hold are no topics of
//! their own: they are what the tool does.
//!
//! The bounds were set on 6,746 tools of real servers, of which few are outside, beside the texts of `tests/security/hijack.jsonl`;
//! `docs/security.md` has the figures.

/// Words without support below which nothing is said about how they are told.
const FEWEST_WORDS: usize = 40;
/// Repetition: fewer than this share of the words are different. (The least of real texts of so many words is about .2.)
const LEAST_VARIETY: f32 = 0.2;
/// Breadth: more than this share of the words are different (one real text in a thousand), and so many of them are verbs of change.
const MOST_VARIETY: f32 = 0.87;
const MANY_ACTIONS: usize = 8;
/// Claims: so many verbs of change that make up so much of the text, however long it is.
const TOO_MANY_ACTIONS: usize = 10;
const ACTION_SHARE: f32 = 0.15;
/// Lists: so many words, hardly a function word between them (of real texts one in a hundred has fewer than .07), most of them
/// different, and nearly all of them words that tools at large use, so that a text in another language is none.
const FEWEST_LISTED: usize = 16;
const LIST_FUNCTION_SHARE: f32 = 0.06;
const LIST_VARIETY: f32 = 0.75;
const LIST_KNOWN_SHARE: f32 = 0.8;
/// Aliases: so many different words that tools at large use are no phrases for one thing. (No real upload has aliases to measure; ten
/// phrases of three words each, all different, are allowed.)
const TOO_MANY_PHRASED: usize = 30;

/// The words of a description while it is read.
#[derive(Debug, Default)]
pub(super) struct Prose {
    reading: bool,
    /// All words, and the function words of any language among them.
    words: usize,
    function_words: usize,
    /// Stems of the others, as they come.
    content: Vec<u32>,
}

impl Prose {
    pub(super) fn begin(&mut self) {
        self.reading = true;
    }

    pub(super) fn end(&mut self) {
        self.reading = false;
    }

    pub(super) fn clear(&mut self) {
        self.content.clear();
        (self.words, self.function_words) = (0, 0);
    }

    pub(super) fn word(&mut self, is_function_word: bool) {
        self.words += usize::from(self.reading);
        self.function_words += usize::from(self.reading && is_function_word);
    }

    pub(super) fn content(&mut self, term: u32) {
        if self.reading {
            self.content.push(term);
        }
    }

    /// What is left without the terms that something else of the tool supports.
    pub(super) fn unsupported(&self, supported: impl Fn(u32) -> bool) -> Topics {
        let mut terms: Vec<u32> = self.content.clone();
        terms.sort_unstable();
        let mut topics =
            Topics { function_share: share(self.function_words, self.words), ..Topics::default() };
        for same in terms.chunk_by(|a, b| a == b) {
            if !supported(same[0]) {
                topics.words += same.len();
                topics.different.push(same[0]);
            }
        }
        topics
    }
}

/// What a description talks about besides what its tool has.
#[derive(Debug, Default)]
pub(super) struct Topics {
    words: usize,
    different: Vec<u32>,
    /// Share of function words in the whole text.
    function_share: f32,
}

impl Topics {
    /// Whether the words repeat too much, or are about too much. `acts` says that a term is a verb of change.
    pub(super) fn claims_too_much(&self, acts: impl Fn(u32) -> bool) -> bool {
        let variety = share(self.different.len(), self.words);
        let actions = self.different.iter().filter(|term| acts(**term)).count();
        let many = self.words >= FEWEST_WORDS;
        let repeats = many && variety < LEAST_VARIETY;
        let broad = many && variety >= MOST_VARIETY && actions >= MANY_ACTIONS;
        repeats || broad || (actions >= TOO_MANY_ACTIONS && share(actions, self.words) >= ACTION_SHARE)
    }

    /// Whether the text is a list of words and no sentence. `known` says that tools at large use a term.
    pub(super) fn is_list(&self, known: impl Fn(u32) -> bool) -> bool {
        self.words >= FEWEST_LISTED
            && self.function_share < LIST_FUNCTION_SHARE
            && share(self.different.len(), self.words) >= LIST_VARIETY
            && share(self.different.iter().filter(|term| known(**term)).count(), self.different.len())
                >= LIST_KNOWN_SHARE
    }

    /// Whether the words are those of phrases for many things. `known` as above.
    pub(super) fn is_net(&self, known: impl Fn(u32) -> bool) -> bool {
        self.different.iter().filter(|term| known(**term)).count() > TOO_MANY_PHRASED
    }
}

fn share(part: usize, all: usize) -> f32 {
    if all == 0 { 0.0 } else { part as f32 / all as f32 }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Index};

    fn stuffed(description: &str, parameters: &str, aliases: &[&str]) -> bool {
        let aliases: Vec<String> = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let document = Document { group: "g", name: "helper", description, parameters, aliases: &aliases };
        Index::build(std::iter::once(document)).told(0).stuffed
    }

    const LIST: &str = "email, draft, mail rule, calendar, free slot, conference room, pull request, review, build log, \
                        support ticket, archive, folder, document, query plan, invoice, contract";

    const LISTED_MORE: [&str; 8] =
        ["photo", "parcel", "storage", "payment", "recording", "website", "message channel", "alert pager"];

    #[test]
    fn texts_that_are_written_to_be_found_are_told_from_others() {
        assert!(stuffed(&"email mail message inbox send ".repeat(9), "{}", &[]));
        assert!(stuffed(LIST, "{}", &[]));
        let claims = "Sends, posts, opens, approves, merges, deploys, assigns, closes, renames, shares, restores and refunds.";
        assert!(stuffed(claims, "{}", &[]));
        assert!(stuffed("Helps.", "{}", &LIST.split(", ").chain(LISTED_MORE).collect::<Vec<_>>()));
        assert!(!stuffed("Helps.", "{}", &LIST.split(", ").collect::<Vec<_>>()));
        assert!(stuffed("Helps.", "{}", &claims.split(", ").collect::<Vec<_>>()));
        for fine in [
            "Sends an email to one or several people. Attachments are given as ids of uploaded files.",
            "Creates, updates and deletes issues.",
            "检索邮件、日历、文件、工单、部署、告警、付款、订单、照片、录音、网站、翻译、地图、天气、新闻、股票",
            "Invia messaggi, bozze, filtri, calendari, riunioni, stanze, richieste, revisioni, registri, biglietti, \
             cartelle, archivi, documenti, fatture, contratti, allegati, notifiche",
            "",
        ] {
            assert!(!stuffed(fine, "{}", &[]), "{fine}");
        }
    }

    #[test]
    fn what_the_arguments_take_may_be_listed() {
        let names = LIST.split([',', ' ']).filter(|word| !word.is_empty());
        let properties: serde_json::Map<_, _> =
            names.map(|name| (name.to_owned(), serde_json::json!({}))).collect();
        let parameters = serde_json::json!({ "properties": properties }).to_string();
        assert!(!stuffed(LIST, &parameters, &[]));
    }

    #[cfg(feature = "data-tests")]
    #[test]
    fn few_real_tools_are_taken_for_stuffed() {
        let folder = std::env::var("TOOLRACK_TEST_DATA").unwrap();
        for file in ["real_mcp_tools.jsonl", "scale_tools.jsonl"] {
            let text = std::fs::read_to_string(format!("{folder}/catalogs/{file}")).unwrap();
            let tools: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let schemas: Vec<String> = tools.iter().map(|tool| tool["parameters"].to_string()).collect();
            let documents = tools.iter().zip(&schemas).map(|(tool, parameters)| Document {
                group: tool["group"].as_str().unwrap_or_default(),
                name: tool["name"].as_str().unwrap_or_default(),
                description: tool["description"].as_str().unwrap_or_default(),
                parameters,
                aliases: &[],
            });
            let index = Index::build(documents);
            let stuffed: Vec<&str> = (0..)
                .zip(&tools)
                .filter(|(number, _)| index.told(*number).stuffed)
                .filter_map(|(_, tool)| tool["name"].as_str())
                .collect();
            println!("{file}: {} of {}: {stuffed:?}", stuffed.len(), tools.len());
            assert!(stuffed.len() * 200 < tools.len(), "{file}: {stuffed:?}");
        }
    }
}
