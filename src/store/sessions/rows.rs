//! [`SessionStore`] in the tables: the reads, and the writes as operations of the writer.

use async_trait::async_trait;
use sqlx::query::{Query, QueryAs};

use super::{
    ExpectedSession, ProjectFilter, SessionCounts, SessionQuery, SessionRow, SessionState, SessionStore,
    SessionSummary, SessionTouch, SessionWrite, WarmRow, sql,
};
use crate::core::id::{Id, SessionKey};
use crate::core::tool::ToolKey;
use crate::store::audit::note;
use crate::store::engine::Engine;
use crate::store::sql_store::project_text;
use crate::store::writer::Operation;
use crate::store::writes::{Statement, bind_tool_key, execute_rows, stored_id, stored_project};
use crate::store::{AuditWrite, SqlStore, StoreError};

/// What writes of many sessions exclude each other by: each might wait for a row that another one has.
const ALL_SESSIONS: &str = "sessions";

/// The counts last.
type SessionColumns = (i64, String, String, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);

#[async_trait]
impl<E: Engine> SessionStore for SqlStore<E> {
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::SESSION)
                .bind(key.user.as_str())
                .bind(project_text(key.project.as_ref()))
                .bind(key.session.as_str());
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<SessionColumns> = read.await?;
        let mut rows = rows.into_iter();
        let Some((_, settings, ledger, created_at_ms, last_seen_ms, _, revision, a, b, c, d, e, f, g, h)) =
            rows.next()
        else {
            return Ok(None);
        };
        let counts = SessionCounts::of([a, b, c, d, e, f, g, h]);
        let warm = rows
            .map(|(_, group, name, first_seq, last_used_ms, pinned, pending, ..)| WarmRow {
                tool: ToolKey { group: group.into(), name: name.into() },
                first_seq,
                last_used_ms,
                pinned: pinned != 0,
                pending: pending != 0,
            })
            .collect();
        Ok(Some(SessionRow { settings, created_at_ms, last_seen_ms, ledger, counts, warm, revision }))
    }

    async fn session_state(&self, key: &SessionKey) -> Result<Option<SessionState>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::SESSION_STATE)
                .bind(key.user.as_str())
                .bind(project_text(key.project.as_ref()))
                .bind(key.session.as_str());
            Ok(query.fetch_optional(&mut *reader).await?)
        });
        let row: Option<(i64, i64, i64)> = read.await?;
        Ok(row.map(|(created_at_ms, revision, last_seen_ms)| SessionState {
            created_at_ms,
            revision,
            last_seen_ms,
        }))
    }

    async fn write_session(&self, write: SessionWrite) -> Result<i64, StoreError> {
        self.writer.submit(WriteSession(write)).await
    }

    async fn touch_sessions(&self, touches: Vec<SessionTouch>) -> Result<(), StoreError> {
        if touches.is_empty() {
            return Ok(());
        }
        self.writer.submit(TouchSessions(touches)).await
    }

    async fn delete_session(&self, key: &SessionKey, audit: Option<AuditWrite>) -> Result<bool, StoreError> {
        self.writer.submit(DeleteSession { key: key.clone(), audit }).await
    }

    async fn delete_idle_session(&self, key: &SessionKey, before_ms: i64) -> Result<bool, StoreError> {
        self.writer.submit(DeleteIdleSession { key: key.clone(), before_ms }).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<Vec<SessionSummary>, StoreError> {
        // No session id is empty, so the empty text is before all of them.
        let after = query.after.as_ref();
        let after_session = after.map_or("", |(_, session)| session.as_str());
        let (text, project) = match &query.project {
            ProjectFilter::Any => {
                (sql::SESSIONS_OF_USER, project_text(after.and_then(|(project, _)| project.as_ref())))
            }
            ProjectFilter::Only(project) => (sql::SESSIONS_OF_PROJECT, project_text(project.as_ref())),
        };
        let (user, limit) = (query.user.as_str(), i64::from(query.limit));
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(text).bind(user).bind(project).bind(after_session).bind(limit);
            Ok(query.fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String, String, i64, i64, i64)> = read.await?;
        rows.into_iter()
            .map(|(project, session, created_at_ms, last_seen_ms, warm)| {
                Ok(SessionSummary {
                    project: stored_project(&project)?,
                    session: stored_id(&session)?,
                    created_at_ms,
                    last_seen_ms,
                    warm,
                })
            })
            .collect()
    }

    async fn session_projects(&self, user: &Id) -> Result<Vec<Option<Id>>, StoreError> {
        let read = self.read(|mut reader| async move {
            Ok(sqlx::query_as(sql::SESSION_PROJECTS).bind(user.as_str()).fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(String,)> = read.await?;
        rows.iter().map(|(project,)| stored_project(project)).collect()
    }

    async fn expire_sessions(&self, before_ms: i64, limit: u32) -> Result<Vec<SessionKey>, StoreError> {
        self.writer.submit(ExpireSessions { before_ms, limit }).await
    }
}

/// The three columns that identify a session.
fn session_columns(key: &SessionKey) -> [&str; 3] {
    [key.user.as_str(), project_text(key.project.as_ref()), key.session.as_str()]
}

fn bind_session<'q, E: Engine>(statement: Statement<'q, E>, key: &SessionKey) -> Statement<'q, E> {
    session_columns(key).into_iter().fold(statement, Query::bind)
}

fn bind_warm<'q, E: Engine>(statement: Statement<'q, E>, row: &WarmRow) -> Statement<'q, E> {
    bind_tool_key(statement, &row.tool)
        .bind(row.first_seq)
        .bind(row.last_used_ms)
        .bind(i64::from(row.pinned))
        .bind(i64::from(row.pending))
}

struct WriteSession(SessionWrite);

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

struct TouchSessions(Vec<SessionTouch>);

impl<E: Engine> Operation<E> for TouchSessions {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, ALL_SESSIONS).await?;
        execute_rows::<E, _>(connection, &sql::SESSIONS_TOUCH, &[], &self.0, |statement, touch| {
            let statement = bind_session(statement, &touch.key).bind(touch.last_seen_ms);
            touch.counts.columns().into_iter().fold(statement, Statement::bind).bind(touch.created_at_ms)
        })
        .await?;
        let of_session = |session| move |warm| (session, warm);
        let warm: Vec<_> = self.0.iter().flat_map(|touch| touch.warm.iter().map(of_session(touch))).collect();
        execute_rows::<E, _>(connection, &sql::WARM_TOUCH, &[], &warm, |statement, (session, touch)| {
            let statement = bind_tool_key(bind_session(statement, &session.key), &touch.tool);
            statement.bind(touch.last_used_ms).bind(session.created_at_ms)
        })
        .await
    }
}

struct DeleteSession {
    key: SessionKey,
    audit: Option<AuditWrite>,
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

struct DeleteIdleSession {
    key: SessionKey,
    before_ms: i64,
}

impl<E: Engine> Operation<E> for DeleteIdleSession {
    type Output = bool;

    fn takes_away(&self) -> bool {
        true
    }

    async fn apply(&self, connection: &mut E::Connection) -> Result<bool, StoreError> {
        let delete = bind_session(sqlx::query(sql::SESSION_DELETE_IDLE), &self.key).bind(self.before_ms);
        Ok(E::rows_affected(&delete.execute(connection).await?) > 0)
    }
}

struct ExpireSessions {
    before_ms: i64,
    limit: u32,
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
