//! What stands between a search and an endpoint that may be slow, wrong or away.
//!
//! Owns the circuit breaker, the limit on calls at the same time, the sharing of identical calls, and the cache of
//! answers. Knows nothing of what is asked and answered: requests, answers and faults are type parameters. All of it
//! is bounded in number, bytes or time.
//!
//! Whoever composes them asks in this order, so that each step spares the dearer ones after it: breaker (a lookup),
//! cache (the body has to be built and digested), flights, in the flight the cache once more (one may have landed in
//! between), gate, call. An answer goes into the cache, and an outcome to the breaker, within the flight: once for all
//! who wait, and also when nobody waits any more. A probe passes by cache and flights, because it has to call.

mod answers;
mod breaker;
mod breakers;
mod flights;
mod gate;
mod recent;

pub use answers::{AnswerKey, Answers};
pub use breaker::{Admission, Breaker, Change, State, Status, Ticket, Verdict};
pub use breaker::{FAILURES_TO_OPEN, FIRST_OPEN, JITTER, LONGEST_OPEN};
pub use breakers::{BreakerKey, Breakers};
pub use flights::{Flights, Missed};
pub use gate::{Crowded, GateLimits, Gates, Slot};

#[cfg(test)]
mod tests;
