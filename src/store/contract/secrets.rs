//! Secrets and the key that they are sealed with.

use super::*;

on_every_backend!(another_master_key_is_noticed, all_secrets_are_sealed_anew_or_none,);

async fn another_master_key_is_noticed(on: Backend) {
    let fixture = Fixture::new(on).await;
    let right = MasterKey::from_setting(&"01".repeat(32)).unwrap();
    let wrong = MasterKey::from_setting(&"02".repeat(32)).unwrap();
    right.check(&*fixture.store).await.unwrap();
    let fixture = fixture.reopen().await;
    right.check(&*fixture.store).await.unwrap();
    if fixture.store.is_shared() {
        // Nothing is sealed yet, and others may seal with theirs.
        for _ in 0..2 {
            assert!(matches!(wrong.check(&*fixture.store).await, Err(MasterKeyError::NotShared)));
        }
        right.check(&*fixture.store).await.unwrap();
        return;
    }
    let u = user("u");
    let sealed = |key: &MasterKey| {
        let bytes = key.seal(&secret_aad(&u, "a"), "secret").unwrap();
        let sealed = SealedSecret { origin: "https://a.example:443".to_owned(), last4: None, bytes };
        vec![SecretChange { name: "a".to_owned(), action: SecretAction::Set(sealed) }]
    };
    let write = |secrets| ConfigWrite { secrets, ..config("{}", None) };
    fixture.store.write_config(&u, write(sealed(&right))).await.unwrap();
    assert!(matches!(wrong.check(&*fixture.store).await, Err(MasterKeyError::Wrong(1))));
    right.check(&*fixture.store).await.unwrap();
    // Nothing is left that needs the right one.
    fixture.store.write_config(&u, write(sealed(&wrong))).await.unwrap();
    wrong.check(&*fixture.store).await.unwrap();
    assert!(matches!(right.check(&*fixture.store).await, Err(MasterKeyError::Wrong(1))));
}

async fn all_secrets_are_sealed_anew_or_none(on: Backend) {
    let Fixture { store, directory: _directory } = Fixture::new(on).await;
    let old = MasterKey::from_setting(&"01".repeat(32)).unwrap();
    old.check(&*store).await.unwrap();
    for (scope, name) in [(user("u"), "a"), (user("u"), "b"), (Scope::Project(id("u")), "a")] {
        let bytes = old.seal(&secret_aad(&scope, name), name).unwrap();
        let sealed = SealedSecret { origin: "https://a.example:443".to_owned(), last4: None, bytes };
        let change = SecretChange { name: name.to_owned(), action: SecretAction::Set(sealed) };
        let write = ConfigWrite { secrets: vec![change], ..config("{}", None) };
        store.write_config(&scope, write).await.unwrap();
    }
    let before = store.sealed_secrets().await.unwrap();
    assert_eq!(before.len(), 3);
    let new = || MasterKey::from_setting(&"02".repeat(32)).unwrap();
    let changed = |place: &SecretPlace| Reseal { place: place.clone(), sealed: vec![2] };
    let mut stale = before.iter().map(changed).collect::<Vec<_>>();
    stale[2].place.sealed[5] ^= 1;
    assert!(store.reseal(stale, ("k".to_owned(), "v".to_owned())).await.is_err());
    assert_eq!((store.sealed_secrets().await.unwrap(), store.meta("k").await.unwrap()), (before, None));

    let both = new().with_previous(old);
    let all = Resealed { resealed: 3, current: 0, unreadable: 0 };
    assert_eq!(reseal_all(&*store, &both).await.unwrap(), all);
    assert_eq!(reseal_all(&*store, &both).await.unwrap(), Resealed { resealed: 0, current: 3, ..all });
    new().check(&*store).await.unwrap();
    for place in store.sealed_secrets().await.unwrap() {
        let opened = new().open(&secret_aad(&place.scope, &place.name), &place.sealed).unwrap();
        assert_eq!(opened.expose_secret(), place.name);
    }
}
