//! What is ranked in a test of a matcher: a scope's tools or built-in ones, and the queries that tell hits from misses.
//!
//! Pure: asks no endpoint, and reads no catalog.

use super::KeywordSample;
use crate::core::lexical::{Document, Hit};
use crate::core::policy::Dialect;
use crate::core::ranking::{CatalogIndex, Part, search};
use crate::rerank::Ranking;

/// Ranked where a scope has no tools, and by the control queries: group, name and description of tools that have little in common.
const BUILT_IN: [(&str, &str, &str); 10] = [
    ("calendar", "create_calendar_event", "Create an event in a calendar, with time, place and guests."),
    ("weather", "get_weather_forecast", "Get the weather forecast for a city."),
    ("mail", "send_email", "Send an email message to one or more people."),
    (
        "finance",
        "convert_currency",
        "Convert an amount of money into another currency, such as dollars into euros.",
    ),
    ("travel", "search_flights", "Search flights between two airports on a date."),
    ("music", "play_song", "Play a song or an album on a speaker."),
    ("code", "create_issue", "Create an issue in a source code repository."),
    ("data", "run_sql_query", "Run an SQL query against a database and return its rows."),
    ("language", "translate_text", "Translate a text into another language."),
    ("images", "resize_image", "Change the width and height of an image file."),
];

/// Queries that one tool of [`BUILT_IN`] serves beyond doubt and no other does, with that tool.
pub(super) const CONTROLS: [(&str, &str); 2] = [
    ("What will the weather be like in Paris tomorrow?", "get_weather_forecast"),
    ("How much are 250 US dollars in euros?", "convert_currency"),
];

/// By so much every obvious hit must lead every obvious miss to make a floor between them worth proposing: tools that fit less
/// well than an obvious hit have to have room above it.
const CLEAR_LEAD: f64 = 0.1;

/// Tools to be ranked for one query.
#[derive(Debug)]
pub(super) struct Sample {
    pub names: Vec<String>,
    pub documents: Vec<String>,
    /// How the words rank them.
    pub keyword: Vec<KeywordSample>,
}

impl Sample {
    /// The built-in tools; `semantic` as in a config.
    pub(super) fn built_in(query: &str, semantic: bool) -> Self {
        let documents = BUILT_IN.iter().map(|&(group, name, description)| Document {
            group,
            name,
            description,
            parameters: "{}",
            aliases: &[],
        });
        let (index, candidates) = (CatalogIndex::build(documents), Vec::from_iter(0..BUILT_IN.len() as u32));
        let parts = [Part { index: &index, candidates: &candidates }];
        let outcome = search(&parts, BUILT_IN.len(), query, BUILT_IN.len(), semantic);
        let named = |hit: &Hit| {
            let (_, name, _) = BUILT_IN.get(hit.candidate as usize)?;
            Some(KeywordSample::new((*name).to_owned(), hit))
        };
        Self {
            names: BUILT_IN.iter().map(|(_, name, _)| (*name).to_owned()).collect(),
            documents: built_in_documents(),
            keyword: outcome.hits.iter().filter_map(named).collect(),
        }
    }
}

/// The built-in tools in the form in which tools are sent.
pub(super) fn built_in_documents() -> Vec<String> {
    let text = |(group, name, description): &(&str, &str, &str)| {
        format!("{group} {} ({name}): {description}", name.replace('_', " "))
    };
    BUILT_IN.iter().map(text).collect()
}

/// The middle between the lowest obvious hit and the highest obvious miss in the answers to [`CONTROLS`], in their order.
///
/// # Errors
/// Why there is none: they are not clearly apart, or the answers, with that to another sample, are not on one scale.
pub(super) fn floor(controls: &[Ranking], sample: &Ranking) -> Result<f64, String> {
    if controls.iter().any(|ranking| is_turned(ranking) != is_turned(sample)) {
        return Err("only some answers hold scores outside of 0 to 1, so the scale differs between searches"
            .to_owned());
    }
    let scores = controls.iter().zip(CONTROLS).map(|(ranking, (_, name))| hit_and_miss(ranking, name));
    let scores: Option<Vec<(f64, f64)>> = scores.collect();
    let scores = scores.ok_or("the answers to control queries leave tools out")?;
    let hit = scores.iter().map(|(hit, _)| *hit).fold(1.0, f64::min);
    let miss = scores.iter().map(|(_, miss)| *miss).fold(0.0, f64::max);
    if hit - miss < CLEAR_LEAD {
        return Err(format!("obvious hits ({hit:.3}) do not score clearly above obvious misses ({miss:.3})"));
    }
    Ok(((hit + miss) / 2.0 * 1_000.0).round() / 1_000.0)
}

/// Whether the scores of an answer were turned into 0 to 1, which is decided for each answer by itself.
fn is_turned(ranking: &Ranking) -> bool {
    // A cosine is one in every answer.
    ranking.dialect != Dialect::Openai
        && ranking.rows.iter().any(|row| row.score.to_bits() != row.raw.to_bits())
}

/// The score of the tool that serves a control query, and the highest of the others.
fn hit_and_miss(ranking: &Ranking, name: &str) -> Option<(f64, f64)> {
    let is_hit = |index: usize| BUILT_IN.get(index).is_some_and(|(_, sample, _)| *sample == name);
    let hit = ranking.rows.iter().find(|row| is_hit(row.index))?.score;
    let misses = ranking.rows.iter().filter(|row| !is_hit(row.index)).map(|row| row.score);
    Some((hit, misses.reduce(f64::max)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rerank::Ranked;

    #[test]
    fn the_built_in_tools_serve_their_queries() {
        for (query, name) in CONTROLS.iter().chain(&[(super::super::SAMPLE_QUERY, "send_email")]) {
            let sample = Sample::built_in(query, false);
            assert_eq!(sample.names.len(), sample.documents.len());
            assert_eq!(sample.keyword[0].name, *name, "{query}: {:?}", sample.keyword);
        }
    }

    /// Rows of index, score and what the endpoint said.
    fn ranking(rows: &[(usize, f64, f64)]) -> Ranking {
        Ranking {
            rows: rows.iter().map(|&(index, score, raw)| Ranked { index, score, raw }).collect(),
            dialect: Dialect::Cohere,
            notes: Vec::new(),
            learned_limit: None,
            detected: None,
        }
    }

    #[test]
    fn a_floor_stands_between_obvious_hits_and_misses() {
        let weather = ranking(&[(1, 0.9, 0.9), (4, 0.2, 0.2), (0, 0.3, 0.3)]);
        let money = |hit| ranking(&[(3, hit, hit), (1, 0.1, 0.1)]);
        let sample = ranking(&[(0, 0.5, 0.5)]);
        assert_eq!(floor(&[weather.clone(), money(0.7)], &sample), Ok(0.5));
        for (controls, why) in [
            ([weather.clone(), money(0.35)], "obvious hits (0.350)"),
            ([weather.clone(), money(0.0)], "obvious hits (0.000)"),
            ([weather.clone(), ranking(&[(3, 0.7, 0.7)])], "leave tools out"),
            ([weather.clone(), ranking(&[(1, 0.7, 0.7), (2, 0.1, 0.1)])], "leave tools out"),
            ([weather.clone(), ranking(&[(3, 0.7, 0.8), (1, 0.1, -2.0)])], "scale"),
        ] {
            assert!(floor(&controls, &sample).unwrap_err().contains(why), "{why}");
        }
    }
}
