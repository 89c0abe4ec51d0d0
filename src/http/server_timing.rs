//! The `Server-Timing` header (<https://www.w3.org/TR/server-timing/>): what the parts of an answer took, in milliseconds with
//! the digits of microseconds.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::service::{Part, Spent};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What is told of the time of one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) total: Duration,
    /// Waiting for a slot, or for keys to be read.
    pub(super) queue: Option<Duration>,
    pub(super) rank: Option<Duration>,
    pub(super) endpoint: Option<Duration>,
    pub(super) database: Option<Duration>,
}

impl Times {
    pub(super) fn of(total: Duration, queue: Option<Duration>, spent: &Spent) -> Self {
        let [rank, endpoint, database] = Part::ALL.map(|part| spent.on(part));
        Self { total, queue, rank, endpoint, database }
    }

    /// `total` and the parts that there are.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let mut text = Text::default();
        text.push_part(b"total;dur=", self.total);
        for (name, time) in [
            (b", queue;dur=".as_slice(), self.queue),
            (b", rank;dur=", self.rank),
            (b", endpoint;dur=", self.endpoint),
            (b", db;dur=", self.database),
        ] {
            if let Some(time) = time {
                text.push_part(name, time);
            }
        }
        if let Ok(value) = HeaderValue::from_bytes(text.bytes()) {
            headers.insert(SERVER_TIMING, value);
        }
    }
}

/// A part in milliseconds for the log.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// All names, and five times of 20 digits at most with a point.
const MOST_BYTES: usize = 5 * (b", endpoint;dur=".len() + 21);

/// The value while it is written: without the formatter and on the stack, because it stands in front of answers that take
/// microseconds.
struct Text {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; MOST_BYTES], length: 0 }
    }
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + bytes.len()) {
            room.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    fn push_part(&mut self, name: &[u8], time: Duration) {
        self.push(name);
        let mut micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // From the last digit on: three behind the point, at least one before it.
        let mut digits = [b'0'; 21];
        let mut start = digits.len();
        for place in 0.. {
            if place == 3 {
                start -= 1;
                digits[start] = b'.';
            }
            if place > 3 && micros == 0 {
                break;
            }
            start -= 1;
            digits[start] = b'0' + (micros % 10) as u8;
            micros /= 10;
        }
        self.push(&digits[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_milliseconds_where_there_are_any() {
        let mut headers = HeaderMap::new();
        let mut times = Times { total: Duration::from_nanos(1_204_999), ..Times::default() };
        times.write(&mut headers);
        assert_eq!(headers["server-timing"], "total;dur=1.204");
        times.queue = Some(Duration::from_micros(7));
        times.endpoint = Some(Duration::from_secs(61));
        times.database = Some(Duration::from_nanos(1));
        times.write(&mut headers);
        let expected = "total;dur=1.204, queue;dur=0.007, endpoint;dur=61000.000, db;dur=0.000";
        assert_eq!(headers["server-timing"], expected);
        let longest = Some(Duration::MAX);
        times = Times {
            total: Duration::MAX,
            queue: longest,
            rank: longest,
            endpoint: longest,
            database: longest,
        };
        times.write(&mut headers);
        assert_eq!(
            headers["server-timing"].to_str().unwrap().matches(";dur=18446744073709551.615").count(),
            5
        );
    }
}
