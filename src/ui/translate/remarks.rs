//! Remarks about tools: what each kind costs and what mends it, and what a remark says of a tool.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    // What it costs.
    (
        "A text speaks to the model in place of describing the tool: it may make agents do what nobody asked for",
        "文本在对模型说话，而不是描述工具：可能使代理做出无人要求的事",
    ),
    (
        "A provider does not take the schema in any form: there the tool is reached by search and call alone",
        "有服务商完全不接受此模式：在那里只能通过搜索和调用使用此工具",
    ),
    (
        "Parts of the schema cannot be used, so arguments are checked without them, or not at all",
        "模式的部分内容无法使用，因此参数检查会跳过它们，或完全不检查",
    ),
    (
        "The texts hold characters that nobody sees; models do not get them. One may belong to an emoji, many hide something",
        "文本含有看不见的字符，模型不会收到。个别可能属于表情符号，大量则是在隐藏内容",
    ),
    (
        "Arguments are sent under the key `value` and are not checked, because the root of the schema is no object",
        "模式的根不是对象，因此参数放在键 `value` 下发送，且不检查",
    ),
    ("Search can go only by the name and the arguments", "搜索只能依据名称和参数"),
    ("People and models take the name for another one", "人和模型会将此名称误认为另一个"),
    (
        "Every turn in which the tool stands in the array pays for all of its schema",
        "工具在数组中的每一轮都要为其整个模式付费",
    ),
    (
        "A provider limits what a tool may have: its name is changed or its description cut there",
        "有服务商限制工具内容：在那里名称会被更改或描述被截断",
    ),
    (
        "A provider does not take all of the schema; what is sent there says less than the original",
        "有服务商不接受模式的全部内容；发送的内容比原文少",
    ),
    (
        "The description repeats the name: search finds nothing by it, and a model cannot tell when to use the tool",
        "描述只是重复名称：搜索无法据此找到，模型也不知道何时使用",
    ),
    (
        "Another tool says the same of itself: neither search nor a model can tell them apart",
        "另一个工具有相同描述：搜索和模型都无法区分",
    ),
    (
        "Several groups have a tool of this name, so it is qualified with its group",
        "多个分组有同名工具，因此名称前加上了分组",
    ),
    (
        "User and project both have the tool, and one definition hides the other",
        "用户和项目都有此工具，其中一个定义遮盖了另一个",
    ),
    (
        "The schema lists no parameters: right for some tools, and for others a sign that the source tells nothing",
        "模式没有列出参数：对某些工具正确，对其他工具则说明来源没有提供信息",
    ),
    // What mends it.
    (
        "Read it before you let it through; exclude the tool, or have its source say what it does and no more",
        "放行前请先阅读；排除此工具，或让来源只说明其功能",
    ),
    ("Make the schema smaller and less nested", "请缩小模式并减少嵌套"),
    ("Have the source mend the schema where the remark says", "请让来源修正提示所指处的模式"),
    ("Look at the source; upload the tool without them", "请检查来源，上传不含这些字符的工具"),
    ("Give the schema an object at its root", "请将模式的根改为对象"),
    (
        "Write a sentence, or add aliases: phrases that people use for it",
        "请写一句描述，或添加别名：人们的叫法",
    ),
    ("Rename one of the two, or exclude it", "请重命名其中之一，或将其排除"),
    (
        "Leave it out of core, and have the source say less, or part it into several tools",
        "不要设为核心；让来源精简，或拆分为多个工具",
    ),
    (
        "Shorten the description to its first sentences, the name to 64 plain characters",
        "请将描述缩短为开头几句，名称缩短为 64 个普通字符",
    ),
    (
        "Nothing has to be done; a simpler schema would say the same to all",
        "无需处理；更简单的模式对所有服务商都一样",
    ),
    ("Say what the tool does and when, or add aliases", "请说明工具做什么、何时使用，或添加别名"),
    ("Say what is different, or exclude one of them", "请说明区别，或排除其中之一"),
    ("Nothing has to be done; exclude the one that is not needed", "无需处理；可排除不需要的那个"),
    (
        "Remove one of them, or say `override` in the project's",
        "请移除其中之一，或在项目的定义中写 `override`",
    ),
    ("Look whether the tool takes arguments", "请确认此工具是否需要参数"),
    // What a remark says.
    ("{} character that is not shown", "{0} 个不可见字符"),
    ("{} characters that are not shown", "{0} 个不可见字符"),
    ("The root of the schema is no object", "模式的根不是对象"),
    ("The schema cannot be used: {}", "模式无法使用：{0}"),
    ("Not used: {}", "未使用：{0}"),
    ("The schema lists no parameters", "模式没有列出参数"),
    ("The description is empty", "描述为空"),
    ("\"{}\" says no more than the name", "“{0}”没有比名称说得更多"),
    ("`{}` has the same description", "`{0}` 的描述相同"),
    ("`{}` stands in several groups; this one is `{}`", "`{0}` 存在于多个分组；此处为 `{1}`"),
    ("{} tokens", "{0} 词元"),
    ("and {} more", "另有 {0} 条"),
    (
        "`{}` of `{}` is easily taken for the {} tool `{}`, and so are {} more",
        "`{1}` 的 `{0}` 容易被误认为{2}工具 `{3}`，另有 {4} 个也是",
    ),
    ("`{}` of `{}` is easily taken for the {} tool `{}`", "`{1}` 的 `{0}` 容易被误认为{2}工具 `{3}`"),
    (
        "`{}` of `{}` is easily taken for `{}` of `{}`, and so are {} more",
        "`{1}` 的 `{0}` 容易被误认为 `{3}` 的 `{2}`，另有 {4} 个也是",
    ),
    ("`{}` of `{}` is easily taken for `{}` of `{}`", "`{1}` 的 `{0}` 容易被误认为 `{3}` 的 `{2}`"),
    ("{} more sets of names look alike", "另有 {0} 组名称相似"),
    ("in the stored tool, {}", "在已保存的工具中，{0}"),
    ("models read what stands here: {}", "模型会读到此处内容：{0}"),
    ("the key at `{}` tells the model to forget other instructions", "`{0}` 处的键要求模型忘记其他指令"),
    ("the key at `{}` tells the model to keep something from the user", "`{0}` 处的键要求模型对用户隐瞒"),
    (
        "the key at `{}` tells the model to call this tool before or in place of others",
        "`{0}` 处的键要求模型优先调用此工具",
    ),
    (
        "the key at `{}` asks for secrets, private files or the conversation",
        "`{0}` 处的键索取密钥、私人文件或对话",
    ),
    ("the key at `{}` looks like a message of another speaker", "`{0}` 处的键像是其他发言者的消息"),
    ("`{}` tells the model to forget other instructions", "`{0}` 要求模型忘记其他指令"),
    ("`{}` tells the model to keep something from the user", "`{0}` 要求模型对用户隐瞒"),
    ("`{}` tells the model to call this tool before or in place of others", "`{0}` 要求模型优先调用此工具"),
    ("`{}` asks for secrets, private files or the conversation", "`{0}` 索取密钥、私人文件或对话"),
    ("`{}` looks like a message of another speaker", "`{0}` 像是其他发言者的消息"),
    // Of schemas.
    ("the schema is not JSON: {}", "模式不是 JSON：{0}"),
    ("the schema is not valid at {}: {}", "模式在 {0} 处无效：{1}"),
    ("the schema is nested deeper than {} levels", "模式嵌套超过 {0} 层"),
    ("the reference to {} leads nowhere", "对 {0} 的引用没有目标"),
    ("the reference {} leads nowhere", "引用 {0} 没有目标"),
    ("{} is not checked: {}", "{0} 不检查：{1}"),
    (
        "{} regular expression(s) are not checked: unusable or too large",
        "{0} 个正则表达式不检查：无法使用或过大",
    ),
    (
        "value is not valid under any of the schemas listed in the {} keyword",
        "值不符合 {0} 关键字下的任何模式",
    ),
    ("{} is not of type {}", "{0} 不是 {1} 类型"),
    // Of providers.
    ("{}: the name is sent as `{}`", "{0}：名称以 `{1}` 发送"),
    ("{}: the description is cut at {} characters", "{0}：描述在 {1} 个字符处截断"),
    ("{}: {} at the root", "{0}：{1}（根）"),
    ("{}: {} at {}", "{0}：{1}（{2}）"),
];
