//! What is known about providers: the one table of hosts, paths, routes and limits.
//!
//! Owns facts only; `route` and `body` apply them. Sources: the providers' documentation and SDKs.

use url::{Host, Url};

use crate::core::policy::Dialect;

/// Where an instruction for the ranker goes. Elsewhere it is not sent, because strict servers refuse unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    None,
    /// A key of the body; of `parameters` in the native DashScope shape.
    Key(&'static str),
    /// The same, for models whose name holds the text.
    KeyForModel {
        key: &'static str,
        model: &'static str,
    },
    /// Before the query, in its text.
    Query,
    /// The same, with nothing between: embedding models want prefixes of their own.
    Before,
}

/// How the route of a provider is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Routing {
    /// A base below which the rerank route lies: `/v1`, or nothing for the origin.
    Base(&'static str),
    /// Two APIs side by side; the model decides.
    Dashscope,
    /// The model is part of the path.
    NvidiaHosted,
    /// Not known: the usual places, in order.
    Usual,
}

/// What a path must be like for a row to apply. A path is compared with a slash at its end.
#[derive(Debug, Clone, Copy)]
enum PathRule {
    Any,
    Holds(&'static str),
    Ends(&'static str),
}

/// Bounds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Documents.
    pub documents: usize,
    /// Estimated tokens: the query's once for each document, and the documents'.
    pub tokens: usize,
    /// Characters of the query; the rest is cut.
    pub query_chars: usize,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Provider {
    /// The host itself or any name below it; empty for any host.
    hosts: &'static [&'static str],
    path: PathRule,
    /// `None` where the model or a probe decides.
    pub dialect: Option<Dialect>,
    pub routing: Routing,
    pub limits: Limits,
    pub instruction: Instruction,
}

const NO_LIMIT: usize = usize::MAX;

const fn documents(documents: usize) -> Limits {
    Limits { documents, tokens: NO_LIMIT, query_chars: NO_LIMIT }
}

/// DashScope: 500 documents; query times documents plus documents at most 30,000 tokens for gte-rerank-v2 and in the
/// Chinese pages for qwen3-rerank.
const DASHSCOPE: Limits = Limits { documents: 500, tokens: 30_000, query_chars: NO_LIMIT };
/// Voyage: 1,000 documents; 600,000 tokens counted in the same way (rerank-2.5).
const VOYAGE: Limits = Limits { documents: 1_000, tokens: 600_000, query_chars: NO_LIMIT };
/// TEI's `--max-client-batch-size` by default.
pub(super) const TEI_DOCUMENTS: usize = 32;
/// Self-hosted and unknown servers: small enough for a CPU and for gateways with low limits.
const UNKNOWN_DOCUMENTS: usize = 100;
/// DashScope's models for pictures and text take fewer.
const VISION_DOCUMENTS: usize = 100;

const fn cohere(
    hosts: &'static [&'static str],
    base: &'static str,
    limits: Limits,
    instruction: Instruction,
) -> Provider {
    let (dialect, routing) = (Some(Dialect::Cohere), Routing::Base(base));
    Provider { hosts, path: PathRule::Any, dialect, routing, limits, instruction }
}

/// The first row that fits applies.
static PROVIDERS: [Provider; 25] = [
    // The path says more than the host: proxies keep it.
    Provider {
        hosts: &[],
        path: PathRule::Holds("/services/rerank/"),
        dialect: Some(Dialect::Dashscope),
        routing: Routing::Dashscope,
        limits: DASHSCOPE,
        instruction: Instruction::Key("instruct"),
    },
    dashscope(&[], PathRule::Holds("/compatible-mode/")),
    dashscope(&[], PathRule::Holds("/compatible-api/")),
    dashscope(
        &[
            "dashscope.aliyuncs.com",
            "dashscope-intl.aliyuncs.com",
            "dashscope-us.aliyuncs.com",
            // One name for each workspace.
            "maas.aliyuncs.com",
        ],
        PathRule::Any,
    ),
    Provider {
        hosts: &[],
        path: PathRule::Holds("/_inference/"),
        dialect: Some(Dialect::Elastic),
        routing: Routing::Usual,
        limits: documents(UNKNOWN_DOCUMENTS),
        instruction: Instruction::None,
    },
    nim(&[], PathRule::Ends("/ranking/"), Routing::Usual),
    nim(&[], PathRule::Holds("/v1/retrieval/"), Routing::Usual),
    nim(&["ai.api.nvidia.com"], PathRule::Any, Routing::NvidiaHosted),
    // 1,000 documents are recommended; more are refused only from 10,000 chunks on.
    cohere(&["cohere.com", "cohere.ai"], "/v1", documents(1_000), Instruction::None),
    cohere(&["models.ai.azure.com"], "/v1", documents(1_000), Instruction::None),
    cohere(&["services.ai.azure.com"], "/providers/cohere/v2", documents(1_000), Instruction::None),
    // Bedrock's InvokeModel: `omit_model` is needed, and `api_version` in `extra_body`. Other servers are there too.
    Provider {
        path: PathRule::Ends("/invoke/"),
        ..cohere(&["amazonaws.com"], "", documents(1_000), Instruction::None)
    },
    // No limit is documented; the listwise v3 ranks best in one request.
    cohere(&["jina.ai"], "/v1", documents(1_000), Instruction::None),
    cohere(
        &["siliconflow.cn", "siliconflow.com"],
        "/v1",
        documents(UNKNOWN_DOCUMENTS),
        Instruction::KeyForModel { key: "instruction", model: "qwen3" },
    ),
    cohere(&["openrouter.ai"], "/api/v1", documents(UNKNOWN_DOCUMENTS), Instruction::None),
    cohere(&["fireworks.ai"], "/inference/v1", documents(UNKNOWN_DOCUMENTS), Instruction::Key("task")),
    cohere(&["together.xyz", "together.ai"], "/v1", documents(UNKNOWN_DOCUMENTS), Instruction::None),
    cohere(&["contextual.ai"], "/v1", documents(UNKNOWN_DOCUMENTS), Instruction::Key("instruction")),
    // Limited by bytes: 5 MB.
    cohere(&["zeroentropy.dev"], "/v1/models", documents(1_000), Instruction::None),
    cohere(&["novita.ai"], "/v3/openai", documents(UNKNOWN_DOCUMENTS), Instruction::None),
    // Zhipu: 128 documents, 4,096 characters each and for the query.
    cohere(
        &["bigmodel.cn"],
        "/api/paas/v4",
        Limits { query_chars: 4_096, ..documents(128) },
        Instruction::None,
    ),
    // Baidu: 64 documents, 1,600 characters for the query.
    cohere(
        &["qianfan.baidubce.com"],
        "/v2",
        Limits { query_chars: 1_600, ..documents(64) },
        Instruction::None,
    ),
    Provider {
        hosts: &["voyageai.com", "ai.mongodb.com"],
        path: PathRule::Any,
        dialect: Some(Dialect::Voyage),
        routing: Routing::Base("/v1"),
        limits: VOYAGE,
        instruction: Instruction::Query,
    },
    Provider {
        hosts: &["mixedbread.com", "mixedbread.ai"],
        path: PathRule::Any,
        dialect: Some(Dialect::Mixedbread),
        routing: Routing::Base("/v1"),
        limits: documents(UNKNOWN_DOCUMENTS),
        instruction: Instruction::None,
    },
    Provider {
        hosts: &["api.pinecone.io"],
        path: PathRule::Any,
        dialect: Some(Dialect::Pinecone),
        routing: Routing::Base(""),
        // bge-reranker-v2-m3 takes 100, other models more.
        limits: documents(100),
        instruction: Instruction::None,
    },
];

const fn dashscope(hosts: &'static [&'static str], path: PathRule) -> Provider {
    Provider {
        hosts,
        path,
        dialect: None,
        routing: Routing::Dashscope,
        limits: DASHSCOPE,
        instruction: Instruction::Key("instruct"),
    }
}

/// NIM: 512 passages.
const fn nim(hosts: &'static [&'static str], path: PathRule, routing: Routing) -> Provider {
    let (dialect, limits) = (Some(Dialect::Nim), documents(512));
    Provider { hosts, path, dialect, routing, limits, instruction: Instruction::None }
}

impl Provider {
    fn fits(&self, host: &str, path: &str) -> bool {
        let host_fits = self.hosts.is_empty()
            || self.hosts.iter().any(|known| {
                host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            });
        host_fits
            && match self.path {
                PathRule::Any => true,
                PathRule::Holds(part) => path.contains(part),
                PathRule::Ends(end) => path.ends_with(end),
            }
    }
}

/// The row for a URL; `None` for a host and path that say nothing.
pub(super) fn find(url: &Url) -> Option<&'static Provider> {
    let host = match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.'),
        _ => "",
    };
    let path = format!("{}/", url.path().trim_end_matches('/')).to_ascii_lowercase();
    PROVIDERS.iter().find(|provider| provider.fits(host, &path))
}

/// The bounds of one request to a host, with this dialect and model.
pub(super) fn limits(provider: Option<&Provider>, dialect: Dialect, model: Option<&str>) -> Limits {
    let mut limits = match (provider, dialect) {
        (Some(provider), _) => provider.limits,
        (None, Dialect::Tei) => documents(TEI_DOCUMENTS),
        (None, Dialect::Dashscope) => DASHSCOPE,
        (None, Dialect::Voyage) => VOYAGE,
        (None, Dialect::Nim) => documents(512),
        (
            None,
            Dialect::Cohere | Dialect::Mixedbread | Dialect::Pinecone | Dialect::Elastic | Dialect::Openai,
        ) => documents(UNKNOWN_DOCUMENTS),
    };
    if limits == DASHSCOPE && model.is_some_and(|model| model.contains("-vl-")) {
        limits.documents = VISION_DOCUMENTS;
    }
    limits
}

/// Where an instruction goes, for a host, dialect and model.
pub(super) fn instruction(provider: Option<&Provider>, dialect: Dialect, model: Option<&str>) -> Instruction {
    let place = match (provider, dialect) {
        (_, Dialect::Openai) => Instruction::Before,
        // A dialect that was set against the table: the host is not what it seems.
        (Some(known), _) if known.dialect.is_none_or(|usual| usual == dialect) => known.instruction,
        (_, Dialect::Dashscope) => Instruction::Key("instruct"),
        (_, Dialect::Voyage) => Instruction::Query,
        _ => Instruction::None,
    };
    match place {
        Instruction::KeyForModel { key, model: part }
            if model.is_some_and(|model| model.to_ascii_lowercase().contains(part)) =>
        {
            Instruction::Key(key)
        }
        Instruction::KeyForModel { .. } => Instruction::None,
        place => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(url: &str) -> Option<Option<Dialect>> {
        find(&Url::parse(url).unwrap()).map(|provider| provider.dialect)
    }

    #[test]
    fn hosts_and_paths_tell_the_dialect() {
        use Dialect::{Cohere, Dashscope, Elastic, Mixedbread, Nim, Pinecone, Voyage};
        for (url, dialect) in [
            ("https://api.cohere.com/v2/rerank", Cohere),
            ("https://API.Cohere.com./v2", Cohere),
            ("https://x.eastus.models.ai.azure.com", Cohere),
            ("https://api.jina.ai/v1/rerank", Cohere),
            ("https://api.siliconflow.cn/v1", Cohere),
            ("https://openrouter.ai/api/v1", Cohere),
            ("https://api.fireworks.ai/inference/v1/rerank", Cohere),
            ("https://api.together.xyz/v1", Cohere),
            ("https://api.contextual.ai/v1/rerank", Cohere),
            ("https://api.zeroentropy.dev/v1/models/rerank", Cohere),
            ("https://open.bigmodel.cn/api/paas/v4/rerank", Cohere),
            ("https://qianfan.baidubce.com/v2/rerankers", Cohere),
            ("https://bedrock-runtime.us-east-1.amazonaws.com/model/cohere.rerank-v3-5%3A0/invoke", Cohere),
            ("https://api.voyageai.com/v1/rerank", Voyage),
            ("https://ai.mongodb.com/v1", Voyage),
            ("https://dashscope.aliyuncs.com/api/v1/services/rerank/text-rerank/text-rerank", Dashscope),
            ("https://proxy.test/services/rerank/text-rerank", Dashscope),
            ("https://nim.test/v1/ranking", Nim),
            ("https://nim.test/v1/ranking/", Nim),
            ("https://ai.api.nvidia.com/v1/retrieval/nvidia/x/reranking", Nim),
            ("https://api.mixedbread.com/v1/reranking", Mixedbread),
            ("https://api.pinecone.io/rerank", Pinecone),
            ("https://es.test:9200/_inference/rerank/my-model", Elastic),
        ] {
            assert_eq!(row(url), Some(Some(dialect)), "{url}");
        }
    }

    #[test]
    fn look_alikes_are_not_taken_for_a_provider() {
        for url in [
            "https://notcohere.com/v1",
            "https://api.cohere.com.evil.test/v1",
            "https://rerank.example.com/v1/rerank",
            "http://127.0.0.1:8080/",
            "https://eas.pai-eas.aliyuncs.com/v1/rerank",
            "https://h/ranking/v1/rerank",
            "http://tei.us-east-1.elb.amazonaws.com/rerank",
        ] {
            assert_eq!(row(url), None, "{url}");
        }
    }

    #[test]
    fn limits_and_instructions_are_the_hosts_first() {
        let at = |url: &str| find(&Url::parse(url).unwrap());
        let zhipu = at("https://open.bigmodel.cn/api/paas/v4");
        assert_eq!(limits(zhipu, Dialect::Cohere, None).documents, 128);
        assert_eq!(limits(None, Dialect::Tei, None).documents, 32);
        let dashscope = at("https://dashscope.aliyuncs.com");
        assert_eq!(limits(dashscope, Dialect::Cohere, Some("qwen3-vl-rerank")).documents, 100);
        assert_eq!(limits(dashscope, Dialect::Cohere, Some("qwen3-rerank")).documents, 500);

        let instruct = Instruction::Key("instruct");
        assert_eq!(instruction(dashscope, Dialect::Cohere, Some("qwen3-rerank")), instruct);
        assert_eq!(instruction(None, Dialect::Dashscope, None), instruct);

        let flow = at("https://api.siliconflow.cn/v1");
        let key = Instruction::Key("instruction");
        assert_eq!(instruction(flow, Dialect::Cohere, Some("Qwen/Qwen3-Reranker-8B")), key);
        assert_eq!(instruction(flow, Dialect::Cohere, Some("BAAI/bge-reranker-v2-m3")), Instruction::None);
        let cohere = at("https://api.cohere.com");
        assert_eq!(instruction(cohere, Dialect::Cohere, None), Instruction::None);
        assert_eq!(instruction(None, Dialect::Voyage, None), Instruction::Query);
        assert_eq!(instruction(None, Dialect::Cohere, Some("qwen3")), Instruction::None);
    }
}
