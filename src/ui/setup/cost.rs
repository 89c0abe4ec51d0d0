//! What a turn of a draft will cost, by its parts and by what else could be told of the tools.

use maud::{Markup, html};

use crate::core::proposal::TokenPrediction;
use crate::service::PreviewAnswer;
use crate::ui::language::{Language, number};
use crate::ui::parts::{Share, card, token_bar};
use crate::ui::translate::tell;

/// `with_proposal`: what it would cost if the proposal were taken.
pub(super) fn cost(
    language: Language,
    preview: &PreviewAnswer,
    with_proposal: Option<&TokenPrediction>,
) -> Markup {
    let now = &preview.tokens;
    // Groups need not be told alike: where there is room, some are told in more words.
    let is_mixed = preview.listing.as_ref().is_some_and(|listing| listing.form == "mixed");
    let shares = |tokens: &TokenPrediction| {
        let share = |class, tokens: usize| Share { class, tokens: tokens as u64 };
        [
            share("core", tokens.core),
            share("bridge", tokens.bridge),
            share("listing", tokens.listing.tokens),
            share("rest", tokens.all.saturating_sub(tokens.assembled)),
        ]
    };
    card(
        language.say("What a turn will cost", "每轮开销"),
        format!("{} {}", number(now.context_window), language.say("window", "窗口")),
        &html! {
            div.body {
                p.big-figure { (number(now.assembled)) " " small { (language.say("tokens of ", "词元，共 ")) (number(now.all)) } }
                (token_bar(language, &shares(now), "big"))
                @if let Some(proposed) = with_proposal {
                    p { (language.say("With the proposal: ", "采用建议后：")) b { (number(proposed.assembled)) } }
                }
                p.note { (tell(language, &now.listing.reason)) }
            }
            table {
                thead { tr {
                    th scope="col" { (language.say("Tier", "层级")) }
                    th scope="col" { (language.say("Listing", "清单")) }
                    th.number scope="col" { (language.say("Listing", "清单词元")) }
                    th.number scope="col" { (language.say("Turn", "每轮")) }
                } }
                tbody {
                    @for tier in &now.listing.tiers {
                        @let chosen = tier.tier == now.listing.tier;
                        tr.chosen[chosen] {
                            th scope="row" { (tier.tier) }
                            td {
                                @if chosen && is_mixed { (language.say("By group, as many words as fit", "按分组，在预算内尽量详细")) }
                                @else { (tier_name(language, tier.tier)) }
                            }
                            td.number { (number(if chosen { now.listing.tokens } else { tier.listing })) }
                            td.number { (number(if chosen { now.assembled } else { tier.turn })) }
                        }
                    }
                }
            }
        },
    )
}

fn tier_name(language: Language, tier: u8) -> &'static str {
    match tier {
        0 => language.say("Everything, no search", "全部发送"),
        1 => language.say("Names and short descriptions", "名称与简述"),
        2 => language.say("Names only", "仅名称"),
        _ => language.say("One line per group", "每组一行"),
    }
}
