//! Validation of a call's arguments against the JSON Schema of its tool.
//!
//! Owns the compiled form of a schema and the choice of the one fault that helps a model most. It fails open: a
//! schema that cannot be used, or whose evaluation could cost too much, lets everything pass and says so. It never
//! fetches anything, never runs a backtracking regular expression, and changes no arguments.
//!
//! - `prepare` makes the working copy: references resolved inside the document, OpenAPI's `nullable` honoured;
//! - `repair` takes out what cannot be used, so that one bad keyword does not disable the rest;
//! - `cost` bounds the work and the stack of an evaluation before it starts;
//! - `explain` picks one error and words it.

mod cost;
mod explain;
pub(super) mod keywords;
pub(super) mod prepare;
mod repair;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_hostile;

use serde_json::Value;

use cost::{Meter, Plan};
pub use explain::path_of;

/// Longest message of a [`Violation`], in characters.
pub const MAX_MESSAGE_CHARS: usize = 600;

/// The schema of one tool, ready to check arguments. Built once and shared: it depends on the schema's text alone.
#[derive(Debug)]
pub struct Validator {
    /// Keys that the arguments must have, known also when the rest of the schema is unusable.
    required: Vec<String>,
    body: Result<Body, String>,
    notes: Vec<String>,
    schema_bytes: usize,
}

#[derive(Debug)]
struct Body {
    compiled: jsonschema::Validator,
    plan: Plan,
}

/// Whether the root of a schema can describe arguments, which are an object: its type is `object`, one of several, or
/// not said.
pub fn takes_object(schema: &str) -> bool {
    let Ok(root) = serde_json::from_str::<serde_json::Map<String, Value>>(schema) else { return false };
    match root.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    /// Required keys of the arguments that are absent, in the order of the schema.
    Missing(Vec<String>),
    Invalid(Violation),
    /// Nothing but the presence of required keys was checked, for this reason.
    Unchecked(String),
}

/// One place where the arguments break the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Like `arguments.options.count` or `arguments[0]`; the object itself when a required key is missing in it.
    pub path: String,
    /// The same place as a JSON pointer into the arguments.
    pub pointer: String,
    /// The JSON Schema keyword that was broken, for example `type` or `additionalProperties`.
    pub constraint: String,
    /// At most [`MAX_MESSAGE_CHARS`] characters on one line, without control characters.
    pub message: String,
}

impl Validator {
    /// Compiles the raw JSON Schema text of a tool. Never fails; see [`Validator::unusable`].
    pub fn compile(schema: &str) -> Self {
        let document: Value = match serde_json::from_str(schema) {
            Ok(document) => document,
            Err(error) => {
                let body = Err(format!("the schema is not JSON: {error}"));
                return Self { required: Vec::new(), body, notes: Vec::new(), schema_bytes: 0 };
            }
        };
        let required = required_keys(&document);
        let mut notes = Vec::new();
        let body = if takes_object(schema) {
            compile_body(document, &mut notes)
        } else {
            Err("the root of the schema is no object".to_owned())
        };
        Self { required, body, notes, schema_bytes: schema.len() }
    }

    /// Approximate size in memory, in bytes: a compiled schema was seen to take up to a dozen times its text.
    pub fn bytes(&self) -> usize {
        1_024 + 12 * self.schema_bytes
    }

    /// Why the schema cannot be used beyond its required keys; none when it can.
    pub fn unusable(&self) -> Option<&str> {
        self.body.as_ref().err().map(String::as_str)
    }

    /// What was taken out of the working copy so that the rest of the schema could be used.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Checks arguments: first that all required keys are there, then the whole schema.
    pub fn check(&self, arguments: &Value) -> Verdict {
        if let Value::Object(object) = arguments {
            let missing: Vec<String> =
                self.required.iter().filter(|key| !object.contains_key(*key)).cloned().collect();
            if !missing.is_empty() {
                return Verdict::Missing(missing);
            }
        }
        let body = match &self.body {
            Ok(body) => body,
            Err(reason) => return Verdict::Unchecked(reason.clone()),
        };
        if !body.plan.is_surely_cheap(arguments) && Meter::check(&body.plan, arguments).is_none() {
            return Verdict::Unchecked(
                "checking these arguments against the schema would cost too much".to_owned(),
            );
        }
        guarded(|| body.check(arguments)).unwrap_or_else(Verdict::Unchecked)
    }
}

impl Body {
    fn check(&self, arguments: &Value) -> Verdict {
        if self.compiled.is_valid(arguments) {
            return Verdict::Valid;
        }
        if !Meter::may_explain(&self.plan, arguments) {
            return Verdict::Invalid(explain::unexplained());
        }
        explain::best(self.compiled.iter_errors(arguments), arguments)
            .map_or(Verdict::Valid, Verdict::Invalid)
    }
}

/// Runs the validation library. It states its invariants as panics; one that an unforeseen schema breaks must not
/// take the call down, so it counts as a schema that cannot be used.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .map_err(|_| "the validator failed on this schema".to_owned())
}

/// The texts in the top-level `required`, each once.
fn required_keys(schema: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    let listed = schema.get("required").and_then(Value::as_array);
    let mut seen = std::collections::HashSet::new();
    for key in listed.into_iter().flatten().filter_map(Value::as_str) {
        if seen.insert(key) {
            keys.push(key.to_owned());
        }
    }
    keys
}

fn compile_body(mut document: Value, notes: &mut Vec<String>) -> Result<Body, String> {
    let draft = prepare::take_draft(&document);
    prepare::prepare(&mut document, draft)?;
    // Bounded before the build: building, too, descends along references.
    Plan::of(&document)?;
    let compiled = guarded(|| repair::build(&mut document, draft, notes))??;
    let plan = Plan::of(&document)?;
    Ok(Body { compiled, plan })
}
