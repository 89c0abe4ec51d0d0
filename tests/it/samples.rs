//! Small catalogs with known tools, and the steps that many tests share.

use serde_json::{Value, json};

use crate::app::{TestApp, User};

/// A tool server whose words occur nowhere in the messy catalog.
pub(crate) fn observatory() -> Vec<Value> {
    let tool = |name: &str, description: &str, parameters: Value| json!({"group": "observatory", "name": name, "description": description, "parameters": parameters});
    let empty = || json!({"type": "object", "properties": {}});
    let mut tools = vec![
        tool("observatory_status", "Weather, dome and instruments at a glance.", empty()),
        tool("park_telescope", "Parks the telescope in its stow position.", empty()),
        tool("open_dome", "Opens the dome's shutter.", empty()),
        tool("close_dome", "Closes the dome's shutter.", empty()),
        tool("stop_everything", "Emergency stop of all motors.", empty()),
        tool(
            "aim_telescope",
            "Aims the telescope at a star, a galaxy or a planet.",
            json!({
                "type": "object",
                "required": ["target"],
                "properties": {
                    "target": {"type": "string", "description": "Name in the Messier catalogue"},
                    "exposure_s": {"type": "integer", "minimum": 1},
                    "band": {"enum": ["red", "green"]}
                }
            }),
        ),
        tool(
            "plot.light-curve",
            "Plots the light curve of a variable star.",
            json!({"type": "object", "required": ["star"], "properties": {"star": {"type": "string"}}}),
        ),
        tool("calibrate_spectrograph", "Calibrates the spectrograph with a neon lamp.", empty()),
    ];
    tools[4]["always_load"] = json!(true);
    tools
}

/// 20 tools named after colours, each with its own words.
pub(crate) fn paints() -> Vec<Value> {
    let colours = [
        "amber",
        "blue",
        "crimson",
        "denim",
        "emerald",
        "fuchsia",
        "gold",
        "heliotrope",
        "indigo",
        "jade",
        "khaki",
        "lilac",
        "magenta",
        "navy",
        "ochre",
        "purple",
        "quartz",
        "red",
        "sienna",
        "teal",
    ];
    colours
        .map(|colour| json!({"group": "paints", "name": colour, "description": format!("Paints {colour}.")}))
        .to_vec()
}

/// A user with [`paints`] and a config.
pub(crate) async fn painter(app: &TestApp, config: Value) -> User {
    let user = app.user();
    user.put_catalog(&paints()).await.ok();
    user.put_config(&config).await.ok();
    user
}

/// Warms tools one after the other, so that their ages are in this order.
pub(crate) async fn warm_each(user: &User, session: &str, names: &[&str]) {
    for name in names {
        user.describe(json!({"session": session, "name": name})).await.ok();
    }
}

pub(crate) async fn shown(user: &User, session: &str, more: Value) -> Value {
    let mut body = more;
    body["session"] = json!(session);
    user.assemble(body).await.ok()
}
