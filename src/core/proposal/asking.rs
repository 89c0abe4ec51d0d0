//! Tools by which an agent turns to its user: they are wanted in the very turn in which nothing else helps, so a search for them
//! comes too late.

use crate::core::text::{first_sentence, one_line};
use crate::core::tool::Tool;

/// Names of such tools in common agents, without case and separators.
const NAMES: &[&str] = &[
    "askuser",
    "askuserquestion",
    "askuserquestions",
    "askquestion",
    "askquestions",
    "askfollowupquestion",
    "askhuman",
    "askforclarification",
    "askclarification",
    "askforinput",
    "clarify",
    "confirmwithuser",
    "getuserconfirmation",
    "getuserinput",
    "humanapproval",
    "humaninput",
    "messageuser",
    "notifyuser",
    "promptuser",
    "requestapproval",
    "requestclarification",
    "requestconfirmation",
    "requesthumaninput",
    "requestuserinput",
    "replytouser",
    "respondtouser",
    "sendmessagetouser",
    "talktouser",
    "userinput",
];

/// What the first sentence of such a tool begins with, in lower case.
const PHRASES: &[&str] = &[
    "ask the user",
    "asks the user",
    "ask a human",
    "ask the human",
    "ask user",
    "prompt the user for",
    "prompts the user for",
    "request input from the user",
    "request clarification from the user",
    "request confirmation from the user",
    "ask for clarification",
    "ask a clarifying question",
    "ask clarifying questions",
    "询问用户",
    "向用户提问",
    "向用户询问",
    "请求用户",
    "征求用户",
    "詢問使用者",
    "向使用者提問",
    "ユーザーに質問",
    "ユーザーに確認",
    "ユーザーに尋ね",
    "사용자에게 질문",
    "사용자에게 묻",
    "사용자에게 확인",
    "pregunta al usuario",
    "preguntar al usuario",
    "solicita al usuario",
    "fragt den nutzer",
    "fragt den benutzer",
    "den nutzer fragen",
    "den benutzer fragen",
    "frage an den nutzer",
    "demande à l'utilisateur",
    "demander à l'utilisateur",
    "pose une question à l'utilisateur",
    "pergunta ao usuário",
    "perguntar ao usuário",
    "спросить пользователя",
    "спрашивает пользователя",
    "задать вопрос пользователю",
    "hỏi người dùng",
    "اسأل المستخدم",
    "سؤال المستخدم",
    "उपयोगकर्ता से पूछ",
];

/// What the name of a tool has, in lower case, whose description may say that it asks: `configure_deployment` asks too, but
/// about one thing.
const ASKING: &[&str] = &[
    "ask",
    "question",
    "clarif",
    "confirm",
    "input",
    "human",
    "user",
    "prompt",
    "问",
    "問",
    "询",
    "詢",
    "質問",
    "確認",
    "질문",
    "사용자",
    "pregunt",
    "usuario",
    "frag",
    "nutzer",
    "demand",
    "utilisateur",
    "pergunt",
    "usuário",
    "спрос",
    "пользоват",
    "hỏi",
];

/// Characters of a description that are read, and up to where a phrase may begin: later it is told of, not done.
const READ_CHARS: usize = 160;
const LATEST_CHAR: usize = 12;

/// Whether the tool asks or tells the user.
pub(super) fn asks_the_user(tool: &Tool) -> bool {
    let name = tool.name();
    let last = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let bare = last.rsplit("__").next().unwrap_or(last);
    if [name, bare].iter().any(|name| NAMES.contains(&folded(name).as_str())) {
        return true;
    }
    let lower = bare.to_lowercase();
    if !ASKING.iter().any(|part| lower.contains(part)) {
        return false;
    }
    let description = tool.description();
    let head = description.char_indices().nth(READ_CHARS).map_or(&*description, |(at, _)| &description[..at]);
    let lead = first_sentence(&one_line(head)).to_lowercase();
    PHRASES.iter().any(|phrase| {
        lead.find(phrase)
            .is_some_and(|at| lead.char_indices().take(LATEST_CHAR).any(|(start, _)| start == at))
    })
}

fn folded(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::format::ingest::{EntryLimits, read_entry};

    fn asks(name: &str, description: &str) -> bool {
        let entry = serde_json::json!({"name": name, "description": description}).to_string();
        asks_the_user(&read_entry(&entry, EntryLimits { bytes: 10_000, depth: 10 }).unwrap())
    }

    #[test]
    fn asking_is_known_by_name_and_in_many_languages() {
        for (name, description) in [
            ("AskUserQuestion", ""),
            ("mcp__desk__ask_user", ""),
            ("desk.question", "Ask the user a question and wait."),
            ("提问", "向用户提问，并等待回答。"),
            ("rueckfrage", "Fragt den Nutzer, was er meint."),
            ("user_prompt", "Tool: asks the user."),
        ] {
            assert!(asks(name, description), "{name} {description}");
        }
        for (name, description) in [
            ("create_user", "Creates a user."),
            ("configure_deployment", "Ask the user for region and size, then deploy."),
            ("delete_file", "Deletes a file. Ask the user before."),
            ("pay", "Pays an invoice; you must ask the user first."),
        ] {
            assert!(!asks(name, description), "{name} {description}");
        }
    }
}
