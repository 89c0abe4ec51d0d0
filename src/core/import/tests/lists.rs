//! Lists of tools in everything that people find them in.

use super::*;

#[test]
fn a_list_is_found_in_what_stands_around_it() {
    let tool = r#"{"name":"a","description":"d"}"#;
    for (text, pointer) in [
        (format!("[{tool}]"), "/0"),
        (format!("{{\"tools\":[{tool}]}}"), "/tools/0"),
        (format!("{{\"tools\":[{tool}],\"nextCursor\":null}}"), "/tools/0"),
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":[{tool}]}}}}"), "/result/tools/0"),
        (
            format!("{{\"model\":\"m\",\"messages\":[{{\"content\":\"\\u0000\"}}],\"tools\":[{tool}]}}"),
            "/tools/0",
        ),
        (format!("{{\"modelId\":\"m\",\"toolConfig\":{{\"tools\":[{tool}]}}}}"), "/toolConfig/tools/0"),
        (format!("{{\"catalog_version\":\"x\",\"tools\":[{tool}]}}"), "/tools/0"),
        (tool.to_owned(), ""),
        (format!("{tool}\n"), ""),
    ] {
        let imported = good(&[&text]);
        assert_eq!(imported.kind, Kind::Tools, "{text}");
        assert_eq!(entries(&imported), [(tool, format!("/texts/0{pointer}").as_str())], "{text}");
        assert!(imported.warnings.is_empty(), "{text}");
    }
}

#[test]
fn lists_by_server_name_its_group() {
    let expected = [
        (r#"{"group":"git","name":"status","description":"s"}"#),
        (r#"{"group":"git","name":"diff","description":"s"}"#),
        (r#"{"name":"send","description":"s","group":"post"}"#),
    ];
    let (status, diff) = (r#"{"name":"status","description":"s"}"#, r#"{"name":"diff","description":"s"}"#);
    let send = expected[2];
    for text in [
        format!("{{\"git\":[{status},{diff}],\"mail\":[{send}]}}"),
        format!("{{\"git\":{{\"tools\":[{status},{diff}]}},\"mail\":{{\"tools\":[{send}]}}}}"),
        format!(
            "[{{\"name\":\"git\",\"tools\":[{status},{diff}]}},{{\"server\":\"mail\",\"tools\":[{send}]}}]"
        ),
        format!(
            "{{\"group\":\"git\",\"tools\":[{status},{diff}]}}\n{{\"server\":\"mail\",\"tools\":[{send}]}}"
        ),
    ] {
        let imported = good(&[&text]);
        let json: Vec<&str> = imported.tools.iter().map(|tool| tool.json.get()).collect();
        assert_eq!(json, expected, "{text}");
    }
}

#[test]
fn json_lines_and_yaml_lists() {
    let lines = "{\"name\":\"a\",\"description\":\"x\"}\n\n{\"name\":\"b\",\"description\":\"y\"}\n";
    assert_eq!(good(&[lines]).tools.len(), 2);
    let pages = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"a\"}],\"nextCursor\":\"2\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"b\"}]}}\n";
    let imported = good(&[pages]);
    assert_eq!(
        entries(&imported).iter().map(|(_, at)| *at).collect::<Vec<_>>(),
        ["/texts/0/0/result/tools/0", "/texts/0/1/result/tools/0"]
    );
    assert_eq!(told(&imported), [("partial_list", "/texts/0/0/result/nextCursor")]);
    let yaml = "tools:\n  - name: a\n    description: does a\n    inputSchema: {type: object, properties: {b: {type: string}, a: {type: integer}}}\n";
    assert_eq!(
        entries(&good(&[yaml]))[0].0,
        r#"{"name":"a","description":"does a","inputSchema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}}"#
    );
}

#[test]
fn entries_stay_as_they_are_and_bad_ones_are_no_matter_here() {
    let text = r#"{"tools":[ {"name":"a" , "parameters":{"z":1.50}}, {"name":"b","name":"c"}, 7, {"functionDeclarations":[{"name":"d"}]},
        {"type":"namespace","name":"n","tools":[{"name":"e"}]}, {"toolSpec":{"name":"f"}} ]}"#;
    let imported = import_as(&[text], None, Some("g")).unwrap();
    let json: Vec<&str> = imported.tools.iter().map(|tool| tool.json.get()).collect();
    assert_eq!(
        json,
        [
            r#"{"group":"g","name":"a" , "parameters":{"z":1.50}}"#,
            r#"{"group":"g","name":"b","name":"c"}"#,
            "7",
            r#"{"group":"g","functionDeclarations":[{"name":"d"}]}"#,
            r#"{"type":"namespace","name":"n","tools":[{"name":"e"}]}"#,
            r#"{"group":"g","toolSpec":{"name":"f"}}"#,
        ]
    );
}

#[test]
fn a_tool_that_is_always_loaded_is_core() {
    let imported = good(&[
        r#"[{"name":"ask","inputSchema":{},"_meta":{"anthropic/alwaysLoad":true}},{"name":"b","inputSchema":{},"_meta":{"anthropic/alwaysLoad":false}}]"#,
    ]);
    assert_eq!(Value::Object(imported.config), serde_json::json!({"core": ["ask"]}));
}

#[test]
fn a_caller_may_say_what_a_text_is() {
    let imported = import_as(&[r#"{"git":[{"name":"a"}]}"#], Some(Kind::Tools), None).unwrap();
    assert_eq!(entries(&imported), [(r#"{"group":"git","name":"a"}"#, "/texts/0/git/0")]);
    let imported = import_as(&[r#"{"enabled":true}"#], Some(Kind::Dsh), None).unwrap();
    assert_eq!((imported.kind, &imported.config["enabled"]), (Kind::Dsh, &serde_json::json!("on")));
    assert!(import_as(&["[]"], Some(Kind::Mcp), None).is_err());
}
