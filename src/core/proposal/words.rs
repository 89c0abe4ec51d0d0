//! What tools are about, as words: those of their names, and those of the first sentence about them.

use std::collections::HashMap;

use crate::core::grant::{View, ViewTool};
use crate::core::lexical::{Vocabulary, Word};
use crate::core::text::{first_sentence, one_line};

/// Words read of a name and of a first sentence; more only cost work.
const MAX_NAME_WORDS: usize = 12;
const MAX_LEAD_WORDS: usize = 16;
/// Characters of a description that are read for its first sentence.
const LEAD_CHARS: usize = 240;
/// What a word of the first sentence counts beside one of the name.
const LEAD_WEIGHT: f32 = 0.4;
/// Share of a term's places in names beside which one other word stands, in percent, from which on the two are told as one
/// (`pull request`), and fewest such places.
const COMPOUND_PCT: usize = 70;
const LEAST_COMPOUND: usize = 3;
/// Bits below which a word is one that all tools have (`id`, `mcp`, `name`).
const LEAST_BITS: f32 = 2.6;

/// Verbs of names; those that change something are the lexicon's own.
const VERBS: &str = "get list search find fetch read query retrieve return show view lookup look check run execute call invoke use \
    using perform handle process make do set put patch post is has can will allow allows enable enables support supports provide \
    provides given give help helps apply define describe count compare analyze analyse validate verify test resolve calculate \
    compute convert generate extract filter sort select open close start stop load save wait watch ping track monitor manage \
    list search write returns gets lists searches finds fetches reads retrieves shows runs executes performs creates updates \
    deletes removes adds sends generates converts calculates extracts checks allows enables provides pick choose assert expect \
    import export download upload parse scan detect identify explain suggest recommend render draw plot estimate predict inspect \
    browse navigate click scroll toggle switch change modify edit need needed required please ensure work works";

/// Further words that never say what a tool is about.
const SAYS_NOTHING: &str = "all any new old current latest recent available specific multiple single several many first last next previous by from to id \
    ids key keys name names value values type types data info information detail details result results item items list lists \
    status state number numbers count counts page pages option options parameter parameters param params input inputs output \
    outputs content contents response responses request requests based including tool tools function functions mcp server servers \
    api apis client clients user users simple basic advanced quick full default custom optional object objects string strings json text error errors time example examples format formats version \
    versions system service services application applications app apps resource resources record records entry entries field \
    fields set sets default defaults specified particular existing related metadata";

/// A word that tools share.
#[derive(Debug)]
pub(super) struct Term {
    pub stem: String,
    /// As most tools write it.
    pub written: String,
    /// The same with the word that nearly always stands beside it, where there is one.
    pub told: String,
    /// See [`Word::bits`].
    pub bits: f32,
}

impl Term {
    /// How the word is told in a group: without the group's own name beside it. `group` is in lower case.
    pub(super) fn told_in(&self, group: &str) -> &str {
        let repeats = |word: &str| word != self.written && group.contains(word);
        if self.told.split(' ').any(repeats) { &self.written } else { &self.told }
    }
}

/// One tool's words.
#[derive(Debug, Default)]
pub(super) struct ToolWords {
    /// Terms with their weights, each term once.
    pub terms: Vec<(u32, f32)>,
}

/// The words of all tools of a view, by id.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub terms: Vec<Term>,
    pub tools: Vec<ToolWords>,
}

/// Whether a word says what is done rather than to what.
pub(super) fn says_how(word: &Word) -> bool {
    let listed = SAYS_NOTHING.split_whitespace().any(|known| known == word.written);
    listed || is_verb(&word.written) || word.is_action() || word.bits() < LEAST_BITS || word.is_weak()
}

/// Whether a word of a name is a verb that most tools could begin with.
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.split_whitespace().any(|known| known == word)
}

/// Gathers terms; what a word is is judged once.
#[derive(Default)]
struct Gatherer {
    vocabulary: Vocabulary,
    ids: HashMap<String, Option<u32>>,
    terms: Vec<Term>,
    written: HashMap<(u32, String), usize>,
    /// Terms in names with the word that stands before or behind them.
    beside: HashMap<(u32, bool, String), usize>,
    in_names: HashMap<u32, usize>,
}

impl Gatherer {
    /// The terms of a text in its order; a word that says nothing about the subject is nothing.
    fn read(&mut self, text: &str, most: usize) -> Vec<Option<u32>> {
        let words = self.vocabulary.words(text);
        words.into_iter().take(most).map(|word| self.term(word)).collect()
    }

    fn read_name(&mut self, name: &str) -> Vec<Option<u32>> {
        let mut words = self.vocabulary.words(name);
        words.truncate(MAX_NAME_WORDS);
        let terms: Vec<Option<u32>> = words.iter().map(|word| self.term(word.clone())).collect();
        for (at, term) in terms.iter().enumerate() {
            let Some(term) = term else { continue };
            *self.in_names.entry(*term).or_default() += 1;
            let neighbours =
                [(true, words.get(at + 1)), (false, at.checked_sub(1).and_then(|at| words.get(at)))];
            for (behind, word) in neighbours {
                // A verb before it is what is done to it, a service whose it is.
                let tells = |word: &&Word| {
                    !word.is_service() && (behind || !(word.is_action() || is_verb(&word.written)))
                };
                if let Some(word) = word.filter(tells) {
                    *self.beside.entry((*term, behind, word.written.clone())).or_default() += 1;
                }
            }
        }
        terms
    }

    fn term(&mut self, word: Word) -> Option<u32> {
        // The written word decides whether it is told of, so forms of a stem are judged one by one.
        let how = match self.ids.get(&word.written) {
            Some(known) => *known,
            None => {
                let id = (!says_how(&word)).then(|| self.id_of(&word));
                self.ids.insert(word.written.clone(), id);
                id
            }
        };
        let id = how?;
        *self.written.entry((id, word.written)).or_default() += 1;
        Some(id)
    }

    fn id_of(&mut self, word: &Word) -> u32 {
        // Stems have a space of their own among the keys: no written word holds one.
        let key = format!(" {}", word.stem);
        if let Some(Some(id)) = self.ids.get(&key) {
            return *id;
        }
        let id = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.terms.push(Term {
            stem: word.stem.clone(),
            written: String::new(),
            told: String::new(),
            bits: word.bits(),
        });
        self.ids.insert(key, Some(id));
        id
    }

    fn tool(&mut self, tool: &ViewTool) -> ToolWords {
        let name = self.read_name(tool.tool.tool.name());
        let description = tool.tool.tool.description();
        let head =
            description.char_indices().nth(LEAD_CHARS).map_or(&*description, |(at, _)| &description[..at]);
        let lead = self.read(first_sentence(&one_line(head)), MAX_LEAD_WORDS);
        let mut words = ToolWords::default();
        let weighed = name.iter().map(|term| (term, 1.0)).chain(lead.iter().map(|term| (term, LEAD_WEIGHT)));
        for (term, weight) in weighed.filter_map(|(term, weight)| Some(((*term)?, weight))) {
            if !words.terms.iter().any(|(known, _)| *known == term) {
                words.terms.push((term, weight));
            }
        }
        words
    }
}

impl Words {
    pub(super) fn of(view: &View) -> Self {
        let mut gatherer = Gatherer::default();
        let tools = view.tools.iter().map(|tool| gatherer.tool(tool)).collect();
        let Gatherer { mut terms, written, beside, in_names, .. } = gatherer;
        let mut most: Vec<(usize, String)> = vec![(0, String::new()); terms.len()];
        for ((id, written), count) in written {
            let Some(best) = most.get_mut(id as usize) else { continue };
            if count > best.0 || (count == best.0 && written < best.1) {
                *best = (count, written);
            }
        }
        for (term, (_, written)) in terms.iter_mut().zip(most) {
            term.told = written.clone();
            term.written = written;
        }
        let mut compounds: Vec<(&(u32, bool, String), &usize)> = beside.iter().collect();
        compounds.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for ((id, behind, word), times) in compounds {
            let places = in_names.get(id).copied().unwrap_or_default();
            let Some(term) = terms.get_mut(*id as usize).filter(|term| term.told == term.written) else {
                continue;
            };
            if *times >= LEAST_COMPOUND && times * 100 >= places * COMPOUND_PCT {
                let [first, second] = if *behind { [&term.written, word] } else { [word, &term.written] };
                term.told = format!("{first} {second}");
            }
        }
        Self { terms, tools }
    }

    pub(super) fn of_tool(&self, id: u32) -> &[(u32, f32)] {
        self.tools.get(id as usize).map_or(&[], |words| &words.terms)
    }

    pub(super) fn bits(&self, term: u32) -> f32 {
        self.terms.get(term as usize).map_or(0.0, |term| term.bits)
    }
}
