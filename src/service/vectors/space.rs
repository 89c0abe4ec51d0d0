//! One space of vectors: what is being made in it, how wide its vectors are, and whether they are still those of its model.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::super::context::ViewEntry;
use super::super::lock;
use super::queue::{Queue, Wanted};
use super::view::{Kept, ViewVectors};
use crate::core::digest::Digest;
use crate::rerank::RerankFault;
use crate::store::VectorSpace;

/// So many texts refused one by one, and none made in between, are no bad texts but an endpoint that refuses all.
const REFUSED_IN_A_ROW: usize = 8;
/// Such an endpoint is sent no texts for so long.
const REST: Duration = Duration::from_secs(60);

/// The tool that a wanted text is of.
pub(super) type OfTool = (Arc<ViewEntry>, u32);

/// See the module. Shared by all who compare vectors in it.
#[derive(Debug)]
pub(in crate::service) struct Space {
    pub key: VectorSpace,
    state: Mutex<State>,
    /// Counts what happened, to wake those who wait.
    changed: watch::Sender<u64>,
}

/// Whether the endpoint still makes the vectors that it made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Due,
    UnderWay,
    Done,
}

#[derive(Debug)]
struct State {
    queue: Queue<OfTool>,
    /// Whether a task makes what is wanted.
    is_running: bool,
    /// Why the last task ended before all was made.
    fault: Option<RerankFault>,
    refusal: Option<RerankFault>,
    refused_in_a_row: usize,
    rests_until: Option<Instant>,
    check: Check,
    /// A number that no other space and no other generation of this one has.
    serial: u64,
    width: Option<usize>,
    views: Vec<Weak<ViewVectors>>,
}

impl Space {
    pub(super) fn new(key: VectorSpace, serial: u64) -> Self {
        let state = State {
            queue: Queue::default(),
            is_running: false,
            fault: None,
            refusal: None,
            refused_in_a_row: 0,
            rests_until: None,
            check: Check::Due,
            serial,
            width: None,
            views: Vec::new(),
        };
        Self { key, state: Mutex::new(state), changed: watch::Sender::new(0) }
    }

    /// The present generation: vectors of two of them are not compared.
    pub(in crate::service) fn serial(&self) -> u64 {
        lock(&self.state).serial
    }

    /// The width of this generation's vectors, which the first one settles; `None` while there is none.
    pub(in crate::service) fn width(&self) -> Option<usize> {
        lock(&self.state).width
    }

    /// Whether a vector of this width is one of this generation; the first one says how wide they are.
    pub(super) fn takes(&self, serial: u64, width: usize) -> bool {
        let mut state = lock(&self.state);
        state.serial == serial && *state.width.get_or_insert(width) == width
    }

    /// The model may be another by now: that is looked into before its vectors are compared again.
    pub(in crate::service) fn doubt(&self) {
        let mut state = lock(&self.state);
        state.check = Check::Due;
        // Who wrote the matcher anew wants it tried.
        state.rests_until = None;
    }

    pub(in crate::service) fn is_checked(&self) -> bool {
        lock(&self.state).check == Check::Done
    }

    /// Takes texts in. True where nobody makes them: the caller is to start the task.
    pub(super) fn want(&self, wanted: impl Iterator<Item = Wanted<OfTool>>, is_awaited: bool) -> bool {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if state.rests_until.is_some_and(|until| until > now) {
            return false;
        }
        wanted.for_each(|wanted| state.queue.want(wanted, is_awaited, now));
        let is_idle = state.queue.is_empty() && state.check != Check::Due;
        if state.is_running || is_idle {
            return false;
        }
        (state.is_running, state.fault, state.rests_until, state.refused_in_a_row) = (true, None, None, 0);
        true
    }

    /// Whether the check is to be made now; told to one.
    pub(super) fn take_check(&self) -> bool {
        let mut state = lock(&self.state);
        let is_due = state.check == Check::Due;
        if is_due {
            state.check = Check::UnderWay;
        }
        is_due
    }

    /// What the check came to.
    pub(super) fn checked(&self, is_done: bool) {
        {
            let mut state = lock(&self.state);
            // A doubt that came meanwhile stays.
            if state.check == Check::UnderWay {
                state.check = if is_done { Check::Done } else { Check::Due };
            }
        }
        self.tell();
    }

    /// The model is another: nothing that was made before compares.
    pub(super) fn renew(&self, serial: u64) {
        {
            let mut state = lock(&self.state);
            state.queue.clear();
            state.views.clear();
            (state.serial, state.width, state.refusal) = (serial, None, None);
        }
        self.tell();
    }

    /// The next batch, of at most `most` texts, with its generation.
    pub(super) fn next(&self, most: usize) -> Option<(u64, Vec<Wanted<OfTool>>)> {
        let mut state = lock(&self.state);
        Some((state.serial, state.queue.next(most)?))
    }

    /// From now on the view gets what is made.
    pub(super) fn register(&self, serial: u64, view: &Arc<ViewVectors>) {
        let mut state = lock(&self.state);
        if state.serial == serial {
            state.views.retain(|view| view.strong_count() > 0);
            state.views.push(Arc::downgrade(view));
        }
    }

    /// Texts got their vectors. The views that lacked one of them.
    pub(super) fn landed(&self, serial: u64, made: &[(Digest, Arc<Kept>)]) -> Vec<Arc<ViewVectors>> {
        let views: Vec<Arc<ViewVectors>> = {
            let state = lock(&self.state);
            let is_present = state.serial == serial;
            state.views.iter().filter(|_| is_present).filter_map(Weak::upgrade).collect()
        };
        let grown = views.into_iter().filter(|view| view.accept(made)).collect();
        {
            let mut state = lock(&self.state);
            made.iter().for_each(|(text, _)| state.queue.settle(text));
            if !made.is_empty() {
                state.refused_in_a_row = 0;
            }
        }
        self.tell();
        grown
    }

    /// A batch was refused for its texts: its halves are tried, and a single text is left alone for a while.
    ///
    /// # Errors
    /// The fault, when all that is sent is refused.
    pub(super) fn refused(&self, batch: Vec<Wanted<OfTool>>, fault: RerankFault) -> Result<(), RerankFault> {
        let now = Instant::now();
        {
            let mut state = lock(&self.state);
            state.refusal = Some(fault);
            state.refused_in_a_row += usize::from(state.queue.refuse(batch, now));
            if state.refused_in_a_row >= REFUSED_IN_A_ROW {
                state.rests_until = Some(now + REST);
                return Err(fault);
            }
        }
        self.tell();
        Ok(())
    }

    /// Whether the task may end; false where more is wanted by now.
    pub(super) fn may_end(&self) -> bool {
        let may_end = {
            let mut state = lock(&self.state);
            let may_end = state.queue.is_empty() && state.check != Check::Due;
            state.is_running = !may_end;
            may_end
        };
        self.tell();
        may_end
    }

    /// The task ends before all was made.
    pub(super) fn ended(&self, fault: RerankFault) {
        {
            let mut state = lock(&self.state);
            (state.is_running, state.fault) = (false, Some(fault));
            state.queue.clear();
            if state.check == Check::UnderWay {
                state.check = Check::Due;
            }
        }
        self.tell();
    }

    /// Waits until none of these texts is queued or on its way, and the check is made where it is asked for; no longer than
    /// `ends`, nor where nobody works at it.
    pub(in crate::service) async fn settled(&self, texts: &[Digest], is_checked: bool, ends: Instant) {
        let mut changed = self.changed.subscribe();
        let is_settled = || {
            let state = lock(&self.state);
            let is_waiting = is_checked && state.check != Check::Done;
            !state.is_running || !(is_waiting || texts.iter().any(|text| state.queue.holds(text)))
        };
        let wait = async { while !is_settled() && changed.changed().await.is_ok() {} };
        // Late is as good: what is there is used.
        drop(tokio::time::timeout_at(ends.into(), wait).await);
    }

    /// What holds up these texts: how many are being made, how many were refused, and the last fault of either kind.
    pub(in crate::service) fn outlook<'a>(&self, texts: impl Iterator<Item = &'a Digest>) -> Outlook {
        let now = Instant::now();
        let state = lock(&self.state);
        let mut outlook = Outlook { being_made: 0, refused: 0, fault: state.fault, refusal: state.refusal };
        for text in texts {
            outlook.being_made += usize::from(state.queue.holds(text));
            outlook.refused += usize::from(state.queue.is_refused(text, now));
        }
        outlook
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// See [`Space::outlook`].
#[derive(Debug, Clone, Copy)]
pub(in crate::service) struct Outlook {
    pub being_made: usize,
    pub refused: usize,
    pub fault: Option<RerankFault>,
    pub refusal: Option<RerankFault>,
}
