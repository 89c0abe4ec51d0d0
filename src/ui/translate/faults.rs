//! What goes wrong with endpoints and MCP servers, and what to do about it; what a test of a matcher notes.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    // MCP servers: what to do.
    (
        "Check that the server runs, and that its host and port can be reached from this service",
        "请确认服务器正在运行，且本服务可访问其主机和端口",
    ),
    (
        "The operator allows private addresses, plain http and single hosts in the settings (rerank.allow_private, rerank.allowed_hosts)",
        "运维可在设置中放行私有地址、明文 http 和单个主机（rerank.allow_private、rerank.allowed_hosts）",
    ),
    (
        "Check the path of the URL: streamable HTTP is wanted there (often /mcp), not a web page, a redirect or the older SSE",
        "请检查网址路径：应为 streamable HTTP（通常是 /mcp），而不是网页、跳转或旧的 SSE",
    ),
    (
        "Send the header that the server asks for, usually Authorization: Bearer KEY; check that its key is still valid",
        "请发送服务器要求的请求头，通常为 Authorization: Bearer KEY；并检查密钥是否仍有效",
    ),
    (
        "Try again; a server that needs longer to start or to list needs a larger mcp.timeout_ms in the settings",
        "请重试；启动或列出工具较慢的服务器需要在设置中增大 mcp.timeout_ms",
    ),
    (
        "Have the server offer fewer tools, or let the operator raise limits.tools_per_catalog",
        "请让服务器提供更少的工具，或由运维提高 limits.tools_per_catalog",
    ),
    (
        "The operator names the commands that may be run in the settings (mcp.allow_commands); none is by default",
        "运维在设置中列出可运行的命令（mcp.allow_commands）；默认没有",
    ),
    (
        "Check command, arguments and variables; the end of what it wrote to standard error stands above",
        "请检查命令、参数和变量；其标准错误的末尾见上文",
    ),
    (
        "The server broke the protocol or refused to list its tools; its own log should tell why",
        "服务器违反协议或拒绝列出工具；其日志应说明原因",
    ),
    // MCP servers: what happened.
    ("no connection could be made", "无法建立连接"),
    ("the connection broke", "连接中断"),
    ("the connection did not go as the protocol wants it", "连接不符合协议要求"),
    ("the server was not done after {} ms", "服务器在 {0} 毫秒后仍未完成"),
    ("HTTP {}: redirects are not followed", "HTTP {0}：不跟随跳转"),
    ("HTTP {}", "状态码 {0}"),
    ("the server answers with something else", "服务器返回了其他内容"),
    ("an answer of the server is too large", "服务器的应答过大"),
    ("the header `{}` cannot be sent", "请求头 `{0}` 无法发送"),
    ("the server names the same page twice", "服务器重复返回同一页"),
    ("its tools have more than {} bytes", "其工具超过 {0} 字节"),
    ("the list has more than {} pages", "列表超过 {0} 页"),
    ("the answer to tools/list is no list of tools", "对 tools/list 的应答不是工具列表"),
    ("the answer to initialize is no handshake", "对 initialize 的应答不是握手"),
    ("the handshake failed", "握手失败"),
    ("the command ended before it listed its tools{}", "命令在列出工具之前结束{0}"),
    ("the command ended before it listed its tools", "命令在列出工具之前结束"),
    ("the connection ended before the tools were listed", "连接在列出工具之前结束"),
    ("the command writes too much", "命令输出过多"),
    ("`{}` is not there", "`{0}` 不存在"),
    ("`{}` may not be run", "`{0}` 不允许运行"),
    ("`{}` could not be started", "`{0}` 无法启动"),
    ("this service runs no commands", "本服务不运行命令"),
    (
        "the stored headers or variables were sealed with another master key; set them again",
        "已保存的请求头或变量由另一主密钥加密；请重新设置",
    ),
    ("the service had a fault; its log tells more", "服务发生故障；其日志有更多信息"),
    // Addresses.
    ("the URL must begin with https://", "网址必须以 https:// 开头"),
    ("the URL must not carry a user name or password", "网址不得包含用户名或密码"),
    ("the URL has no host", "网址没有主机"),
    ("{} is a cloud metadata service", "{0} 是云元数据服务"),
    (
        "{} may not be called over plain http: use https, or let the operator allow the host",
        "不得以明文 http 访问 {0}：请使用 https，或由运维放行该主机",
    ),
    (
        "{} is not a public address: the operator has to allow private addresses or the host",
        "{0} 不是公共地址：须由运维放行私有地址或该主机",
    ),
    ("the host resolves to an address that is not allowed", "主机解析到不被允许的地址"),
    // Endpoints: what happened.
    ("the endpoint did not answer in time", "端点未及时应答"),
    ("the endpoint could not be reached", "无法连接端点"),
    (
        "the endpoint answered with status 200 and an error inside: look into the provider's console",
        "端点返回状态码 200，但其中含有错误：请查看服务商的控制台",
    ),
    ("the endpoint answered with status {}: {}", "端点返回状态码 {0}：{1}"),
    (
        "the endpoint answered with a web page: the URL leads to a login page, a proxy or a site",
        "端点返回了网页：网址指向登录页、代理或网站",
    ),
    ("the endpoint's answer cannot be used: {}", "端点的应答无法使用：{0}"),
    ("the endpoint's answer is too large", "端点的应答过大"),
    ("the address policy does not allow the endpoint", "地址策略不允许此端点"),
    ("the request to the endpoint cannot be sent: {}", "无法发送给端点的请求：{0}"),
    ("the endpoint failed before and is not asked for a while", "端点此前失败，暂时不再请求"),
    ("too many calls to the endpoint are under way", "对端点的请求过多"),
    ("redirects are not followed, so set the URL that it leads to", "不跟随跳转，请设置其指向的网址"),
    (
        "it does not take this request; check dialect, model and extra_body",
        "它不接受此请求；请检查 dialect、model 和 extra_body",
    ),
    ("the API key is missing or wrong", "缺少密钥或密钥有误"),
    ("the account has no credit", "账户没有余额"),
    ("the API key may not use this model or endpoint", "此密钥无权使用该模型或端点"),
    ("there is no such path or model", "没有此路径或模型"),
    ("the path is not one for this", "该路径不用于此目的"),
    ("the server is in trouble or overloaded", "服务器故障或过载"),
    ("the request is too large for it", "请求过大"),
    ("its rate limit is reached", "已达到其速率限制"),
    ("it refuses the request", "它拒绝了请求"),
    ("it is not JSON", "不是 JSON"),
    ("it has no list of results in any known place", "任何已知位置都没有结果列表"),
    ("no result has a number as score", "没有结果以数字为分数"),
    ("more than one in five results name no document that was sent", "超过五分之一的结果未指向发送的文档"),
    (
        "the server counts documents from 1, so scores cannot be told apart safely",
        "服务器从 1 开始编号，无法可靠区分分数",
    ),
    ("the list of scores is not as long as the list of documents", "分数列表与文档列表长度不同"),
    (
        "it does not hold a vector of numbers for each text, all of one length",
        "没有为每个文本提供等长的数字向量",
    ),
    ("the query is blank", "查询为空"),
    ("the API key has characters that a header cannot carry", "密钥含有请求头无法携带的字符"),
    (
        "`auth_header` or `auth_scheme` is not a valid header",
        "`auth_header` 或 `auth_scheme` 不是有效的请求头",
    ),
    (
        "`extra_headers` holds a header that is not valid or may not be set",
        "`extra_headers` 含有无效或不允许设置的请求头",
    ),
    ("a stored secret was sealed with another master key", "已保存的机密由另一主密钥加密"),
    (
        "a stored secret of this matcher was sealed with another master key; set it again",
        "此匹配器已保存的机密由另一主密钥加密；请重新设置",
    ),
    // Endpoints: what to do.
    (
        "Raise `timeout_ms`, use a faster model, or send fewer tools (`max_documents`)",
        "请增大 `timeout_ms`、换用更快的模型，或减少发送的工具（`max_documents`）",
    ),
    (
        "Check host and port of `endpoint`, that the server runs, that this machine reaches it without a proxy, and that its certificate is valid",
        "请检查 `endpoint` 的主机和端口、服务器是否运行、本机能否不经代理访问，以及证书是否有效",
    ),
    (
        "Check `api_key`, and how it is sent: `auth_header` and `auth_scheme`",
        "请检查 `api_key` 及其发送方式：`auth_header` 和 `auth_scheme`",
    ),
    (
        "Add credit to the account at the provider, or use another account",
        "请为服务商账户充值，或使用其他账户",
    ),
    (
        "Check the path of `endpoint` and the name in `model`. The whole URL of the rerank route may be set, and `dialect` by name",
        "请检查 `endpoint` 的路径和 `model` 的名称。可设置重排路由的完整网址，并指定 `dialect`",
    ),
    (
        "Wait a minute and test again; where it happens often, ask the provider for a higher limit",
        "请稍候一分钟再测试；如经常发生，请向服务商申请更高限额",
    ),
    (
        "Often it is https in place of http, or another host; `curl -I` with the URL shows where it leads",
        "通常应将 http 改为 https，或换用其他主机；`curl -I` 可查看跳转目标",
    ),
    (
        "The server's log says more; what a request may hold (`model`, `dialect`, `extra_body`) is in the provider's manual",
        "服务器日志有更多信息；请求可含内容（`model`、`dialect`、`extra_body`）见服务商手册",
    ),
    (
        "Check `model` and `api_key`; often the account may not use the model",
        "请检查 `model` 和 `api_key`；账户常常无权使用该模型",
    ),
    (
        "Set `endpoint` to the address of the API. Where a gateway asks for a login, let this service pass it",
        "请将 `endpoint` 设为 API 的地址。如网关要求登录，请放行本服务",
    ),
    (
        "Check that `model` does what `kind` says (models for chat do neither) and that `endpoint` is its route; else set `dialect` by name",
        "请确认 `model` 与 `kind` 相符（聊天模型两者皆非），且 `endpoint` 是其路由；否则请指定 `dialect`",
    ),
    (
        "Keep the server from sending more than scores or vectors, for example in `extra_body`",
        "请让服务器只发送分数或向量，例如通过 `extra_body`",
    ),
    (
        "Use a public https address, or let the operator allow this one (`rerank.allow_private`, `rerank.allowed_hosts`)",
        "请使用公共 https 地址，或由运维放行（`rerank.allow_private`、`rerank.allowed_hosts`）",
    ),
    ("Set what is named here anew", "请重新设置此处所指的项"),
    ("Write the matcher anew or wait, then search again", "请重新保存匹配器或稍候，然后再搜索"),
    ("Test again in a moment", "请稍后再测试"),
    ("Set `api_key` anew", "请重新设置 `api_key`"),
    ("Look into the service's log: its database does not answer", "请查看服务日志：其数据库没有应答"),
    ("Look into the log", "请查看日志"),
    // Notes of a test.
    (
        "there are no tools to be seen here, so a built-in sample is ranked",
        "此处没有可见的工具，因此对内置示例排序",
    ),
    (
        "a test ends after {} ms, by the service's own limit on requests",
        "测试在 {0} 毫秒后结束，受服务自身的请求时限约束",
    ),
    (
        "the embedding model that helps to choose what is ranked does not answer: {}",
        "协助选择排序对象的向量模型没有应答：{0}",
    ),
    ("no `min_score` is proposed: {}", "未建议 `min_score`：{0}"),
    ("a control query failed, {}", "对照查询失败，{0}"),
    ("dialect `{}` at `{}`, by asking the endpoint", "方言 `{0}`，路径 `{1}`，由询问端点得知"),
    ("dialect `{}` at `{}`, by settings and URL", "方言 `{0}`，路径 `{1}`，由设置和网址得知"),
    (
        "the endpoint refuses the number of wanted results, so it is not sent",
        "端点拒绝结果数量参数，因此不发送",
    ),
    ("the endpoint takes {} documents in a request", "端点每个请求接受 {0} 个文档"),
    (
        "the model scores documents against each other, so scores of several requests compare badly",
        "模型对文档相互打分，多个请求的分数难以比较",
    ),
    (
        "the model `qwen3-reranker` is called `qwen3-rerank` at DashScope; that is sent",
        "模型 `qwen3-reranker` 在 DashScope 称为 `qwen3-rerank`；按此发送",
    ),
    (
        "the path `{}` was changed to `{}`, where DashScope serves this model",
        "路径 `{0}` 已改为 `{1}`，DashScope 在此提供该模型",
    ),
    (
        "left out of the answer: {} with a wrong index, {} without a score, {} named twice",
        "应答中忽略：{0} 个编号有误，{1} 个没有分数，{2} 个重复",
    ),
];
