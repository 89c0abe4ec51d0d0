//! Whether a query asks what tools there are, rather than for one of them.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::lexicon::{Meaning, of_foreign};
use super::stopwords::is_dense_grammar;

/// What people call tools; by these words alone, a query asks for all of them.
const TOOLS: &str = "tool tools toolset toolsets mcp";
/// Concepts of the lexicon that mean tools in any language.
const TOOL_HEADS: [&str; 2] = ["tool", "capability"];
/// What else they may be called; a catalog may have tools about these, so the query must address the agent as well.
const KINDS: &str = "function functions command commands skill skills ability abilities capability capabilities plugin plugins \
    operation operations action actions service services feature features api apis";
/// Words that address whoever has the tools.
const ADDRESSING: &str = "you your hast du habt ihr sie tienes tenes tienen puedes avez vous tu voce tens вас тебя умеешь \
    можешь ban لديك आपके आपकी";
/// Words that add nothing to such a question.
const AROUND: &str = "have available do haben verfugbar disponibles disponible hay as tem disponiveis te есть доступны \
    доступные co المتاحة पास उपलब्ध what which all any are is there can could please the a of do i we use call me my show list give see name \
    tell get know find search everything every available currently here help with to in for and \
    was welche welchen welches es gibt kannst alle zeig zeige mir liste que cuales cual son lista todas todos las los \
    muestra muestrame de quels quelles quel quelle sont les des liste montre moi est ce quais sao as os mostre me todas \
    какие какой покажи список все мне у ты вы что nhung gi cac nao ما هي التي كل اعرض قائمة कौन से क्या हैं हे है की सूची \
    दिखाओ दिखाएं सभी मेरे";

/// The same in scripts without spaces: concepts, and characters of words that are no concepts.
const AROUND_HEADS: [&str; 8] = ["have", "available", "list", "show", "all", "use", "get", "what"];
const AROUND_CHARACTERS: &str = "有哪什么麼可用能做呢어떤무슨있습니까나요뭐야죠할수何";

static WORDS: LazyLock<[HashSet<&str>; 4]> =
    LazyLock::new(|| [TOOLS, KINDS, ADDRESSING, AROUND].map(|words| words.split_whitespace().collect()));

/// What a word of a query has to do with the question what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tools,
    Kind,
    Addressing,
    Around,
    Other,
}

fn means_tools(meanings: &[Meaning]) -> bool {
    meanings.iter().any(|meaning| TOOL_HEADS.contains(&meaning.concept().head))
}

/// Collects the words of one query.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Overview {
    tools: bool,
    kind: bool,
    addressing: bool,
    other: bool,
}

impl Overview {
    /// A word, folded and in lower case.
    pub(super) fn word(&mut self, word: &str) {
        if self.other {
            return;
        }
        let [tools, kinds, addressing, around] = &*WORDS;
        self.add(match word {
            word if tools.contains(word) => Part::Tools,
            word if kinds.contains(word) => Part::Kind,
            word if addressing.contains(word) => Part::Addressing,
            word if around.contains(word) => Part::Around,
            word if means_tools(of_foreign(word)) => Part::Tools,
            _ => Part::Other,
        });
    }

    /// Takes it that nothing was asked.
    pub(super) fn forget(&mut self) {
        self.other = true;
    }

    /// A word of a script without spaces.
    pub(super) fn concept(&mut self, meanings: &[Meaning]) {
        let around = |meaning: &Meaning| AROUND_HEADS.contains(&meaning.concept().head);
        self.add(match meanings {
            meanings if means_tools(meanings) => Part::Tools,
            meanings if meanings.iter().any(around) => Part::Around,
            _ => Part::Other,
        });
    }

    /// A character of such a script that is part of no known word.
    pub(super) fn character(&mut self, character: char) {
        let around = is_dense_grammar(character) || AROUND_CHARACTERS.contains(character);
        self.add(if around { Part::Around } else { Part::Other });
    }

    fn add(&mut self, part: Part) {
        match part {
            Part::Tools => self.tools = true,
            Part::Kind => self.kind = true,
            Part::Addressing => self.addressing = true,
            Part::Around => {}
            Part::Other => self.other = true,
        }
    }

    /// Whether all that was said asks what there is.
    pub(super) fn asked(self) -> bool {
        !self.other && (self.tools || (self.kind && self.addressing))
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;

    #[test]
    fn questions_about_all_tools_are_told_from_tasks() {
        let asks = |query: &str| {
            let mut read = Query::default();
            read.read(query, &[]);
            read.asks_for_all()
        };
        for query in [
            "what tools do you have?",
            "List all available tools",
            "tools",
            "which functions can you call",
            "what are your capabilities",
            "Welche Tools hast du?",
            "¿qué herramientas tienes?",
            "quels outils avez-vous ?",
            "你有什么工具？",
            "有哪些工具",
            "どんなツールがありますか",
            "какие инструменты у тебя есть",
        ] {
            assert!(asks(query), "{query}");
        }
        for query in [
            "power tools price",
            "list functions",
            "send email",
            "deploy cloud function",
            "发送邮件",
            "",
            "search tool usage",
        ] {
            assert!(!asks(query), "{query}");
        }
    }
}
