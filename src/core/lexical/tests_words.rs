//! Words that are not the tool's own: abbreviations, synonyms, other languages, and how rare a word is.

use super::tests::{find, first, run, tool};

#[test]
fn abbreviations_and_everyday_words_find_the_tool() {
    let tools = [
        tool("list_kubernetes_services", "List services of a namespace"),
        tool("open_pull_request", "Opens a request to merge a branch"),
        tool("remove_file", "Removes a file"),
        tool("resize_image", "Changes the size"),
        tool("get_bitcoin_price", "Current price"),
        tool("query_database", "Runs a statement"),
    ];
    for (query, name) in [
        ("k8s svc", "list_kubernetes_services"),
        ("PR", "open_pull_request"),
        ("erase", "remove_file"),
        ("pic", "resize_image"),
        ("btc", "get_bitcoin_price"),
        ("db", "query_database"),
    ] {
        assert_eq!(first(&tools, query), Some(name), "{query}");
    }
}

#[test]
fn irregular_forms_find_the_tool() {
    let tools = [tool("send_mail", "Mail"), tool("list_people", "Staff"), tool("sort_index", "Order")];
    for (query, name) in [("sent", "send_mail"), ("person", "list_people"), ("indices", "sort_index")] {
        assert_eq!(first(&tools, query), Some(name), "{query}");
    }
}

#[test]
fn an_english_sentence_is_not_read_as_another_language() {
    // Some stemmers make `par` of it, as of `parar`, to stop.
    let tools = [tool("stop_service", "Halts"), tool("show_forecast", "Weather")];
    assert_eq!(find(&tools, "what is the weather in Paris"), ["show_forecast"]);
}

#[test]
fn a_synonym_counts_less_than_the_word() {
    let tools = [tool("remove_thing", "Something"), tool("delete_thing", "Something")];
    for (query, name) in [("delete", "delete_thing"), ("remove", "remove_thing")] {
        let hits = run(&tools, query, 5).hits;
        assert_eq!(tools[hits[0].candidate as usize].name, name);
        assert!(hits.len() == 2 && hits[1].score < hits[0].score && hits[1].coverage < hits[0].coverage);
    }
}

#[test]
fn requests_in_other_languages_find_english_tools() {
    let tools = [
        tool("send_email", "Sends an email"),
        tool("delete_file", "Deletes a file"),
        tool("get_weather", "Weather of a city"),
        tool("create_invoice", "Creates an invoice"),
        tool("play_chess", "Makes a move"),
    ];
    for query in
        ["envía un correo", "E-Mail senden", "发送邮件", "メールを送る", "이메일 보내기", "отправь письмо"]
    {
        assert_eq!(first(&tools, query), Some("send_email"), "{query}");
    }
    for query in [
        "eliminar archivos",
        "Dateien löschen",
        "supprimer un fichier",
        "删除文件",
        "удалить файлы",
        "xóa tệp",
    ] {
        assert_eq!(first(&tools, query), Some("delete_file"), "{query}");
    }
    for query in ["Wie wird das Wetter?", "明日の天気", "오늘 날씨", "какая погода", "thời tiết"]
    {
        assert_eq!(first(&tools, query), Some("get_weather"), "{query}");
    }
}

#[test]
fn a_word_of_english_is_not_read_as_another_language() {
    // `data` is a date in Portuguese.
    let tools = [tool("current_date", "Tells the date"), tool("load_data", "Loads data")];
    assert_eq!(find(&tools, "data"), ["load_data"]);
}

#[test]
fn a_catalog_of_three_tools_knows_which_word_matters() {
    // Each word stands in one tool, so this catalog alone cannot tell that `get` says less than `invoice`.
    let tools = [tool("get_pasta", "Food"), tool("show_invoice", "Money"), tool("other", "Else")];
    assert_eq!(first(&tools, "get invoice"), Some("show_invoice"));
}

#[test]
fn tools_of_other_languages_are_found_in_any_inflection() {
    let tools = [
        tool("t1", "Crea una etiqueta para las mascotas de los vecinos"),
        tool("t2", "Druckt die Etiketten mit den Namen der Nachbarn"),
        tool("t3", "Imprime les affiches pour les voisins dans la rue"),
        tool("t4", "Отправляет открытки соседям"),
        tool("t5", "يرسل البطاقات إلى الجيران"),
    ];
    for (query, name) in [
        ("mascota", "t1"),
        ("vecino", "t1"),
        ("Etikett", "t2"),
        ("affiche", "t3"),
        ("voisin", "t3"),
        ("открытка", "t4"),
        ("соседу", "t4"),
        ("البطاقة", "t5"),
    ] {
        assert_eq!(first(&tools, query), Some(name), "{query}");
    }
}

#[test]
fn names_and_values_hardly_lower_the_coverage() {
    let tools = [tool("get_weather", "Forecast"), tool("send_mail", "Sends")];
    let coverage = |query: &str| run(&tools, query, 5).hits[0].coverage;
    assert!(coverage("weather in Xyzzyville") > 0.6);
    // What other tools do and these do not is missing.
    assert!(coverage("weather spreadsheet") < 0.5);
}

#[test]
fn accents_tell_words_of_other_languages_from_english_ones() {
    let tools =
        [tool("delete_card", "Deletes a card"), tool("add_item", "Adds it"), tool("plan_meal", "Food")];
    for (query, name) in [("thẻ", "delete_card"), ("xóa THẺ", "delete_card"), ("thêm", "add_item")] {
        assert_eq!(first(&tools, query), Some(name), "{query}");
    }
    for query in ["the", "them", "an", "the them"] {
        assert!(find(&tools, query).is_empty(), "{query}");
    }
}

#[test]
fn function_words_alone_are_no_match() {
    let tools = [tool("list_of_regions", "Regions"), tool("who_am_i", "Identity"), tool("sort", "Sorts")];
    for query in ["of", "of the", "in of to"] {
        let hits = run(&tools, query, 5).hits;
        assert!(
            hits.iter().all(|hit| hit.coverage <= 0.25 && hit.name_coverage <= 0.25),
            "{query}: {hits:?}"
        );
        let beside_others = run(&tools, "sort", 5).hits[0];
        assert!(hits.iter().all(|hit| hit.score < 0.2 * beside_others.score), "{query}: {hits:?}");
    }
    assert!(run(&tools, "who am i", 5).hits[0].whole);
}

#[test]
fn a_character_inside_an_unknown_word_is_no_word() {
    let tools = [tool("search_book", "Finds a book"), tool("drop_table", "Removes a table"), tool("x", "y")];
    for query in ["日本", "日本語", "日本の", "代表", "발표"] {
        assert!(find(&tools, query).is_empty(), "{query}");
    }
    for (query, name) in [
        ("本", "search_book"),
        ("本を探す", "search_book"),
        ("找书", "search_book"),
        ("删除表", "drop_table"),
        ("表を削除", "drop_table"),
        ("책을 찾기", "search_book"),
    ] {
        assert_eq!(first(&tools, query), Some(name), "{query}");
    }
}

#[test]
fn a_tool_that_holds_the_characters_is_found_as_surely_as_one_that_holds_what_they_mean() {
    let mut bill = tool("kp_1", "Money");
    bill.aliases = vec!["发票".into()];
    let tools = [
        tool("t1", "发送邮件"),
        tool("t2", "查看日历"),
        tool("t3", "データベースに接続する"),
        bill,
        tool("send_email", "Sends an email"),
        tool("show_calendar", "Shows the calendar"),
        tool("query_database", "Queries a database"),
        tool("create_invoice", "Creates an invoice"),
    ];
    for (query, own, other) in [
        ("邮件", "t1", "send_email"),
        ("发送邮件", "t1", "send_email"),
        ("日历", "t2", "show_calendar"),
        ("查看日历", "t2", "show_calendar"),
        ("データベース", "t3", "query_database"),
        ("发票", "kp_1", "create_invoice"),
    ] {
        let hits = run(&tools, query, 5).hits;
        let of = |name: &str| hits.iter().find(|hit| tools[hit.candidate as usize].name == name);
        let (Some(own), Some(other)) = (of(own), of(other)) else { panic!("{query}: {hits:?}") };
        assert!(own.coverage > 0.99 && own.coverage >= other.coverage, "{query}: {hits:?}");
        assert!(other.coverage > 0.8, "{query}: {hits:?}");
    }
    assert_eq!(first(&tools, "发票"), Some("kp_1"));
}

#[test]
fn a_present_is_not_a_presentation() {
    let tools = [tool("create_presentation", "Makes a presentation"), tool("send_gift", "Sends a gift")];
    assert_eq!(find(&tools, "gift"), ["send_gift"]);
    assert_eq!(find(&tools, "slide deck"), ["create_presentation"]);
}
