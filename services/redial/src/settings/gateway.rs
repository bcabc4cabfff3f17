//! The settings of a gateway.

use std::net::SocketAddr;

use redial_gateway::GatewayConfig;
use redial_proto::ApiError;
use redial_queue::QueueConfig;

use super::{Problems, Settings};

impl Settings {
    /// Returns the gateway of the `redial dev` that runs in this folder, if the servers of that one are used.
    pub(crate) fn dev_http_url(&self) -> Option<&str> {
        self.dev().filter(|_| self.nats_url_if_set().is_none())?.http_url.as_deref()
    }

    pub(crate) fn gateway(&self, queue: QueueConfig, database_url: String) -> Result<GatewayConfig, ApiError> {
        let mut problems = Problems::default();
        let who = (queue.tenant.clone(), queue.user.clone());
        let mut config = GatewayConfig::new(queue, database_url);
        config.access = self.access();
        let allowed = "an IP address and a port, such as 127.0.0.1:8700 or [::1]:8700";
        let listen = self.parse("listen", allowed, |text| text.parse::<SocketAddr>().ok());
        config.listen = problems.keep_or(listen, config.listen);
        let hosts = self.text("gateway_hosts").unwrap_or_default();
        config.hosts = hosts.split(',').map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()).collect();
        for (name, within, value) in [
            ("gateway_rate", GatewayConfig::RATE, &mut config.rate),
            ("gateway_streams", GatewayConfig::STREAMS, &mut config.streams),
            ("gateway_connections", GatewayConfig::CONNECTIONS, &mut config.connections),
        ] {
            *value = problems.keep_or(self.number(name, &within), *value);
        }
        let open = self.parse("without_token", "true or false", |text| text.parse().ok());
        config.without_token = problems.keep_or(open, false).then_some(who);
        let access_log = self.parse("access_log", "true or false", |text| text.parse().ok());
        config.access_log = problems.keep_or(access_log, false);
        problems.into_result().map(|()| config)
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}
