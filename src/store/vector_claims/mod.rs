//! Which process has which texts made into vectors, so that no two pay for the same.

mod rows;
mod sql;

use async_trait::async_trait;

use super::{StoreError, VectorSpace};
use crate::core::digest::Digest;

/// See the module. A claim ends with its time, whatever becomes of its holder.
#[async_trait]
pub trait VectorClaimStore {
    /// Takes those of some texts, none of them twice, that no other holder has at this time, until another time; names them.
    async fn claim_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        holder: &str,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Digest>, StoreError>;

    /// Gives up those of some texts that a holder has.
    async fn release_vectors(
        &self,
        space: &VectorSpace,
        texts: Vec<Digest>,
        holder: &str,
    ) -> Result<(), StoreError>;
}
