//! All keys in memory, so that telling who asks needs no database: what other processes change is read by revision, half a
//! second after it was last read, and what this process changes is there at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::core::keys::{Bindings, KeyDigest, KeyId, KeyRights, Principal, Role, is_misspelt, key_id};
use crate::core::rate::{Allowances, KeyRate};
use crate::service::heads::FRESH_MS;
use crate::service::{Error, Toolrack, lock, now_ms, uptime_ms, uptime_nanos};
use crate::store::{KeyRow, KeyTouch};

/// A use is noted at most once in this time, so that a busy key costs no shared write with every request.
const USE_NOTED_MS: i64 = 1_000;

/// Why a key is not accepted. That it expired or was revoked learns only who has the whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRefusal {
    Misspelt,
    Unknown,
    Expired,
    Revoked,
}

/// When a key was used last.
#[derive(Debug, Default)]
struct Usage {
    /// 0: not in this process.
    last_ms: AtomicI64,
    /// As of the last flush.
    stored_ms: AtomicI64,
}

/// A key as far as it is needed to accept it.
#[derive(Debug)]
struct KnownKey {
    digest: KeyDigest,
    rights: Arc<KeyRights>,
    expires_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
    revision: i64,
    usage: Arc<Usage>,
}

impl KnownKey {
    /// Nothing when this version cannot read what the key may do: then it may do nothing.
    fn of(row: &KeyRow, usual: KeyRate, known: Option<&Self>) -> Option<Self> {
        let (role, bindings) = (Role::parse(&row.role), serde_json::from_str::<Bindings>(&row.bindings));
        let (Some(role), Ok(bindings)) = (role, bindings) else {
            tracing::error!(key = %row.id, "this version cannot read what the key may do; it is not accepted");
            return None;
        };
        let usual = if matches!(role, Role::Agent | Role::Setup) { usual } else { KeyRate::default() };
        let rate = bindings.rate.or(usual);
        // What was used up stays so, whatever is changed about the key.
        let allowances = match known.map(|known| &known.rights.allowances) {
            None => Arc::new(Allowances::new(rate)),
            Some(known) if known.rate() == rate => Arc::clone(known),
            Some(known) => Arc::new(known.with_rate(rate, uptime_nanos())),
        };
        Some(Self {
            digest: row.digest,
            rights: Arc::new(KeyRights::new(row.id, role, bindings, allowances)),
            expires_at_ms: row.expires_at_ms,
            revoked_at_ms: row.revoked_at_ms,
            revision: row.revision,
            usage: known.map(|known| Arc::clone(&known.usage)).unwrap_or_default(),
        })
    }

    fn note_use(&self, now: i64) {
        if now - self.usage.last_ms.load(Ordering::Relaxed) >= USE_NOTED_MS {
            self.usage.last_ms.fetch_max(now, Ordering::Relaxed);
        }
    }
}

/// What was last changed of all that was read. While it is there, a database has lost nothing of it.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    revision: i64,
    id: KeyId,
    bindings: String,
    expires_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
}

impl Mark {
    fn of(row: &KeyRow) -> Self {
        let KeyRow { revision, id, expires_at_ms, revoked_at_ms, .. } = *row;
        Self { revision, id, bindings: row.bindings.clone(), expires_at_ms, revoked_at_ms }
    }

    fn last(rows: &[KeyRow]) -> Option<Self> {
        rows.iter().max_by_key(|row| row.revision).map(Self::of)
    }
}

/// Which state of each key was known at a time.
type Revisions = HashMap<KeyId, i64>;

/// The keys in memory.
#[derive(Debug, Default)]
pub(in crate::service) struct KeyRing {
    keys: RwLock<HashMap<KeyId, KnownKey>>,
    /// Up to which change the store was read.
    mark: Mutex<Option<Mark>>,
    /// When it was last read to its end, in milliseconds of the process, plus one; 0: not yet.
    checked: AtomicU64,
    /// When a request last took it upon itself to read, counted alike.
    claimed: AtomicU64,
    reading: tokio::sync::Mutex<()>,
    /// Of keys that say nothing else.
    usual_rate: KeyRate,
}

impl KeyRing {
    pub(in crate::service) fn new(usual_rate: KeyRate) -> Self {
        Self { usual_rate, ..Self::default() }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<KeyId, KnownKey>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<KeyId, KnownKey>> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this request has to read the store first: when it was not read for half a second and nobody else is about
    /// to, or for a second.
    fn is_stale(&self) -> bool {
        let checked = self.checked.load(Ordering::Relaxed);
        if checked == 0 {
            return true;
        }
        let now = uptime_ms() + 1;
        let age = now.saturating_sub(checked);
        if age < FRESH_MS {
            return false;
        }
        let claimed = self.claimed.load(Ordering::Relaxed);
        let claims = || {
            let relaxed = Ordering::Relaxed;
            now.saturating_sub(claimed) >= FRESH_MS
                && self.claimed.compare_exchange(claimed, now, relaxed, relaxed).is_ok()
        };
        age >= 2 * FRESH_MS || claims()
    }

    fn identify(&self, key: &[u8], digest: &KeyDigest, now: i64) -> Result<Principal, KeyRefusal> {
        let unknown = || if is_misspelt(key) { KeyRefusal::Misspelt } else { KeyRefusal::Unknown };
        self.accept(key_id(key).ok_or_else(unknown)?, digest, now).map_err(|refusal| match refusal {
            KeyRefusal::Unknown => unknown(),
            other => other,
        })
    }

    /// Who holds the key of this id and digest.
    fn accept(&self, id: KeyId, digest: &KeyDigest, now: i64) -> Result<Principal, KeyRefusal> {
        let keys = self.read();
        let known = keys.get(&id).filter(|known| known.digest.is(digest)).ok_or(KeyRefusal::Unknown)?;
        if known.revoked_at_ms.is_some() {
            return Err(KeyRefusal::Revoked);
        }
        if known.expires_at_ms.is_some_and(|expires| expires <= now) {
            return Err(KeyRefusal::Expired);
        }
        known.note_use(now);
        Ok(Principal::Key(Arc::clone(&known.rights)))
    }

    fn has_admin(&self, now: i64) -> bool {
        let is_live = |key: &&KnownKey| {
            key.revoked_at_ms.is_none() && key.expires_at_ms.is_none_or(|expires| expires > now)
        };
        self.read().values().filter(is_live).any(|key| key.rights.role == Role::Admin)
    }

    /// Takes over rows, unless a later state of them is here.
    pub(super) fn keep<'a>(&self, rows: impl IntoIterator<Item = &'a KeyRow>) {
        let mut keys = self.write();
        for row in rows {
            let known = keys.get(&row.id);
            if known.is_some_and(|known| known.revision > row.revision) {
                continue;
            }
            match KnownKey::of(row, self.usual_rate, known) {
                Some(key) => drop(keys.insert(row.id, key)),
                None => drop(keys.remove(&row.id)),
            }
        }
    }

    /// The revisions of all keys that are known.
    fn revisions(&self) -> Revisions {
        self.read().iter().map(|(id, key)| (*id, key.revision)).collect()
    }

    /// Takes over all rows that there are, whatever was known when they were asked for: the database may have lost some. Who is
    /// refused stays refused.
    fn replace(&self, rows: &[KeyRow], asked: &Revisions) {
        *lock(&self.mark) = Mark::last(rows);
        let mut keys = self.write();
        let mut known = std::mem::take(&mut *keys);
        let read = rows.iter().filter_map(|row| {
            let known = known.get(&row.id);
            let key = KnownKey::of(row, self.usual_rate, known)?;
            let revoked_at_ms = key.revoked_at_ms.or(known.and_then(|known| known.revoked_at_ms));
            Some((row.id, KnownKey { revoked_at_ms, ..key }))
        });
        *keys = read.collect();
        // What this process changed meanwhile is no less there for that.
        known.retain(|id, key| asked.get(id).is_none_or(|asked| *asked < key.revision));
        for (id, key) in known {
            if keys.get(&id).is_none_or(|read| read.revision < key.revision) {
                keys.insert(id, key);
            }
        }
    }

    /// Takes over what was changed since the mark, and the mark itself, which is the first to be read. False where that is not
    /// there any more, or something later that was known when it was asked for: it was deleted, or the database is of an earlier
    /// time, and all is to be read anew.
    fn follow(&self, rows: &[KeyRow], asked: &Revisions) -> bool {
        let mut mark = lock(&self.mark);
        if mark.as_ref().is_some_and(|mark| !rows.iter().any(|row| Mark::of(row) == *mark)) {
            return false;
        }
        let read = mark.as_ref().map_or(0, |mark| mark.revision);
        let is_there = |id: &KeyId| rows.iter().any(|row| row.id == *id);
        if asked.iter().any(|(id, revision)| *revision > read && !is_there(id)) {
            return false;
        }
        self.keep(rows);
        *mark = Mark::last(rows).or_else(|| mark.take());
        true
    }

    /// Refuses a key from now on, whatever is stored of it. Whether it is known.
    pub(super) fn refuse(&self, id: KeyId, now_ms: i64) -> bool {
        let mut keys = self.write();
        let Some(known) = keys.get_mut(&id) else { return false };
        known.revoked_at_ms.get_or_insert(now_ms);
        true
    }

    /// When a key was last used in this process.
    pub(super) fn last_used_ms(&self, id: KeyId) -> Option<i64> {
        let keys = self.read();
        keys.get(&id).map(|key| key.usage.last_ms.load(Ordering::Relaxed)).filter(|last| *last > 0)
    }

    /// The uses that the store does not have yet.
    fn unstored(&self) -> Vec<KeyTouch> {
        let keys = self.read();
        let touch = |(id, key): (&KeyId, &KnownKey)| {
            let last_used_ms = key.usage.last_ms.load(Ordering::Relaxed);
            let is_new = last_used_ms > key.usage.stored_ms.load(Ordering::Relaxed);
            is_new.then_some(KeyTouch { id: *id, last_used_ms })
        };
        keys.iter().filter_map(touch).collect()
    }

    fn stored(&self, touches: &[KeyTouch]) {
        let keys = self.read();
        for touch in touches {
            if let Some(key) = keys.get(&touch.id) {
                key.usage.stored_ms.fetch_max(touch.last_used_ms, Ordering::Relaxed);
            }
        }
    }

    /// Forgets keys that ended before then.
    fn forget_ended(&self, before_ms: i64) {
        let is_left = |end: Option<i64>| end.is_none_or(|end| end >= before_ms);
        self.write().retain(|_, key| is_left(key.expires_at_ms) && is_left(key.revoked_at_ms));
    }
}

impl Toolrack {
    /// Who holds a key, of which `digest` is the digest. Nothing when other processes may have changed keys since they were
    /// read: then [`Self::identify_anew`] is to be asked.
    pub fn identify(&self, key: &[u8], digest: &KeyDigest) -> Option<Result<Principal, KeyRefusal>> {
        let ring = &self.0.keys;
        // What has not the form of a key is none, whatever was changed.
        (key_id(key).is_none() || !ring.is_stale()).then(|| ring.identify(key, digest, now_ms()))
    }

    /// As [`Self::identify`], after a look at the store.
    ///
    /// # Errors
    /// The database does not answer: nobody is let in on what was known before.
    pub async fn identify_anew(
        &self,
        key: &[u8],
        digest: &KeyDigest,
    ) -> Result<Result<Principal, KeyRefusal>, Error> {
        self.refresh_keys().await?;
        Ok(self.0.keys.identify(key, digest, now_ms()))
    }

    /// Who holds the key that a browser was signed in with, after a look at the store.
    ///
    /// # Errors
    /// As [`Self::identify_anew`].
    pub async fn identify_again(
        &self,
        id: KeyId,
        digest: &KeyDigest,
    ) -> Result<Result<Principal, KeyRefusal>, Error> {
        if self.0.keys.is_stale() {
            self.refresh_keys().await?;
        }
        Ok(self.0.keys.accept(id, digest, now_ms()))
    }

    /// Whether some stored key is an admin's.
    pub async fn has_admin_key(&self) -> Result<bool, Error> {
        self.refresh_keys().await?;
        Ok(self.0.keys.has_admin(now_ms()))
    }

    pub(in crate::service) async fn refresh_keys(&self) -> Result<(), Error> {
        let ring = &self.0.keys;
        let asked = uptime_ms() + 1;
        let _one_at_a_time = ring.reading.lock().await;
        if ring.checked.load(Ordering::Relaxed) > asked {
            return Ok(());
        }
        // Those that wait behind one that failed have waited long enough.
        if self.0.away.has_failed_since(asked) {
            self.check_database()?;
        }
        let begun = uptime_ms() + 1;
        let before = lock(&ring.mark).as_ref().map_or(0, |mark| mark.revision - 1);
        let asked = ring.revisions();
        let read = async { Ok(self.0.store.key_changes(before).await?) };
        let rows = self.read_or_remember(None, read).await?;
        if !ring.follow(&rows, &asked) {
            let asked = ring.revisions();
            ring.replace(&self.0.store.key_changes(0).await?, &asked);
        }
        ring.checked.fetch_max(begun, Ordering::Relaxed);
        Ok(())
    }

    /// Reads all keys anew: others may have changed them unheard, or the database has lost what was read of it.
    pub(in crate::service) async fn reread_keys(&self) -> Result<(), Error> {
        let ring = &self.0.keys;
        let _one_at_a_time = ring.reading.lock().await;
        let begun = uptime_ms() + 1;
        let asked = ring.revisions();
        ring.replace(&self.0.store.key_changes(0).await?, &asked);
        ring.checked.fetch_max(begun, Ordering::Relaxed);
        Ok(())
    }

    /// Writes when keys were used. What could not be written stays.
    pub(in crate::service) async fn flush_keys(&self) -> Result<(), Error> {
        let touches = self.0.keys.unstored();
        self.0.store.touch_keys(touches.clone()).await?;
        self.0.keys.stored(&touches);
        Ok(())
    }

    /// Deletes keys that ended a while ago.
    pub(in crate::service) async fn expire_keys(&self) -> Result<(), Error> {
        let before = now_ms() - KEPT_MS;
        while self.0.store.expire_keys(before, EXPIRED_AT_ONCE).await? == u64::from(EXPIRED_AT_ONCE) {}
        self.0.keys.forget_ended(before);
        Ok(())
    }
}

/// How long a key is listed after it expired or was revoked: 30 days.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
const EXPIRED_AT_ONCE: u32 = 500;

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::core::keys::format_key;

    fn row(id: u8, revision: i64) -> (KeyRow, String) {
        let key = format_key(KeyId::new([id; 8]), &[id; 32]).expose_secret().to_owned();
        let row = KeyRow {
            id: KeyId::new([id; 8]),
            name: String::new(),
            digest: KeyDigest::of(key.as_bytes()),
            role: "agent".to_owned(),
            bindings: serde_json::to_string(&Bindings::default()).unwrap(),
            created_at_ms: 0,
            expires_at_ms: None,
            revoked_at_ms: None,
            last_used_ms: None,
            predecessor: None,
            successor: None,
            revision,
        };
        (row, key)
    }

    fn ask(ring: &KeyRing, key: &str, now: i64) -> Result<Role, KeyRefusal> {
        ring.identify(key.as_bytes(), &KeyDigest::of(key.as_bytes()), now).map(|principal| principal.role())
    }

    #[test]
    fn what_the_database_lost_is_lost_here_and_what_was_refused_stays_so() {
        let ring = KeyRing::default();
        let ((kept, kept_key), (lost, lost_key), (revoked, revoked_key)) = (row(1, 1), row(2, 9), row(3, 2));
        ring.keep([&kept, &lost, &KeyRow { revoked_at_ms: Some(1), revision: 8, ..revoked.clone() }]);
        let replace = |rows: &[KeyRow]| ring.replace(rows, &ring.revisions());
        let follow = |rows: &[KeyRow]| ring.follow(rows, &ring.revisions());
        replace(&[kept.clone(), revoked]);
        assert_eq!(ask(&ring, &kept_key, 5), Ok(Role::Agent));
        assert_eq!(ask(&ring, &lost_key, 5), Err(KeyRefusal::Unknown));
        assert_eq!(ask(&ring, &revoked_key, 5), Err(KeyRefusal::Revoked));
        // The next change is seen, and so is that the last one is gone, or another one has its number.
        assert!(follow(&[row(3, 2).0, row(4, 3).0]));
        assert!(!follow(&[row(5, 4).0]));
        assert!(!follow(&[row(6, 3).0]) && !follow(&[]));
        assert_eq!(ask(&ring, &row(5, 4).1, 5), Err(KeyRefusal::Unknown), "all is read anew");
        replace(std::slice::from_ref(&kept));
        assert!(!follow(&[]), "no key is left");
        replace(&[]);
        assert!(follow(&[row(7, 1).0]));
        // What this process changed is after the mark: it is there when it was known before the look, or lost.
        let asked = ring.revisions();
        ring.keep([&row(8, 2).0]);
        assert!(ring.follow(&[row(7, 1).0], &asked), "it was made during the look");
        assert!(!follow(&[row(7, 1).0, row(9, 2).0]), "it was lost");
        ring.replace(&[row(7, 1).0], &asked);
        assert_eq!(ask(&ring, &row(8, 2).1, 5), Ok(Role::Agent), "it was made during the look");
        replace(&[row(7, 1).0]);
        assert_eq!(ask(&ring, &row(8, 2).1, 5), Err(KeyRefusal::Unknown));
    }

    #[test]
    fn a_key_holds_until_it_ends() {
        let ring = KeyRing::default();
        let (first, key) = row(1, 1);
        let (_, unknown) = row(2, 1);
        ring.keep([&KeyRow { expires_at_ms: Some(500), ..first.clone() }]);
        assert_eq!(ask(&ring, &key, 499), Ok(Role::Agent));
        assert_eq!(ask(&ring, &key, 500), Err(KeyRefusal::Expired));
        assert_eq!(ask(&ring, &unknown, 1), Err(KeyRefusal::Unknown));
        assert_eq!(ask(&ring, &key[..93], 1), Err(KeyRefusal::Misspelt));
        // The right id with another secret tells nothing, not even that the key has expired.
        let forged = format_key(first.id, &[9; 32]);
        assert_eq!(ask(&ring, forged.expose_secret(), 500), Err(KeyRefusal::Unknown));
        ring.keep([&KeyRow { revoked_at_ms: Some(1), revision: 3, ..first.clone() }]);
        assert_eq!(ask(&ring, &key, 1), Err(KeyRefusal::Revoked));
        // A read that began before the revocation comes late.
        ring.keep([&KeyRow { revision: 2, ..first }]);
        assert_eq!(ask(&ring, &key, 1), Err(KeyRefusal::Revoked));
    }

    #[test]
    fn what_ended_long_ago_is_forgotten() {
        let ring = KeyRing::default();
        let ended = [(1, Some(5), None), (2, None, Some(5)), (3, Some(50), Some(40)), (4, None, None)];
        let rows = ended.map(|(id, expires_at_ms, revoked_at_ms)| KeyRow {
            expires_at_ms,
            revoked_at_ms,
            ..row(id, 1).0
        });
        ring.keep(&rows);
        ring.forget_ended(10);
        let mut left: Vec<KeyId> = ring.read().keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [KeyId::new([3; 8]), KeyId::new([4; 8])]);
    }

    #[test]
    fn what_cannot_be_read_is_not_accepted() {
        for (role, bindings) in [("owner", None), ("agent", Some("{}")), ("agent", Some("nonsense"))] {
            let ring = KeyRing::default();
            let (good, key) = row(1, 1);
            ring.keep([&good]);
            let bindings = bindings.map_or(good.bindings.clone(), str::to_owned);
            ring.keep([&KeyRow { role: role.to_owned(), bindings, revision: 2, ..good }]);
            assert_eq!(ask(&ring, &key, 1), Err(KeyRefusal::Unknown));
        }
    }

    #[test]
    fn uses_are_flushed_once_and_outlive_a_change() {
        let ring = KeyRing::default();
        let (first, key) = row(1, 1);
        ring.keep([&first]);
        assert!(ring.unstored().is_empty() && ring.last_used_ms(first.id).is_none());
        ask(&ring, &key, 5_000).unwrap();
        ask(&ring, &key, 5_500).unwrap();
        let touches = ring.unstored();
        assert_eq!((touches.len(), touches[0].last_used_ms), (1, 5_000));
        ring.keep([&KeyRow { revision: 2, ..first.clone() }]);
        assert_eq!(ring.last_used_ms(first.id), Some(5_000));
        ring.stored(&touches);
        assert!(ring.unstored().is_empty());
        ask(&ring, &key, 6_000).unwrap();
        assert_eq!(ring.unstored().len(), 1);
    }
}
