//! Mending of a schema for every provider. The input is a schema and, behind an empty line, arguments.
//!
//! What comes out keeps the provider's rules, is bounded, the same again, and taken as it is the next time; arguments come
//! through both ways.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::core::json::{self, JsonLimits};
use crate::core::mend::{
    ArgEffect, ArgStep, Dialect, LINTS, MAX_ADDED_BYTES, MAX_DEPTH, Mended, Outcome, SchemaTarget, map, mend,
    refused, unmap,
};
use crate::core::profile::{Profile, SchemaRules};
use crate::core::schema::{Validator, Verdict};

/// One for each set of rules: what several providers ask for alike is tried once.
static TARGETS: LazyLock<Vec<SchemaTarget>> = LazyLock::new(|| {
    let mut targets = vec![SchemaTarget { dialect: Dialect::OpenApi, ..SchemaTarget::default() }];
    let mut known = Vec::new();
    for profile in Profile::ALL {
        let limits = profile.limits();
        for strict in [false, true] {
            let rules = (SchemaRules { source: "", ..limits.schema }, limits.strict.filter(|_| strict));
            if !known.contains(&rules) {
                known.push(rules);
                targets.push(SchemaTarget { profile, strict, dialect: Dialect::JsonSchema });
            }
        }
    }
    targets
});

pub(crate) fn check(input: &[u8]) {
    let Some((schema, arguments)) = super::parts(input) else { return };
    // Uploads are held to more than JSON alone.
    if json::check(schema.as_bytes(), JsonLimits::strict(MAX_DEPTH)).is_err() {
        return;
    }
    let arguments = json::check(arguments.as_bytes(), JsonLimits::strict(MAX_DEPTH)).unwrap_or("{}");
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    for target in TARGETS.iter() {
        mended(schema, &arguments, target);
    }
    let validator = Validator::compile(schema);
    if let Verdict::Invalid(violation) = validator.check(&arguments) {
        assert!(!violation.message.contains(char::is_control), "{violation:?}");
    }
}

fn mended(schema: &str, arguments: &Value, target: &SchemaTarget) {
    let done = mend(schema, target);
    assert!(done.notes.iter().all(|note| LINTS.iter().any(|(code, _)| *code == note.code)), "{done:?}");
    assert!(done.strict.is_none() || target.strict, "{done:?}");
    if let Outcome::LeftOut(reason) = &done.outcome {
        assert!(!reason.is_empty() && done.schema == schema, "{done:?}");
        return;
    }
    let faults = refused(&done.schema, target, done.strict.is_some());
    assert!(faults.is_empty(), "{target:?} refuses {}: {faults:?}", done.schema);
    assert_eq!(done.outcome == Outcome::Kept, matches!(done.schema, Cow::Borrowed(_)));
    assert!(done.schema.len() <= schema.len() + MAX_ADDED_BYTES, "{} bytes", done.schema.len());
    let again = mend(&done.schema, target);
    assert_eq!(again.schema, done.schema, "{target:?} {:?}", again.notes);
    assert_eq!(again.outcome, Outcome::Kept, "{target:?} {:?}", again.notes);
    both_ways(arguments, &done);
}

/// Arguments that use no key of the mended schema for something else, and no null, which strict mode reads as absent.
fn both_ways(arguments: &Value, done: &Mended<'_>) {
    let renamed = done.arg_map.iter().filter(|change| change.effect != ArgEffect::NullIsAbsent);
    let wire = renamed.filter_map(|change| match change.path.0.last() {
        Some(ArgStep::Key(key)) => Some(key.as_str()),
        _ => None,
    });
    if !says_only(arguments, &wire.collect()) {
        return;
    }
    let mut sent = arguments.clone();
    map(&mut sent, &done.arg_map);
    unmap(&mut sent, &done.arg_map);
    assert_eq!(sent.to_string(), arguments.to_string(), "{:?}", done.arg_map);
}

fn says_only(value: &Value, not: &HashSet<&str>) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(|item| says_only(item, not)),
        Value::Object(map) => {
            map.iter().all(|(key, value)| !not.contains(key.as_str()) && says_only(value, not))
        }
        _ => true,
    }
}
