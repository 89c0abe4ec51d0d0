//! What the codes of warnings mean, and what some of them say.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    ("by this document alone nothing is preloaded: {}", "仅按此文档不会预载：{0}"),
    ("nothing is preloaded: {}", "不会预载：{0}"),
    (
        "the stored api_key was cleared, because the document has no matcher any more",
        "已保存的 api_key 已清除，因为文档中不再有匹配器",
    ),
    (
        "the stored api_key was cleared, because the endpoint is no longer at {}",
        "已保存的 api_key 已清除，因为端点不再位于 {0}",
    ),
    (
        "the stored text of this header was cleared, because the endpoint is no longer at {}",
        "此请求头已保存的内容已清除，因为端点不再位于 {0}",
    ),
    (
        "`api_key` says that one is set, but none is stored; send the key itself",
        "`api_key` 表示已设置，但没有已保存的密钥；请发送密钥本身",
    ),
    (
        "this header says that it is set, but no text is stored; send the text itself",
        "此请求头表示已设置，但没有已保存的内容；请发送内容本身",
    ),
    (
        "this says that it is set, but no text is stored; send the text itself",
        "此项表示已设置，但没有已保存的内容；请发送内容本身",
    ),
    (
        "a header says that it is set, but no text is stored for this endpoint; send the text itself",
        "请求头表示已设置，但此端点没有已保存的内容；请发送内容本身",
    ),
    (
        "the stored text was cleared, because it was set for another place",
        "已保存的内容已清除，因为它是为另一位置设置的",
    ),
    ("the stored text was removed, because this does not name it", "已保存的内容已移除，因为此次写入未提及"),
    (
        "no key goes with this endpoint: keys are no part of versions; send it if the endpoint wants one",
        "此端点没有密钥：密钥不属于版本；如端点需要，请发送",
    ),
    ("`{}` in `core` means no tool of these catalogs", "`core` 中的 `{0}` 在这些目录中没有对应工具"),
    ("`{}` in `core` means {} tools; all of them are core", "`core` 中的 `{0}` 指 {1} 个工具；它们都是核心"),
    ("`{}` stands in several groups; the one of `{}` is `{}`", "`{0}` 存在于多个分组；`{1}` 中的是 `{2}`"),
    (
        "user and project both have `{}`; the user's definition is used",
        "用户和项目都有 `{0}`；采用用户的定义",
    ),
    (
        "user and project both have `{}`; the project's (it says override) definition is used",
        "用户和项目都有 `{0}`；采用项目的定义（其中写明 override）",
    ),
    (
        "its texts hold {} characters that are not shown; what a model sees leaves that out",
        "其文本含有 {0} 个不可见字符；模型不会看到",
    ),
    (
        "the schema's root is no object: arguments are sent under the key `value`, and are not checked",
        "模式的根不是对象：参数放在键 `value` 下发送，且不检查",
    ),
    (
        "the uploaded version waits for an administrator; the approved one stays in use",
        "上传的版本等待管理员批准；继续使用已批准的版本",
    ),
    (
        "its texts hold {} character that is not shown; what a model sees leaves that out",
        "其文本含有 {0} 个不可见字符；模型看到的内容不含它们",
    ),
    ("{} more tools are held", "另有 {0} 个工具等待批准"),
    ("{} more tool is held", "另有 {0} 个工具等待批准"),
    ("{} more tool was not taken", "另有 {0} 个工具未采用"),
    ("{} more tool has suspicious texts", "另有 {0} 个工具的文本可疑"),
    ("the same holds for {} more tool", "另有 {0} 个工具也是如此"),
    ("{} more warning is not listed", "另有 {0} 条提示未列出"),
    ("{} more fault is not listed", "另有 {0} 处错误未列出"),
    ("{} more tools were not taken", "另有 {0} 个工具未采用"),
    ("{} more tools have suspicious texts", "另有 {0} 个工具的文本可疑"),
    ("the same holds for {} more tools", "另有 {0} 个工具也是如此"),
    ("{} more warnings are not listed", "另有 {0} 条提示未列出"),
    ("{} more faults are not listed", "另有 {0} 处错误未列出"),
    ("`{}` limits descriptions; the listing stands beside the tools", "`{0}` 限制描述长度；清单放在工具旁"),
    (
        "`listing` is off: the model sees deferred tools only through tool_search",
        "`listing` 已关闭：模型只能通过 tool_search 看到延迟加载的工具",
    ),
    (
        "a budget of {} tokens is too small for any group; the listing is its header alone",
        "{0} 词元的预算容不下任何分组；清单只有标题",
    ),
    (
        "the description is longer than the format allows and was cut; tool_describe has all of it",
        "描述超过格式允许的长度，已截断；tool_describe 提供全文",
    ),
    ("there are no tools: the catalogs of this request are empty", "没有工具：此请求的目录为空"),
    ("no tool is left in the catalog", "目录中没有剩下工具"),
    ("no tool is left after {}", "应用 {0} 后没有剩下工具"),
    ("there is no tool `{}`", "没有工具 `{0}`"),
    ("there is no toolset `{}`; it adds nothing", "没有工具集 `{0}`；不增加内容"),
    ("`{}` is not in the catalog; nothing was removed for it", "`{0}` 不在目录中；没有为其移除内容"),
    (
        "`{}` has no exposure `{}`; deferred tools are reached through the bridge",
        "`{0}` 不支持 `{1}`；通过桥接使用延迟加载的工具",
    ),
    (
        "left out of the array: {}; tool_search and tool_call still reach it",
        "不在数组中：{0}；仍可通过 tool_search 和 tool_call 使用",
    ),
    (
        "sent without strict mode: the provider takes no more strict tools in one request",
        "未以严格模式发送：服务商单次请求不接受更多严格工具",
    ),
    (
        "the matcher's endpoint did not answer ({}); keywords ranked",
        "匹配器端点没有应答（{0}）；由关键词排序",
    ),
    ("there is no `matcher` whose endpoint could rank", "没有可排序的 `matcher` 端点"),
    ("`warm_policy` is off", "`warm_policy` 已关闭"),
    ("`max_warm_tools` is 0", "`max_warm_tools` 为 0"),
    (
        "with kind `embedding` the model is told in `model`; this key does nothing",
        "kind 为 `embedding` 时模型写在 `model` 中；此项不起作用",
    ),
    (
        "with kind `embedding` the address is told in `endpoint`; this key does nothing",
        "kind 为 `embedding` 时地址写在 `endpoint` 中；此项不起作用",
    ),
    ("without an `embedding_model` this key does nothing", "没有 `embedding_model` 时此项不起作用"),
    (
        "not taken in group `{}`: a tool of this name was approved in another group and was removed; with `require_review_on_change` none comes in its place",
        "未采用分组 `{0}` 中的工具：同名工具曾在另一分组获批准并已移除；启用 `require_review_on_change` 时不会取代它",
    ),
    ("{} is out of range; {} is used", "{0} 超出范围；采用 {1}"),
    (
        "{} is taken as a name, not as a selector: lists mean it by {}",
        "{0} 视为名称而非选择器：在列表中写作 {1}",
    ),
];

/// What a warning of this code means.
pub(super) fn meaning(code: &str) -> Option<&'static str> {
    let (_, meaning) = MEANINGS.iter().find(|(known, _)| *known == code)?;
    Some(meaning)
}

const MEANINGS: &[Row] = &[
    ("ambiguous_core", "`core` 中的一个名称指多个工具；它们都是核心"),
    ("arguments_unchecked", "工具的模式无法使用或检查代价过高：参数原样传递"),
    ("catalog_clash", "用户和项目有同名工具；提示说明采用谁的定义"),
    ("clamped", "数字超出范围；采用范围内最近的值"),
    ("core_not_found", "`core` 中的一项在这些目录中没有对应工具"),
    ("core_tool", "核心工具始终在数组中，不能固定"),
    ("database_away", "数据库没有应答：配置、目录和会话为本进程最后一次读取的状态，找到的工具不会进入数组"),
    ("description_clipped", "描述超过格式允许的长度；describe 提供全文"),
    ("empty_catalog", "此请求的目录中没有工具"),
    ("empty_grant", "选择后没有剩下工具；提示指明规则"),
    ("exposure_unavailable", "格式不支持此方式，或工具过多：通过桥接使用延迟加载的工具"),
    ("first_stage_failed", "重排器旁的向量模型没有应答；仅由词语选择排序对象"),
    ("held_dropped", "等待批准的工具版本已不存在"),
    ("hidden_characters", "工具文本含有不可见字符；模型看到的内容不含它们"),
    ("import_adapted", "导入的值在此处含义不同；详情说明如何处理"),
    ("import_overridden", "两个导入文档对同一设置说法不同；以后者为准"),
    ("listing_off", "`listing` 已关闭：模型只能通过搜索了解延迟加载的工具"),
    ("listing_over_budget", "清单预算过小，容不下任何分组；只有标题"),
    ("listing_placed_separately", "格式限制描述长度，因此清单放在工具旁"),
    ("lookalike_name", "名称容易被误认为另一个"),
    ("more_warnings", "还有更多提示未显示；此条给出数量"),
    ("name_qualified", "多个分组有同名工具；各自称为 `<group>__<name>`"),
    ("no_counterpart", "导入的设置在此没有对应项；详情说明替代方法"),
    ("not_loaded", "找到的工具未加载：`max_answer_tokens` 没有空间，或服务商不接受其定义"),
    ("not_strict", "工具不以严格模式发送"),
    ("not_warmed", "找到的工具未能记入会话，不会进入数组；详情说明原因。仍可调用"),
    ("nothing_imported", "导入的文档中没有可用内容；其他提示和被搁置的条目说明原因"),
    ("odd_name", "分组或工具集的名称看起来像选择器（`@x` 或 `x*`）；详情说明列表如何指代它"),
    ("partial_list", "导入的列表只是更长列表的一页"),
    ("placeholder_kept", "导入的值由其他程序填写（`${env:TOKEN}`）；使用前请给出"),
    ("preload_failed", "匹配器端点未能排序，因此没有预载"),
    ("preload_inactive", "`preload` 已启用，但其他设置使其不起作用"),
    ("query_shortened", "模型的查询过多或过长；详情说明省略了什么"),
    ("rerank_allowance", "此密钥每分钟可使用端点的搜索次数已用完；由关键词排序"),
    ("schema_mended", "模式已为服务商修改，含义减少或改变"),
    ("schema_not_object", "工具模式的根不是对象：参数放在键 `value` 下发送，且不检查"),
    ("search_degraded", "配置的端点没有应答；由关键词排序"),
    ("secret_cleared", "已保存的机密已清除：端点变更、匹配器不存在，或写入时未提及"),
    ("secret_left_out", "导入的机密不会返回；详情说明如何发送"),
    ("secret_missing", "文档表示已设置机密，但没有已保存的内容"),
    ("server_left_out", "导入的 MCP 服务器无法使用；详情说明原因"),
    ("setting_without_effect", "写入的设置与其他设置并存时不起作用"),
    ("storage_full", "没有空间记录已找到的工具：应答正确，但工具不进入数组"),
    ("stored_field_ignored", "此版本无法读取已保存的配置值；采用默认值"),
    ("suspicious_text", "工具文本在对模型说话，而不是描述工具：请在代理使用前查看"),
    ("too_many_tools", "数组中的工具始终多于服务商接受的数量"),
    ("tool_held", "工具的新版本等待管理员批准，继续使用已批准的版本"),
    ("tool_left_out", "服务商完全不接受工具的模式：它不在数组中，仍可搜索和调用"),
    ("tool_moved", "未采用此工具，因为同名工具已在另一分组获批准"),
    ("tool_quarantined", "上传的条目被搁置；详情以原因开头"),
    ("unknown_import_key", "导入文档的一部分未读取"),
    ("unknown_tool", "名称没有对应工具；未做处理"),
    ("unknown_toolset", "没有此名称的工具集；不增加内容"),
    ("unusable_import_value", "导入的值不适合其设置，因此不导入；详情说明原因"),
    ("vectors_incomplete", "部分工具没有可比较的向量"),
    ("warm_evicted", "热集上限或周期使工具离开数组"),
];
