//! Which addresses are called: the policy at work, redirects, proxies.

use std::net::TcpListener;
use std::process::Command;

use super::*;

#[tokio::test]
async fn a_private_address_is_not_called() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let strict = client(AddressPolicy::default());
    assert_eq!(strict.rerank(ask(&server.url)).await, Err(RerankFault::Forbidden.into()));
    let secure = server.url.replace("http:", "https:");
    assert_eq!(strict.rerank(ask(&secure)).await, Err(RerankFault::Forbidden.into()));
    assert_eq!(server.calls(), 0);
}

#[tokio::test]
async fn a_name_is_called_at_the_checked_addresses() {
    let endpoint = serve_in_turn(vec![(200, GOOD)]).await.url.replace("127.0.0.1", "rerank.test");
    let names = Names(vec!["127.0.0.1".parse().unwrap()]);
    let named = AddressPolicy { allow_private: false, allowed_hosts: vec!["rerank.test".to_owned()] };
    for policy in [private(), named] {
        let ranking = client_with(policy, names.clone()).rerank(ask(&endpoint)).await.unwrap();
        assert_eq!(ranking.rows, BEST_IS_SECOND);
    }
}

#[tokio::test]
async fn one_bad_address_of_a_name_refuses_it() {
    let lookup = |addresses: &[&str]| Names(addresses.iter().map(|ip| ip.parse().unwrap()).collect());
    let named = AddressPolicy { allow_private: false, allowed_hosts: vec!["rerank.test".to_owned()] };
    for (policy, endpoint, addresses) in [
        (AddressPolicy::default(), "https://rerank.test", vec!["127.0.0.1"]),
        (AddressPolicy::default(), "https://rerank.test", vec!["8.8.8.8", "10.0.0.1"]),
        (AddressPolicy::default(), "https://rerank.test", vec!["64:ff9b::a9fe:a9fe"]),
        (private(), "https://rerank.test", vec!["127.0.0.1", "169.254.169.254"]),
        (private(), "http://rerank.test", vec!["8.8.8.8"]),
        (named, "https://rerank.test", vec!["169.254.169.254"]),
    ] {
        let answer = client_with(policy, lookup(&addresses)).rerank(ask(endpoint)).await;
        assert_eq!(answer, Err(RerankFault::Forbidden.into()), "{endpoint} at {addresses:?}");
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_unreachable() {
    let answer = client_with(private(), Names(Vec::new())).rerank(ask("https://rerank.test")).await;
    assert_eq!(answer, Err(RerankFault::Unreachable.into()));
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_never_sent() {
    let server = serve_in_turn(vec![(200, GOOD)]).await;
    let request = RerankRequest { api_key: Some("a\r\nx: b".to_owned().into()), ..ask(&server.url) };
    assert_eq!(rows(request).await, Err(RerankFault::Unsendable(Unsendable::Key)));
    assert_eq!(server.calls(), 0);
}

/// Runs the test of the good answer in a process of its own whose environment names a proxy.
#[test]
fn proxies_of_the_environment_are_ignored() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let module = module_path!().split_once("::").unwrap().1.trim_end_matches("::addresses");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::a_good_answer_is_a_ranking")]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, &url);
    }
    let output = command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("1 passed"), "{printed}");
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
