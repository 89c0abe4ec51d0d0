//! What is sent of a tool's schema otherwise than it was uploaded: what the codes mean, and what names a keyword.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    ("`{}` is larger than the provider takes", "`{0}` 超过服务商接受的大小"),
    ("`{}` is taken out", "已去除 `{0}`"),
    ("`{}` is written as a value of its kind", "`{0}` 已写为应有的类型"),
    ("`{}` had a value of the wrong kind and is taken out", "`{0}` 的值类型有误，已去除"),
    ("`{}` stood among the properties", "`{0}` 曾位于属性之中"),
    ("`{}` is refused at the root", "根上不接受 `{0}`"),
    ("`{}` would say more than it did", "`{0}` 的含义会扩大"),
    ("`{}` holds characters that are not shown and is left out", "`{0}` 含有不可见字符，已省略"),
    ("`{}` speaks of arguments by their old keys", "`{0}` 以旧的键指代参数"),
    ("the alternatives of `{}` are joined", "`{0}` 的各选项已合并"),
    ("the argument {} is called {}", "参数 {0} 改称 {1}"),
    (
        "two schemas say different things in `{}`; the first one holds",
        "两个模式的 `{0}` 不一致；以第一个为准",
    ),
    ("the schema is nested deeper than {} levels", "模式嵌套超过 {0} 层"),
    ("the mended schema would be nested deeper than {} levels", "修改后的模式嵌套会超过 {0} 层"),
    ("writing the schema out would add more than {} bytes to it", "展开模式会增加超过 {0} 字节"),
    ("{} more findings", "另有 {0} 项"),
    ("not strict: {}", "不使用严格模式：{0}"),
    ("no strict mode is known for this provider and dialect", "此服务商和方言没有已知的严格模式"),
    ("a value has no type", "有值没有类型"),
    ("objects are nested too deeply", "对象嵌套过深"),
    ("an object takes properties of any name", "有对象接受任意名称的属性"),
    ("an enum is too long", "枚举过长"),
    ("`minItems` is larger than strict mode takes", "`minItems` 超过严格模式接受的大小"),
    ("there are too many properties", "属性过多"),
    ("there are too many enum values", "枚举值过多"),
    ("names and enum values are too long together", "名称与枚举值合计过长"),
    ("there are too many optional properties or alternatives", "可选属性或选项过多"),
    ("the schema refers to itself", "模式引用自身"),
    ("the schema would be too large", "模式会过大"),
];

/// What a code means, where its own words are not known.
pub(super) const MEANINGS: &[Row] = &[
    ("alternatives_rewritten", "服务商只读 `anyOf`；其他形式的选项写为 `anyOf`"),
    ("boolean_schema", "`true` 和 `false` 代替了模式；写为 `{}` 和不可能的模式"),
    ("bound_dropped", "长度或数值超出服务商的范围；改写在描述中"),
    ("constant_rewritten", "服务商不接受 `const`；写为枚举或写在描述中"),
    ("dialect_upgraded", "旧版 JSON Schema 的关键字按 2020-12 书写"),
    ("enum_changed", "去除了服务商不接受的枚举值或整个枚举"),
    ("format_dropped", "服务商不认识此格式；写在描述中"),
    ("hidden_characters", "省略了不可见字符及含有它们的值；含有它们的键改名"),
    ("items_added", "数组未说明其元素"),
    ("key_renamed", "服务商不接受此参数名；参数映射会还原"),
    ("keyword_dropped", "服务商不接受此关键字；其含义写在描述中"),
    ("more", "还有更多未列出"),
    ("not_strict", "模式不能用于此服务商的严格模式；工具不以严格模式提供"),
    ("pattern_dropped", "样式不是服务商接受的正则表达式"),
    ("properties_lifted", "模式只是属性列表；已置于 `properties` 之下"),
    ("reference_cut", "引用自身的模式展开到一定深度后截断"),
    ("reference_inlined", "引用处写入所指的模式"),
    ("reference_moved", "引用所指的内容现位于 `$defs`"),
    ("reference_unresolved", "引用没有目标；此处允许任何值"),
    ("required_changed", "`required` 指了不存在的属性，或不是名称列表"),
    ("root_changed", "模式的根必须是带属性的对象"),
    ("root_wrapped", "参数不是对象；作为属性 `value` 传递"),
    ("schemas_merged", "须同时成立的模式写为一个；矛盾时以第一个为准"),
    ("strict_closed", "严格模式：对象不接受其他属性"),
    ("strict_nullable", "严格模式：可选属性为必填且可为 null，表示缺省"),
    ("too_deep", "模式嵌套过深；不向此服务商提供该工具"),
    ("too_large", "为此服务商书写会使模式过大；不提供该工具"),
    ("type_changed", "类型不是 JSON Schema 的类型，或书写方式不为服务商接受"),
    ("type_missing", "服务商需要类型，而模式没有"),
    ("union_flattened", "服务商不接受的选项已合并；写在描述中"),
    ("unreadable", "模式不是 JSON；不提供该工具"),
    ("wrong_value", "关键字的值类型有误"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::mend::LINTS;

    #[test]
    fn every_code_has_a_meaning() {
        let codes = |rows: &[Row]| rows.iter().map(|(code, _)| *code).collect::<Vec<_>>();
        assert_eq!(codes(MEANINGS), codes(LINTS));
    }
}
