//! [`VectorClaimStore`] in the table, as operations of the writer.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{VectorClaimStore, sql};
use crate::core::digest::Digest;
use crate::store::engine::Engine;
use crate::store::writer::Operation;
use crate::store::writes::{execute_rows, space_columns};
use crate::store::{SqlStore, StoreError, VectorSpace};

#[async_trait]
impl<E: Engine> VectorClaimStore for SqlStore<E> {
    async fn claim_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Digest>, StoreError> {
        let (space, holder) = (space.clone(), holder.to_owned());
        self.writer.submit(ClaimVectors { space, texts, holder, now_ms, until_ms }).await
    }

    async fn release_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        holder: &str,
    ) -> Result<(), StoreError> {
        let (space, holder) = (space.clone(), holder.to_owned());
        self.writer.submit(ReleaseVectors { space, texts, holder }).await
    }
}

struct ClaimVectors {
    space: VectorSpace,
    texts: Vec<Digest>,
    holder: String,
    now_ms: i64,
    until_ms: i64,
}

impl<E: Engine> Operation<E> for ClaimVectors {
    type Output = Vec<Digest>;

    async fn apply(&self, connection: &mut E::Connection) -> Result<Vec<Digest>, StoreError> {
        let [kind, id, space] = space_columns(&self.space);
        E::exclude(connection, &format!("vector_claims/{kind}/{id}")).await?;
        let expire = sqlx::query(sql::EXPIRE).bind(kind.as_str()).bind(id.as_str()).bind(self.now_ms);
        expire.execute(&mut *connection).await?;
        let until = self.until_ms.to_string();
        let fixed = [kind.as_str(), &id, &space, &self.holder, &until];
        execute_rows::<E, _>(connection, &sql::CLAIM, &fixed, &self.texts, |statement, text| {
            statement.bind(text.to_string())
        })
        .await?;
        let held = sqlx::query_as(sql::HELD).bind(kind.as_str()).bind(id.as_str()).bind(space.as_str());
        let held: Vec<(String,)> = held.bind(self.holder.as_str()).fetch_all(connection).await?;
        let held: HashSet<String> = held.into_iter().map(|(text,)| text).collect();
        Ok(self.texts.iter().filter(|text| held.contains(&text.to_string())).copied().collect())
    }
}

struct ReleaseVectors {
    space: VectorSpace,
    texts: Vec<Digest>,
    holder: String,
}

impl<E: Engine> Operation<E> for ReleaseVectors {
    type Output = ();

    async fn apply(&self, connection: &mut E::Connection) -> Result<(), StoreError> {
        let [kind, id, space] = space_columns(&self.space);
        E::exclude(connection, &format!("vector_claims/{kind}/{id}")).await?;
        let fixed = [kind.as_str(), &id, &space, &self.holder];
        execute_rows::<E, _>(connection, &sql::RELEASE, &fixed, &self.texts, |statement, text| {
            statement.bind(text.to_string())
        })
        .await
    }
}
