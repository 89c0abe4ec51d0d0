//! Rankings that others made: what a place for them has to do, and their text there.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Ranked, Ranking};
use crate::core::digest::Digest;
use crate::core::policy::Dialect;

/// A place that several processes look into before they ask an endpoint. It may lose what it has; what it gives was put there
/// under the same tenant and call.
#[async_trait]
pub trait SharedRankings: Send + Sync + fmt::Debug {
    async fn get(&self, tenant: Digest, call: Digest) -> Option<String>;

    async fn put(&self, tenant: Digest, call: Digest, text: String);

    /// Nothing of a tenant counts any longer.
    async fn forget(&self, tenant: Digest);
}

/// Scores by their bits, so that they are the same everywhere.
#[derive(Serialize, Deserialize)]
struct Text {
    dialect: String,
    rows: Vec<(usize, u64, u64)>,
    notes: Vec<String>,
}

/// A ranking as it is shared. What was learned about the endpoint is not: that is each process's own.
pub(super) fn text(ranking: &Ranking) -> String {
    let rows = ranking.rows.iter().map(|row| (row.index, row.score.to_bits(), row.raw.to_bits()));
    let text = Text {
        dialect: ranking.dialect.name().to_owned(),
        rows: rows.collect(),
        notes: ranking.notes.clone(),
    };
    // Numbers and texts always serialise.
    serde_json::to_string(&text).unwrap_or_default()
}

/// The ranking of so many documents that a text tells; nothing where this version does not understand it.
pub(super) fn read(text: &str, documents: usize) -> Option<Ranking> {
    let Text { dialect, rows, notes } = serde_json::from_str(text).ok()?;
    let dialect = Dialect::ALL.into_iter().find(|known| known.name() == dialect)?;
    let row = |(index, score, raw): (usize, u64, u64)| {
        let row = Ranked { index, score: f64::from_bits(score), raw: f64::from_bits(raw) };
        (index < documents && row.score.is_finite() && row.raw.is_finite()).then_some(row)
    };
    let rows = rows.into_iter().map(row).collect::<Option<Vec<_>>>()?;
    Some(Ranking { rows, dialect, notes, learned_limit: None, detected: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_ranking_is_the_same_to_the_last_bit() {
        let row = |index, score, raw| Ranked { index, score, raw };
        let ranking = Ranking {
            rows: vec![row(2, 0.1 + 0.2, -11.3), row(0, f64::MIN_POSITIVE, 1e300)],
            dialect: Dialect::Voyage,
            notes: vec!["odd".to_owned()],
            learned_limit: Some(7),
            detected: None,
        };
        let read_back = read(&text(&ranking), 3).unwrap();
        assert_eq!(read_back, Ranking { learned_limit: None, ..ranking.clone() });
        assert_eq!(read(&text(&ranking), 2), None, "of other documents");
        let infinite = Ranking { rows: vec![row(0, f64::INFINITY, 0.0)], ..ranking };
        assert_eq!(read(&text(&infinite), 3), None);
        assert_eq!(read("{}", 3), None);
    }
}
