//! The server's configuration file, with settings that nats-server knows since 2.9.10.

use std::{fmt::Write as _, path::Path};

use super::member::Member;

pub(super) struct Values<'a> {
    pub(super) port: u16,
    pub(super) store: &'a Path,
    pub(super) password: &'a str,
    pub(super) max: Option<u64>,
    pub(super) accounts: Option<&'a str>,
    pub(super) member: Option<&'a Member>,
}

const ONE_USER: &str =
    "accounts {\n  REDIAL { jetstream: enabled, users: [ { user: redial, password: $REDIAL_PASSWORD } ] }\n}\n";

impl Values<'_> {
    /// Writes the configuration. Users are listed inside `accounts`: with an `authorization` block beside it, 2.9.10
    /// accepts anonymous clients.
    pub(super) fn text(&self) -> String {
        let store = quoted(&self.store.to_string_lossy());
        let mut jetstream = format!("store_dir: {store}");
        if let Some(max) = self.max {
            let _infallible = write!(jetstream, ", max_file_store: {max}");
        }
        format!(
            "# Written by Redial at each start.\n\
             host: 127.0.0.1\n\
             port: {port}\n\
             jetstream {{ {jetstream} }}\n\
             REDIAL_PASSWORD: {password}\n\
             {cluster}{accounts}",
            cluster = self.member.map(cluster).unwrap_or_default(),
            accounts = self.accounts.unwrap_or(ONE_USER),
            port = self.port,
            password = quoted(self.password),
        )
    }
}

/// Writes the cluster's block. Only other members may connect to the port of the routes. Clients know all servers from
/// their settings, and are told of none: what a server would advertise goes past a proxy.
fn cluster(member: &Member) -> String {
    let Member { name, port, routes, password } = member;
    let routes: Vec<String> =
        routes.iter().map(|port| quoted(&format!("nats://route:{password}@127.0.0.1:{port}"))).collect();
    format!(
        "server_name: {name}\n\
         cluster {{\n  name: redial, host: 127.0.0.1, port: {port}, no_advertise: true\n  \
         authorization {{ user: route, password: {password} }}\n  routes: [ {routes} ]\n}}\n",
        name = quoted(name),
        password = quoted(password),
        routes = routes.join(", "),
    )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let store = Path::new("/a b\"\\c");
        let text = Values { port: 7, store, password: "p", max: Some(9), accounts: None, member: None }.text();
        assert!(text.contains(r#"jetstream { store_dir: "/a b\"\\c", max_file_store: 9 }"#), "{text}");
        assert!(text.contains("port: 7\n") && text.contains(r#"REDIAL_PASSWORD: "p""#), "{text}");
    }
}
