//! The listings that sessions keep.

use super::*;

on_every_backend!(listing_bases_are_kept_while_they_are_used,);

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

async fn listing_bases_are_kept_while_they_are_used(on: Backend) {
    let fixture = Fixture::new(on).await;
    let write = async |store: &dyn Store, name: &str, body: &str, now_ms| {
        store.write_listing_base(digest(name), body.into(), now_ms).await.unwrap();
    };
    let bodies = [("a", "{\"t\": \"é\\n\"}"), ("b", "two"), ("c", "three"), ("d", "four")];
    for ((name, body), now_ms) in bodies.into_iter().zip([10, 20, 30, 40]) {
        write(&*fixture.store, name, body, now_ms).await;
    }
    let fixture = fixture.reopen().await;
    let store = &*fixture.store;
    for (name, body) in bodies {
        assert_eq!(store.listing_base(digest(name)).await.unwrap().as_deref(), Some(body));
    }
    assert_eq!(store.listing_base(digest("none")).await.unwrap(), None);

    // Written again and touched, both make it younger, never older.
    write(store, "a", bodies[0].1, 60).await;
    write(store, "d", bodies[3].1, 5).await;
    let touches = [("b", 70), ("c", 1), ("gone", 80)];
    let touches = touches.map(|(name, last_used_ms)| ListingBaseTouch { digest: digest(name), last_used_ms });
    store.touch_listing_bases(touches.into()).await.unwrap();
    store.touch_listing_bases(Vec::new()).await.unwrap();
    assert_eq!(store.listing_base(digest("gone")).await.unwrap(), None);
    assert_eq!(store.expire_listing_bases(60, 1).await.unwrap(), [digest("c")]);
    assert_eq!(store.expire_listing_bases(60, 10).await.unwrap(), [digest("d")]);
    assert!(store.expire_listing_bases(60, 10).await.unwrap().is_empty());
    assert_eq!(store.listing_base(digest("c")).await.unwrap(), None);
    for name in ["a", "b"] {
        assert!(store.listing_base(digest(name)).await.unwrap().is_some());
    }
}
