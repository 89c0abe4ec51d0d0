//! Why an endpoint did not rank, in words for people: what happened and what to do. What still works is the same for all.

use super::language::Language;

/// What happened for a `reason` of a degraded search, and what to do about it.
pub(super) fn reason(language: Language, code: &str) -> &'static str {
    let (english, chinese) = words(code);
    language.say(english, chinese)
}

/// What still works while an endpoint does not.
pub(super) fn still_works(language: Language) -> &'static str {
    language.say(
        "Searches go on by keywords and say so; nothing is lost and no agent waits.",
        "搜索改用关键词并会注明；不会丢失任何内容，代理无需等待。",
    )
}

fn words(code: &str) -> (&'static str, &'static str) {
    match code {
        "timeout" => (
            "The endpoint did not answer in time. Allow more time, use a faster model, or send fewer tools.",
            "端点未在限定时间内应答。请延长时限、换用更快的模型或减少发送的工具。",
        ),
        "unreachable" => (
            "The endpoint cannot be reached. Check host and port, and that the server runs.",
            "无法连接端点。请检查主机和端口，并确认服务器正在运行。",
        ),
        "unauthorized" => (
            "The endpoint does not take the key. Check it in the setup of the matcher.",
            "端点拒绝了密钥。请在匹配器设置中检查。",
        ),
        "payment_required" => ("The account at the provider has no credit left.", "提供商账户余额不足。"),
        "not_found" => {
            ("The endpoint knows no such path or model. Check both.", "端点没有此路径或模型。请检查二者。")
        }
        "rate_limited" => (
            "Too many requests for the endpoint at the moment, or for this key. Wait a minute.",
            "端点或此密钥当前请求过多。请稍候一分钟。",
        ),
        "redirected" => (
            "The endpoint sends elsewhere, which is not followed. Often https is meant.",
            "端点要求跳转，不会跟随。通常应使用 https。",
        ),
        "http_error" => {
            ("The endpoint answered with an error. Its log says more.", "端点返回错误，其日志有更多信息。")
        }
        "error_in_answer" => (
            "The endpoint answered with an error inside. Often the account may not use the model.",
            "端点的应答中含有错误。通常是账户无权使用该模型。",
        ),
        "web_page" => (
            "A web page answered in place of an API. Check the address, and gateways before it.",
            "应答的是网页而不是 API。请检查地址和前置网关。",
        ),
        "malformed_answer" => (
            "The answer cannot be read. Check that the model ranks or embeds texts.",
            "无法解析应答。请确认该模型用于排序或向量化。",
        ),
        "answer_too_large" => ("The answer was too large to be read.", "应答过大，无法读取。"),
        "blocked_address" => (
            "The address is not allowed here. The operator can allow it.",
            "此地址不被允许，可由运维人员放行。",
        ),
        "invalid_request" => (
            "A setting of the matcher cannot be sent. Set it anew.",
            "匹配器的某项设置无法发送，请重新设置。",
        ),
        "circuit_open" => (
            "The endpoint failed several times and is left alone for a while. It is tried again by itself.",
            "端点多次失败，暂时停用，稍后会自动重试。",
        ),
        "overloaded" => (
            "Too many requests for endpoints wait here. Try again in a moment.",
            "等待端点的请求过多，请稍后再试。",
        ),
        "key_unreadable" => (
            "The stored key was sealed with another master key. Set it again.",
            "已存密钥由另一主密钥加密，请重新设置。",
        ),
        "vectors_unreadable" => (
            "Stored vectors cannot be read. The log of the service says more.",
            "无法读取已存向量，服务日志有更多信息。",
        ),
        _ => ("The endpoint did not rank.", "端点未能排序。"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::FALLBACK_REASONS;

    #[test]
    fn every_reason_has_words() {
        for code in FALLBACK_REASONS {
            assert_ne!(words(code), words(""), "{code}");
        }
    }
}
