//! Why something is proposed: core tools, splits, toolsets, and which form of the listing fits.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    ("The config has it", "配置中已有"),
    ("The tool itself says that it is to be loaded always", "工具自身声明须始终加载"),
    (
        "It turns to the user: wanted in the turn in which nothing else helps",
        "它向用户提问：在其他方法都无用时需要",
    ),
    ("{} % of the calls are to it", "{0}% 的调用是对它的"),
    ("The provider does not take it", "服务商不接受"),
    ("With {} tokens it is better left to search", "共 {0} 词元，最好留给搜索"),
    ("{} groups with {} tools are of one family", "{0} 个分组、{1} 个工具属于同一系列"),
    (
        "{} of {} tools say of themselves that they change nothing; nobody has checked that",
        "{1} 个工具中有 {0} 个自称不做更改；未经核实",
    ),
    ("Tools that say of themselves that they change nothing", "自称不做更改的工具"),
    (
        "With descriptions its tools take {} tokens of a listing that has {}, so they are shown {}; parts can be shown apart",
        "连同描述，其工具在上限为 {1} 的清单中占 {0} 词元，因此{2}；拆分后可分别显示",
    ),
    ("by their names alone", "仅显示名称"),
    ("as one line", "显示为一行"),
    ("not at all", "不显示"),
    ("`enabled` is off: every tool is sent", "`enabled` 已关闭：发送全部工具"),
    ("No tool is left to send", "没有可发送的工具"),
    ("Every tool is core", "所有工具都是核心"),
    ("{} tool is no more than `min_catalog_size` ({})", "{0} 个工具不超过 `min_catalog_size`（{1}）"),
    ("{} tools are no more than `min_catalog_size` ({})", "{0} 个工具不超过 `min_catalog_size`（{1}）"),
    ("The deferred schemas cost less than {} % of the window", "延迟加载的模式占窗口不到 {0}%"),
    ("`listing` is off", "`listing` 已关闭"),
    ("{} tokens with descriptions fit the budget of {}", "含描述共 {0} 词元，在预算 {1} 之内"),
    (
        "{} tokens with {} fit the budget of {}; all descriptions do not",
        "{1}共 {0} 词元，在预算 {2} 之内；含全部描述则超出",
    ),
    ("names alone", "仅名称"),
    ("one line for each group", "每组一行"),
    ("descriptions where there is room", "尽量含描述"),
    (
        "{} tools always stand in the array and {} takes {}; assemblies are refused",
        "数组中始终有 {0} 个工具，而 {1} 只接受 {2} 个；组装会被拒绝",
    ),
];
