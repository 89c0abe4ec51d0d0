use proptest::prelude::*;

use super::*;

type Fault = u16;

fn failure(status: Fault) -> Verdict<Fault> {
    Verdict::Failure { fault: status, retry_after: None }
}

fn told_to_wait(seconds: u64) -> Verdict<Fault> {
    Verdict::Failure { fault: 429, retry_after: Some(Duration::from_secs(seconds)) }
}

/// A breaker with a clock beside it.
struct Bench {
    breaker: Breaker<Fault>,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { breaker: Breaker::default(), now: Instant::now() }
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn go(&mut self) -> Ticket {
        match self.breaker.admit(self.now) {
            Admission::Go(ticket) => ticket,
            other => panic!("not closed: {other:?}"),
        }
    }

    fn probe(&mut self) -> Ticket {
        match self.breaker.admit(self.now) {
            Admission::Probe(ticket, _) => ticket,
            other => panic!("no probe: {other:?}"),
        }
    }

    fn refuses(&mut self) -> bool {
        self.breaker.admit(self.now) == Admission::Refuse
    }

    fn report(&mut self, ticket: Ticket, verdict: Verdict<Fault>) -> Option<Change<Fault>> {
        self.breaker.report(ticket, verdict, self.now, 0.0)
    }

    fn call(&mut self, verdict: Verdict<Fault>) -> Option<Change<Fault>> {
        let ticket = self.go();
        self.report(ticket, verdict)
    }

    /// Seconds that a failed probe opens for.
    fn fail_probe(&mut self, verdict: Verdict<Fault>) -> u64 {
        let ticket = self.probe();
        self.report(ticket, verdict).and_then(|change| change.open_for).unwrap().as_secs()
    }
}

#[test]
fn the_fifth_failure_in_a_row_opens_and_a_success_between_starts_anew() {
    let mut bench = Bench::new();
    for verdict in [failure(500), failure(500), failure(500), failure(500), Verdict::Success] {
        assert_eq!(bench.call(verdict), None);
    }
    for _ in 0..4 {
        assert_eq!(bench.call(failure(503)), None);
    }
    let change = bench.call(failure(502)).unwrap();
    assert_eq!(
        change,
        Change {
            from: State::Closed,
            to: State::Open,
            fault: Some(502),
            open_for: Some(Duration::from_secs(30))
        }
    );
    assert!(bench.refuses());
    bench.wait(29);
    assert!(bench.refuses());
    bench.wait(1);
    bench.probe();
}

#[test]
fn a_configuration_fault_opens_at_once() {
    let mut bench = Bench::new();
    let change = bench.call(Verdict::Configuration { fault: 401 }).unwrap();
    assert_eq!((change.to, change.fault), (State::Open, Some(401)));
    assert!(bench.refuses());
}

#[test]
fn open_times_double_to_five_minutes_and_start_anew_after_a_success() {
    let mut bench = Bench::new();
    bench.call(Verdict::Configuration { fault: 404 });
    let mut waits = Vec::new();
    for _ in 0..6 {
        bench.wait(300);
        waits.push(bench.fail_probe(failure(500)));
    }
    assert_eq!(waits, [60, 120, 240, 300, 300, 300]);
    bench.wait(300);
    let probe = bench.probe();
    let change = bench.report(probe, Verdict::Success).unwrap();
    assert_eq!((change.from, change.to, change.fault), (State::HalfOpen, State::Closed, None));
    let change = bench.call(Verdict::Configuration { fault: 404 }).unwrap();
    assert_eq!(change.open_for, Some(FIRST_OPEN));
}

#[test]
fn retry_after_opens_until_then_within_bounds() {
    for (asked, opened) in [(0, 1), (7, 7), (3_600, 300), (u64::MAX, 300)] {
        let mut bench = Bench::new();
        let change = bench.call(told_to_wait(asked)).unwrap();
        assert_eq!(change.open_for, Some(Duration::from_secs(opened)), "{asked}");
    }
    // The second time the server has to be believed less, and the third time too.
    let mut bench = Bench::new();
    bench.call(told_to_wait(2));
    bench.wait(2);
    assert_eq!(bench.fail_probe(told_to_wait(2)), 30);
    bench.wait(30);
    assert_eq!(bench.fail_probe(told_to_wait(100)), 100);
}

#[test]
fn jitter_only_adds_and_nonsense_is_none() {
    for (jitter, millis) in [(0.0, 30_000), (0.5, 33_000), (1.0, 36_000), (9.0, 36_000), (-1.0, 30_000)] {
        let mut breaker = Breaker::default();
        let now = Instant::now();
        let Admission::Go(ticket) = breaker.admit(now) else { panic!("not closed") };
        let change = breaker.report(ticket, Verdict::Configuration { fault: 401 }, now, jitter).unwrap();
        assert_eq!(change.open_for, Some(Duration::from_millis(millis)), "{jitter}");
    }
    let mut breaker = Breaker::default();
    let now = Instant::now();
    let Admission::Go(ticket) = breaker.admit(now) else { panic!("not closed") };
    let change = breaker.report(ticket, Verdict::Configuration { fault: 401 }, now, f64::NAN).unwrap();
    assert_eq!(change.open_for, Some(FIRST_OPEN));
}

#[test]
fn a_probe_without_a_call_or_without_a_word_gives_its_place_to_the_next() {
    let mut bench = Bench::new();
    bench.call(Verdict::Configuration { fault: 403 });
    bench.wait(30);
    let probe = bench.probe();
    assert!(bench.refuses());
    assert_eq!(bench.report(probe, Verdict::NoCall), None);
    let lost = bench.probe();
    bench.wait(89);
    assert!(bench.refuses());
    bench.wait(1);
    let next = bench.probe();
    assert_eq!(bench.report(lost, Verdict::Success), None);
    assert!(bench.refuses());
    assert_eq!(bench.report(next, Verdict::Success).unwrap().to, State::Closed);
}

#[test]
fn calls_from_before_a_change_are_not_counted() {
    let mut bench = Bench::new();
    let early: Vec<Ticket> = (0..20).map(|_| bench.go()).collect();
    let mut changes = Vec::new();
    for ticket in early {
        changes.extend(bench.report(ticket, failure(500)));
    }
    assert_eq!(changes.len(), 1);

    let mut bench = Bench::new();
    let slow = bench.go();
    bench.call(Verdict::Configuration { fault: 401 });
    assert_eq!(bench.report(slow, Verdict::Success), None);
    assert!(bench.refuses());
}

#[test]
fn a_reset_closes_whatever_the_state() {
    let mut bench = Bench::new();
    assert_eq!(bench.breaker.reset(), None);
    let old = bench.go();
    bench.call(Verdict::Configuration { fault: 401 });
    assert_eq!(bench.breaker.reset().unwrap().from, State::Open);
    // An answer to the old settings.
    assert_eq!(bench.report(old, Verdict::Configuration { fault: 401 }), None);
    bench.call(Verdict::Configuration { fault: 401 });
    bench.wait(30);
    let probe = bench.probe();
    assert_eq!(bench.breaker.reset().unwrap().from, State::HalfOpen);
    assert_eq!(bench.report(probe, failure(500)), None);
    bench.go();
}

#[test]
fn status_tells_state_fault_and_time_left() {
    let mut bench = Bench::new();
    let shown = |bench: &Bench| {
        let status = bench.breaker.status(bench.now);
        (status.state.name(), status.failures, status.fault, status.retry_in.map(|left| left.as_secs()))
    };
    assert_eq!(shown(&bench), ("closed", 0, None, None));
    bench.call(failure(500));
    assert_eq!(shown(&bench), ("closed", 1, Some(500), None));
    bench.call(Verdict::Configuration { fault: 402 });
    bench.wait(10);
    assert_eq!(shown(&bench), ("open", 2, Some(402), Some(20)));
    bench.wait(20);
    assert_eq!(shown(&bench), ("half_open", 2, Some(402), None));
    let probe = bench.probe();
    assert_eq!(shown(&bench), ("half_open", 2, Some(402), None));
    bench.report(probe, Verdict::Success);
    assert_eq!(shown(&bench), ("closed", 0, None, None));
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Admit,
    Report(prop::sample::Index, Verdict<Fault>, f64),
    Reset,
}

fn verdict() -> impl Strategy<Value = Verdict<Fault>> {
    prop_oneof![
        2 => Just(Verdict::Success),
        6 => Just(failure(503)),
        1 => (0u64..1_000).prop_map(told_to_wait),
        1 => Just(Verdict::Configuration { fault: 401 }),
        1 => Just(Verdict::NoCall),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0u64..100_000).prop_map(Step::Wait),
        6 => Just(Step::Admit),
        6 => (any::<prop::sample::Index>(), verdict(), 0.0f64..=1.0)
            .prop_map(|(which, verdict, jitter)| Step::Report(which, verdict, jitter)),
        1 => Just(Step::Reset),
    ]
}

/// The rules once more, over whole histories: which calls still count is a set, times are milliseconds.
#[derive(Debug)]
struct Model {
    state: State,
    /// Failures in a row while closed.
    row: u32,
    opened_at: u64,
    /// The probe that is out, and since when.
    probe: Option<(usize, u64)>,
    counting: Vec<usize>,
}

impl Model {
    /// What the outcome of call `id` leads to.
    fn report(&mut self, id: usize, verdict: &Verdict<Fault>, now: u64) -> Option<State> {
        if !self.counting.contains(&id) {
            return None;
        }
        self.counting.retain(|counting| *counting != id);
        let probed = self.probe.take().is_some();
        let to = match verdict {
            Verdict::NoCall => return None,
            Verdict::Success => State::Closed,
            Verdict::Failure { retry_after: None, .. } if !probed && self.row < 4 => {
                self.row += 1;
                return None;
            }
            _ => State::Open,
        };
        self.row = 0;
        if to == self.state {
            return None;
        }
        self.turn(to, now)
    }

    fn turn(&mut self, to: State, now: u64) -> Option<State> {
        self.counting.clear();
        self.probe = None;
        self.row = 0;
        self.opened_at = now;
        (std::mem::replace(&mut self.state, to) != to).then_some(to)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn it_agrees_with_the_model(steps in prop::collection::vec(step(), 0..200)) {
        let start = Instant::now();
        let mut now = 0;
        let mut breaker: Breaker<Fault> = Breaker::default();
        let mut model =
            Model { state: State::Closed, row: 0, opened_at: 0, probe: None, counting: Vec::new() };
        let mut tickets: Vec<(usize, Ticket)> = Vec::new();
        let mut open_for = 0;
        for (id, step) in steps.into_iter().enumerate() {
            let at = start + Duration::from_millis(now);
            let before = model.state;
            let (change, expected) = match step {
                Step::Wait(millis) => {
                    now += millis;
                    continue;
                }
                Step::Admit => match breaker.admit(at) {
                    Admission::Go(ticket) => {
                        prop_assert_eq!(model.state, State::Closed);
                        model.counting.push(id);
                        tickets.push((id, ticket));
                        continue;
                    }
                    Admission::Refuse => {
                        let waits = model.state == State::Open && now < model.opened_at + open_for;
                        let probes = model.probe.is_some_and(|(_, since)| now < since + 90_000);
                        prop_assert!(waits || probes, "refused at {} in {:?}", now, model);
                        prop_assert!(probes || now <= model.opened_at + 360_000);
                        continue;
                    }
                    Admission::Probe(ticket, change) => {
                        prop_assert!(model.state != State::Closed);
                        prop_assert!(model.state != State::Open || now >= model.opened_at + open_for);
                        // Never two that can still call somebody.
                        prop_assert!(model.probe.is_none_or(|(_, since)| now >= since + 90_000));
                        let expected = model.turn(State::HalfOpen, now);
                        model.probe = Some((id, now));
                        model.counting.push(id);
                        tickets.push((id, ticket));
                        (change, expected)
                    }
                },
                Step::Report(which, verdict, jitter) => {
                    if tickets.is_empty() {
                        continue;
                    }
                    let (id, ticket) = tickets.swap_remove(which.index(tickets.len()));
                    let change = breaker.report(ticket, verdict.clone(), at, jitter);
                    (change, model.report(id, &verdict, now))
                }
                Step::Reset => (breaker.reset(), model.turn(State::Closed, now)),
            };
            prop_assert_eq!(change.as_ref().map(|change| change.to), expected);
            if let Some(change) = change {
                prop_assert_eq!(change.from, before);
                prop_assert_eq!(change.open_for.is_some(), change.to == State::Open);
                prop_assert_eq!(change.fault.is_some(), change.to != State::Closed);
                if let Some(time) = change.open_for {
                    open_for = u64::try_from(time.as_micros().div_ceil(1_000)).unwrap();
                    prop_assert!((1_000..=360_000).contains(&open_for), "{:?}", time);
                }
            }
        }
    }
}
