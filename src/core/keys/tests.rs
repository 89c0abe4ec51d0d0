//! Keys, patterns and bindings as their holders meet them.

use std::collections::HashSet;

use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::core::id::Id;

fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

fn bindings(document: &Value) -> Bindings {
    let mut whole = json!({"users": [], "projects": [], "toolsets": [], "allow": [], "deny": []});
    whole.as_object_mut().unwrap().extend(document.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

#[test]
fn a_key_is_written_as_published() {
    let key = format_key(KeyId::new([0xab; 8]), &[0; 32]);
    let body = format!("trk_{}_{}", "ab".repeat(8), "00".repeat(32));
    assert_eq!(key.expose_secret().rsplit_once('_').unwrap().0, body);
    // What `printf %s BODY | sha256sum` prints, so that a scanner can compute it.
    assert_eq!(key.expose_secret().rsplit_once('_').unwrap().1, "05c1ea1a");
    assert!(!format!("{key:?} {:?}", KeyDigest::of(key.expose_secret().as_bytes())).contains("ab"));
}

#[test]
fn what_is_no_key_of_ours_is_not_called_misspelt() {
    for other in ["", "x", "sk-abc", "Trk_ab", "0123456789abcdef0123456789abcdef"] {
        assert!(!is_misspelt(other.as_bytes()) && key_id(other.as_bytes()).is_none(), "{other}");
    }
    for cut in ["trk_", "trk__", "trk_é", "trk_0123456789abcdef_00_00000000"] {
        assert!(is_misspelt(cut.as_bytes()) && key_id(cut.as_bytes()).is_none(), "{cut}");
    }
    assert!("0123456789ABCDEF".parse::<KeyId>().is_err() && "0".parse::<KeyId>().is_err());
}

proptest! {
    #[test]
    fn a_key_comes_back_and_a_typo_is_noticed(
        key: [u8; 8], secret: [u8; 32], at in 4_usize..94, typo in "[ -~]", cut in 1_usize..90
    ) {
        let text = format_key(KeyId::new(key), &secret);
        let text = text.expose_secret();
        prop_assert_eq!(key_id(text.as_bytes()), Some(KeyId::new(key)));
        prop_assert!(!is_misspelt(text.as_bytes()));
        prop_assert_eq!(KeyId::new(key).to_string().parse(), Ok(KeyId::new(key)));
        let mut wrong = text.to_owned();
        wrong.replace_range(at..=at, &typo);
        prop_assert_eq!(is_misspelt(wrong.as_bytes()), wrong != text);
        prop_assert_eq!(
            KeyDigest::of(wrong.as_bytes()).is(&KeyDigest::of(text.as_bytes())), wrong == text
        );
        prop_assert!(is_misspelt(&text.as_bytes()[..text.len() - cut]));
        let digest = KeyDigest::of(text.as_bytes());
        prop_assert!(KeyDigest::from_hex(&digest.to_hex()).unwrap().is(&digest));
    }

    #[test]
    fn any_bytes_are_looked_at_without_harm(bytes: Vec<u8>) {
        prop_assert!(key_id(&bytes).is_none());
        let _ = is_misspelt(&bytes);
        let _ = is_misspelt(&[b"trk_", &bytes[..]].concat());
    }

    #[test]
    fn a_pattern_covers_what_its_text_says(text in "[a-c.*-]{0,5}", other in "[a-c.-]{1,5}") {
        let Ok(pattern) = Pattern::parse(&text) else {
            // Blank, or a star that is not the end.
            prop_assert!(text.is_empty() || text[..text.len() - 1].contains('*'));
            return Ok(());
        };
        prop_assert_eq!(pattern.to_string(), text.clone());
        let covered = match text.strip_suffix('*') {
            Some(prefix) => other.starts_with(prefix),
            None => other == text,
        };
        prop_assert_eq!(pattern.covers(&id(&other)), covered);
        if pattern.is_all() {
            prop_assert!(covered);
        }
    }

    #[test]
    fn a_longer_list_covers_no_less(
        patterns in prop::collection::vec("[ab]{1,2}\\*?", 1..4), user in "[ab]{1,3}"
    ) {
        let less = bindings(&json!({"users": patterns[1..]}));
        let more = bindings(&json!({ "users": patterns }));
        let user = id(&user);
        prop_assert!(!less.covers(Some(&user), None) || more.covers(Some(&user), None));
        prop_assert!(!more.covers(Some(&user), Some(&user)), "no project is covered");
        prop_assert!(more.covers(None, None));
    }
}

#[test]
fn both_user_and_project_must_be_covered() {
    let bound = bindings(&json!({"users": ["ada", "team-*"], "projects": ["apollo"]}));
    let covers = |user: &str, project: Option<&str>| bound.covers(Some(&id(user)), project.map(id).as_ref());
    for (user, project, covered) in [
        ("ada", None, true),
        ("ada", Some("apollo"), true),
        ("team-", Some("apollo"), true),
        ("team-7", None, true),
        ("adam", None, false),
        ("Ada", None, false),
        ("ada", Some("apollo2"), false),
        ("bob", Some("apollo"), false),
    ] {
        assert_eq!(covers(user, project), covered, "{user} {project:?}");
    }
    let nothing = Bindings::default();
    assert!(!nothing.covers(Some(&id("a")), None) && !nothing.covers(None, Some(&id("a"))));
}

#[test]
fn a_role_has_the_bindings_that_it_needs_and_no_others() {
    for (role, document, pointer) in [
        (Role::Admin, json!({}), None),
        (Role::Admin, json!({"users": ["*"]}), Some("/users")),
        (Role::Admin, json!({"deny": ["x"]}), Some("/deny")),
        (Role::Metrics, json!({}), None),
        (Role::Metrics, json!({"projects": ["a"]}), Some("/projects")),
        (Role::Agent, json!({}), Some("/users")),
        (Role::Agent, json!({"projects": ["a"]}), Some("/users")),
        (Role::Agent, json!({"users": ["a"], "toolsets": ["t"], "allow": ["a*"], "deny": ["@b"]}), None),
        (Role::Setup, json!({}), Some("/users")),
        (Role::Setup, json!({"projects": ["a"]}), None),
        (Role::Setup, json!({"users": ["a"], "allow": ["x"]}), Some("/allow")),
        (Role::Setup, json!({"users": vec!["a"; MAX_PATTERNS + 1]}), Some("/users")),
        (Role::Agent, json!({"users": ["a"], "deny": vec!["a"; MAX_LIMITS + 1]}), Some("/deny")),
    ] {
        let refused = bindings(&document).check(role).err().map(|error| error.pointer);
        assert_eq!(refused.as_deref(), pointer, "{role} {document}");
    }
}

#[test]
fn a_stored_restriction_of_a_later_version_is_not_passed_over() {
    let stored = serde_json::to_value(bindings(&json!({"users": ["a"]}))).unwrap();
    for (key, value) in [("addresses", json!(["10.0.0.0/8"])), ("users", Value::Null)] {
        let mut later = stored.clone();
        later[key] = value;
        assert!(serde_json::from_value::<Bindings>(later).is_err(), "{key}");
    }
    let mut less = stored;
    less.as_object_mut().unwrap().remove("deny");
    assert!(serde_json::from_value::<Bindings>(less).is_err());
}

#[test]
fn limits_are_one_more_selection() {
    assert!(bindings(&json!({"users": ["*"]})).limits().is_none());
    let limits = bindings(&json!({"toolsets": ["t"], "deny": ["x"]})).limits().unwrap();
    assert_eq!(serde_json::to_value(&*limits).unwrap(), json!({"toolsets": ["t"], "deny": ["x"]}));
    // An empty list of toolsets would lift the limit.
    assert!(bindings(&json!({"deny": ["x"]})).limits().unwrap().toolsets.is_none());
}

#[test]
fn the_table_is_whole() {
    let ids: HashSet<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), OPERATIONS.len());
    for row in OPERATIONS {
        assert!(row.access.allows(Role::Admin), "{}", row.id);
        assert!(!row.access.allows(Role::Metrics) || row.covers == Covers::Nothing, "{}", row.id);
    }
    assert!(operation("nothing").is_none());
    for role in Role::ALL {
        assert_eq!(Role::parse(role.as_str()), Some(role));
        assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
    }
}
