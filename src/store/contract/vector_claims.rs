//! Texts that one process at a time has made into vectors.

use super::*;

on_every_backend!(a_text_is_made_by_one_at_a_time,);

async fn a_text_is_made_by_one_at_a_time(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let space =
        |owner: &str, name: &str| VectorSpace { owner: user(owner), space: Digest::of(name.as_bytes()) };
    let text = |name: &str| Digest::of(name.as_bytes());
    let (here, other) = (space("u", "s"), space("u", "t"));
    let claim = async |space: &VectorSpace, names: &[&str], holder, now_ms| {
        let texts = names.iter().map(|name| text(name)).collect();
        store.claim_vectors(space, texts, holder, now_ms, now_ms + 10).await.unwrap()
    };
    assert_eq!(claim(&here, &["a", "b"], "x", 1).await, [text("a"), text("b")]);
    assert_eq!(claim(&here, &["b", "c"], "y", 2).await, [text("c")], "what another one makes is left");
    assert_eq!(claim(&here, &["a", "c"], "x", 2).await, [text("a")], "its own it may take again");
    assert_eq!(
        claim(&other, &["a", "b"], "y", 2).await,
        [text("a"), text("b")],
        "another model is another matter"
    );
    assert_eq!(claim(&space("v", "s"), &["a"], "y", 2).await, [text("a")]);
    assert_eq!(claim(&here, &["b"], "y", 11).await, []);
    assert_eq!(claim(&here, &["a", "b"], "y", 12).await, [text("b")], "what was not made in time");
    store.release_vectors(&here, vec![text("a"), text("b")], "x").await.unwrap();
    assert_eq!(claim(&here, &["a", "b"], "x", 12).await, [text("a")], "only what was its own is given up");
    assert_eq!(claim(&here, &[], "x", 12).await, []);
}
