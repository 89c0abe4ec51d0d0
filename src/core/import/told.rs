//! The warnings of one import, as many as somebody reads.

use crate::core::text::counted;
use crate::core::warning::Warning;

/// Most warnings that are told one by one.
const MAX_TOLD: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Told {
    list: Vec<Warning>,
    more: usize,
}

impl Told {
    pub(super) fn add(&mut self, code: &'static str, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.list.len() < MAX_TOLD {
            self.list.push(Warning::new(code, detail).at(pointer));
        } else {
            self.more += 1;
        }
    }

    /// The same with a sentence that costs something to make: only warnings that are told pay for it.
    pub(super) fn add_with(
        &mut self,
        code: &'static str,
        pointer: impl Into<String>,
        detail: impl FnOnce() -> String,
    ) {
        if self.list.len() < MAX_TOLD {
            self.add(code, pointer, detail());
        } else {
            self.more += 1;
        }
    }

    /// The warnings, closed by one that counts what is left out.
    pub(super) fn finish(mut self) -> Vec<Warning> {
        if self.more > 0 {
            self.list.push(Warning::new(
                "more_warnings",
                format!("{} not told", counted(self.more, "more warning is", "more warnings are")),
            ));
        }
        self.list
    }
}
