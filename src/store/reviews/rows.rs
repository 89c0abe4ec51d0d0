//! [`ReviewStore`] in the tables, and the part of a catalog's write that is about reviews.

use async_trait::async_trait;

use super::{HeldRow, RemovedRow, ReviewRows, ReviewStore, ReviewWrite, sql};
use crate::core::id::Scope;
use crate::core::tool::ToolKey;
use crate::store::engine::Engine;
use crate::store::writes::{bind_tool_key, execute_rows};
use crate::store::{SqlStore, StoreError};

/// The counter of a scope's revision.
fn counter(scope: &Scope) -> String {
    format!("reviews/{}/{}", scope.kind(), scope.id())
}

#[async_trait]
impl<E: Engine> ReviewStore for SqlStore<E> {
    async fn reviews(&self, scope: &Scope) -> Result<ReviewRows, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::REVIEWS).bind(scope.kind()).bind(scope.id().as_str());
            Ok(query.bind(counter(scope)).fetch_all(&mut *reader).await?)
        });
        let rows: Vec<(i64, String, String, String, String, String, i64)> = read.await?;
        let mut answer = ReviewRows::default();
        for (part, group, name, body, digest, uploaded_by, number) in rows {
            let (tool, body) = (ToolKey::new(&group, &name), body.into());
            match part {
                0 => answer.revision = number,
                1 => answer.held.push(HeldRow { tool, body, digest, uploaded_by, held_at_ms: number }),
                _ => answer.removed.push(RemovedRow { tool, body, digest }),
            }
        }
        Ok(answer)
    }
}

/// Refuses a change of the reviews of a scope that was made for another revision of them.
pub(in crate::store) async fn check<E: Engine>(
    connection: &mut E::Connection,
    scope: &Scope,
    write: &ReviewWrite,
) -> Result<(), StoreError> {
    let stored = sqlx::query_as(sql::REVISION).bind(counter(scope)).fetch_optional(connection).await?;
    let is_expected = stored.map_or(0, |(revision,): (i64,)| revision) == write.expected_revision;
    if is_expected { Ok(()) } else { Err(StoreError::Conflict) }
}

/// Changes the reviews of a scope once [`check`] let it. Runs before its tools are removed and added.
pub(in crate::store) async fn write<E: Engine>(
    connection: &mut E::Connection,
    scope: &Scope,
    write: &ReviewWrite,
    by: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    if write.is_empty() {
        return Ok(());
    }
    let counter = counter(scope);
    sqlx::query(sql::NEXT_REVISION).bind(&counter).execute(&mut *connection).await?;
    let owner @ [kind, id] = [scope.kind(), scope.id().as_str()];
    let now = now_ms.to_string();
    execute_rows::<E, _>(connection, &sql::REMEMBER, &owner, &write.remember, bind_tool_key).await?;
    execute_rows::<E, _>(connection, &sql::RESTORE, &owner, &write.restore, bind_tool_key).await?;
    execute_rows::<E, _>(connection, &sql::UNREMEMBER, &owner, &write.restore, bind_tool_key).await?;
    execute_rows::<E, _>(connection, &sql::APPROVE, &[kind, id, &now], &write.approve, bind_tool_key).await?;
    for gone in [&write.approve, &write.drop] {
        execute_rows::<E, _>(connection, &sql::DROP, &owner, gone, bind_tool_key).await?;
    }
    execute_rows::<E, _>(connection, &sql::HOLD, &[kind, id, by], &write.hold, move |statement, held| {
        bind_tool_key(statement, &held.tool).bind(&*held.body).bind(held.digest.as_str()).bind(now_ms)
    })
    .await?;
    if write.forget {
        sqlx::query(sql::FORGET).bind(kind).bind(id).execute(connection).await?;
    }
    Ok(())
}
