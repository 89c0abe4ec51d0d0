//! The lexicon as data, and what it does for queries.

use std::collections::HashMap;

use super::lexicon::{
    FILES, Line, MAX_PHRASE, Role, items, lines, of_accented, of_dense, of_foreign, of_phrase, phrase_key,
};
use super::tests::{find, first, tool};

/// The languages of a block, in their order.
const LANGUAGES: [&str; 11] = ["zh", "ja", "ko", "es", "de", "fr", "pt", "ru", "vi", "ar", "hi"];

#[test]
fn every_line_of_the_files_is_well_formed() {
    for (file, text) in FILES {
        let mut heads: HashMap<&str, usize> = HashMap::new();
        let mut place = 0;
        let mut seen_near = false;
        for line in lines(text) {
            let words = match line {
                Line::Head(head, tag) => {
                    *heads.entry(head).or_default() += 1;
                    (place, seen_near) = (0, false);
                    assert!(tag.is_none_or(|tag| ["action", "service"].contains(&tag)), "{file}: {line:?}");
                    assert!(!head.contains([',', '?', '=', '~']), "{file}: {line:?}");
                    head
                }
                Line::Same(words) => {
                    assert!(place == 0 && !seen_near, "{file}: `=` comes first: {line:?}");
                    words
                }
                Line::Near(words) => {
                    assert!(place == 0, "{file}: `~` stands before the languages: {line:?}");
                    seen_near = true;
                    words
                }
                Line::Foreign(code, words) => {
                    let at = LANGUAGES.iter().position(|language| *language == code);
                    let at = at.unwrap_or_else(|| panic!("{file}: no language: {line:?}"));
                    assert!(at + 1 > place, "{file}: languages out of order: {line:?}");
                    place = at + 1;
                    words
                }
            };
            assert!(
                !words.is_empty() && words.split(',').all(|item| !item.trim().is_empty()),
                "{file}: {line:?}"
            );
            for (item, _) in items(words) {
                assert!(item.split_whitespace().count() <= MAX_PHRASE, "{file}: {item:?} is too long");
            }
        }
        let twice: Vec<_> = heads.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{file}: {twice:?}");
    }
}

#[test]
fn there_are_concepts_in_all_languages() {
    let mut languages: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut services = 0;
    for (_, text) in FILES {
        let mut current = "";
        for line in lines(text) {
            match line {
                Line::Head(head, tag) => {
                    current = head;
                    services += usize::from(tag == Some("service"));
                    languages.entry(head).or_default();
                }
                Line::Foreign(code, _) => languages.entry(current).or_default().push(code),
                _ => {}
            }
        }
    }
    assert!(languages.len() - services >= 1_200, "{} concepts, {services} services", languages.len());
    for language in LANGUAGES {
        let with = languages.values().filter(|codes| codes.contains(&language)).count();
        assert!(with >= 1_200, "{language}: {with}");
    }
}

#[test]
fn words_lead_to_their_concepts() {
    let heads = |meanings: &'static [super::lexicon::Meaning]| -> Vec<&str> {
        meanings.iter().map(|meaning| meaning.concept().head).collect()
    };
    let english = |words: &[&str]| heads(of_phrase(phrase_key(words.iter().copied())));
    assert!(english(&["k8s"]).contains(&"kubernetes"));
    assert!(english(&["pull", "request"]).contains(&"pull request"));
    assert!(english(&["qwertz"]).is_empty());
    for word in ["eliminar", "loschen", "supprime", "apagar", "удалил", "elimina"] {
        assert!(heads(of_foreign(word)).contains(&"delete"), "{word}: {:?}", heads(of_foreign(word)));
    }
    let dense: Vec<char> = "删除".chars().collect();
    assert_eq!(heads(of_dense(&dense))[0], "delete");
    assert!(of_foreign("qwertz").is_empty() && of_dense(&['犬', '吠']).is_empty());
    assert!(of_phrase(phrase_key(std::iter::once("delet"))).iter().any(|meaning| meaning.role == Role::Same));
}

#[test]
fn accents_tell_a_foreign_word_from_an_english_one() {
    for (word, plain) in [("thẻ", "the"), ("Thêm", "them")] {
        assert!(!of_accented(word).is_empty(), "{word}");
        assert!(of_accented(plain).is_empty(), "{plain}");
    }
    // A word that English has not may be typed without them.
    assert!(!of_foreign("loschen").is_empty() && !of_accented("lo\u{308}schen").is_empty());
}

#[test]
fn a_request_in_any_language_finds_the_tool() {
    let tools = [
        tool("send_email", "Sends an email"),
        tool("delete_file", "Deletes a file"),
        tool("get_weather_forecast", "Weather of a city"),
        tool("create_invoice", "Creates an invoice"),
        tool("translate_text", "Translates text"),
        tool("list_calendar_events", "Lists events of a calendar"),
        tool("play_chess", "Makes a move"),
    ];
    for (language, email, file, weather, invoice, translate) in [
        ("zh", "给客户发一封邮件", "删除文件", "明天的天气", "创建发票", "翻译这段文字"),
        ("zh-Hant", "寄一封電子郵件給客戶", "刪除檔案", "明天的天氣", "建立發票", "翻譯這段文字"),
        (
            "ja",
            "顧客にメールを送って",
            "ファイルを削除する",
            "明日の天気",
            "請求書を作成",
            "この文章を翻訳して",
        ),
        ("ko", "고객에게 이메일 보내줘", "파일 삭제해줘", "내일 날씨", "송장 만들기", "이 글을 번역해줘"),
        (
            "es",
            "envía un correo al cliente",
            "eliminar un archivo",
            "el tiempo de mañana",
            "crear una factura",
            "traduce este texto",
        ),
        (
            "de",
            "Schick dem Kunden eine E-Mail",
            "Datei löschen",
            "Wetter in Berlin",
            "Rechnung erstellen",
            "Übersetze diesen Text",
        ),
        (
            "fr",
            "envoie un courriel au client",
            "supprimer un fichier",
            "la météo à Lyon",
            "créer une facture",
            "traduis ce texte",
        ),
        (
            "pt",
            "envie um e-mail ao cliente",
            "apagar um arquivo",
            "previsão do tempo",
            "criar uma fatura",
            "traduza este texto",
        ),
        (
            "ru",
            "отправь письмо клиенту",
            "удалить файл",
            "какая завтра погода",
            "создать счёт",
            "переведи этот текст",
        ),
        (
            "vi",
            "gửi email cho khách hàng",
            "xóa tệp",
            "thời tiết ngày mai",
            "tạo hóa đơn",
            "dịch đoạn văn này",
        ),
        ("ar", "أرسل بريدا إلكترونيا إلى العميل", "احذف الملف", "الطقس غدا", "إنشاء فاتورة", "ترجم هذا النص"),
        ("hi", "ग्राहक को ईमेल भेजें", "फ़ाइल हटाएं", "कल का मौसम", "चालान बनाएं", "इस पाठ का अनुवाद करें"),
    ] {
        for (query, wanted) in [
            (email, "send_email"),
            (file, "delete_file"),
            (weather, "get_weather_forecast"),
            (invoice, "create_invoice"),
            (translate, "translate_text"),
        ] {
            assert_eq!(first(&tools, query), Some(wanted), "{language}: {query}: {:?}", find(&tools, query));
        }
    }
}

#[test]
fn everyday_words_find_the_tool() {
    let tools = [
        tool("write_file", "Writes a file"),
        tool("create_calendar_event", "Creates an event"),
        tool("run_sql_query", "Runs a query on PostgreSQL"),
        tool("encode_json", "Encodes a value as JSON"),
        tool("delete_contact", "Deletes a contact"),
        tool("create_refund", "Refunds a payment"),
        tool("kubernetes_list_pods", "Lists pods"),
        tool("list_customers", "Lists customers"),
        tool("customize_theme", "Changes colors"),
        tool("inspect_container", "Tells about a container"),
    ];
    for (query, wanted) in [
        ("save text to disk", "write_file"),
        ("book a meeting", "create_calendar_event"),
        ("postgres", "run_sql_query"),
        ("get rid of a contact", "delete_contact"),
        ("money back", "create_refund"),
        ("k8s pods", "kubernetes_list_pods"),
        ("clients", "list_customers"),
    ] {
        assert_eq!(first(&tools, query), Some(wanted), "{query}: {:?}", find(&tools, query));
    }
}

#[test]
fn a_tool_described_in_another_language_is_found_from_any() {
    let tools = [
        tool("wetter_abfragen", "Ruft die Wettervorhersage für eine Stadt ab"),
        tool("buscar_vuelos", "Busca vuelos disponibles según la fecha"),
        tool("tool_b", "发送短信给联系人"),
        tool("tool_c", "請求書を作成します"),
        tool("tool_d", "Удаляет файл с диска"),
    ];
    for (query, name) in [
        ("weather forecast", "wetter_abfragen"),
        ("search flights", "buscar_vuelos"),
        ("send sms", "tool_b"),
        ("create invoice", "tool_c"),
        ("delete file", "tool_d"),
        ("supprimer un fichier", "tool_d"),
    ] {
        assert_eq!(first(&tools, query), Some(name), "{query}: {:?}", find(&tools, query));
    }
}

#[test]
fn an_english_word_is_not_read_by_the_stems_of_other_languages() {
    let tools = [
        tool("skip_track", "Skips a track"),
        tool("move_mouse", "Moves the mouse pointer"),
        tool("other", "Else"),
    ];
    for query in ["a pinch of salt", "salt", "sour cream", "paint the wall"] {
        assert!(find(&tools, query).is_empty(), "{query}: {:?}", find(&tools, query));
    }
}

#[test]
fn a_verb_with_a_particle_is_one_concept() {
    let tools =
        [tool("get_turn", "Tells whose turn it is"), tool("light_control", "Switches a light on or off")];
    assert_eq!(first(&tools, "turn off the lights"), Some("light_control"));
}

#[test]
fn a_question_finds_what_reads_before_what_changes() {
    let tools =
        [tool("create_event", "Creates a calendar event"), tool("list_events", "Lists calendar events")];
    for query in ["what is on my calendar", "my calendar", "show calendar"] {
        assert_eq!(first(&tools, query), Some("list_events"), "{query}");
    }
    assert_eq!(first(&tools, "add to my calendar"), Some("create_event"));
}

#[test]
fn two_names_in_words_are_two_names() {
    let tools = [tool("create_issue", "x"), tool("create_event", "y"), tool("list_events", "z")];
    let hits = super::tests::run(&tools, "create issue list events", 5).hits;
    let exact: Vec<u32> = hits.iter().filter(|hit| hit.exact).map(|hit| hit.candidate).collect();
    assert!(exact.len() == 2 && exact.contains(&0) && exact.contains(&2), "{hits:?}");
}
