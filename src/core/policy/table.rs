//! The macros behind the tables of keys. One row says all there is to know of a key: name, type, default,
//! how its JSON is read and written (a rule), how the layers join, and what it means. Reading, writing,
//! merging, the effective view and the documentation are made from the rows, so that a new key is added in
//! one place.

/// A record whose fields may each be absent, with its reading and writing.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty, by $rule:expr, $meaning:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: Option<$type>,)*
        }

        impl $crate::core::policy::rules::Record for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field),)*];

            fn set(
                &mut self,
                key: &str,
                value: &serde_json::Value,
                reader: &mut $crate::core::policy::reader::Reader,
            ) {
                match key {
                    $(stringify!($field) => self.$field = of::<$type, _>($rule).read(value, reader),)*
                    _ => {}
                }
            }

            fn write(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut map = serde_json::Map::new();
                $(if let Some(value) = &self.$field {
                    map.insert(stringify!($field).to_owned(), of::<$type, _>($rule).write(value));
                })*
                map
            }
        }
    };
}

/// A record inside a key (`matcher`, `preload`, `hot_tools`): it has defaults of its own and is never merged with
/// another layer's.
macro_rules! inner_table {
    ($(#[$meta:meta])* $name:ident {
        $($field:ident: $type:ty = $default:expr, by $rule:expr, $meaning:literal;)*
    }) => {
        record! { $(#[$meta])* $name { $($field: $type, by $rule, $meaning;)* } }

        impl $name {
            /// The same record with the default in every place that has one.
            fn filled(&self) -> Self {
                let given = self.clone();
                Self { $($field: given.$field.or_else(|| $default),)* }
            }

            /// The documentation of the keys inside `parent`.
            pub(super) fn documentation(parent: &str) -> Vec<$crate::core::policy::KeyDoc> {
                vec![$($crate::core::policy::KeyDoc {
                    key: format!("{parent}.{}", stringify!($field)),
                    default: match &$default {
                        Some(value) => of::<$type, _>($rule).write(value),
                        None => serde_json::Value::Null,
                    },
                    range: of::<$type, _>($rule).range(),
                    meaning: $meaning,
                },)*]
            }
        }
    };
}

/// The table of a scope's keys: makes [`Layer`](super::Layer) (what one scope says) and
/// [`Policy`](super::Policy) (what a request sees).
macro_rules! settings {
    (@merged $type:ty) => { $type };
    (@merged $type:ty, $merged:ty) => { $merged };
    ($(
        $field:ident: $type:ty $(=> $merged:ty)? = $default:expr, by $rule:expr, join $join:expr,
        $meaning:literal;
    )*) => {
        record! {
            /// One scope's config document, parsed. Every key may be absent; `Layer::default()` is the
            /// empty document.
            Layer { $($field: $type, by $rule, $meaning;)* }
        }

        /// The settings that a request sees: defaults, then the user's layer, then the project's.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Policy {
            $(#[doc = $meaning] pub $field: settings!(@merged $type $(, $merged)?),)*
        }

        /// Every key merged by its own rule; what depends on two keys at once is the caller's.
        pub(super) fn merge_keys(user: &Layer, project: &Layer) -> Policy {
            Policy { $($field: $join.merge($default, user.$field.as_ref(), project.$field.as_ref()),)* }
        }

        /// Every key with its merged value and where that came from, in table order.
        pub(super) fn effective_keys(
            user: &Layer,
            project: &Layer,
        ) -> serde_json::Map<String, serde_json::Value> {
            let mut map = serde_json::Map::new();
            $(map.insert(
                stringify!($field).to_owned(),
                $crate::core::policy::effective::shown(
                    &$join,
                    &of::<$type, _>($rule),
                    || $default,
                    user.$field.as_ref(),
                    project.$field.as_ref(),
                ),
            );)*
            map
        }

        /// What every key means, in table order.
        pub(super) fn document_keys() -> Vec<$crate::core::policy::KeyDoc> {
            vec![$($crate::core::policy::KeyDoc {
                key: stringify!($field).to_owned(),
                default: $join.view($default, None, None, &|value| of::<$type, _>($rule).write(value)),
                range: of::<$type, _>($rule).range(),
                meaning: $meaning,
            },)*]
        }
    };
}
