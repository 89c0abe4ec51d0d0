//! The request shapes that endpoints speak, by name. What a shape looks like on the wire is the client's.

use super::rules::Named;

/// A request shape. The answers of all that rank are read in the same way.
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
    /// `{model, input}`: vectors in the shape of OpenAI, also of Ollama, vLLM, TEI, LiteLLM. Tools are ranked by cosine.
    Openai,
}

impl Dialect {
    pub const ALL: [Self; 9] = [
        Self::Cohere,
        Self::Tei,
        Self::Dashscope,
        Self::Nim,
        Self::Voyage,
        Self::Mixedbread,
        Self::Pinecone,
        Self::Elastic,
        Self::Openai,
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
            Self::Openai => "openai",
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fixed(dialect) => dialect.name(),
        }
    }
}

impl Named for DialectChoice {
    const NAMES: &'static [(&'static str, Self)] = &{
        let mut names = [(Self::Auto.name(), Self::Auto); Dialect::ALL.len() + 1];
        let mut at = 0;
        while at < Dialect::ALL.len() {
            let choice = Self::Fixed(Dialect::ALL[at]);
            names[at + 1] = (choice.name(), choice);
            at += 1;
        }
        names
    };
}
