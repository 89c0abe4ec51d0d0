//! Rules: how the JSON of a key becomes a value and back. One rule per kind of value (numbers, choices,
//! texts, records). A rule reports what is wrong to the [`Reader`] and gives nothing back for it; it never
//! decides how bad that is.

use std::marker::PhantomData;

use serde_json::{Map, Number as JsonNumber, Value};

use super::reader::{Reader, describe, join_names, shorten};

/// Reads and writes the values of one kind.
pub(super) trait Rule {
    type Out;

    /// The value, or nothing after a report to the reader. The value is never null.
    fn read(&self, value: &Value, reader: &mut Reader) -> Option<Self::Out>;

    /// The JSON from which `read` makes the same value again, without a report.
    fn write(&self, value: &Self::Out) -> Value;

    /// What values there are, for the documentation.
    fn range(&self) -> String;
}

/// The same rule, known to be one for `T`: a row of a table need not say its type twice.
pub(super) fn of<T, R: Rule<Out = T>>(rule: R) -> R {
    rule
}

/// A struct with one optional field per key; made by `record!`.
pub(super) trait Record: Default {
    const KEYS: &'static [&'static str];

    /// Reads the field of this key.
    fn set(&mut self, key: &str, value: &Value, reader: &mut Reader);

    /// The given fields in table order.
    fn write(&self) -> Map<String, Value>;
}

/// A closed list of words.
pub(super) trait Named: Copy + PartialEq + 'static {
    const NAMES: &'static [(&'static str, Self)];

    /// What a boolean means, where booleans are taken.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
}

/// Reads one word of a [`Named`] list.
pub(super) struct Choice<T>(PhantomData<T>);

impl<T> Choice<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Named> Choice<T> {
    fn find(word: &str) -> Option<T> {
        T::NAMES.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
    }

    /// All that can be written, for messages.
    fn words() -> String {
        let booleans = T::from_bool(true).map_or("", |_| ", true, false");
        let names: Vec<&str> = T::NAMES.iter().map(|(name, _)| *name).collect();
        names.join(", ") + booleans
    }

    /// What people and YAML make of a switch, in a stored document.
    fn find_lenient(value: &Value) -> Option<T> {
        let word = match value {
            Value::String(text) if text.len() <= 64 => text.trim().to_lowercase(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Self::find(&word).or_else(|| match word.as_str() {
            "true" | "yes" | "1" => T::from_bool(true),
            "false" | "no" | "0" => T::from_bool(false),
            _ => None,
        })
    }
}

impl<T: Named> Rule for Choice<T> {
    type Out = T;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<T> {
        let found = match value {
            Value::Bool(flag) => T::from_bool(*flag),
            Value::String(word) => Self::find(word),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        if reader.is_lenient()
            && let Some(found) = Self::find_lenient(value)
        {
            return Some(found);
        }
        match value.as_str() {
            Some(word) => {
                reader.fault("invalid_value", format!("{:?} is not one of {}", shorten(word), Self::words()));
            }
            None => reader.wrong_type(&format!("one of {}", Self::words()), value),
        }
        None
    }

    fn write(&self, value: &T) -> Value {
        let name = T::NAMES.iter().find(|(_, named)| named == value).map(|(name, _)| *name);
        name.map_or(Value::Null, Value::from)
    }

    fn range(&self) -> String {
        Self::words()
    }
}

/// Reads a number; `clamp` moves one that is out of `min..=max` into it and tells the caller.
#[derive(Clone, Copy)]
pub(super) struct Number {
    min: f64,
    max: f64,
}

impl Number {
    pub(super) fn between(min: f64, max: f64) -> Self {
        Self { min, max }
    }

    /// Any finite number.
    pub(super) fn any() -> Self {
        Self { min: f64::MIN, max: f64::MAX }
    }

    fn parse(value: &Value, reader: &Reader) -> Option<f64> {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) if reader.is_lenient() && text.len() <= 64 => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|number| number.is_finite())
    }

    /// `number` moved into the range; `written` is how the caller wrote it.
    fn clamp(&self, number: f64, written: &Value, reader: &mut Reader) -> f64 {
        let written = describe(written);
        if number > self.max {
            reader.clamped(format!("{written} is above {max}; {max} is used", max = self.max));
        } else if number < self.min {
            reader.clamped(format!("{written} is below {min}; {min} is used", min = self.min));
        }
        number.clamp(self.min, self.max)
    }
}

impl Rule for Number {
    type Out = f64;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<f64> {
        let Some(number) = Self::parse(value, reader) else {
            reader.wrong_type("a number", value);
            return None;
        };
        Some(self.clamp(number, value, reader))
    }

    fn write(&self, number: &f64) -> Value {
        // 5.0 is shown as it was most likely written; beyond 2^53 a float holds no exact integers.
        let whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        if whole {
            Value::from(*number as i64)
        } else {
            JsonNumber::from_f64(*number).map_or(Value::Null, Value::Number)
        }
    }

    fn range(&self) -> String {
        if self.max == f64::MAX { "any number".to_owned() } else { format!("{}..{}", self.min, self.max) }
    }
}

/// Reads a whole number: `7.0` is one, `7.5` is not.
#[derive(Clone, Copy)]
pub(super) struct Int {
    pub(super) min: u32,
    pub(super) max: u32,
}

impl Rule for Int {
    type Out = u32;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<u32> {
        let whole = Number::parse(value, reader).filter(|number| number.fract() == 0.0);
        let Some(number) = whole else {
            reader.wrong_type("a whole number", value);
            return None;
        };
        // In range after the clamp, so the cast is exact.
        Some(Number::between(self.min.into(), self.max.into()).clamp(number, value, reader) as u32)
    }

    fn write(&self, number: &u32) -> Value {
        Value::from(*number)
    }

    fn range(&self) -> String {
        format!("{}..{}", self.min, self.max)
    }
}

/// Reads a text of 1 to `max` characters that is not blank.
#[derive(Clone, Copy)]
pub(super) struct Text {
    max: usize,
}

impl Text {
    pub(super) fn up_to(max: usize) -> Self {
        Self { max }
    }
}

impl Rule for Text {
    type Out = String;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<String> {
        reader.text(value, self.max).map(str::to_owned)
    }

    fn write(&self, text: &String) -> Value {
        Value::String(text.clone())
    }

    fn range(&self) -> String {
        format!("1..{} characters", self.max)
    }
}

/// A key that the contract reserves for a later issue: only its default (the second field) is taken.
pub(super) struct Reserved<R: Rule>(pub(super) R, pub(super) R::Out);

impl<R: Rule<Out: PartialEq>> Rule for Reserved<R> {
    type Out = R::Out;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<R::Out> {
        let read = self.0.read(value, reader)?;
        if read != self.1 {
            reader.fault("unsupported", format!("only {} is supported yet", self.0.write(&self.1)));
            return None;
        }
        Some(read)
    }

    fn write(&self, value: &R::Out) -> Value {
        self.0.write(value)
    }

    fn range(&self) -> String {
        self.0.write(&self.1).to_string()
    }
}

/// Reads a [`Record`].
pub(super) struct Object<T>(PhantomData<T>);

impl<T> Object<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Record> Rule for Object<T> {
    type Out = T;

    fn read(&self, value: &Value, reader: &mut Reader) -> Option<T> {
        let mut record = T::default();
        reader.object(value, T::KEYS, |reader, key, value| record.set(key, value, reader))?;
        Some(record)
    }

    fn write(&self, record: &T) -> Value {
        Value::Object(record.write())
    }

    fn range(&self) -> String {
        format!("an object of {}", join_names(T::KEYS))
    }
}
