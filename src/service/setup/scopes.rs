//! Which users and projects there are.

use crate::core::id::Scope;
use crate::service::{Error, Toolrack};

/// Scopes that are read at once.
const AT_ONCE: u32 = 500;

/// Scopes that are looked through, so that a page does not read a whole large server.
const MOST_READ: usize = 20_000;

impl Toolrack {
    /// The scopes that were ever written and that the caller may see, by kind and name, `most` at most.
    pub async fn scopes(&self, most: usize, may_see: impl Fn(&Scope) -> bool) -> Result<Vec<Scope>, Error> {
        let (mut found, mut read, mut after) = (Vec::new(), 0, None);
        while read < MOST_READ {
            let page = self.0.store.scopes(after.as_ref(), AT_ONCE).await?;
            read += page.len();
            let is_last = page.len() < AT_ONCE as usize;
            after = page.last().cloned();
            found.extend(page.into_iter().filter(&may_see));
            if is_last || found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }
}
