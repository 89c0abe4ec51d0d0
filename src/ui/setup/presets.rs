//! Endpoints that people have, for a form to begin with.

/// A provider with its rerank route and a model of it.
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) endpoint: &'static str,
    pub(super) model: &'static str,
}

/// As the providers document them.
pub(super) const PRESETS: &[Preset] = &[
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
