//! Schemas that a provider refuses: roots, keywords, types, enums, arrays, formats, patterns and bounds.

use super::*;

pub(super) fn reports() -> Vec<u8> {
    let tables = [roots(), dialects(), types(), enums(), empties(), grammars()];
    tables.iter().flatten().flat_map(|row| row.reports).copied().collect()
}

async fn check(rows: Vec<Row>) {
    let app = TestApp::start().await;
    for row in rows {
        row.check(&app).await;
    }
}

/// Alternatives and conditions at the root.
fn roots() -> Vec<Row> {
    let text = json!({"type": "string"});
    let either = json!({"oneOf": [
        with(object(json!({"a": text})), json!({"required": ["a"]})),
        with(object(json!({"b": text})), json!({"required": ["b"]})),
    ]});
    let joined = json!({"type": "object", "description": "give exactly one of: (a) or (b)",
        "properties": {"a": text, "b": text}});
    let zod = json!({"$schema": "http://json-schema.org/draft-07/schema#", "oneOf": [
        {"type": "object", "properties": {"action": {"const": "get"}, "id": text}, "required": ["action", "id"],
            "additionalProperties": false},
        {"type": "object", "properties": {"action": {"const": "list"}, "page": {"type": "number"}},
            "required": ["action"], "additionalProperties": false},
    ]});
    let zod_joined = json!({"type": "object",
        "description": "give exactly one of: (action=get, id) or (action=list)", "required": ["action"],
        "properties": {"action": {"enum": ["get", "list"]}, "id": text, "page": {"type": "number"}},
        "additionalProperties": false});
    let condition = json!({"if": {"properties": {"kind": {"const": "timed"}}}, "then": {"required": ["at"]}});
    let timed = object(json!({"kind": text, "at": text}));
    let in_all = with(timed.clone(), json!({ "allOf": [condition] }));
    let at_root = with(timed, condition);
    let ids = object(json!({"calendarId": text, "eventId": text}));
    let some_id =
        with(ids.clone(), json!({"anyOf": [{"required": ["calendarId"]}, {"required": ["eventId"]}]}));
    let told_id = with(ids, json!({"description": "give at least one of: (calendarId) or (eventId)"}));
    let nullable = json!({"oneOf": [object(json!({"q": text})), {"type": "null"}]});
    let parts = with(
        a(json!({"allOf": [
            with(object(json!({"id": text})), json!({"required": ["id"]})),
            object(json!({"kind": text})),
        ]})),
        json!({"required": ["a"]}),
    );
    let closed = with(
        a(with(
            object(json!({"id": text, "kind": {"type": ["string", "null"]}})),
            json!({"required": ["id", "kind"], "additionalProperties": false}),
        )),
        json!({"required": ["a"], "additionalProperties": false}),
    );
    vec![
        row(&[26], ANTHROPIC, either.clone(), joined.clone())
            .told()
            .called(json!({"a": "x"}), json!({"a": "x"})),
        row(&[26, 69], OPENAI, either.clone(), joined.clone()).told(),
        row(&[26, 69], GEMINI, either.clone(), joined.clone()).told(),
        row(&[69], BEDROCK, either.clone(), joined.clone()).told(),
        row(&[69], NOVA, either, object(json!({"a": text, "b": text}))).told(),
        row(&[27], ANTHROPIC, zod.clone(), zod_joined.clone())
            .told()
            .called(json!({"action": "get", "id": "7"}), json!({"action": "get", "id": "7"})),
        row(&[27], DEEPSEEK, zod, zod_joined).told(),
        row(&[28], ANTHROPIC, in_all.clone(), at_root.clone()),
        row(&[28], OPENAI, in_all, at_root),
        row(&[29], ANTHROPIC, some_id.clone(), told_id.clone()).told(),
        row(&[29], OPENAI, some_id.clone(), told_id.clone()).told(),
        row(&[29], VLLM, some_id, told_id).told(),
        row(&[31], OPENAI, nullable.clone(), object(json!({"q": text}))).told(),
        row(&[31], ANTHROPIC, nullable, object(json!({"q": text}))).told(),
        row(&[32], OPENAI, parts.clone(), closed.clone())
            .strict()
            .told()
            .called(json!({"a": {"id": "1", "kind": null}}), json!({"a": {"id": "1"}})),
        row(&[32], RESPONSES, parts, closed).strict().told(),
    ]
}

/// Words of older drafts and other languages.
fn dialects() -> Vec<Row> {
    let draft = "http://json-schema.org/draft-07/schema#";
    let old = json!({"$schema": draft, "type": "object", "definitions": {"x": {"type": "string"}},
        "properties": {"a": {"$ref": "#/definitions/x"},
            "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "t": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}},
        "dependencies": {"a": ["n"]}});
    let new = json!({"type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}, "n": {"type": "number", "exclusiveMinimum": 0},
            "t": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}},
        "dependentRequired": {"a": ["n"]}, "$defs": {"x": {"type": "string"}}});
    let odd =
        object(json!({"a": {"type": "string", "required": true}, "b": {"type": "object", "properties": null,
        "required": null}, "c": {"type": "integer", "minimum": "1"}}));
    let even = with(
        object(json!({"a": {"type": "string"}, "b": {"type": "object", "properties": {}},
            "c": {"type": "integer", "minimum": 1}})),
        json!({"required": ["a"]}),
    );
    let nested = json!({"$schema": draft, "type": "object",
        "properties": {"a": {"$schema": draft, "type": "string"}}});
    let closed = a(json!({"type": "array",
        "items": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false}}));
    let open =
        a(json!({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}));
    let titled = with(
        object(json!({"title": {"type": "string", "title": "Title"}})),
        json!({"title": "Args", "required": ["title"]}),
    );
    vec![
        row(&[38], ANTHROPIC, old, new),
        row(&[40], ANTHROPIC, odd.clone(), even.clone()),
        row(&[40], OPENAI, odd, even),
        row(&[43], GEMINI, closed.clone(), closed.clone()),
        row(&[43], OPENAPI, closed, open),
        row(&[44], GEMINI, nested.clone(), a(json!({"type": "string"}))),
        row(&[44], OPENAPI, nested.clone(), a(json!({"type": "string"}))),
        row(&[44], BEDROCK, nested, a(json!({"type": "string"}))),
        // The keyword goes, a property of that name stays.
        row(
            &[56],
            OPENAPI,
            titled,
            with(object(json!({"title": {"type": "string"}})), json!({"required": ["title"]})),
        ),
    ]
}

/// Types: lists of them, none, empty ones; arrays that do not say of what.
fn types() -> Vec<Row> {
    let list = a(json!({"type": "array"}));
    let listed = a(json!({"type": "array", "items": {}}));
    let lists =
        object(json!({"b": {"type": ["array", "null"]}, "c": {"type": "array", "items": {"type": "array"}}}));
    let items = object(json!({"b": {"type": ["array", "null"], "items": {}},
        "c": {"type": "array", "items": {"type": "array", "items": {}}}}));
    let any = json!([{"type": "string"}, {"type": "number"}, {"type": "boolean"}]);
    let optional = a(json!({"type": ["string", "null"]}));
    let either = a(json!({"type": ["string", "number"]}));
    let empty = a(json!({"type": "", "description": "D."}));
    let untyped = a(json!({"description": "D."}));
    let scalars = a(json!({ "description": "D.", "anyOf": any }));
    vec![
        row(&[41], OPENAI, list.clone(), listed.clone()),
        row(&[41], AZURE, lists.clone(), items.clone()),
        row(&[41], DEEPSEEK, lists, items),
        row(&[41, 42], GENERIC, list.clone(), listed),
        row(&[41], OPENAPI, list, a(json!({"type": "array", "items": {"type": "string"}}))).told(),
        row(&[45], OPENAPI, optional.clone(), a(json!({"type": "string", "nullable": true}))),
        row(&[45], OPENAPI, either, a(json!({"anyOf": [{"type": "string"}, {"type": "number"}]}))),
        row(&[45], GEMINI, optional.clone(), optional.clone()),
        row(&[46], GEMINI, empty.clone(), untyped.clone()),
        row(&[46], OPENAPI, empty, scalars.clone()).told(),
        row(&[47], OPENAPI, untyped.clone(), scalars).told(),
        row(&[47], GEMINI, untyped.clone(), untyped),
        row(&[57], OLLAMA, optional.clone(), optional),
        row(&[57], OLLAMA, json!({"type": "object", "properties": []}), object(json!({}))),
    ]
}

/// Values that an enum may not have.
fn enums() -> Vec<Row> {
    let shell = a(json!({"type": "string", "enum": ["", "shell"]}));
    let told = a(json!({"type": "string", "enum": ["shell"], "description": "may be empty"}));
    let null = a(json!({"type": "string", "enum": [null, "shell"]}));
    let nullable = a(json!({"type": ["string", "null"], "enum": [null, "shell"]}));
    let untyped = a(json!({"enum": ["x", "y"]}));
    let numbers = a(json!({"type": "integer", "enum": [1, 2]}));
    vec![
        row(&[51, 55], GEMINI, shell.clone(), told.clone()).told(),
        row(&[51, 55], OPENAPI, shell.clone(), told).told(),
        row(&[51], ANTHROPIC, shell.clone(), shell),
        row(&[51], OPENAPI, a(json!({"type": "string", "enum": [""]})), a(json!({"type": "string"}))).told(),
        row(&[52], OPENAI, null.clone(), nullable.clone()),
        row(&[52], GEMINI, null.clone(), nullable),
        row(&[52], OPENAPI, null, a(json!({"type": "string", "enum": ["shell"], "nullable": true}))),
        row(&[54], OPENAPI, untyped.clone(), a(json!({"type": "string", "enum": ["x", "y"]}))),
        row(&[54], OPENAPI, numbers, a(json!({"type": "integer", "description": "one of: 1, 2"}))).told(),
        row(&[54], GEMINI, untyped.clone(), untyped),
    ]
}

/// Tools without arguments, in all the ways that they are said.
fn empties() -> Vec<Row> {
    let empty = object(json!({}));
    vec![
        row(&[58], DEEPSEEK, json!({}), empty.clone()),
        row(&[58], OPENAI, json!({}), empty.clone()),
        row(
            &[58],
            GROQ,
            json!({"required": []}),
            json!({"type": "object", "required": [], "properties": {}}),
        ),
        row(&[58], ANTHROPIC, json!({}), json!({"type": "object"})),
        row(&[58], BEDROCK, json!({}), json!({"type": "object"})),
        row(&[58], GEMINI, json!({}), Value::Null),
        row(&[58], OPENAPI, json!({}), Value::Null),
        row(&[59], DEEPSEEK, json!("none"), empty.clone()),
        row(&[59], DEEPSEEK, Value::Null, empty.clone()),
        row(&[59], RESPONSES, Value::Null, empty.clone()),
        row(&[59], OLLAMA, json!("none"), empty),
    ]
}

/// What servers that compile a grammar, or read expressions, do not get through.
fn grammars() -> Vec<Row> {
    let pattern = |pattern: &str| a(json!({"type": "string", "pattern": pattern}));
    let said = |said: &str| a(json!({"type": "string", "description": format!("pattern: {said}")}));
    let (escaped, ahead, plain) = (r"^\\\\w[\\\\", "^(?!x).*$", "^[a-z]+$");
    let long = |keyword: &str, bound: u32| a(object(json!({"b": {"type": "string", keyword: bound}})));
    let some = json!({"type": "array", "items": {"type": "string"}});
    let (uri, date) =
        (json!({"type": "string", "format": "uri"}), a(json!({"type": "string", "format": "date-time"})));
    vec![
        row(&[62], DEEPSEEK, pattern(escaped), said(escaped)).told(),
        row(&[62], DEEPSEEK, pattern(ahead), said(ahead)).told(),
        row(&[62], DEEPSEEK, pattern(plain), pattern(plain)),
        row(
            &[65],
            VLLM,
            a(with(some.clone(), json!({"minItems": 1}))),
            a(with(some, json!({"description": "minItems: 1"}))),
        )
        .told(),
        row(&[66], VLLM, a(uri.clone()), a(json!({"type": "string", "description": "format: uri"}))).told(),
        row(&[66], VLLM, date.clone(), date),
        row(&[66], OPENAI, a(uri.clone()), a(uri)),
        row(
            &[67],
            VLLM,
            long("maxLength", 2_000),
            a(object(json!({"b": {"type": "string",
            "description": "maxLength: 2000"}}))),
        )
        .told(),
        row(
            &[67],
            GENERIC,
            long("minLength", 4_000),
            a(object(json!({"b": {"type": "string",
            "description": "minLength: 4000"}}))),
        )
        .told(),
        row(&[67], VLLM, long("maxLength", 1_999), long("maxLength", 1_999)),
    ]
}

#[tokio::test]
async fn alternatives_at_the_root_are_joined_and_told() {
    check(roots()).await;
}

#[tokio::test]
async fn words_of_other_dialects_are_translated_or_go() {
    check(dialects()).await;
}

#[tokio::test]
async fn types_are_said_as_the_provider_reads_them() {
    check(types()).await;
}

#[tokio::test]
async fn enums_hold_what_the_provider_takes() {
    check(enums()).await;
}

#[tokio::test]
async fn no_arguments_are_said_as_the_provider_wants_it() {
    check(empties()).await;
}

#[tokio::test]
async fn expressions_formats_and_bounds_are_those_that_servers_take() {
    check(grammars()).await;
}

/// 45 and 47 for tools that came in Gemini's own field, which goes out as it came where the provider takes it.
#[tokio::test]
async fn a_schema_of_gemini_goes_out_as_it_came_unless_the_provider_refuses_it() {
    let app = TestApp::start().await;
    let own = |a: Value| json!({"type": "OBJECT", "properties": {"a": a}});
    for (a, is_taken) in [
        (json!({"type": "STRING", "nullable": true, "enum": ["x"]}), true),
        (json!({"type": "ARRAY", "items": {"type": "STRING", "title": "T"}}), true),
        (json!({"type": ["string", "null"]}), false),
        (json!({"description": "Of any type."}), false),
        (json!({"type": "OBJECT", "additionalProperties": false}), false),
    ] {
        let tools = json!({"functionDeclarations": [{"name": "do_it", "description": "D.", "parameters": own(a.clone())}]});
        let user = holder(&app, &[tools]).await;
        let answer = assembled(&user, GEMINI, "own").await;
        let declaration = &answer["tools"][0]["functionDeclarations"][0];
        assert_eq!(declaration.get("parameters"), Some(&own(a)).filter(|_| is_taken), "{declaration}");
        assert_eq!(declaration.get("parametersJsonSchema").is_some(), !is_taken, "{declaration}");
    }
}

/// 32 for tools that say of themselves that they are strict: where they are not, that would cost the whole array.
#[tokio::test]
async fn a_tool_is_as_strict_as_its_schema() {
    let app = TestApp::start().await;
    let text = json!({"type": "string"});
    let closed = with(a(text.clone()), json!({"required": ["a"], "additionalProperties": false}));
    let node = with(
        object(json!({"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}})),
        json!({"required": ["next"], "additionalProperties": false}),
    );
    let list = with(
        with(a(json!({"$ref": "#/$defs/node"})), json!({"required": ["a"], "additionalProperties": false})),
        json!({"$defs": {"node": node}}),
    );
    for (schema, is_strict) in [
        (closed.clone(), true),
        (list, true),
        (a(text.clone()), false),
        (with(closed.clone(), json!({"required": []})), false),
        (
            with(
                a(json!({"type": "string", "default": "x"})),
                json!({"required": ["a"], "additionalProperties": false}),
            ),
            false,
        ),
        (
            with(
                a(json!({"type": "array", "items": {}})),
                json!({"required": ["a"], "additionalProperties": false}),
            ),
            false,
        ),
    ] {
        let tool = json!({"type": "function", "name": "do_it", "description": "D.", "strict": true, "parameters": schema});
        let user = holder(&app, &[tool]).await;
        for asked in [RESPONSES, OPENAI, Asked { profile: "generic", ..RESPONSES }, GROQ] {
            let answer = assembled(&user, asked, "strict").await;
            let inner = definition(&answer["tools"][0]);
            assert_eq!(inner["strict"] == true, is_strict, "{asked:?}: {answer}");
            let told: &[&str] = if is_strict { &[] } else { &["not_strict"] };
            let codes: Vec<&str> =
                warning_codes(&answer).into_iter().filter(|code| *code != "schema_mended").collect();
            assert_eq!(codes, told, "{asked:?}: {answer}");
            // What describe gives goes into arrays too.
            let mut names = body(asked);
            names["name"] = json!("do_it");
            let described = user.describe(names).await.ok();
            assert_eq!(definition(&described["tools"][0])["strict"] == true, is_strict, "{described}");
        }
    }
    // A request holds only so many, whoever said that they are strict.
    let tools: Vec<Value> = (0..30)
        .map(|at| json!({"name": format!("t{at:02}"), "description": "D.", "strict": true, "input_schema": closed}))
        .collect();
    let user = holder(&app, &tools).await;
    let answer = assembled(&user, ANTHROPIC, "many").await;
    let strict = answer["tools"].as_array().unwrap().iter().filter(|tool| tool["strict"] == true).count();
    assert_eq!((strict, warning_codes(&answer)), (20, vec!["not_strict"; 10]));
    let vocabulary = bpe_openai::o200k_base();
    let counted: usize =
        entries(&answer["tools"]).iter().map(|tool| vocabulary.count(&tool.to_string())).sum();
    assert_eq!(answer["tokens"]["tools"], json!(counted), "counted as they are sent");
}
