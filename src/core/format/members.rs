//! The members of a JSON object in the order they came, their values as JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub(in crate::core) struct Members<'a>(pub(in crate::core) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Text(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A string, borrowed where it holds no escapes.
#[derive(Deserialize)]
pub(in crate::core) struct Text<'a>(#[serde(borrow)] pub(in crate::core) Cow<'a, str>);

impl<'a> Members<'a> {
    pub(in crate::core) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    pub(in crate::core) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether a member is this text.
    pub(in crate::core) fn says(&self, key: &str, text: &str) -> bool {
        self.text(key).is_some_and(|found| found == text)
    }

    /// A member that is a string.
    pub(in crate::core) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        serde_json::from_str(self.get(key)?.get()).ok().map(|Text(text)| text)
    }

    /// Takes a member out; null is none.
    pub(in crate::core) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        let value = self.0.remove(at).1;
        (value.get() != "null").then_some(value)
    }
}

/// The first elements of an array, and whether there were more than `most`.
#[derive(Debug, Default)]
pub(in crate::core) struct Elements<'a> {
    pub(in crate::core) first: Vec<&'a RawValue>,
    pub(in crate::core) more: bool,
}

impl<'a> Elements<'a> {
    /// Reads at most `most` elements, so that an array of millions costs no memory.
    pub(in crate::core) fn read(array: &'a RawValue, most: usize) -> Result<Self, serde_json::Error> {
        struct Collect(usize);
        impl<'de> Visitor<'de> for Collect {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Elements::default();
                while elements.first.len() < self.0 {
                    match seq.next_element()? {
                        Some(element) => elements.first.push(element),
                        None => return Ok(elements),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    elements.more = true;
                }
                Ok(elements)
            }
        }
        serde::Deserializer::deserialize_seq(
            &mut serde_json::Deserializer::from_str(array.get()),
            Collect(most),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_read_up_to_a_bound() {
        let array: Box<RawValue> = serde_json::from_str("[1, {\"a\":2}, [3]]").unwrap();
        let read = |most| {
            let elements = Elements::read(&array, most).unwrap();
            (elements.first.len(), elements.more)
        };
        assert_eq!((read(0), read(2), read(3), read(9)), ((0, true), (2, true), (3, false), (3, false)));
        let object: Box<RawValue> = serde_json::from_str("{}").unwrap();
        assert!(Elements::read(&object, 3).is_err());
    }
}
