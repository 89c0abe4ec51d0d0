//! English words whose inflection no suffix rule takes off.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A base form and its others, a line each. Forms that are everyday words of another meaning (`left`, `felt`, `saw`) are not here.
const FORMS: &str = "\
    begin began begun
    break broke broken
    bring brought
    build built
    buy bought
    catch caught
    child children
    choose chose chosen
    criterion criteria
    draw drew drawn
    drive drove driven
    eat ate eaten
    find found
    fly flew flown
    foot feet
    forget forgot forgotten
    get got gotten
    give gave given
    go went gone
    grow grew grown
    hold held
    index indices
    keep kept
    know knew known
    lose lost
    make made
    man men
    matrix matrices
    meet met
    mouse mice
    pay paid
    person people
    run ran
    see seen
    sell sold
    send sent
    speak spoke spoken
    spend spent
    steal stole stolen
    take took taken
    teach taught
    tell told
    think thought
    throw threw thrown
    understand understood
    vertex vertices
    wake woke woken
    wear wore worn
    win won
    woman women
    write wrote written";

static BASES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let mut bases = HashMap::new();
    for line in FORMS.lines() {
        let mut words = line.split_whitespace();
        let Some(base) = words.next() else { continue };
        bases.extend(words.map(|form| (form, base)));
    }
    bases
});

/// The base form of an irregular one, both in lower case.
pub(super) fn base_of(word: &str) -> Option<&'static str> {
    BASES.get(word).copied()
}
