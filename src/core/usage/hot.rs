//! Hot tools: which of the tools that were called most are worth a place in every array.

use crate::core::tool::ToolKey;

/// Calls within the window below which a tool is not hot: one task of one day is no habit.
pub const LEAST_CALLS: u64 = 3;

/// Tokens that all hot tools may take in an array together: about what the warm set of a usual session takes.
pub const HOT_TOKENS: usize = 2_000;

/// A deferred tool of the grant that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotCandidate {
    pub key: ToolKey,
    /// Within the window.
    pub calls: u64,
    /// Of its entry in the array.
    pub tokens: usize,
}

/// How many tools may be hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotLimits {
    pub tools: usize,
    pub tokens: usize,
}

/// The most called tools that fit, by calls, then by group and name. One that is too large for what is left makes room for
/// the next one.
pub fn hot_tools(mut candidates: Vec<HotCandidate>, limits: HotLimits) -> Vec<HotCandidate> {
    candidates.retain(|candidate| candidate.calls >= LEAST_CALLS);
    candidates.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.key.cmp(&b.key)));
    let mut left = limits.tokens;
    let mut hot: Vec<HotCandidate> = Vec::new();
    for candidate in candidates {
        if hot.len() == limits.tools {
            break;
        }
        // A user and a project may both have a tool of this identity.
        if hot.iter().any(|hot| hot.key == candidate.key) {
            continue;
        }
        if let Some(rest) = left.checked_sub(candidate.tokens) {
            left = rest;
            hot.push(candidate);
        }
    }
    hot
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(name: &str, calls: u64, tokens: usize) -> HotCandidate {
        HotCandidate { key: ToolKey::new("g", name), calls, tokens }
    }

    fn names(hot: &[HotCandidate]) -> Vec<&str> {
        hot.iter().map(|candidate| &*candidate.key.name).collect()
    }

    const LIMITS: HotLimits = HotLimits { tools: 3, tokens: 100 };

    #[test]
    fn the_most_called_that_fit_are_hot() {
        let candidates = vec![
            candidate("rare", LEAST_CALLS - 1, 1),
            candidate("b", 5, 30),
            candidate("a", 5, 30),
            candidate("huge", 90, 101),
            candidate("large", 9, 50),
            candidate("small", 4, 20),
        ];
        assert_eq!(names(&hot_tools(candidates, LIMITS)), ["large", "a", "small"]);
    }

    proptest! {
        #[test]
        fn limits_hold_and_the_order_of_candidates_means_nothing(
            drawn in prop::collection::btree_map("[a-d]{1,2}", (0u64..9, 0usize..60), 0..12),
            tools in 0usize..5, tokens in 0usize..150, seed in any::<u64>(),
        ) {
            let limits = HotLimits { tools, tokens };
            let candidates: Vec<_> = drawn.iter().map(|(name, (calls, size))| candidate(name, *calls, *size)).collect();
            let hot = hot_tools(candidates.clone(), limits);
            prop_assert!(hot.len() <= tools && hot.iter().map(|hot| hot.tokens).sum::<usize>() <= tokens);
            prop_assert!(hot.iter().all(|hot| hot.calls >= LEAST_CALLS));
            let mut other = candidates;
            let turn = (seed as usize).checked_rem(other.len()).unwrap_or(0);
            other.rotate_left(turn);
            prop_assert_eq!(hot_tools(other, limits), hot);
        }
    }
}
