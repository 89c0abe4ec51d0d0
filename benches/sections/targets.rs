//! A catalog for a provider that nobody asked for before: what the first assembly costs, which makes every tool for it, and what those
//! after it do.

use serde_json::{Value, json};

use crate::support::client::{Client, request};
use crate::support::data::{Data, upload_body};
use crate::support::measure::{Options, Result, Spread, timed};
use crate::support::process::Server;
use crate::support::report::{Figure, Goal, Unit, table};
use crate::{Database, time_of_many};

/// Tools of the catalog.
const TOOLS: usize = 5_000;

/// First and later assemblies for one target.
struct Times {
    target: &'static str,
    asked: Value,
    first: Spread,
    later: Spread,
}

impl Times {
    fn of(target: &'static str, asked: Value) -> Self {
        Self { target, asked, first: Spread::default(), later: Spread::default() }
    }

    fn measure(&mut self, client: &mut Client, user: &str) -> Result<()> {
        let mut body = self.asked.clone();
        body["user"] = user.into();
        let assemble = request("POST", "/v1/assemble", &body.to_string());
        let (time, answer) = timed(|| client.ask(&assemble).map(drop));
        answer?;
        self.first.push(time);
        self.later.push(time_of_many(client, &assemble)?);
        Ok(())
    }
}

/// Every round has other tools and another user. The first target is the baseline of the others.
pub(crate) fn targets(data: &Data, options: &Options) -> Result<()> {
    let database = Database::new()?;
    let server = Server::toolrack(&database.file())?;
    let mut client = server.client(Vec::new())?;
    // Deferred, as an agent has a catalog of this size; and the whole array, where the provider takes so many.
    let few = [
        Times::of("canonical, generic", json!({})),
        Times::of("openai_responses, openai", json!({"format": "openai_responses", "profile": "openai"})),
        Times::of("anthropic, anthropic", json!({"format": "anthropic", "profile": "anthropic"})),
        Times::of(
            "gemini, gemini, openapi",
            json!({"format": "gemini", "profile": "gemini", "schema_dialect": "openapi"}),
        ),
    ];
    let all = [
        Times::of("canonical, generic", json!({})),
        Times::of("anthropic, anthropic", json!({"format": "anthropic", "profile": "anthropic"})),
        Times::of(
            "gemini, gemini, openapi",
            json!({"format": "gemini", "profile": "gemini", "schema_dialect": "openapi"}),
        ),
    ];
    let mut settings = [
        ("deferred", json!({}), few.into_iter().collect::<Vec<_>>()),
        ("all in the array", json!({"enabled": "off"}), all.into()),
    ];
    for round in 0..options.rounds {
        for (at, (_, config, times)) in settings.iter_mut().enumerate() {
            let start = 17 * (2 * round + at);
            let body = upload_body(&data.tools[start..data.tools.len().min(start + TOOLS)]);
            let user = format!("user-{start}");
            server.ask("PUT", &format!("/v1/users/{user}/catalog"), &body)?;
            server.ask("PUT", &format!("/v1/users/{user}/config"), &config.to_string())?;
            for times in times {
                times.measure(&mut client, &user)?;
            }
        }
    }
    for (label, _, times) in &settings {
        let Some((usual, others)) = times.split_first() else { continue };
        let mut figures = Vec::new();
        for times in others {
            let figure = |what: &str, measured: &Spread, beside, baseline: &Spread, goal| Figure {
                what: format!("{}: {what}", times.target),
                unit: Unit::Time,
                measured: measured.clone(),
                baseline: Some((beside, baseline.clone())),
                goal,
            };
            let first = "first assembly of the catalog, canonical";
            figures.push(figure("first", &times.first, first, &usual.first, Goal::AtMost(1.0)));
            figures.push(figure("later", &times.later, "later ones, canonical", &usual.later, Goal::None));
        }
        table(&format!("A catalog of {TOOLS} tools for another target, {label}"), &figures)?;
    }
    Ok(())
}
