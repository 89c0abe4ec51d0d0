//! The examples run against a real service, as the README says.

use std::process::Command;

use crate::app::{ADMIN_KEY, TestApp};

async fn run(program: &str, script: &str) {
    let app = TestApp::start().await;
    let url = app.url().to_owned();
    let script = format!("{}/examples/{script}", env!("CARGO_MANIFEST_DIR"));
    let program = program.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(program).arg(script).args(["--url", &url, "--key", ADMIN_KEY]).output()
    });
    let output = output.await.unwrap().expect("tests/run installs the interpreter");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("all as expected"), "{text}");
}

#[tokio::test]
async fn the_python_agent_runs() {
    run("python3", "agent.py").await;
}

#[tokio::test]
async fn the_javascript_agent_runs() {
    run("node", "agent.mjs").await;
}
