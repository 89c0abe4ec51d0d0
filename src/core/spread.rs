//! Which ranked hits are shown: not those of one group alone while others match about as well.
//!
//! Who uploads a group of twenty tools with one text would else fill every answer about it.

use std::collections::HashMap;

use super::lexical::{Hit, Outcome};

/// Of the first places, as many as there are, this share may be of one upload's group; and so many places in any case.
const SHARE: f32 = 0.6;
const FREE_PLACES: usize = 3;
/// A hit of another group goes first when its score is at least this share of the one that waits. At .9 the development sets lose up to
/// .007 of recall@5, at .97 no more than .003 (`docs/security.md`).
pub const NEAR: f32 = 0.97;

/// How many hits to rank for an answer of `limit`: those that may come up are behind it.
pub fn wanted(limit: usize) -> usize {
    limit.saturating_mul(2)
}

/// The first `limit` hits of a longer list, spread over groups; tools that the query names keep their place. A shorter answer is the
/// beginning of a longer one.
pub fn first<'a>(mut outcome: Outcome, limit: usize, group_of: impl Fn(u32) -> &'a str) -> Outcome {
    let mut hits = spread(&outcome.hits, group_of);
    let mut place = 0;
    hits.retain(|hit| {
        place += 1;
        place <= limit || is_named(hit)
    });
    outcome.hits = hits;
    outcome
}

fn is_named(hit: &Hit) -> bool {
    hit.exact || hit.whole
}

fn spread<'a>(hits: &[Hit], group_of: impl Fn(u32) -> &'a str) -> Vec<Hit> {
    let mut waiting: Vec<(Hit, &str)> = hits.iter().map(|hit| (*hit, group_of(hit.candidate))).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut ordered = Vec::with_capacity(hits.len());
    while let Some((next, group)) = waiting.first().copied() {
        let most = (SHARE * (ordered.len() + 1) as f32).ceil().max(FREE_PLACES as f32) as usize;
        let has_room = |group: &str| places.get(group).is_none_or(|places| *places < most);
        let at = if is_named(&next) || has_room(group) {
            0
        } else {
            let near = |hit: &Hit| hit.score > 0.0 && hit.score >= NEAR * next.score;
            waiting.iter().position(|(hit, group)| has_room(group) && near(hit)).unwrap_or(0)
        };
        let (hit, group) = waiting.remove(at);
        *places.entry(group).or_default() += 1;
        ordered.push(hit);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hit(candidate: u32, score: f32) -> Hit {
        Hit {
            candidate,
            score,
            words: score,
            coverage: 1.0,
            name_coverage: 0.0,
            exact: false,
            whole: false,
            other_service: false,
            other_action: false,
            alike: None,
        }
    }

    /// Tools from 100 on are of the group `b`.
    fn group_of(candidate: u32) -> &'static str {
        if candidate < 100 { "a" } else { "b" }
    }

    fn shown(hits: Vec<Hit>, limit: usize) -> Vec<u32> {
        let outcome = Outcome { hits, ..Outcome::default() };
        first(outcome, limit, group_of).hits.iter().map(|hit| hit.candidate).collect()
    }

    #[test]
    fn a_flood_leaves_places_to_others_that_match_as_well() {
        let mut hits: Vec<Hit> = (0..8).map(|at| hit(at, 10.0)).collect();
        hits.extend([hit(100, 9.9), hit(101, 9.8), hit(102, 3.0)]);
        assert_eq!(shown(hits.clone(), 5), [0, 1, 2, 100, 101]);
        assert_eq!(shown(hits.clone(), 4), [0, 1, 2, 100]);
        // What does not match as well stays where it is.
        hits.retain(|hit| hit.candidate < 100 || hit.candidate == 102);
        assert_eq!(shown(hits, 5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn named_tools_keep_their_place_and_one_group_alone_its_order() {
        let mut hits: Vec<Hit> = (0..6).map(|at| Hit { exact: true, ..hit(at, 10.0) }).collect();
        hits.push(hit(100, 9.9));
        assert_eq!(shown(hits.clone(), 3), [0, 1, 2, 3, 4, 5]);
        hits.truncate(6);
        hits.iter_mut().for_each(|hit| hit.exact = false);
        assert_eq!(shown(hits, 5), [0, 1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn all_hits_stay_and_a_longer_answer_begins_with_a_shorter_one(
            list in prop::collection::vec((0u32..200, 0u8..20, any::<bool>()), 0..40), limit in 1usize..20,
        ) {
            let hits: Vec<Hit> =
                list.iter().map(|(id, score, exact)| Hit { exact: *exact, ..hit(*id, f32::from(*score)) }).collect();
            let all = spread(&hits, group_of);
            let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.candidate).collect::<Vec<_>>();
            let (mut before, mut after) = (ids(&hits), ids(&all));
            prop_assert_eq!(&shown(hits.clone(), limit)[..limit.min(after.len())], &after[..limit.min(after.len())]);
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
        }
    }
}
