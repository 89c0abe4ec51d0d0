//! What a session did, as sums to which every process adds.

/// Sums of a session, or what is to be added to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub assemblies: i64,
    pub searches: i64,
    pub describes: i64,
    pub calls: i64,
    pub tokens_all: i64,
    pub tokens_sent: i64,
    pub tokens_answers: i64,
    pub cache_breaks: i64,
}

/// As the columns stand in statements.
pub(super) type Columns = [i64; 8];

impl SessionCounts {
    pub(super) fn columns(self) -> Columns {
        let Self {
            assemblies,
            searches,
            describes,
            calls,
            tokens_all,
            tokens_sent,
            tokens_answers,
            cache_breaks,
        } = self;
        [assemblies, searches, describes, calls, tokens_all, tokens_sent, tokens_answers, cache_breaks]
    }

    pub(in crate::store) fn of(columns: Columns) -> Self {
        let [assemblies, searches, describes, calls, tokens_all, tokens_sent, tokens_answers, cache_breaks] =
            columns;
        Self { assemblies, searches, describes, calls, tokens_all, tokens_sent, tokens_answers, cache_breaks }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        let (mut sums, others) = (self.columns(), other.columns());
        sums.iter_mut().zip(others).for_each(|(sum, other)| *sum = sum.saturating_add(other));
        Self::of(sums)
    }

    /// What is left without the other.
    pub fn minus(self, other: Self) -> Self {
        let (mut rests, others) = (self.columns(), other.columns());
        rests.iter_mut().zip(others).for_each(|(rest, other)| *rest = rest.saturating_sub(other));
        Self::of(rests)
    }
}
