//! The writes of [`super::Store`] as operations of the writer: each is one transaction in effect.

use std::sync::Arc;

use sqlx::Database;
use sqlx::query::{Query, QueryAs};

use crate::core::digest::Digest;
use crate::core::id::{Id, Scope, SessionKey};
use crate::core::tool::ToolKey;

use super::audit::note;
use super::changes::told_of;
use super::engine::Engine;
use super::reviews;
use super::setup::note_version;
use super::sql::{self, RowsSql};
use super::sql_store::{inline_owner, project_text, read_scope};
use super::usage::forget_missed_queries;
use super::writer::Operation;
use super::{
    AuditWrite, Beginner, CatalogWrite, ConfigWrite, ExpectedSession, InlineKey, InlineTouch, InlineWrite,
    ListingBaseTouch, Reseal, ScopeRow, SecretAction, SecretChange, SessionTouch, SessionWrite, StoreError,
    ToolRow, VectorRow, VectorSpace, WarmRow,
};

// What changes many rows at once keeps others of its kind out: each might wait for a row that another one has.
const ALL_INLINE: &str = "inline";
const ALL_LISTING_BASES: &str = "listing_bases";
const ALL_SESSIONS: &str = "sessions";

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

fn bind_warm<'q, E: Engine>(statement: Statement<'q, E>, row: &WarmRow) -> Statement<'q, E> {
    bind_tool_key(statement, &row.tool)
        .bind(row.first_seq)
        .bind(row.last_used_ms)
        .bind(i64::from(row.pinned))
        .bind(i64::from(row.pending))
}

/// What a compare-and-set looks at.
#[derive(Default)]
pub(super) struct ScopeState {
    /// Whether anything was ever written.
    begun: bool,
    written: bool,
    raw_revision: i64,
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

pub(super) struct WriteSession(pub(super) SessionWrite);

impl<E: Engine> Operation<E> for WriteSession {
    type Output = i64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<i64, StoreError> {
        let Self(write) = self;
        let session = session_columns(&write.key);
        if let Some(most) = write.most {
            E::exclude(connection, &format!("sessions/{}", session[0])).await?;
            let count = sqlx::query_as(sql::SESSIONS_COUNT).bind(session[0]).bind(i64::from(most));
            let (count,): (i64,) = count.fetch_one(&mut *connection).await?;
            let known = bind_session(sqlx::query(sql::SESSION_EXISTS), &write.key);
            if count >= i64::from(most) && known.fetch_optional(&mut *connection).await?.is_none() {
                return Err(StoreError::TooMany);
            }
        }
        let (statement, created_at_ms, revision) = match write.expected {
            ExpectedSession::Any => (sql::SESSION_PUT, write.created_at_ms, 1),
            ExpectedSession::Absent { revision } => (sql::SESSION_BEGIN, write.created_at_ms, revision),
            ExpectedSession::Row { created_at_ms, revision } => {
                (sql::SESSION_CHANGE, created_at_ms, revision)
            }
        };
        let put = session.into_iter().fold(sqlx::query_as(statement), QueryAs::bind);
        let written: Option<(i64,)> = put
            .bind(write.settings.as_deref())
            .bind(created_at_ms)
            .bind(write.now_ms)
            .bind(revision)
            .fetch_optional(&mut *connection)
            .await?;
        let (revision,) = written.ok_or(StoreError::Conflict)?;
        if write.clear {
            bind_session(sqlx::query(sql::WARM_CLEAR), &write.key).execute(&mut *connection).await?;
        }
        execute_rows::<E, _>(connection, &sql::WARM_REMOVE, &session, &write.remove, bind_tool_key).await?;
        execute_rows::<E, _>(connection, &sql::WARM_PUT, &session, &write.upsert, bind_warm).await?;
        if let Some(audit) = &write.audit {
            note::<E>(connection, audit, None, None).await?;
        }
        Ok(revision)
    }
}

pub(super) struct TouchSessions(pub(super) Vec<SessionTouch>);

impl<E: Engine> Operation<E> for TouchSessions {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL_SESSIONS).await?;
        execute_rows::<E, _>(connection, &sql::SESSIONS_TOUCH, &[], &self.0, |statement, touch| {
            let statement = bind_session(statement, &touch.key).bind(touch.last_seen_ms);
            touch.counts.columns().into_iter().fold(statement, Statement::bind)
        })
        .await?;
        let of_session = |session| move |warm| (session, warm);
        let warm: Vec<_> =
            self.0.iter().flat_map(|touch| touch.warm.iter().map(of_session(&touch.key))).collect();
        execute_rows::<E, _>(connection, &sql::WARM_TOUCH, &[], &warm, |statement, (key, touch)| {
            bind_tool_key(bind_session(statement, key), &touch.tool).bind(touch.last_used_ms)
        })
        .await
    }
}

pub(super) struct DeleteSession {
    pub(super) key: SessionKey,
    pub(super) audit: Option<AuditWrite>,
}

impl<E: Engine> Operation<E> for DeleteSession {
    type Output = bool;

    fn takes_away(&self) -> bool {
        true
    }

    async fn apply(&self, connection: &mut E::Connection) -> Result<bool, StoreError> {
        let delete = bind_session(sqlx::query(sql::SESSION_DELETE), &self.key);
        let existed = E::rows_affected(&delete.execute(&mut *connection).await?) > 0;
        if let Some(audit) = self.audit.as_ref().filter(|_| existed) {
            note::<E>(connection, audit, None, None).await?;
        }
        Ok(existed)
    }
}

pub(super) struct ExpireSessions {
    pub(super) before_ms: i64,
    pub(super) limit: u32,
}

impl<E: Engine> Operation<E> for ExpireSessions {
    type Output = Vec<SessionKey>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Vec<SessionKey>, StoreError> {
        E::exclude(connection, ALL_SESSIONS).await?;
        let rows: Vec<(String, String, String)> = sqlx::query_as(sql::SESSIONS_EXPIRE)
            .bind(self.before_ms)
            .bind(i64::from(self.limit))
            .fetch_all(connection)
            .await?;
        rows.into_iter()
            .map(|(user, project, session)| {
                Ok(SessionKey {
                    user: stored_id(&user)?,
                    project: stored_project(&project)?,
                    session: stored_id(&session)?,
                })
            })
            .collect()
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

/// The three columns that identify a session.
fn session_columns(key: &SessionKey) -> [&str; 3] {
    [key.user.as_str(), project_text(key.project.as_ref()), key.session.as_str()]
}

fn bind_session<'q, E: Engine>(statement: Statement<'q, E>, key: &SessionKey) -> Statement<'q, E> {
    session_columns(key).into_iter().fold(statement, Query::bind)
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
