//! [`RankingStore`] in the table: the read, and the writes as operations of the writer.

use async_trait::async_trait;

use super::{RankingKey, RankingStore, sql};
use crate::core::digest::Digest;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::{SqlStore, StoreError};

/// What writes of an owner's rankings exclude each other by.
fn name(owner: Digest) -> String {
    format!("rankings/{owner}")
}

/// What writes of many owners exclude each other by.
const ALL: &str = "rankings";

#[async_trait]
impl<E: Engine> RankingStore for SqlStore<E> {
    async fn ranking(&self, key: &RankingKey, since_ms: i64) -> Result<Option<String>, StoreError> {
        let read = self.read(|mut reader| async move {
            let query = sqlx::query_as(sql::ONE).bind(key.owner.to_string()).bind(key.call.to_string());
            Ok(query.bind(since_ms).fetch_optional(&mut *reader).await?)
        });
        let row: Option<(String,)> = read.await?;
        Ok(row.map(|(body,)| body))
    }

    async fn write_ranking(
        &self,
        key: RankingKey,
        body: String,
        now_ms: i64,
        most: u32,
    ) -> Result<(), StoreError> {
        self.writer.submit(WriteRanking { key, body, now_ms, most }).await
    }

    async fn forget_rankings(&self, owner: Digest) -> Result<(), StoreError> {
        self.writer.submit(ForgetRankings(owner)).await
    }

    async fn expire_rankings(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        self.writer.submit(ExpireRankings { before_ms, limit }).await
    }
}

struct WriteRanking {
    key: RankingKey,
    body: String,
    now_ms: i64,
    most: u32,
}

impl<E: Engine> Operation<E> for WriteRanking {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, &name(self.key.owner)).await?;
        let owner = self.key.owner.to_string();
        let put = sqlx::query(sql::PUT).bind(owner.as_str()).bind(self.key.call.to_string());
        put.bind(self.body.as_str()).bind(self.now_ms).execute(&mut *connection).await?;
        let trim = sqlx::query(sql::TRIM).bind(owner.as_str()).bind(i64::from(self.most));
        trim.execute(connection).await?;
        Ok(())
    }
}

struct ForgetRankings(Digest);

impl<E: Engine> Operation<E> for ForgetRankings {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        E::exclude(connection, &name(self.0)).await?;
        sqlx::query(sql::FORGET).bind(self.0.to_string()).execute(connection).await?;
        Ok(())
    }
}

struct ExpireRankings {
    before_ms: i64,
    limit: u32,
}

impl<E: Engine> Operation<E> for ExpireRankings {
    type Output = u64;

    async fn apply(&self, connection: &mut E::Connection) -> Result<u64, StoreError> {
        E::exclude(connection, ALL).await?;
        let expire = sqlx::query(sql::EXPIRE).bind(self.before_ms).bind(i64::from(self.limit));
        Ok(E::rows_affected(&expire.execute(connection).await?))
    }
}
