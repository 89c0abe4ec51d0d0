//! Endpoints that people have, for a form to begin with.

/// A provider with a route and a model of it.
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) endpoint: &'static str,
    pub(super) model: &'static str,
}

impl Preset {
    /// The preset of a button, by its value.
    pub(super) fn of(value: &str) -> Option<(&'static str, &'static Self)> {
        let (kind, name) = value.split_once(' ')?;
        let (kind, presets) = KINDS.into_iter().find(|(known, _)| *known == kind)?;
        presets.iter().find(|preset| preset.name == name).map(|preset| (kind, preset))
    }
}

/// The presets by what their models do.
pub(super) const KINDS: [(&str, &[Preset]); 2] = [("rerank", RERANK), ("embedding", EMBEDDING)];

/// As the providers document them.
const RERANK: &[Preset] = &[
    Preset { name: "Cohere", endpoint: "https://api.cohere.com/v2/rerank", model: "rerank-v3.5" },
    Preset {
        name: "Jina",
        endpoint: "https://api.jina.ai/v1/rerank",
        model: "jina-reranker-v2-base-multilingual",
    },
    Preset { name: "Voyage", endpoint: "https://api.voyageai.com/v1/rerank", model: "rerank-2.5" },
    Preset {
        name: "DashScope",
        endpoint: "https://dashscope.aliyuncs.com/compatible-mode/v1/rerank",
        model: "qwen3-rerank",
    },
    Preset {
        name: "SiliconFlow",
        endpoint: "https://api.siliconflow.cn/v1/rerank",
        model: "BAAI/bge-reranker-v2-m3",
    },
    Preset { name: "vLLM", endpoint: "http://localhost:8000/v1/rerank", model: "BAAI/bge-reranker-v2-m3" },
    Preset { name: "TEI", endpoint: "http://localhost:8080/rerank", model: "BAAI/bge-reranker-v2-m3" },
    Preset { name: "llama.cpp", endpoint: "http://localhost:8080/v1/rerank", model: "bge-reranker-v2-m3" },
];

/// In the shape of OpenAI's embeddings API.
const EMBEDDING: &[Preset] = &[
    Preset {
        name: "OpenAI",
        endpoint: "https://api.openai.com/v1/embeddings",
        model: "text-embedding-3-small",
    },
    Preset { name: "Jina", endpoint: "https://api.jina.ai/v1/embeddings", model: "jina-embeddings-v3" },
    Preset { name: "Voyage", endpoint: "https://api.voyageai.com/v1/embeddings", model: "voyage-3.5" },
    Preset {
        name: "DashScope",
        endpoint: "https://dashscope.aliyuncs.com/compatible-mode/v1/embeddings",
        model: "text-embedding-v4",
    },
    Preset {
        name: "SiliconFlow",
        endpoint: "https://api.siliconflow.cn/v1/embeddings",
        model: "BAAI/bge-m3",
    },
    Preset { name: "Ollama", endpoint: "http://localhost:11434/v1/embeddings", model: "bge-m3" },
    Preset { name: "vLLM", endpoint: "http://localhost:8000/v1/embeddings", model: "BAAI/bge-m3" },
    Preset { name: "TEI", endpoint: "http://localhost:8080/v1/embeddings", model: "BAAI/bge-m3" },
    Preset { name: "llama.cpp", endpoint: "http://localhost:8080/v1/embeddings", model: "bge-m3" },
];
