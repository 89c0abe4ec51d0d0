//! What of a scope wants somebody to look at it.

use crate::core::id::Scope;
use crate::core::keys::{KeyId, Pattern, Role};
use crate::core::usage::DAY_MS;
use crate::service::keys::{KeyDocument, KeyListQuery, KeyStatus};
use crate::service::{Error, Toolrack, now_ms};

/// Keys that end within so many days are told.
const ENDING_DAYS: i64 = 14;

/// Keys of one read, and how many reads there are at most.
const KEYS_READ: u32 = 500;
const KEY_READS: usize = 20;

/// What wants somebody to look.
#[derive(Debug)]
pub struct Attention {
    /// Changed tools that wait for an approval.
    pub held: usize,
    /// Keys that end within two weeks and have no successor, the soonest first.
    pub keys: Vec<EndingKey>,
}

/// A key that ends soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingKey {
    pub id: KeyId,
    pub name: String,
    /// Whole days that are left.
    pub days: i64,
}

impl Toolrack {
    /// What of a scope wants somebody to look. `with_keys`: for who may see keys, those that cover the scope as well.
    pub async fn attention(&self, scope: &Scope, with_keys: bool) -> Result<Attention, Error> {
        let held = self.0.store.reviews(scope).await?.held.len();
        let mut keys = Vec::new();
        let mut cursor = None;
        for _ in 0..if with_keys { KEY_READS } else { 0 } {
            let page = self.list_keys(KeyListQuery { cursor, limit: KEYS_READ }).await?;
            keys.extend(
                page.keys.iter().filter(|key| covers(key, scope)).filter_map(|key| ending(key, now_ms())),
            );
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        keys.sort_by(|a: &EndingKey, b| a.days.cmp(&b.days).then_with(|| a.name.cmp(&b.name)));
        Ok(Attention { held, keys })
    }
}

fn covers(key: &KeyDocument, scope: &Scope) -> bool {
    let patterns = match scope {
        Scope::User(_) => &key.users,
        Scope::Project(_) => &key.projects,
    };
    key.role == Role::Admin.as_str()
        || patterns.iter().any(|text| Pattern::parse(text).is_ok_and(|pattern| pattern.covers(scope.id())))
}

fn ending(key: &KeyDocument, now: i64) -> Option<EndingKey> {
    let days = key.expires_at_ms?.saturating_sub(now) / DAY_MS;
    let is_ending = key.status == KeyStatus::Active && key.successor.is_none() && days < ENDING_DAYS;
    is_ending.then(|| EndingKey { id: key.id, name: key.name.clone(), days })
}
