//! What was told of each import: entries that were set aside and notes about settings, kept with the draft, each beside what it
//! was read from.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::core::text::{clip, one_line};
use crate::core::warning::Warning;
use crate::service::{QuarantinedEntry, SetupDraft};
use crate::ui::language::{Language, counted, number};
use crate::ui::translate::tell_warning;

/// Imports that are told apart; what was told of older ones is counted.
const MOST_IMPORTS: usize = 20;

/// Of one import, what is told one by one; the rest is counted.
const MOST_NOTES: usize = 100;
const MOST_SET_ASIDE: usize = 200;

/// Longest name of a source or an entry, in characters.
const NAME_CHARS: usize = 120;

/// What was told of one import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// Names of files or of a server; empty: a text that was pasted.
    sources: Vec<String>,
    notes: Vec<Note>,
    more_notes: usize,
    set_aside: Vec<Note>,
    more_set_aside: usize,
}

/// A note about one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    code: String,
    /// The tool that it is about.
    name: String,
    /// Where it stands in its source.
    place: String,
    /// The number of its source.
    of: usize,
    detail: String,
}

impl Note {
    fn new(code: &str, name: Option<&str>, pointer: &str, detail: &str) -> Self {
        // Texts of an import are numbered; what follows is a place inside of one.
        let inside = pointer.strip_prefix("/texts/").unwrap_or(pointer);
        let (of, place) = inside.find('/').map_or((inside, ""), |end| inside.split_at(end));
        let of = of.parse().ok();
        Self {
            code: code.to_owned(),
            name: clip(&one_line(name.unwrap_or_default()), NAME_CHARS).into_owned(),
            place: clip(if of.is_some() { place } else { pointer }, NAME_CHARS).into_owned(),
            of: of.unwrap_or_default(),
            detail: detail.to_owned(),
        }
    }
}

impl Told {
    /// Of sources in the order in which they were read.
    pub(super) fn new(sources: &[String], warnings: &[Warning], set_aside: &[QuarantinedEntry]) -> Self {
        let note = |warning: &Warning| {
            let pointer = warning.pointer.as_deref().unwrap_or_default();
            Note::new(warning.code, warning.tool.as_deref(), pointer, &warning.detail)
        };
        let aside = |entry: &QuarantinedEntry| {
            Note::new(entry.reason, entry.name.as_deref(), &entry.pointer, &entry.detail)
        };
        Self {
            sources: sources.iter().map(|name| clip(&one_line(name), NAME_CHARS).into_owned()).collect(),
            notes: warnings.iter().take(MOST_NOTES).map(note).collect(),
            more_notes: warnings.len().saturating_sub(MOST_NOTES),
            set_aside: set_aside.iter().take(MOST_SET_ASIDE).map(aside).collect(),
            more_set_aside: set_aside.len().saturating_sub(MOST_SET_ASIDE),
        }
    }

    fn count(&self) -> usize {
        self.notes.len() + self.more_notes
    }

    fn count_set_aside(&self) -> usize {
        self.set_aside.len() + self.more_set_aside
    }

    /// Whether both were read from the same files or the same server. Two pasted texts are two.
    fn is_again(&self, other: &Self) -> bool {
        self.sources == other.sources && self.sources.iter().all(|name| !name.is_empty())
    }
}

/// What a draft keeps of its imports, the first one first.
pub(super) fn all(draft: &SetupDraft) -> Vec<Told> {
    draft.notes.iter().filter_map(|told| serde_json::from_value(told.clone()).ok()).collect()
}

/// Entries of all imports that were set aside.
pub(super) fn set_aside(told: &[Told]) -> usize {
    told.iter().map(Told::count_set_aside).sum()
}

/// Keeps what is told of an import; what the same files or server were told of before goes. `tools_go`: whether the tools of
/// before are replaced, and what was set aside of them is past.
pub(super) fn keep(draft: &mut SetupDraft, new: Told, tools_go: bool) {
    let mut kept = all(draft);
    kept.retain(|before| !before.is_again(&new));
    if tools_go {
        for before in &mut kept {
            (before.set_aside, before.more_set_aside) = (Vec::new(), 0);
        }
    }
    kept.push(new);
    kept.retain(|told| told.count() + told.count_set_aside() > 0);
    while kept.len() > MOST_IMPORTS {
        let oldest = kept.remove(0);
        let (notes, set_aside) = (oldest.count(), oldest.count_set_aside());
        if let Some(next) = kept.first_mut() {
            next.more_notes += notes;
            next.more_set_aside += set_aside;
        }
    }
    draft.notes = kept.iter().filter_map(|told| serde_json::to_value(told).ok()).collect();
}

/// The imports of which something is told, each a fold.
pub(super) fn folds(language: Language, told: &[Told]) -> Markup {
    let source = |name: &str| match name {
        "" => language.say("Pasted text", "粘贴的文本").to_owned(),
        name => name.to_owned(),
    };
    let lines = |told: &Told, notes: &[Note]| {
        html! {
            ul.lines {
                @for note in notes {
                    li {
                        @if !note.name.is_empty() { b { (note.name) } " " }
                        @if let Some(name) = told.sources.get(note.of).filter(|_| told.sources.len() > 1) { span.note { (source(name)) " " } }
                        code { (note.code) } " " (tell_warning(language, &note.code, &note.detail)) " "
                        @if !note.place.is_empty() { code { (note.place) } }
                    }
                }
            }
        }
    };
    let rest = |count: usize| {
        let text = match language {
            Language::English => format!("and {} more", number(count)),
            Language::Chinese => format!("另有 {} 条", number(count)),
        };
        html! { @if count > 0 { p.note { (text) } } }
    };
    html! {
        @for told in told.iter().filter(|told| told.count() + told.count_set_aside() > 0) {
            details.notice.warn {
                summary {
                    strong { (told.sources.iter().map(|name| source(name)).collect::<Vec<_>>().join(", ")) } ": "
                    @if told.count_set_aside() > 0 {
                        (counted(language, told.count_set_aside(), "entry set aside", "entries set aside", "个条目被搁置"))
                    }
                    @if told.count_set_aside() > 0 && told.count() > 0 { (language.say(", ", "，")) }
                    @if told.count() > 0 { (counted(language, told.count(), "remark", "remarks", "条提示")) }
                }
                @if told.count_set_aside() > 0 {
                    p { (language.say("Set aside, since they are no tools:", "因不是工具而被搁置：")) }
                    (lines(told, &told.set_aside))
                    (rest(told.more_set_aside))
                }
                @if told.count() > 0 {
                    p { (language.say("Remarks about the rest:", "其余内容的提示：")) }
                    (lines(told, &told.notes))
                    (rest(told.more_notes))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &str, notes: usize) -> Told {
        let warnings: Vec<Warning> = (0..notes)
            .map(|at| Warning::new("clamped", format!("{at}")).at(format!("/texts/0/{at}")))
            .collect();
        Told::new(&[source.to_owned()], &warnings, &[])
    }

    #[test]
    fn what_is_not_told_is_counted() {
        let mut draft = SetupDraft::default();
        keep(&mut draft, told("a.json", MOST_NOTES + 3), false);
        for at in 0..MOST_IMPORTS {
            keep(&mut draft, told(&format!("{at}.json"), 1), false);
        }
        let kept = all(&draft);
        assert_eq!(kept.len(), MOST_IMPORTS);
        assert_eq!(kept.iter().map(Told::count).sum::<usize>(), MOST_NOTES + 3 + MOST_IMPORTS);
    }

    #[test]
    fn a_file_that_is_read_again_is_told_anew() {
        let mut draft = SetupDraft::default();
        for (source, notes) in [("a.json", 2), ("", 1), ("", 1), ("a.json", 1), ("b.json", 0)] {
            keep(&mut draft, told(source, notes), false);
        }
        let sources: Vec<String> = all(&draft).into_iter().map(|told| told.sources.concat()).collect();
        assert_eq!(sources, ["", "", "a.json"]);
    }

    #[test]
    fn a_note_knows_its_source_and_its_place() {
        let note = Note::new("clamped", None, "/texts/1/core/3", "x");
        assert_eq!((note.of, note.place.as_str()), (1, "/core/3"));
        let note = Note::new("clamped", None, "/tools/4/name", "x");
        assert_eq!((note.of, note.place.as_str()), (0, "/tools/4/name"));
        let whole = Note::new("clamped", None, "/texts/2", "x");
        assert_eq!((whole.of, whole.place.as_str()), (2, ""));
    }
}
