//! HTTP clients that keep the address policy, for endpoints and for MCP servers.

use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::{Client, redirect, retry};

use super::guard::{AddressPolicy, GuardedResolver};

/// Leaves room for a second address of a name that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Below the idle time-outs of the usual proxies.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The clients of all calls of one kind. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct GuardedClients {
    https: Client,
    /// For `http` URLs: its resolver admits only addresses that the policy covers.
    plain: Client,
}

impl GuardedClients {
    pub(crate) fn new(
        policy: &Arc<AddressPolicy>,
        lookup: &Arc<dyn Resolve>,
    ) -> Result<Self, reqwest::Error> {
        let builder = |plain| {
            let resolver = GuardedResolver { policy: Arc::clone(policy), lookup: Arc::clone(lookup), plain };
            Client::builder()
                .user_agent(concat!("toolrack/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(resolver)
                // A redirect or a proxy would lead past the address policy.
                .redirect(redirect::Policy::none())
                .no_proxy()
                // Who asks again knows whether that is safe.
                .retry(retry::never())
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        };
        let https = builder(false).https_only(true).build()?;
        // It never speaks TLS, so it loads no certificates.
        let plain = builder(true).tls_certs_only([]).build()?;
        Ok(Self { https, plain })
    }

    /// The client for URLs of a scheme: `is_plain` for `http`.
    pub(crate) fn get(&self, is_plain: bool) -> &Client {
        if is_plain { &self.plain } else { &self.https }
    }
}
