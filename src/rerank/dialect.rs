//! Where the request shapes of endpoints differ.
//!
//! Owns the keys of their bodies and the end of their paths. Which host speaks which is in `providers`, the body itself in
//! `body`.

use crate::core::policy::Dialect;

impl Dialect {
    /// The key for the number of wanted results; TEI and NIM have none (clients of NIM disagree about its name), and of vectors
    /// all are wanted.
    pub(super) const fn top_key(self) -> Option<&'static str> {
        match self {
            Self::Cohere | Self::Dashscope | Self::Pinecone | Self::Elastic => Some("top_n"),
            // Voyage refuses `top_n`.
            Self::Voyage | Self::Mixedbread => Some("top_k"),
            Self::Tei | Self::Nim | Self::Openai => None,
        }
    }

    /// Whether the body names the model. TEI serves one, Elastic's is in the path.
    pub(super) const fn names_model(self) -> bool {
        !matches!(self, Self::Tei | Self::Elastic)
    }

    /// The last path segment of a base URL's route.
    pub(super) const fn leaf(self) -> &'static str {
        match self {
            Self::Nim => "ranking",
            Self::Openai => "embeddings",
            Self::Mixedbread => "reranking",
            Self::Dashscope => "services/rerank/text-rerank/text-rerank",
            Self::Cohere | Self::Tei | Self::Voyage | Self::Pinecone | Self::Elastic => "rerank",
        }
    }
}
