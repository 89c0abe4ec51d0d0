//! The writes of [`super::Store`] as operations of the writer: each is one transaction in effect.

use std::sync::Arc;

use sqlx::Database;
use sqlx::query::Query;

use crate::core::digest::Digest;
use crate::core::id::{Id, Scope};
use crate::core::tool::ToolKey;

use super::audit::note;
use super::changes::told_of;
use super::engine::Engine;
use super::reviews;
use super::setup::note_version;
use super::sql::{self, RowsSql};
use super::sql_store::{inline_owner, read_scope};
use super::usage::forget_missed_queries;
use super::writer::Operation;
use super::{
    Beginner, CatalogWrite, ConfigWrite, InlineKey, InlineTouch, InlineWrite, ListingBaseTouch, Reseal,
    ScopeRow, SecretAction, SecretChange, StoreError, ToolRow, VectorRow, VectorSpace,
};

// What changes many rows at once keeps others of its kind out: each might wait for a row that another one has.
const ALL_INLINE: &str = "inline";
const ALL_LISTING_BASES: &str = "listing_bases";

pub(super) type Statement<'q, E> = Query<'q, E, <E as Database>::Arguments>;

/// Runs a many-row statement over all rows, in as few executions as its sizes allow.
pub(super) async fn execute_rows<E: Engine, T: Sync>(
    connection: &mut E::Connection,
    rows_sql: &'static RowsSql,
    fixed: &[&str],
    rows: &[T],
    bind: impl for<'q> Fn(Statement<'q, E>, &T) -> Statement<'q, E> + Send,
) -> Result<(), StoreError> {
    let mut rest = rows;
    while let Some((text, size)) = rows_sql.next(rest.len()) {
        let (now, later) = rest.split_at(size);
        let mut statement = sqlx::query(text);
        for &value in fixed {
            statement = statement.bind(value);
        }
        for row in now {
            statement = bind(statement, row);
        }
        statement.execute(&mut *connection).await?;
        rest = later;
    }
    Ok(())
}

pub(super) fn bind_tool_key<'q, E: Engine>(statement: Statement<'q, E>, tool: &ToolKey) -> Statement<'q, E> {
    statement.bind(&*tool.group).bind(&*tool.name)
}

/// Stores tools of an owner that `by` uploaded.
async fn put_tools<E: Engine>(
    connection: &mut E::Connection,
    [kind, id]: [&str; 2],
    by: &str,
    now_ms: i64,
    tools: &[ToolRow],
) -> Result<(), StoreError> {
    execute_rows::<E, _>(connection, &sql::TOOLS_PUT, &[kind, id, by], tools, move |statement, tool| {
        [tool.group.as_str(), &tool.name, &tool.body, &tool.digest, &tool.tokens]
            .into_iter()
            .fold(statement, Statement::bind)
            .bind(now_ms)
            .bind(now_ms)
    })
    .await
}

/// What a compare-and-set looks at.
#[derive(Default)]
pub(super) struct ScopeState {
    /// Whether anything was ever written.
    begun: bool,
    written: bool,
    pub(super) raw_revision: i64,
    catalog_version: String,
}

/// Keeps other writes of the scope out until the end of the transaction.
pub(super) async fn scope_state<E: Engine>(
    connection: &mut E::Connection,
    scope: &Scope,
) -> Result<ScopeState, StoreError> {
    E::exclude(connection, &format!("scope/{}/{}", scope.kind(), scope.id())).await?;
    let row: Option<(i64, i64, String)> = sqlx::query_as(sql::SCOPE_STATE)
        .bind(scope.kind())
        .bind(scope.id().as_str())
        .fetch_optional(connection)
        .await?;
    Ok(row.map_or_else(ScopeState::default, |(written, raw_revision, catalog_version)| ScopeState {
        begun: true,
        written: written != 0,
        raw_revision,
        catalog_version,
    }))
}

/// Counts a scope that begins with this write.
pub(super) async fn begin<E: Engine>(
    connection: &mut E::Connection,
    state: &ScopeState,
    beginner: Option<Beginner>,
) -> Result<(), StoreError> {
    let Some(Beginner { key, most }) = beginner.filter(|_| !state.begun) else { return Ok(()) };
    let begun = sqlx::query(sql::SCOPE_BEGUN).bind(format!("scopes/{key}")).bind(i64::from(most));
    let counted = begun.fetch_optional(connection).await?;
    counted.map(|_| ()).ok_or(StoreError::TooMany)
}

pub(super) struct WriteConfig {
    pub(super) scope: Scope,
    pub(super) write: ConfigWrite,
}

impl<E: Engine> Operation<E> for WriteConfig {
    type Output = ScopeRow;

    fn takes_away(&self) -> bool {
        self.write.config.is_none()
    }

    async fn apply(&self, connection: &mut E::Connection) -> Result<ScopeRow, StoreError> {
        let Self { scope, write } = self;
        let (kind, id) = (scope.kind(), scope.id().as_str());
        let state = scope_state::<E>(connection, scope).await?;
        if write.expected_raw_revision.is_some_and(|expected| expected != state.raw_revision) {
            return Err(StoreError::Conflict);
        }
        match &write.config {
            Some(config) => {
                begin::<E>(connection, &state, write.notes.beginner).await?;
                let put =
                    sqlx::query(sql::CONFIG_PUT).bind(kind).bind(id).bind(config.as_str()).bind(write.now_ms);
                put.execute(&mut *connection).await?;
                for change in &write.secrets {
                    change_secret::<E>(connection, [kind, id], change).await?;
                }
                let actor = write.notes.audit.as_ref().map_or("", |audit| &audit.entry.actor);
                note_version::<E>(connection, [kind, id], write.now_ms, actor).await?;
            }
            None if state.written => {
                let delete = sqlx::query(sql::CONFIG_DELETE).bind(kind).bind(id).bind(write.now_ms);
                delete.execute(&mut *connection).await?;
                sqlx::query(sql::SECRETS_DELETE).bind(kind).bind(id).execute(&mut *connection).await?;
            }
            None => return read_scope(connection, scope).await,
        }
        if write.forget_missed_queries {
            forget_missed_queries::<E>(connection, scope).await?;
        }
        let row = read_scope(&mut *connection, scope).await?;
        E::tell(connection, &told_of(scope)).await?;
        if let Some(audit) = &write.notes.audit {
            let before = if state.written { state.raw_revision } else { 0 };
            note::<E>(connection, audit, Some(before.to_string()), Some(row.config_revision.to_string()))
                .await?;
        }
        Ok(row)
    }
}

pub(super) struct RenewScope(pub(super) Scope);

impl<E: Engine> Operation<E> for RenewScope {
    type Output = ScopeRow;

    async fn apply(&self, connection: &mut E::Connection) -> Result<ScopeRow, StoreError> {
        let renew = sqlx::query(sql::SCOPE_RENEW).bind(self.0.kind()).bind(self.0.id().as_str());
        let renewed = renew.execute(&mut *connection).await?;
        let row = read_scope(&mut *connection, &self.0).await?;
        if E::rows_affected(&renewed) > 0 {
            E::tell(connection, &told_of(&self.0)).await?;
        }
        Ok(row)
    }
}

/// Stores or clears one secret of a scope.
pub(super) async fn change_secret<E: Engine>(
    connection: &mut E::Connection,
    [kind, id]: [&str; 2],
    change: &SecretChange,
) -> Result<(), StoreError> {
    let statement = match &change.action {
        SecretAction::Set(sealed) => sqlx::query(sql::SECRET_PUT)
            .bind(kind)
            .bind(id)
            .bind(change.name.as_str())
            .bind(sealed.origin.as_str())
            .bind(sealed.last4.as_deref())
            .bind(hex::encode(&sealed.bytes)),
        SecretAction::Clear => sqlx::query(sql::SECRET_DELETE).bind(kind).bind(id).bind(change.name.as_str()),
    };
    statement.execute(connection).await?;
    Ok(())
}

pub(super) struct WriteCatalog {
    pub(super) scope: Scope,
    pub(super) write: CatalogWrite,
}

impl WriteCatalog {
    /// Refuses a write that was made for another version.
    pub(super) async fn check<E: Engine>(
        &self,
        connection: &mut E::Connection,
    ) -> Result<ScopeState, StoreError> {
        let state = scope_state::<E>(connection, &self.scope).await?;
        if state.catalog_version != self.write.expected_version {
            return Err(StoreError::Conflict);
        }
        reviews::check::<E>(connection, &self.scope, &self.write.reviews).await?;
        Ok(state)
    }
}

impl<E: Engine> Operation<E> for WriteCatalog {
    type Output = ();

    fn takes_away(&self) -> bool {
        self.write.upsert.is_empty()
    }

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let Self { scope, write } = self;
        let owner = [scope.kind(), scope.id().as_str()];
        let state = self.check::<E>(connection).await?;
        begin::<E>(connection, &state, write.notes.beginner).await?;
        reviews::write::<E>(connection, scope, &write.reviews, &write.by, write.now_ms).await?;
        let empties = write.new_version.is_empty();
        sqlx::query(sql::CATALOG_VERSION_PUT)
            .bind(owner[0])
            .bind(owner[1])
            .bind(write.new_version.as_str())
            .bind(write.now_ms)
            .execute(&mut *connection)
            .await?;
        if empties {
            delete_tools::<E>(connection, owner).await?;
        } else {
            execute_rows::<E, _>(connection, &sql::TOOLS_REMOVE, &owner, &write.remove, bind_tool_key)
                .await?;
            put_tools::<E>(connection, owner, &write.by, write.now_ms, &write.upsert).await?;
        }
        E::tell(connection, &told_of(scope)).await?;
        // Last, because other entries wait for this one.
        match &write.notes.audit {
            Some(audit) => note::<E>(connection, audit, None, None).await,
            None => Ok(()),
        }
    }
}

async fn delete_tools<E: Engine>(connection: &mut E::Connection, owner: [&str; 2]) -> Result<(), StoreError> {
    sqlx::query(sql::TOOLS_DELETE).bind(owner[0]).bind(owner[1]).execute(connection).await?;
    Ok(())
}

pub(super) struct WriteInline(pub(super) InlineWrite);

impl<E: Engine> Operation<E> for WriteInline {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let Self(InlineWrite { key, version, tools, now_ms }) = self;
        let owner_id = inline_owner(key);
        E::exclude(connection, &format!("inline/{owner_id}")).await?;
        let stored: Option<(String,)> = sqlx::query_as(sql::INLINE_VERSION)
            .bind(key.user.as_str())
            .bind(key.reference.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        if stored.is_some() {
            let touch = InlineTouch { key: key.clone(), last_used_ms: *now_ms };
            return Operation::<E>::apply(&TouchInline(vec![touch]), connection).await;
        }
        sqlx::query(sql::INLINE_PUT)
            .bind(key.user.as_str())
            .bind(key.reference.as_str())
            .bind(version.as_str())
            .bind(now_ms)
            .execute(&mut *connection)
            .await?;
        // What an agent carries has no history.
        put_tools::<E>(connection, ["inline", &owner_id], "", *now_ms, tools).await
    }
}

pub(super) struct TouchInline(pub(super) Vec<InlineTouch>);

impl<E: Engine> Operation<E> for TouchInline {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL_INLINE).await?;
        execute_rows::<E, _>(connection, &sql::INLINE_TOUCH, &[], &self.0, |statement, touch| {
            statement
                .bind(touch.key.user.as_str())
                .bind(touch.key.reference.as_str())
                .bind(touch.last_used_ms)
        })
        .await
    }
}

pub(super) struct ExpireInline {
    pub(super) before_ms: i64,
    pub(super) limit: u32,
}

impl<E: Engine> Operation<E> for ExpireInline {
    type Output = Vec<InlineKey>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Vec<InlineKey>, StoreError> {
        E::exclude(connection, ALL_INLINE).await?;
        let rows: Vec<(String, String)> = sqlx::query_as(sql::INLINE_EXPIRE)
            .bind(self.before_ms)
            .bind(i64::from(self.limit))
            .fetch_all(&mut *connection)
            .await?;
        let mut expired = Vec::with_capacity(rows.len());
        for (user, reference) in rows {
            let key = InlineKey { user: stored_id(&user)?, reference };
            delete_tools::<E>(connection, ["inline", &inline_owner(&key)]).await?;
            expired.push(key);
        }
        Ok(expired)
    }
}

pub(super) struct WriteVectors {
    pub(super) space: VectorSpace,
    pub(super) rows: Vec<VectorRow>,
    /// Of this owner afterwards.
    pub(super) most: u32,
}

impl<E: Engine> Operation<E> for WriteVectors {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let space = space_columns(&self.space);
        E::exclude(connection, &format!("vectors/{}/{}", space[0], space[1])).await?;
        let fixed = space.each_ref().map(String::as_str);
        execute_rows::<E, _>(connection, &sql::VECTORS_PUT, &fixed, &self.rows, |statement, row| {
            statement.bind(row.text.to_string()).bind(row.vector.clone()).bind(row.used_at_ms)
        })
        .await?;
        let [kind, id, _] = space;
        let trim = sqlx::query(sql::VECTORS_TRIM).bind(kind).bind(id).bind(i64::from(self.most));
        trim.execute(&mut *connection).await?;
        Ok(())
    }
}

pub(super) struct DropVectors(pub(super) VectorSpace);

impl<E: Engine> Operation<E> for DropVectors {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let [kind, id, space] = space_columns(&self.0);
        sqlx::query(sql::VECTORS_DROP).bind(kind).bind(id).bind(space).execute(&mut *connection).await?;
        Ok(())
    }
}

pub(super) struct TouchVectors {
    pub(super) space: VectorSpace,
    pub(super) texts: Vec<Digest>,
    pub(super) now_ms: i64,
}

impl<E: Engine> Operation<E> for TouchVectors {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let [kind, id, space] = space_columns(&self.space);
        E::exclude(connection, &format!("vectors/{kind}/{id}")).await?;
        let now = self.now_ms.to_string();
        let fixed = [kind.as_str(), &id, &space, &now];
        execute_rows::<E, _>(connection, &sql::VECTORS_TOUCH, &fixed, &self.texts, |statement, text| {
            statement.bind(text.to_string())
        })
        .await
    }
}

pub(super) struct ExpireVectors {
    pub(super) before_ms: i64,
    pub(super) limit: u32,
}

impl<E: Engine> Operation<E> for ExpireVectors {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        let expire = sqlx::query(sql::VECTORS_EXPIRE).bind(self.before_ms).bind(i64::from(self.limit));
        Ok(E::rows_affected(&expire.execute(&mut *connection).await?))
    }
}

/// Kind and id of the owner, and the space.
pub(super) fn space_columns(space: &VectorSpace) -> [String; 3] {
    let owner = &space.owner;
    [owner.kind().to_owned(), owner.id().as_str().to_owned(), space.space.to_string()]
}

pub(super) struct WriteListingBase {
    pub(super) digest: Digest,
    pub(super) body: Arc<str>,
    pub(super) now_ms: i64,
}

impl<E: Engine> Operation<E> for WriteListingBase {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let put = sqlx::query(sql::LISTING_BASE_PUT).bind(self.digest.to_string()).bind(&*self.body);
        put.bind(self.now_ms).execute(connection).await?;
        Ok(())
    }
}

pub(super) struct TouchListingBases(pub(super) Vec<ListingBaseTouch>);

impl<E: Engine> Operation<E> for TouchListingBases {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL_LISTING_BASES).await?;
        execute_rows::<E, _>(connection, &sql::LISTING_BASES_TOUCH, &[], &self.0, |statement, touch| {
            statement.bind(touch.digest.to_string()).bind(touch.last_used_ms)
        })
        .await
    }
}

pub(super) struct ExpireListingBases {
    pub(super) before_ms: i64,
    pub(super) limit: u32,
}

impl<E: Engine> Operation<E> for ExpireListingBases {
    type Output = Vec<Digest>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Vec<Digest>, StoreError> {
        E::exclude(connection, ALL_LISTING_BASES).await?;
        let expire =
            sqlx::query_as(sql::LISTING_BASES_EXPIRE).bind(self.before_ms).bind(i64::from(self.limit));
        let rows: Vec<(String,)> = expire.fetch_all(connection).await?;
        let read = |(digest,): (String,)| Digest::from_hex(&digest).ok_or(StoreError::Corrupt("digest"));
        rows.into_iter().map(read).collect()
    }
}

/// All of it, or nothing when one of the secrets is no longer what it was.
pub(super) struct ResealSecrets {
    pub(super) changes: Vec<Reseal>,
    pub(super) meta: (String, String),
}

impl<E: Engine> Operation<E> for ResealSecrets {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        for Reseal { place, sealed } in &self.changes {
            let reseal = sqlx::query(sql::SECRET_RESEAL)
                .bind(place.scope.kind())
                .bind(place.scope.id().as_str())
                .bind(place.name.as_str())
                .bind(hex::encode(&place.sealed))
                .bind(hex::encode(sealed));
            if E::rows_affected(&reseal.execute(&mut *connection).await?) == 0 {
                return Err(StoreError::Corrupt("secret, which changed meanwhile,"));
            }
        }
        // What is short-lived is not sealed anew: a key in a draft is entered again, and browsers sign in again.
        for drop in [sql::DRAFT_KEYS_DROP, sql::PAGE_SESSIONS_DROP] {
            sqlx::query(drop).execute(&mut *connection).await?;
        }
        let (key, value) = &self.meta;
        sqlx::query(sql::META_PUT).bind(key.as_str()).bind(value.as_str()).execute(connection).await?;
        Ok(())
    }
}

pub(super) struct InitMeta {
    pub(super) key: String,
    pub(super) value: String,
}

impl<E: Engine> Operation<E> for InitMeta {
    type Output = String;

    async fn apply(&self, connection: &mut E::Connection) -> Result<String, StoreError> {
        let insert = sqlx::query_as(sql::META_INIT).bind(self.key.as_str()).bind(self.value.as_str());
        let (stored,): (String,) = insert.fetch_one(connection).await?;
        Ok(stored)
    }
}

pub(super) fn stored_id(text: &str) -> Result<Id, StoreError> {
    Id::parse(text).map_err(|_| StoreError::Corrupt("identifier"))
}

pub(super) fn stored_scope(kind: &str, id: &str) -> Result<Scope, StoreError> {
    match kind {
        "user" => stored_id(id).map(Scope::User),
        "project" => stored_id(id).map(Scope::Project),
        _ => Err(StoreError::Corrupt("kind of scope")),
    }
}

pub(super) fn stored_project(text: &str) -> Result<Option<Id>, StoreError> {
    if text.is_empty() { Ok(None) } else { stored_id(text).map(Some) }
}
