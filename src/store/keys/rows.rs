//! [`KeyStore`] in the tables: the reads, and the writes as operations of the writer.

use async_trait::async_trait;

use super::{KeyChange, KeyRotation, KeyRow, KeyStore, KeyTouch, sql};
use crate::core::keys::{KeyDigest, KeyId};
use crate::store::audit::note;
use crate::store::changes::KEYS;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::writes::execute_rows;
use crate::store::{AuditWrite, SqlStore, StoreError};

type Columns = (
    String,
    String,
    String,
    String,
    String,
    i64,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<String>,
    i64,
);

type Query<'q, E> = sqlx::query::QueryAs<'q, E, Columns, <E as sqlx::Database>::Arguments>;

fn row(columns: Columns) -> Result<KeyRow, StoreError> {
    let corrupt = StoreError::Corrupt("key");
    let (id, name, digest, role, bindings, created, expires, revoked, used, predecessor, successor, revision) =
        columns;
    let id_of = |text: Option<String>| text.and_then(|text| text.parse().ok());
    Ok(KeyRow {
        id: id.parse().map_err(|_| corrupt.clone())?,
        name,
        digest: KeyDigest::from_hex(&digest).ok_or(corrupt)?,
        role,
        bindings,
        created_at_ms: created,
        expires_at_ms: expires,
        revoked_at_ms: revoked,
        last_used_ms: used,
        predecessor: id_of(predecessor),
        successor: id_of(successor),
        revision,
    })
}

/// The rows that can be read.
fn readable(rows: Vec<Columns>) -> Vec<KeyRow> {
    let read = rows.into_iter().map(row);
    read.filter_map(|row| row.inspect_err(|error| tracing::error!(%error, "a key is left out")).ok())
        .collect()
}

#[async_trait]
impl<E: Engine> KeyStore for SqlStore<E> {
    async fn key_changes(&self, after_revision: i64) -> Result<Vec<KeyRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query: Query<'_, E> = sqlx::query_as(sql::CHANGES).bind(after_revision);
            Ok(query.fetch_all(&mut *reader).await?)
        });
        Ok(readable(read.await?))
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query: Query<'_, E> = sqlx::query_as(sql::KEY).bind(id.to_string());
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        read.await?.map(row).transpose()
    }

    async fn list_keys(&self, after: Option<(i64, KeyId)>, limit: u32) -> Result<Vec<KeyRow>, StoreError> {
        let (created, id) =
            after.map_or((i64::MIN, String::new()), |(created, id)| (created, id.to_string()));
        let id = id.as_str();
        let read = self.read(|mut reader| async move {
            let query: Query<'_, E> = sqlx::query_as(sql::LIST).bind(created).bind(id);
            Ok(query.bind(i64::from(limit)).fetch_all(&mut *reader).await?)
        });
        Ok(readable(read.await?))
    }

    async fn insert_key(
        &self,
        row: KeyRow,
        only_first: bool,
        audit: Option<AuditWrite>,
    ) -> Result<Option<KeyRow>, StoreError> {
        self.writer.submit(InsertKey { row, only_first, audit }).await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<Option<KeyRow>, StoreError> {
        self.writer.submit(ChangeKey { id, change }).await
    }

    async fn rotate_key(&self, rotation: KeyRotation) -> Result<Option<(KeyRow, KeyRow)>, StoreError> {
        self.writer.submit(RotateKey(rotation)).await
    }

    async fn touch_keys(&self, touches: Vec<KeyTouch>) -> Result<(), StoreError> {
        if touches.is_empty() {
            return Ok(());
        }
        self.writer.submit(TouchKeys(touches)).await
    }

    async fn expire_keys(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(ExpireKeys { before_ms, limit }).await
    }
}

/// What all writes of keys exclude each other by.
const ALL: &str = "keys";

/// The revision of a change, of which the other processes are told.
async fn next_revision<E: Engine>(connection: &mut E::Connection) -> Result<i64, StoreError> {
    let (revision,): (i64,) = sqlx::query_as(sql::NEXT_REVISION).fetch_one(&mut *connection).await?;
    E::tell(connection, KEYS).await?;
    Ok(revision)
}

async fn insert<E: Engine>(connection: &mut E::Connection, new: &KeyRow) -> Result<KeyRow, StoreError> {
    let revision = next_revision::<E>(connection).await?;
    let query: Query<'_, E> = sqlx::query_as(sql::INSERT)
        .bind(new.id.to_string())
        .bind(new.name.as_str())
        .bind(new.digest.to_hex())
        .bind(new.role.as_str())
        .bind(new.bindings.as_str())
        .bind(new.created_at_ms)
        .bind(new.expires_at_ms)
        .bind(new.predecessor.map(|id| id.to_string()))
        .bind(revision);
    row(query.fetch_one(connection).await?)
}

async fn note_if<E: Engine>(
    connection: &mut E::Connection,
    audit: Option<&AuditWrite>,
) -> Result<(), StoreError> {
    match audit {
        Some(audit) => note::<E>(connection, audit, None, None).await,
        None => Ok(()),
    }
}

struct InsertKey {
    row: KeyRow,
    only_first: bool,
    audit: Option<AuditWrite>,
}

impl<E: Engine> Operation<E> for InsertKey {
    type Output = Option<KeyRow>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Option<KeyRow>, StoreError> {
        E::exclude(connection, ALL).await?;
        if self.only_first {
            let known: Option<(String,)> = sqlx::query_as(sql::ANY).fetch_optional(&mut *connection).await?;
            if known.is_some() {
                return Ok(None);
            }
        }
        let row = insert::<E>(connection, &self.row).await?;
        note_if::<E>(connection, self.audit.as_ref()).await?;
        Ok(Some(row))
    }
}

struct ChangeKey {
    id: KeyId,
    change: KeyChange,
}

impl<E: Engine> Operation<E> for ChangeKey {
    type Output = Option<KeyRow>;

    /// Also where it gives: an administrator looks for what is wrong.
    fn takes_away(&self) -> bool {
        true
    }

    async fn apply(&self, connection: &mut E::Connection) -> Result<Option<KeyRow>, StoreError> {
        E::exclude(connection, ALL).await?;
        let Self { id, change } = self;
        let query: Query<'_, E> = sqlx::query_as(sql::KEY).bind(id.to_string());
        let Some(before) = query.fetch_optional(&mut *connection).await?.map(row).transpose()? else {
            return Ok(None);
        };
        let changes = change.name.is_some()
            || change.expires_at_ms.is_some()
            || change.bindings.is_some()
            || (change.revoked_at_ms.is_some() && before.revoked_at_ms.is_none());
        if !changes {
            return Ok(Some(before));
        }
        let revision = next_revision::<E>(connection).await?;
        let query: Query<'_, E> = sqlx::query_as(sql::CHANGE)
            .bind(id.to_string())
            .bind(change.name.as_deref())
            .bind(i64::from(change.expires_at_ms.is_some()))
            .bind(change.expires_at_ms.flatten())
            .bind(change.revoked_at_ms)
            .bind(revision)
            .bind(change.bindings.as_deref());
        let changed = query.fetch_optional(&mut *connection).await?.map(row).transpose()?;
        note_if::<E>(connection, change.audit.as_ref()).await?;
        Ok(changed)
    }
}

struct RotateKey(KeyRotation);

impl<E: Engine> Operation<E> for RotateKey {
    type Output = Option<(KeyRow, KeyRow)>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Self::Output, StoreError> {
        E::exclude(connection, ALL).await?;
        let Self(KeyRotation { old, old_expires_at_ms, now_ms, new, audit }) = self;
        let query: Query<'_, E> = sqlx::query_as(sql::KEY).bind(old.to_string());
        let Some(stored) = query.fetch_optional(&mut *connection).await?.map(row).transpose()? else {
            return Ok(None);
        };
        let has_expired = stored.expires_at_ms.is_some_and(|expires| expires <= *now_ms);
        if has_expired || stored.revoked_at_ms.is_some() || stored.successor.is_some() {
            return Err(StoreError::Conflict);
        }
        let revision = next_revision::<E>(connection).await?;
        let query: Query<'_, E> = sqlx::query_as(sql::SUCCEED)
            .bind(old.to_string())
            .bind(old_expires_at_ms)
            .bind(new.id.to_string())
            .bind(revision);
        let stored = row(query.fetch_one(&mut *connection).await?)?;
        let new = insert::<E>(connection, &KeyRow { predecessor: Some(*old), ..new.clone() }).await?;
        note_if::<E>(connection, audit.as_ref()).await?;
        Ok(Some((stored, new)))
    }
}

struct TouchKeys(Vec<KeyTouch>);

impl<E: Engine> Operation<E> for TouchKeys {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL).await?;
        execute_rows::<E, _>(connection, &sql::TOUCH, &[], &self.0, |statement, touch| {
            statement.bind(touch.id.to_string()).bind(touch.last_used_ms)
        })
        .await
    }
}

struct ExpireKeys {
    before_ms: i64,
    limit: u32,
}

impl<E: Engine> Operation<E> for ExpireKeys {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        E::exclude(connection, ALL).await?;
        let expire = sqlx::query(sql::EXPIRE).bind(self.before_ms).bind(i64::from(self.limit));
        Ok(E::rows_affected(&expire.execute(connection).await?))
    }
}
