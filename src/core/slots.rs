//! Who may run at the same time: a bounded number of slots and a short bounded queue, both shared by owners.
//!
//! No owner gets more than its share of the slots or of the queue, however many it asks for; owners that wait take turns. A
//! state machine without a clock: what waits is a value of the caller's, which comes back when its turn has come.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// That run at the same time.
    pub running: usize,
    /// That wait for a slot.
    pub waiting: usize,
}

/// Whether an owner is bounded by a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// All slots and the whole queue.
    Whole,
    /// Half of either, rounded up.
    Half,
}

impl Share {
    fn of(self, whole: usize) -> usize {
        match self {
            Self::Whole => whole,
            Self::Half => whole.div_ceil(2),
        }
    }
}

/// The answer to who asks for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Runs,
    /// Waits under this ticket.
    Waits(u64),
    /// There is no room in the queue.
    Full,
}

#[derive(Debug)]
struct Owned<W> {
    share: Share,
    running: usize,
    waiting: VecDeque<(u64, W)>,
}

/// The slots with those who run and wait.
#[derive(Debug)]
pub struct Slots<O, W> {
    limits: SlotLimits,
    running: usize,
    waiting: usize,
    next_ticket: u64,
    owners: HashMap<O, Owned<W>>,
    /// Owners that wait, in the order of their turns.
    turns: VecDeque<O>,
}

impl<O: Copy + Eq + Hash, W> Slots<O, W> {
    pub fn new(limits: SlotLimits) -> Self {
        Self {
            limits,
            running: 0,
            waiting: 0,
            next_ticket: 0,
            owners: HashMap::new(),
            turns: VecDeque::new(),
        }
    }

    /// Asks for a slot. `waiter` is made and kept only where it has to wait.
    pub fn ask(&mut self, owner: O, share: Share, waiter: impl FnOnce() -> W) -> Asked {
        let limits = self.limits;
        let owned =
            self.owners.entry(owner).or_insert_with(|| Owned { share, running: 0, waiting: VecDeque::new() });
        // Who came first goes first; those of other owners wait because of their own share alone.
        let is_free = self.running < limits.running && owned.running < share.of(limits.running);
        if is_free && owned.waiting.is_empty() {
            owned.running += 1;
            self.running += 1;
            return Asked::Runs;
        }
        if self.waiting >= limits.waiting || owned.waiting.len() >= share.of(limits.waiting) {
            self.forget_idle(owner);
            return Asked::Full;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if owned.waiting.is_empty() {
            self.turns.push_back(owner);
        }
        owned.waiting.push_back((ticket, waiter()));
        self.waiting += 1;
        Asked::Waits(ticket)
    }

    /// One that ran has ended. Whoever waits and may run now comes back, and counts as running.
    pub fn end(&mut self, owner: O) -> Option<W> {
        if let Some(owned) = self.owners.get_mut(&owner)
            && owned.running > 0
        {
            owned.running -= 1;
            self.running -= 1;
        }
        let next = self.next();
        self.forget_idle(owner);
        next
    }

    /// One that waits goes away.
    pub fn give_up(&mut self, owner: O, ticket: u64) {
        let Some(owned) = self.owners.get_mut(&owner) else { return };
        let before = owned.waiting.len();
        owned.waiting.retain(|(waiting, _)| *waiting != ticket);
        self.waiting -= before - owned.waiting.len();
        if before > 0 && owned.waiting.is_empty() {
            self.turns.retain(|waiting| *waiting != owner);
        }
        self.forget_idle(owner);
    }

    /// How many run and wait.
    pub fn load(&self) -> (usize, usize) {
        (self.running, self.waiting)
    }

    /// The next whose owner has a slot left.
    fn next(&mut self) -> Option<W> {
        if self.running >= self.limits.running {
            return None;
        }
        for _ in 0..self.turns.len() {
            let owner = self.turns.pop_front()?;
            let Some(owned) = self.owners.get_mut(&owner) else { continue };
            if owned.running >= owned.share.of(self.limits.running) {
                self.turns.push_back(owner);
                continue;
            }
            let Some((_, waiter)) = owned.waiting.pop_front() else { continue };
            owned.running += 1;
            self.running += 1;
            self.waiting -= 1;
            if !owned.waiting.is_empty() {
                self.turns.push_back(owner);
            }
            return Some(waiter);
        }
        None
    }

    fn forget_idle(&mut self, owner: O) {
        if self.owners.get(&owner).is_some_and(|owned| owned.running == 0 && owned.waiting.is_empty()) {
            self.owners.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slots(running: usize, waiting: usize) -> Slots<u8, &'static str> {
        Slots::new(SlotLimits { running, waiting })
    }

    #[test]
    fn a_flood_leaves_room_for_others() {
        let mut slots = slots(4, 4);
        for expected in [Asked::Runs, Asked::Runs, Asked::Waits(0), Asked::Waits(1), Asked::Full] {
            assert_eq!(slots.ask(1, Share::Half, || "flood"), expected);
        }
        assert_eq!(slots.ask(2, Share::Half, || "quiet"), Asked::Runs);
        assert_eq!(slots.end(2), None, "the flood has its share already");
        assert_eq!(slots.end(1), Some("flood"));
        assert_eq!(slots.load(), (2, 1));
    }

    #[test]
    fn owners_take_turns() {
        let mut slots = slots(1, 8);
        assert_eq!(slots.ask(0, Share::Whole, || "first"), Asked::Runs);
        for (owner, name) in [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (3, "y")] {
            assert!(matches!(slots.ask(owner, Share::Half, || name), Asked::Waits(_)));
        }
        let mut order = Vec::new();
        let mut running = 0;
        while let Some(next) = slots.end(running) {
            order.push(next);
            running = match next {
                "x" => 2,
                "y" => 3,
                _ => 1,
            };
        }
        assert_eq!(order, ["a", "x", "y", "b", "c"]);
        assert_eq!((slots.load(), slots.owners.len()), ((0, 0), 0));
    }

    #[test]
    fn who_gives_up_leaves_the_queue() {
        let mut slots = slots(1, 1);
        assert_eq!(slots.ask(1, Share::Half, || "a"), Asked::Runs);
        assert_eq!(slots.ask(2, Share::Half, || "b"), Asked::Waits(0));
        assert_eq!(slots.ask(3, Share::Half, || "c"), Asked::Full);
        slots.give_up(2, 0);
        assert_eq!(slots.ask(3, Share::Half, || "c"), Asked::Waits(1));
        assert_eq!(slots.end(1), Some("c"));
    }

    proptest! {
        #[test]
        fn no_bound_is_passed_and_nothing_is_lost(
            running in 1_usize..6, waiting in 0_usize..6, steps in prop::collection::vec((0_u8..3, 0_u8..3), 1..200)
        ) {
            let limits = SlotLimits { running, waiting };
            let mut slots: Slots<u8, u8> = Slots::new(limits);
            let mut runs = [0_usize; 3];
            let mut tickets: Vec<(u8, u64)> = Vec::new();
            for (owner, deed) in steps {
                let at = usize::from(owner);
                match deed {
                    0 => match slots.ask(owner, Share::Half, || owner) {
                        Asked::Runs => runs[at] += 1,
                        Asked::Waits(ticket) => tickets.push((owner, ticket)),
                        Asked::Full => {}
                    },
                    1 if runs[at] > 0 => {
                        runs[at] -= 1;
                        if let Some(next) = slots.end(owner) {
                            runs[usize::from(next)] += 1;
                            let first = tickets.iter().position(|(waiting, _)| *waiting == next).unwrap();
                            tickets.remove(first);
                        }
                    }
                    _ => {
                        if let Some(place) = tickets.iter().position(|(waiting, _)| *waiting == owner) {
                            let (_, ticket) = tickets.remove(place);
                            slots.give_up(owner, ticket);
                        }
                    }
                }
                prop_assert_eq!(slots.load(), (runs.iter().sum(), tickets.len()));
                prop_assert!(slots.running <= running && slots.waiting <= waiting);
                prop_assert!(runs.iter().all(|own| *own <= running.div_ceil(2)));
            }
        }
    }
}
