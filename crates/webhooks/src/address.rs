//! Which addresses deliveries may go to: those of the public internet, and what an operator allows.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// What an operator allows besides the public internet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    networks: Vec<Network>,
    hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

/// Why a list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no host, address or network; allowed: names such as hooks.internal, addresses, and networks such as 10.1.0.0/16"
)]
pub struct AllowedError(String);

impl FromStr for Allowed {
    type Err = AllowedError;

    /// Reads hosts, addresses and networks, separated by commas.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut allowed = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match network(entry) {
                Some(network) => allowed.networks.push(network),
                None if is_host(entry) => allowed.hosts.push(entry.to_ascii_lowercase()),
                None => return Err(AllowedError(entry.to_owned())),
            }
        }
        Ok(allowed)
    }
}

impl Allowed {
    /// True if this host was named, whatever its addresses are.
    pub fn names(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.hosts.contains(&host)
    }

    pub fn may_reach(&self, address: IpAddr) -> bool {
        is_public(address) || self.contains(address)
    }

    /// True if this address is in a network of the list.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let same = |one: u128, other: u128, width: u8| {
            let shift = u32::from(width.saturating_sub(self.bits));
            one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => same(one.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

fn network(entry: &str) -> Option<Network> {
    let (address, bits) = entry.split_once('/').map_or((entry, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width))?;
    Some(Network { address, bits })
}

fn is_host(entry: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let is_number = entry.split('.').next_back().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    (1..=253).contains(&entry.len()) && entry.chars().all(fits) && !is_number
}

/// True for an address of the public internet, by the registries of special addresses (RFC 6890 and its successors).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => embedded(address).map_or_else(|| is_public_v6(address), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // This network and this machine, private networks, shared and link-local addresses, multicast and what is reserved.
    let is_local =
        matches!((a, b), (0 | 10 | 127 | 224.., _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168));
    // Protocol assignments, documentation, relays of 6to4, benchmarks.
    let is_special =
        matches!((a, b, c), (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113));
    !is_local && !is_special
}

/// Returns the address of version 4 within one of version 6: mapped, compatible, translated (64:ff9b::/96) or of 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(of(high, low))
        }
        _ => None,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is assigned to the internet: that leaves out loopback, link-local, unique local and multicast.
    let is_global = a & 0xe000 == 0x2000;
    // Protocol assignments with Teredo, and documentation.
    let is_special = (a == 0x2001 && (b < 0x200 || b == 0xdb8)) || (a == 0x3fff && b < 0x1000);
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fec0::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "64:ff9b:1::1",
            "5f00::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "223.255.255.254",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_operator_allows_networks_addresses_and_hosts() {
        let allowed: Allowed = "10.1.0.0/16, 127.0.0.1,fd00::/8,Hooks.internal,".parse().unwrap();
        for address in ["10.1.2.3", "127.0.0.1", "::ffff:10.1.2.3", "fd12::1", "8.8.8.8"] {
            assert!(allowed.may_reach(address.parse().unwrap()), "{address}");
        }
        for address in ["10.2.0.1", "127.0.0.2", "fe80::1", "::1"] {
            assert!(!allowed.may_reach(address.parse().unwrap()), "{address}");
        }
        assert!(allowed.names("hooks.INTERNAL.") && !allowed.names("other.internal"));
        let all: Allowed = "0.0.0.0/0,::/0".parse().unwrap();
        assert!(all.may_reach("192.168.0.1".parse().unwrap()) && all.may_reach("::1".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "::/129", "10.0.0", "a b", "http://x", "10.0.0.0/x"] {
            let error = wrong.parse::<Allowed>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{wrong:?} is no host")), "{error}");
        }
    }
}
