//! `mcp.json` of several programs.

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;

fn transport(server: &ServerSpec) -> Value {
    let shown = |values: &SecretValues| -> Value {
        values
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.expose_secret())))
            .collect::<Map<_, _>>()
            .into()
    };
    match &server.transport {
        Transport::Http { url, headers } => json!({"url": url, "headers": shown(headers)}),
        Transport::Stdio { command, args, env } => {
            json!({"command": command, "args": args, "env": shown(env)})
        }
    }
}

#[test]
fn claude_desktop_and_claude_code() {
    let imported = good(&[r#"{"globalShortcut": "", "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"TOKEN": "SECRET", "PORT": 8080}},
        "github": {"type": "http", "url": "https://api.example/mcp", "headers": {"Authorization": "Bearer SECRET"}, "alwaysLoad": true},
        "mail": {"url": "https://mail.example/mcp", "alwaysLoad": ["send_mail", "read_mail"]},
        "quiet": {"url": "https://quiet.example/mcp", "alwaysLoad": false}
    }}"#]);
    assert_eq!((imported.kind, imported.warnings.len()), (Kind::Mcp, 0), "{:?}", imported.warnings);
    let names: Vec<&str> = imported.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["files", "github", "mail", "quiet"]);
    assert_eq!(
        transport(&imported.servers[0]),
        json!({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
            "env": {"TOKEN": "SECRET", "PORT": "8080"}})
    );
    assert_eq!(
        transport(&imported.servers[1]),
        json!({"url": "https://api.example/mcp", "headers": {"Authorization": "Bearer SECRET"}})
    );
    assert_eq!(imported.servers[1].always_load, AlwaysLoad::All);
    assert_eq!(
        Value::Object(imported.config.clone()),
        json!({"core": ["@github", "send_mail", "read_mail"]})
    );
    assert!(!format!("{imported:?}").contains("SECRET"));
}

#[test]
fn vs_code_with_comments_and_inputs() {
    let imported = good(&[r#"{
        // Asked for once.
        "inputs": [{"type": "promptString", "id": "token", "description": "Token of GitHub", "password": true}],
        "servers": {
            "github": {
                "type": "http",
                "url": "https://api.example/mcp/",
                "headers": {"Authorization": "Bearer ${input:token}"}, /* kept */
            },
            "local": {"type": "stdio", "command": "python", "args": ["${workspaceFolder}/server.py"], "envFile": "${workspaceFolder}/.env"},
        },
    }"#]);
    assert_eq!(imported.servers[0].placeholders, ["${input:token}"]);
    assert_eq!(imported.servers[1].placeholders, ["${workspaceFolder}"]);
    assert_eq!(
        told(&imported),
        [
            ("placeholder_kept", "/texts/0/servers/github"),
            ("no_counterpart", "/texts/0/servers/local/envFile"),
            ("placeholder_kept", "/texts/0/servers/local"),
        ]
    );
    assert!(imported.warnings[0].detail.contains("`${input:token}` (Token of GitHub)"));
    let inside = good(&[r#"{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}}}"#]);
    assert_eq!((inside.kind, inside.servers.len()), (Kind::Mcp, 1));
}

#[test]
fn cursor_and_others() {
    let imported = good(&[r#"{"mcpServers": {
        "a": {"url": "https://a.example/mcp", "headers": {"X-Key": "${env:KEY}"}},
        "b": {"serverUrl": "https://b.example/sse", "type": "sse"},
        "c": {"command": "npx", "args": ["x"], "disabled": true},
        "d": {"type": "ws", "url": "wss://d.example"},
        "e": {"url": "file:///etc/passwd"},
        "f": {"command": "npx", "args": "x"},
        "g": {"alwaysAllow": ["t"], "command": "npx", "frobnicate": 1, "always_load": "sometimes"},
        "h": {}, "i": 5, "": {"command": "x"}
    }}"#]);
    let names: Vec<&str> = imported.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "g"]);
    let left_out: Vec<&str> = told(&imported)
        .into_iter()
        .filter(|(code, _)| *code == "server_left_out")
        .map(|(_, pointer)| pointer.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(left_out, ["c", "d", "e", "f", "h", "i", ""]);
    for expected in [
        ("placeholder_kept", "/texts/0/mcpServers/a"),
        ("import_adapted", "/texts/0/mcpServers/b"),
        ("no_counterpart", "/texts/0/mcpServers/g/alwaysAllow"),
        ("unknown_import_key", "/texts/0/mcpServers/g/frobnicate"),
        ("unusable_import_value", "/texts/0/mcpServers/g/always_load"),
    ] {
        assert!(told(&imported).contains(&expected), "{expected:?} in {:?}", told(&imported));
    }
    let bare = good(&[r#"{"git": {"command": "uvx"}}"#]);
    assert_eq!((bare.kind, bare.servers.len()), (Kind::Mcp, 1));
    let yaml = good(&["mcp_servers:\n  git:\n    command: uvx\n    env: {A: 1}\n"]);
    assert_eq!(transport(&yaml.servers[0]), json!({"command": "uvx", "args": [], "env": {"A": "1"}}));
}

#[test]
fn a_server_that_stands_in_two_texts_is_read_once() {
    let imported = good(&[
        r#"{"mcpServers": {"git": {"command": "uvx"}}}"#,
        r#"{"servers": {"git": {"command": "npx"}}}"#,
    ]);
    assert_eq!(imported.servers.len(), 1);
    assert_eq!(told(&imported), [("server_left_out", "/texts/1/servers/git")]);
}
