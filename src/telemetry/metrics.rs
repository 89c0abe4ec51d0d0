//! Recording: the registry of the process, and a function for each thing that is counted.
//!
//! Nothing has to be started before recording works; a test can make a registry of its own. Gauges are set when they are
//! asked for.

use std::sync::LazyLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};

use super::process;
use super::registry::Registry;

/// The metrics of the process.
static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);

/// Records one HTTP request. `route` is the pattern that matched, never the path itself.
pub fn request(route: &str, method: &Method, status: StatusCode, seconds: f64) {
    REGISTRY.request(route, method, status, seconds);
}

/// Records one search: `mode` as in the answer, `reason` as in the answer or `none`.
pub fn search(mode: &'static str, reason: &'static str, seconds: f64) {
    REGISTRY.searches.with(&REGISTRY.recorder, [mode, reason], |counter| counter.increment(1));
    REGISTRY.search_seconds.with(&REGISTRY.recorder, [mode], |histogram| histogram.record(seconds));
}

/// Records a search of which no query had a match.
pub fn no_match(mode: &'static str) {
    REGISTRY.no_match.with(&REGISTRY.recorder, [mode], |counter| counter.increment(1));
}

/// What became of a ranking or of vectors that an endpoint was asked for.
#[derive(Debug, Clone, Copy)]
pub struct EndpointCall {
    /// `rerank`, `embed_query` or `embed_texts`.
    pub kind: &'static str,
    /// `ok` or the reason of the fault.
    pub outcome: &'static str,
    pub took: Duration,
}

/// Records a call of an endpoint.
pub fn endpoint_call(call: EndpointCall) {
    let EndpointCall { kind, outcome, took } = call;
    REGISTRY.endpoint_calls.with(&REGISTRY.recorder, [kind, outcome], |counter| counter.increment(1));
    REGISTRY.endpoint_seconds.with(&REGISTRY.recorder, [kind], |histogram| histogram.record(took));
}

/// Records that a request was not let in: `rate` or `overload`.
pub fn held_back(reason: &'static str) {
    REGISTRY.held_back.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records that an endpoint's breaker changed to this state.
pub fn breaker(to: &'static str) {
    REGISTRY.breaker.with(&REGISTRY.recorder, [to], |counter| counter.increment(1));
}

/// Records one assembly.
pub fn assemble(tier: u8, format: &'static str) {
    const TIERS: [&str; 4] = ["0", "1", "2", "3"];
    let tier = TIERS.get(usize::from(tier)).copied().unwrap_or("other");
    REGISTRY.assemblies.with(&REGISTRY.recorder, [tier, format], |counter| counter.increment(1));
}

/// Records one ranking for a preload: `outcome` is `found`, `nothing` or `failed`, `reason` as in the warning or `none`.
pub fn preload(outcome: &'static str, reason: &'static str) {
    REGISTRY.preloads.with(&REGISTRY.recorder, [outcome, reason], |counter| counter.increment(1));
}

/// Records that an assembly broke a session's cache prefix; `reason` as in the answer.
pub fn cache_break(reason: &'static str) {
    REGISTRY.cache_breaks.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records what entered a warm set, what was of use there again, and what left it for others.
pub fn warm_change(added: usize, touched: usize, evicted: usize) {
    REGISTRY.warm_added.increment(added as u64);
    REGISTRY.warm_touched.increment(touched as u64);
    REGISTRY.warm_evictions.increment(evicted as u64);
}

/// Records a call of a tool that the grant does not hold; `route` is `call`, `describe` or `bridge`.
pub fn unknown_tool_call(route: &'static str) {
    REGISTRY.unknown_calls.with(&REGISTRY.recorder, [route], |counter| counter.increment(1));
}

/// Sets the size of an in-memory cache.
pub fn cache_size(cache: &'static str, entries: u64, bytes: u64) {
    REGISTRY.cache_entries.with(&REGISTRY.recorder, [cache], |gauge| gauge.set(entries as f64));
    REGISTRY.cache_bytes.with(&REGISTRY.recorder, [cache], |gauge| gauge.set(bytes as f64));
}

/// Records what all tools would have cost in an assembly, and what was sent, in tokens.
pub fn assembly_tokens(all: u64, sent: u64) {
    REGISTRY.tokens_all.increment(all);
    REGISTRY.tokens_sent.increment(sent);
    REGISTRY.tokens_saved.increment(all.saturating_sub(sent));
}

/// Records the tokens of an answer that a model reads; `route` is `search`, `describe` or `bridge`.
pub fn answer_tokens(route: &'static str, tokens: u64) {
    REGISTRY.tokens_answers.with(&REGISTRY.recorder, [route], |counter| counter.increment(tokens));
}

/// Records a tool that was set aside; `reason` is the code of its quarantine.
pub fn quarantined(reason: &'static str) {
    REGISTRY.quarantined.with(&REGISTRY.recorder, [reason], |counter| counter.increment(1));
}

/// Records one commit: how long each of its writes waited for it to begin, and how long it took.
pub fn committed(waited: &[Duration], took: Duration) {
    REGISTRY.writer_batch.record(waited.len() as f64);
    waited.iter().for_each(|wait| REGISTRY.write_wait.record(*wait));
    REGISTRY.commit_seconds.record(took);
}

/// Records how long a read waited for a connection.
pub fn read_waited(waited: Duration) {
    REGISTRY.read_wait.record(waited);
}

/// Records a request that ended in a panic.
pub fn panicked() {
    REGISTRY.panics.increment(1);
}

/// Sets how many requests have a slot and wait for one, and how many may.
pub fn in_flight(running: usize, waiting: usize, most: (usize, usize)) {
    let set = |family: &super::registry::Family<metrics::Gauge, 1>, running: usize, waiting: usize| {
        family.with(&REGISTRY.recorder, ["running"], |gauge| gauge.set(running as f64));
        family.with(&REGISTRY.recorder, ["waiting"], |gauge| gauge.set(waiting as f64));
    };
    set(&REGISTRY.in_flight, running, waiting);
    set(&REGISTRY.in_flight_max, most.0, most.1);
}

/// How much the parts of the service have to do at present.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Endpoints that are left alone.
    pub breakers_open: usize,
    pub waiting_writes: usize,
    /// Connections for reads.
    pub connections_in_use: u32,
    pub connections_idle: u32,
    pub connections_most: u32,
    /// Whether writes find room.
    pub has_room: bool,
    /// Whether nothing that others write goes unheard.
    pub is_listening: bool,
    /// Tools of catalogs in memory.
    pub tools_held: usize,
}

/// Sets what the gauges show of it.
pub fn load(load: &Load) {
    REGISTRY.breakers_open.set(load.breakers_open as f64);
    REGISTRY.write_queue.set(load.waiting_writes as f64);
    REGISTRY.pool.with(&REGISTRY.recorder, ["in_use"], |gauge| gauge.set(load.connections_in_use));
    REGISTRY.pool.with(&REGISTRY.recorder, ["idle"], |gauge| gauge.set(load.connections_idle));
    REGISTRY.pool_max.set(load.connections_most);
    REGISTRY.storage_full.set(if load.has_room { 0.0 } else { 1.0 });
    REGISTRY.listening.set(if load.is_listening { 1.0 } else { 0.0 });
    REGISTRY.tools_held.set(load.tools_held as f64);
}

/// All metrics in the Prometheus text format.
pub fn render() -> String {
    let mut text = REGISTRY.handle.render();
    process::write(&mut text);
    text
}

/// Folds what histograms have collected every 5 seconds, so that they do not grow when nobody scrapes. Never ends.
pub async fn upkeep() {
    let mut ticks = tokio::time::interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        REGISTRY.handle.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_method_and_status() {
        let registry = Registry::new();
        let odd = Method::from_bytes(b"BREW").unwrap();
        for method in [&Method::POST, &Method::POST, &odd] {
            registry.request("/v1/assemble", method, StatusCode::OK, 0.002);
        }
        let text = registry.handle.render();
        for line in [
            "toolrack_http_request_duration_seconds_count{route=\"/v1/assemble\",method=\"POST\",status=\"200\"} 2",
            "toolrack_http_request_duration_seconds_count{route=\"/v1/assemble\",method=\"other\",status=\"200\"} 1",
            "method=\"POST\",status=\"200\",le=\"0.0025\"} 2",
            "toolrack_panics_total 0",
            "# TYPE toolrack_http_request_duration_seconds histogram",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.contains(concat!("toolrack_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1")));
    }

    #[test]
    fn recorded_values_show_in_the_text() {
        search("test", "timeout", 0.001);
        assemble(2, "test");
        preload("test", "timeout");
        cache_break("test");
        unknown_tool_call("test");
        cache_size("test", 3, 4096);
        quarantined("test");
        warm_change(1, 3, 2);
        no_match("test");
        endpoint_call(EndpointCall { kind: "test", outcome: "timeout", took: Duration::from_millis(30) });
        in_flight(2, 1, (8, 4));
        assembly_tokens(10, 4);
        answer_tokens("test", 7);
        committed(&[Duration::from_millis(1); 7], Duration::from_millis(2));
        load(&Load {
            breakers_open: 1,
            waiting_writes: 3,
            connections_in_use: 2,
            connections_idle: 1,
            connections_most: 4,
            has_room: false,
            is_listening: true,
            tools_held: 9,
        });
        // Other tests of this process record too, so only labels of this test are looked at with their values.
        let text = render();
        for line in [
            "toolrack_search_total{mode=\"test\",reason=\"timeout\"} 1",
            "toolrack_assemble_total{tier=\"2\",format=\"test\"} 1",
            "toolrack_preload_total{outcome=\"test\",reason=\"timeout\"} 1",
            "toolrack_cache_break_total{reason=\"test\"} 1",
            "toolrack_unknown_tool_calls_total{route=\"test\"} 1",
            "toolrack_cache_bytes{cache=\"test\"} 4096",
            "toolrack_quarantined_tools_total{reason=\"test\"} 1",
            "toolrack_warm_evictions_total ",
            "toolrack_requests_held_back_total{reason=\"overload\"} ",
            "toolrack_search_no_match_total{mode=\"test\"} 1",
            "toolrack_endpoint_calls_total{kind=\"test\",outcome=\"timeout\"} 1",
            "toolrack_endpoint_call_duration_seconds_bucket{kind=\"test\",le=\"0.05\"} 1",
            "toolrack_http_requests_in_flight{state=\"running\"} 2",
            "toolrack_http_requests_in_flight_max{state=\"waiting\"} 4",
            "toolrack_db_write_queue_length 3",
            "toolrack_db_pool_connections{state=\"in_use\"} 2",
            "toolrack_db_pool_connections_max 4",
            "toolrack_db_storage_full 1",
            "toolrack_db_listening 1",
            "toolrack_tools_in_memory 9",
            "toolrack_rerank_breakers_open 1",
            "toolrack_db_commit_duration_seconds_bucket{le=\"0.0025\"} ",
            "process_open_fds ",
            "toolrack_tokens_all_total ",
            "toolrack_tokens_sent_total ",
            "toolrack_tokens_saved_total ",
            "toolrack_tokens_answers_total{route=\"test\"} 7",
            "toolrack_writer_batch_size_bucket{le=\"8\"} ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
