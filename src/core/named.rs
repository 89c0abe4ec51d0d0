//! Names in a query: a tool that is named to the letter always gets a place, the first if it is the whole query.
//!
//! The ranking folds case and separators, so `fetch-content` and `FetchContent` are one name to it; here they are two.

use super::grant::View;
use super::lexical::{Hit, Outcome};

/// Words of one query that are looked up as names.
const MAX_WORDS: usize = 200;

/// Visible tools that a name means to the letter: by stored, wire or uploaded name.
fn visible(view: &View, name: &str) -> Vec<u32> {
    let ids = view.select(name).into_iter();
    ids.filter(|id| view.get(*id).is_some_and(|tool| !tool.unavailable)).collect()
}

/// Whether a word of a sentence can only be a name: `list` may be meant as a verb, `list_zones` may not.
fn is_identifier(word: &str) -> bool {
    let inside = word.get(1..).unwrap_or_default();
    word.contains(['_', '-', '.', '/', ':']) || inside.chars().any(char::is_uppercase)
}

/// Puts the tools that `query` names in front of the ranked ones; those that were not ranked get a place.
pub fn promote(view: &View, query: &str, outcome: &mut Outcome) {
    let whole = visible(view, query.trim());
    let words = query.split(|c: char| c.is_whitespace() || ",;\"'`()[]{}<>".contains(c)).take(MAX_WORDS);
    let words =
        words.map(|word| word.trim_end_matches(['.', ':', '!', '?'])).filter(|word| is_identifier(word));
    let mut named: Vec<(u32, bool)> = whole.into_iter().map(|id| (id, true)).collect();
    for id in words.flat_map(|word| visible(view, word)) {
        if !named.iter().any(|(known, _)| *known == id) {
            named.push((id, false));
        }
    }
    if named.is_empty() {
        return;
    }
    // Of several tools with one name, the words beside the name decide.
    let rank = |id: u32| outcome.hits.iter().position(|hit| hit.candidate == id).unwrap_or(usize::MAX);
    named.sort_by_key(|(id, whole)| (!whole, rank(*id)));
    let best = outcome.hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let hits = named.iter().map(|(id, whole)| {
        let ranked = outcome.hits.iter().find(|hit| hit.candidate == *id).copied();
        let unranked = Hit {
            candidate: *id,
            score: best,
            words: best,
            coverage: 1.0,
            name_coverage: 1.0,
            exact: true,
            whole: *whole,
            other_service: false,
            other_action: false,
            alike: None,
        };
        Hit {
            exact: true,
            whole: *whole || ranked.is_some_and(|hit| hit.whole),
            ..ranked.unwrap_or(unranked)
        }
    });
    let mut hits: Vec<Hit> = hits.collect();
    let is_named = |hit: &Hit| named.iter().any(|(id, _)| *id == hit.candidate);
    let (folded, rest): (Vec<Hit>, Vec<Hit>) =
        outcome.hits.iter().filter(|hit| !is_named(hit)).partition(|hit| hit.whole);
    // Whole names to the letter, whole names but for their spelling, names inside the query, the rest.
    let split = hits.iter().position(|hit| !hit.whole).unwrap_or(hits.len());
    hits.splice(split..split, folded);
    hits.extend(rest);
    outcome.hits = hits;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::catalog::{Catalog, read_upload, replace};
    use crate::core::format::ingest::EntryLimits;
    use crate::core::grant::Catalogs;
    use crate::core::policy::Policy;

    fn promoted(names: &[&str], query: &str, ranked: Vec<Hit>) -> Vec<String> {
        let texts: Vec<String> =
            names.iter().map(|name| serde_json::json!({"name": name}).to_string()).collect();
        let upload =
            read_upload(texts.iter().map(String::as_str), EntryLimits { bytes: 9_999, depth: 64 }, "");
        let user = Arc::new(replace(&Catalog::default(), upload.tools).catalog);
        let catalogs = Catalogs::Stored { user, project: Arc::default() };
        let view =
            View::build(&catalogs, &Policy::default(), &[], &[], crate::core::profile::Profile::Generic);
        let mut outcome = Outcome { hits: ranked, ..Outcome::default() };
        promote(&view, query, &mut outcome);
        outcome
            .hits
            .iter()
            .filter_map(|hit| view.get(hit.candidate))
            .map(|tool| tool.stored_name().to_owned())
            .collect()
    }

    #[test]
    fn a_name_to_the_letter_comes_before_its_other_spellings() {
        let names = ["FetchContent", "fetch content", "fetch-content", "fetch_content"];
        for name in names {
            assert_eq!(promoted(&names, name, Vec::new()), [name]);
        }
        let sentence = "please run fetch_content, then FetchContent!";
        assert_eq!(promoted(&names, sentence, Vec::new()), ["fetch_content", "FetchContent"]);
        assert!(promoted(&["list", "search"], "list what you search", Vec::new()).is_empty());
    }

    #[test]
    fn names_that_were_changed_for_the_wire_are_found_too() {
        let wire = crate::core::format::names::wire_name("api.post page").into_owned();
        assert_eq!(promoted(&["api.post page"], &wire, Vec::new()), ["api.post page"]);
        assert_eq!(promoted(&["api.post page"], "api.post page", Vec::new()), ["api.post page"]);
    }
}
