//! The request shapes that rerank endpoints speak.
//!
//! Owns their names and the keys of their bodies. Which host speaks which is in `providers`, the body itself in `body`.

/// A request shape. The answer is read in the same way for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `{model, query, documents, top_n}`: Cohere, Jina, vLLM, llama.cpp, most gateways.
    Cohere,
    /// `{query, texts, truncate}`: Text Embeddings Inference.
    Tei,
    /// `{model, input: {query, documents}, parameters: {top_n}}`: DashScope's native API.
    Dashscope,
    /// `{model, query: {text}, passages: [{text}], truncate}`: NVIDIA NIM.
    Nim,
    /// `{model, query, documents, top_k}`: Voyage, MongoDB.
    Voyage,
    /// `{model, query, input, top_k}`: Mixedbread.
    Mixedbread,
    /// `{model, query, documents: [{text}], top_n, parameters}`: Pinecone.
    Pinecone,
    /// `{query, input, top_n}`: Elasticsearch's inference API, whose model is part of the path.
    Elastic,
}

impl Dialect {
    pub const ALL: [Self; 8] = [
        Self::Cohere,
        Self::Tei,
        Self::Dashscope,
        Self::Nim,
        Self::Voyage,
        Self::Mixedbread,
        Self::Pinecone,
        Self::Elastic,
    ];

    /// The name in settings and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cohere => "cohere",
            Self::Tei => "tei",
            Self::Dashscope => "dashscope",
            Self::Nim => "nim",
            Self::Voyage => "voyage",
            Self::Mixedbread => "mixedbread",
            Self::Pinecone => "pinecone",
            Self::Elastic => "elastic",
        }
    }

    /// The dialect of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The key for the number of wanted results; TEI and NIM have none (clients of NIM disagree about its name).
    pub(super) const fn top_key(self) -> Option<&'static str> {
        match self {
            Self::Cohere | Self::Dashscope | Self::Pinecone | Self::Elastic => Some("top_n"),
            // Voyage refuses `top_n`.
            Self::Voyage | Self::Mixedbread => Some("top_k"),
            Self::Tei | Self::Nim => None,
        }
    }

    /// Whether the body names the model. TEI serves one, Elastic's is in the path.
    pub(super) const fn names_model(self) -> bool {
        !matches!(self, Self::Tei | Self::Elastic)
    }

    /// The last path segment of a base URL's rerank route.
    pub(super) const fn leaf(self) -> &'static str {
        match self {
            Self::Nim => "ranking",
            Self::Mixedbread => "reranking",
            Self::Dashscope => "services/rerank/text-rerank/text-rerank",
            Self::Cohere | Self::Tei | Self::Voyage | Self::Pinecone | Self::Elastic => "rerank",
        }
    }
}

/// The `dialect` setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DialectChoice {
    /// Decided by host and path, then by asking the endpoint.
    #[default]
    Auto,
    Fixed(Dialect),
}

impl DialectChoice {
    /// `auto` or the name of a dialect.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "auto" { Some(Self::Auto) } else { Dialect::parse(name).map(Self::Fixed) }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fixed(dialect) => dialect.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        for dialect in Dialect::ALL {
            assert_eq!(DialectChoice::parse(dialect.name()), Some(DialectChoice::Fixed(dialect)));
            assert_eq!(DialectChoice::Fixed(dialect).name(), dialect.name());
        }
        assert_eq!(DialectChoice::parse("auto"), Some(DialectChoice::Auto));
        for name in ["", "Cohere", "jina", "openai"] {
            assert_eq!(DialectChoice::parse(name), None, "{name}");
        }
    }
}
