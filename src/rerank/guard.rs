//! Which addresses the service may call (protection against server-side request forgery).
//!
//! Owns the address policy, the classes of IP addresses, the check of a URL and the name resolver that holds every
//! connection to it. The URL of a matcher is written by users, so it could point at the operator's own network.
//! Checking a name and then fetching it would be open to DNS rebinding: the resolver below is the one that the
//! connection uses, so the addresses that were checked are the addresses that are called.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use url::{Host, Url};

/// Names of cloud metadata services. They resolve to addresses that are refused anyway; the list is for a clear
/// answer when the setting is written, and for clouds whose name resolves to something else.
const METADATA_NAMES: [&str; 5] =
    ["metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"];

/// What the operator allows beyond `https` to public addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Allows private addresses (loopback, RFC 1918, CGNAT, unique local), and plain `http` to them.
    pub allow_private: bool,
    /// Host names or IP addresses, without scheme or port. A name here may resolve to private addresses and be called
    /// by plain `http`. A reserved address (link-local, metadata) must stand here itself, and in the URL.
    pub allowed_hosts: Vec<String>,
}

impl AddressPolicy {
    fn names(&self, host: &Host<&str>) -> bool {
        self.allowed_hosts.iter().any(|entry| {
            let entry = entry.trim();
            match Host::parse(entry) {
                Ok(Host::Domain(name)) => matches!(host, Host::Domain(h) if same_name(h, &name)),
                Ok(Host::Ipv4(ip)) => matches!(host, Host::Ipv4(h) if *h == ip),
                Ok(Host::Ipv6(ip)) => matches!(host, Host::Ipv6(h) if *h == ip),
                // An IPv6 address without brackets.
                Err(_) => matches!(host, Host::Ipv6(h) if entry.parse() == Ok(*h)),
            }
        })
    }

    /// Whether a URL with this host may be connected to this address; `plain` is `http` without TLS.
    fn admits(&self, host: &Host<&str>, address: IpAddr, plain: bool) -> bool {
        match class_of(address) {
            AddressClass::Public => !plain || self.names(host),
            AddressClass::Private => self.allow_private || self.names(host),
            AddressClass::Reserved => !matches!(host, Host::Domain(_)) && self.names(host),
        }
    }
}

/// Checks what can be known without a lookup; for the moment when the setting is written, and before each call.
///
/// Forms like `0x7f.1`, `2130706433` or full-width digits are addresses here, because [`Url`] has normalised them.
///
/// # Errors
/// One sentence that says which rule the URL breaks; it never repeats user info, path or query.
pub fn check_url(url: &Url, policy: &AddressPolicy) -> Result<(), String> {
    let plain = match url.scheme() {
        "https" => false,
        "http" => true,
        _ => return Err("the URL must begin with https://".to_owned()),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL must not carry a user name or password".to_owned());
    }
    let Some(host) = url.host() else {
        return Err("the URL has no host".to_owned());
    };
    let admitted = match host {
        Host::Ipv4(address) => policy.admits(&host, address.into(), plain),
        Host::Ipv6(address) => policy.admits(&host, address.into(), plain),
        Host::Domain(name) if METADATA_NAMES.iter().any(|known| same_name(name, known)) => {
            return Err(format!("{name} is a cloud metadata service"));
        }
        Host::Domain(name) if is_localhost(name) => policy.admits(&host, Ipv4Addr::LOCALHOST.into(), plain),
        // What it resolves to is checked when it is called.
        Host::Domain(_) => !plain || policy.allow_private || policy.names(&host),
    };
    if admitted {
        Ok(())
    } else if plain {
        Err(format!(
            "{host} may not be called over plain http: use https, or let the operator allow the host"
        ))
    } else {
        Err(format!(
            "{host} is not a public address: the operator has to allow private addresses or the host"
        ))
    }
}

fn same_name(a: &str, b: &str) -> bool {
    a.trim_end_matches('.').eq_ignore_ascii_case(b.trim_end_matches('.'))
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// How far an address may be trusted to be somebody else's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AddressClass {
    Public,
    /// The operator's own networks.
    Private,
    /// Nobody's rerank server: metadata services, link-local, multicast, documentation, unassigned.
    Reserved,
}

fn class_of(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

/// After the IANA special-purpose address registry (RFC 6890), plus the metadata services of the large clouds.
fn class_of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        // 169.254.169.254 and others; Alibaba's metadata service; Azure's host agent.
        [169, 254, ..] | [100, 100, 100, 200] | [168, 63, 129, 16] => AddressClass::Reserved,
        // This network, protocol assignments (and Oracle's metadata), documentation, 6to4 relays, multicast, class E.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _]
        | [224..=255, ..] => AddressClass::Reserved,
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        // CGNAT, and the benchmarking block that VPN clients use for their own addresses.
        [100, 64..=127, ..] | [198, 18 | 19, ..] => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

/// An address that carries an IPv4 address (RFC 4291, 6052, 3056, 2765) has the class of that one.
fn class_of_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Reserved,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Private,
        // Compatible, mapped, translated, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            class_of_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Metadata services of Amazon and Google inside the unique local block.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Reserved
        }
        // Unique local and, deprecated, site-local.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressClass::Private,
        // Protocol assignments (Teredo, ORCHID), documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        // Link-local, multicast, local NAT64, discard, unassigned.
        _ => AddressClass::Reserved,
    }
}

/// A name resolved to an address that the policy does not admit.
#[derive(Debug, Error)]
#[error("the host resolves to an address that is not allowed")]
pub(crate) struct BlockedAddress;

impl BlockedAddress {
    /// Whether this is what made a request fail.
    pub(crate) fn caused(error: &(dyn Error + 'static)) -> bool {
        std::iter::successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<Self>)
    }
}

/// Resolves names through `lookup` and lets an answer pass only when every address in it is admitted: which one the
/// connection takes is not ours to say.
pub(crate) struct GuardedResolver {
    pub(crate) policy: Arc<AddressPolicy>,
    pub(crate) lookup: Arc<dyn Resolve>,
    /// Whether the connections are without TLS; the resolver sees no scheme, so there is one for each.
    pub(crate) plain: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, plain) = (Arc::clone(&self.policy), self.plain);
        let host = name.as_str().to_owned();
        let found = self.lookup.resolve(name);
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = found.await?.collect();
            let host = Host::Domain(host.as_str());
            if addresses.iter().all(|address| policy.admits(&host, address.ip(), plain)) {
                Ok(Box::new(addresses.into_iter()) as Addrs)
            } else {
                Err(BlockedAddress.into())
            }
        })
    }
}

/// The resolver of the operating system.
pub(crate) struct SystemLookup;

impl Resolve for SystemLookup {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // Port 0 is replaced by the port of the URL.
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strict() -> AddressPolicy {
        AddressPolicy::default()
    }

    fn private() -> AddressPolicy {
        AddressPolicy { allow_private: true, allowed_hosts: Vec::new() }
    }

    fn hosts(hosts: &[&str]) -> AddressPolicy {
        AddressPolicy { allow_private: false, allowed_hosts: hosts.iter().map(ToString::to_string).collect() }
    }

    fn allowed(url: &str, policy: &AddressPolicy) -> bool {
        check_url(&Url::parse(url).unwrap(), policy).is_ok()
    }

    const PRIVATE: [&str; 17] = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "１２７。０。０。１",
        "%31%32%37.0.0.1",
        "10.0.0.5",
        "172.31.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fd12:3456::1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:a00:1::]",
    ];

    const RESERVED: [&str; 17] = [
        "0.0.0.0",
        "0",
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::ffff:169.254.169.254]",
        "[::a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
        "[2001:0:1::1]",
    ];

    #[test]
    fn public_addresses_and_names_need_https() {
        for host in ["api.cohere.com", "8.8.8.8", "[2606:4700::1111]", "[64:ff9b::8.8.8.8]", "172.32.0.1"] {
            assert!(allowed(&format!("https://{host}/v1"), &strict()), "{host}");
            assert!(!allowed(&format!("http://{host}/v1"), &strict()), "{host}");
        }
        assert!(!allowed("http://8.8.8.8", &private()), "private networks alone make plain http bearable");
        assert!(allowed("http://8.8.8.8", &hosts(&["8.8.8.8"])));
    }

    #[test]
    fn private_addresses_need_the_operators_leave() {
        for host in PRIVATE {
            for scheme in ["https", "http"] {
                let url = format!("{scheme}://{host}:8000/rerank");
                assert!(!allowed(&url, &strict()), "{url}");
                assert!(!allowed(&url, &hosts(&["api.cohere.com"])), "{url}");
                assert!(allowed(&url, &private()), "{url}");
                assert!(allowed(&url, &hosts(&[host])), "{url}");
            }
        }
    }

    #[test]
    fn reserved_addresses_must_be_named_one_by_one() {
        for host in RESERVED {
            let url = format!("https://{host}/");
            assert!(!allowed(&url, &strict()), "{url}");
            assert!(!allowed(&url, &private()), "{url}");
            assert!(allowed(&url, &hosts(&[host])), "{url}");
        }
    }

    #[test]
    fn local_and_metadata_names() {
        for name in ["localhost", "LOCALHOST.", "tei.localhost"] {
            assert!(!allowed(&format!("https://{name}/"), &strict()), "{name}");
            assert!(allowed(&format!("http://{name}/"), &private()), "{name}");
            assert!(allowed(&format!("http://{name}/"), &hosts(&[name])), "{name}");
        }
        for name in ["metadata.google.internal", "METADATA.google.internal.", "metadata"] {
            assert!(!allowed(&format!("http://{name}/"), &private()), "{name}");
            assert!(!allowed(&format!("http://{name}/"), &hosts(&[name])), "{name}");
        }
    }

    #[test]
    fn allowed_hosts_match_whole_hosts_only() {
        let policy = hosts(&[" Rerank.Example. ", "::1", "bücher.example"]);
        assert!(allowed("http://rerank.example:8080/", &policy));
        assert!(allowed("http://[::1]:8080/", &policy));
        assert!(allowed("http://xn--bcher-kva.example/", &policy));
        assert!(!allowed("http://a.rerank.example/", &policy));
        assert!(!allowed("http://rerank.example.evil.test/", &policy));
    }

    #[test]
    fn other_schemes_and_user_info_are_refused_without_repeating_them() {
        for url in ["ftp://h/", "file:///etc/passwd", "data:text/plain,x", "unix:/run/x", "javascript:1"] {
            assert!(!allowed(url, &private()), "{url}");
        }
        for url in ["https://hush@h/", "https://:hush@h/", "https://127.0.0.1/?hush#hush", "http://h/hush"] {
            let refusal = check_url(&Url::parse(url).unwrap(), &strict()).unwrap_err();
            assert!(!refusal.contains("hush"), "{refusal}");
        }
    }

    proptest! {
        #[test]
        fn an_embedded_address_has_the_class_of_its_own(bits in any::<u32>(), tail in any::<[u16; 5]>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            let [a, b, c, d, e] = tail;
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, a, b, c, d, e),
            ] {
                prop_assert_eq!(class_of(v6.into()), class_of(v4.into()), "{}", v6);
            }
        }

        #[test]
        fn what_the_standard_library_calls_local_is_never_public(bits in any::<u32>(), wide in any::<u128>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_unspecified() {
                prop_assert_ne!(class_of(v4.into()), AddressClass::Public);
            }
            let v6 = Ipv6Addr::from_bits(wide);
            if v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() {
                prop_assert_ne!(class_of(v6.into()), AddressClass::Public);
            }
        }

        #[test]
        fn any_host_and_entry_are_checked_without_a_panic(host in "\\PC{0,20}", entry in "\\PC{0,20}") {
            if let Ok(url) = Url::parse(&format!("https://{host}/")) {
                let _ = check_url(&url, &hosts(&[&entry]));
            }
        }
    }
}
