//! What the databases that a store can stand on have in common, so that its rows are read and written by one text.
//!
//! [`Engine`] says of sqlx's traits what SQLite and PostgreSQL both keep: which types a statement binds and a row holds.

use std::future::Future;

use sqlx::{ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Pool, Type};

/// `Is` is `T`. As a bound of a trait's own, `Known<T, Is: Bound>` makes `T: Bound` follow from that trait, which a `where`
/// clause about another type than `Self` does not.
pub trait Known<T>: KnownAs<T, Is = T> {}

/// See [`Known`].
pub trait KnownAs<T> {
    type Is;
}

impl<E, T> Known<T> for E {}

impl<E, T> KnownAs<T> for E {
    type Is = T;
}

/// A database with the columns of `migrations/` (text, whole numbers, bytes) and the statements of the `sql.rs` files.
pub trait Engine:
    Database<Arguments: IntoArguments<Self>>
    + Known<usize, Is: ColumnIndex<Self::Row>>
    + for<'t> Known<&'t str, Is: ColumnIndex<Self::Row> + for<'q> Encode<'q, Self> + Type<Self>>
    + Known<String, Is: for<'q> Encode<'q, Self> + for<'r> Decode<'r, Self> + Type<Self>>
    + Known<i64, Is: for<'q> Encode<'q, Self> + for<'r> Decode<'r, Self> + Type<Self>>
    + Known<Vec<u8>, Is: for<'q> Encode<'q, Self> + for<'r> Decode<'r, Self> + Type<Self>>
    + for<'t> Known<Option<&'t str>, Is: Encode<'t, Self>>
    + Known<Option<String>, Is: for<'q> Encode<'q, Self>>
    + Known<Option<i64>, Is: for<'q> Encode<'q, Self>>
    + for<'c> Known<&'c mut <Self as Database>::Connection, Is: Executor<'c, Database = Self>>
    + for<'c> Known<&'c Pool<Self>, Is: Executor<'c, Database = Self>>
{
    /// The system's name in traces (OpenTelemetry's `db.system.name`).
    const SYSTEM: &'static str;
    /// Whether several processes may serve one database.
    const SHARED: bool;

    /// Asks for the time in milliseconds, where the database has a clock of its own.
    const CLOCK: Option<&'static str>;

    /// Answers 1 where the server is a standby of another one, else 0.
    const IS_STANDBY: &'static str;

    /// Answers with a row if files of the schema were run on the database.
    const HAS_MIGRATIONS: &'static str;

    /// How many rows a statement changed.
    fn rows_affected(result: &Self::QueryResult) -> u64;

    /// Waits until no other transaction, of whatever process, goes on under this name, and keeps others out until the end of
    /// this one. What is read afterwards shows what they committed. Whoever takes several names takes them in the order
    /// from the narrow to the wide.
    fn exclude(
        connection: &mut Self::Connection,
        name: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Tells the other processes what this transaction writes ([`super::changes`]), once it is committed. Only for what is
    /// written seldom: a server may have such transactions wait for each other.
    fn tell(
        connection: &mut Self::Connection,
        what: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
