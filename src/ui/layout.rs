//! The frame around every page: navigation, scope, language, and the pages that stand alone.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::form::TOKEN_FIELD;
use super::language::Language;
use super::visitor::{Place, Visitor, base};
use crate::core::id::Scope;

/// Where in the navigation a page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Playground,
    Catalog,
    Sessions,
    Setup,
    Keys,
}

/// A document around what a page shows.
fn document(language: Language, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover";
                // No style and no text of a script stands in a page, so htmx may add none either.
                meta name="htmx-config" content=r#"{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true}"#;
                title { (title) " · Toolrack" }
                link rel="icon" href="/ui/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/ui/assets/ui.css";
                script src="/ui/assets/htmx.min.js" defer {}
                script src="/ui/assets/ui.js" defer {}
            }
            body {
                a.skip href="#main" { (language.say("Skip to content", "跳到正文")) }
                // The pattern of what is not sent, for every picture of the page.
                svg.defs aria-hidden="true" width="0" height="0" {
                    defs {
                        pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                            path.hatch d="M0 0v6";
                        }
                    }
                }
                (body)
            }
        }
    }
}

/// A page of a scope.
pub(super) fn page(place: &Place, section: Section, title: &str, content: &Markup) -> Markup {
    framed(&place.visitor, Some(&place.scope), section, title, content)
}

/// A page of no scope, as those about keys.
pub(super) fn global_page(visitor: &Visitor, section: Section, title: &str, content: &Markup) -> Markup {
    framed(visitor, None, section, title, content)
}

fn framed(
    visitor: &Visitor,
    scope: Option<&Scope>,
    section: Section,
    title: &str,
    content: &Markup,
) -> Markup {
    let language = visitor.language;
    let body = html! {
        div.shell {
            header.side {
                (brand())
                a.place href="/ui/scopes" title=(language.say("Choose another user or project", "选择其他用户或项目")) {
                    @match scope {
                        Some(scope) => {
                            b { (scope.id()) }
                            small { (kind_name(language, scope)) }
                        }
                        None => {
                            b { (language.say("All scopes", "全部范围")) }
                            small { (language.say("Choose a user or project", "选择用户或项目")) }
                        }
                    }
                }
                nav.menu aria-label=(language.say("Main", "主导航")) {
                    @if let Some(scope) = scope {
                        @for (entry, name, page, icon) in menu(language) {
                            a href={(base(scope)) "/" (page)} aria-current=[(entry == section).then_some("page")] {
                                (icon) span { (name) }
                            }
                        }
                    }
                    @if visitor.is_admin() {
                        a href="/ui/keys" aria-current=[(section == Section::Keys).then_some("page")] {
                            (KEY_ICON) span { (language.say("Keys, audit", "密钥与审计")) }
                        }
                    } @else {
                        a href="/ui/audit" aria-current=[(section == Section::Keys).then_some("page")] {
                            (KEY_ICON) span { (language.say("Audit", "审计")) }
                        }
                    }
                }
                (foot(visitor))
            }
            main #main { (content) }
        }
    };
    document(language, title, &body)
}

fn foot(visitor: &Visitor) -> Markup {
    let language = visitor.language;
    html! {
        div.side-foot {
            p { a href="/docs" { (language.say("API docs", "API 文档")) } " " (env!("CARGO_PKG_VERSION")) }
            (languages(language, &visitor.here))
            @if visitor.signed_in {
                form method="post" action="/ui/sign-out" {
                    (token(visitor))
                    button.link type="submit" { (language.say("Sign out", "退出登录")) }
                }
            }
        }
    }
}

fn languages(present: Language, here: &str) -> Markup {
    let names = [(Language::English, "English"), (Language::Chinese, "中文")];
    html! {
        p {
            @for (language, name) in names {
                @if language == present { span aria-current="true" { (name) } " " }
                @else {
                    a href={"/ui/language?to=" (language.tag()) "&back=" (url_part(here))} lang=(language.tag()) { (name) } " "
                }
            }
        }
    }
}

/// A page without navigation: signing in, problems.
pub(super) fn solo(language: Language, here: &str, title: &str, content: &Markup) -> Markup {
    let body = html! {
        main.solo #main {
            (brand())
            (content)
            footer.note { (languages(language, here)) }
        }
    };
    document(language, title, &body)
}

/// The hidden field that every form carries.
pub(super) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(TOKEN_FIELD) value=(visitor.token.as_str()); }
}

/// A text as a part of a query.
pub(super) fn url_part(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A path with a query; fields that are empty are left out.
pub(super) fn with_query(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

pub(super) fn kind_name(language: Language, scope: &Scope) -> &'static str {
    match scope {
        Scope::User(_) => language.say("User", "用户"),
        Scope::Project(_) => language.say("Project", "项目"),
    }
}

fn brand() -> Markup {
    html! {
        a.brand href="/ui" { (BRAND) span { "Toolrack" } }
    }
}

type Icon = PreEscaped<&'static str>;

fn menu(language: Language) -> [(Section, &'static str, &'static str, Icon); 5] {
    [
        (Section::Overview, language.say("Overview", "概览"), "overview", OVERVIEW_ICON),
        (Section::Playground, language.say("Playground", "试验台"), "playground", SEARCH_ICON),
        (Section::Catalog, language.say("Catalog", "工具目录"), "catalog", CATALOG_ICON),
        (Section::Sessions, language.say("Sessions", "会话"), "sessions", SESSIONS_ICON),
        (Section::Setup, language.say("Setup", "设置"), "setup", SETUP_ICON),
    ]
}

/// A line drawing on a square of 16.
macro_rules! icon {
    ($shapes:literal) => {
        PreEscaped(concat!(
            r#"<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">"#,
            $shapes,
            "</svg>"
        ))
    };
}

/// A rack with tools of several lengths.
const BRAND: Icon = icon!(
    r#"<path d="M1 2.5h14M4 2.5v10M8 2.5v6.5M12 2.5v3.5"/><circle cx="4" cy="13.5" r="1"/><circle cx="8" cy="10" r="1"/>"#
);
const OVERVIEW_ICON: Icon = icon!(r#"<path d="M2 13.5h12M4 10.5v-3M8 10.5V3M12 10.5V6"/>"#);
const SEARCH_ICON: Icon = icon!(r#"<circle cx="6.8" cy="6.8" r="4.3"/><path d="m10 10 4 4"/>"#);
const CATALOG_ICON: Icon = icon!(r#"<path d="M2 3h12v4H2zM2 9.5h12v4H2zM5 5h2M5 11.5h2"/>"#);
const SESSIONS_ICON: Icon = icon!(r#"<circle cx="8" cy="8" r="6"/><path d="M8 4.8V8l2.2 1.6"/>"#);
const SETUP_ICON: Icon = icon!(
    r#"<path d="M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7"/><circle cx="11" cy="4.5" r="1.7"/><circle cx="5" cy="11.5" r="1.7"/>"#
);
const KEY_ICON: Icon = icon!(r#"<circle cx="4.8" cy="8" r="2.8"/><path d="M7.6 8H14v2.6M11.4 8v2"/>"#);
