//! The settings of a gateway.

use std::net::SocketAddr;

use redial_gateway::GatewayConfig;
use redial_proto::ApiError;
use redial_queue::QueueConfig;

use super::{GatewayFlags, Problems, Settings};

impl Settings {
    /// The gateway of the `redial dev` that runs in this folder, if the servers of that one are used.
    pub(crate) fn dev_http_url(&self) -> Option<&str> {
        self.dev().filter(|_| self.nats_url_if_set().is_none())?.http_url.as_deref()
    }

    /// A gateway, but for its access file: [`Settings::access`].
    pub(crate) fn gateway(
        &self,
        flags: &GatewayFlags,
        queue: QueueConfig,
        database_url: String,
    ) -> Result<GatewayConfig, ApiError> {
        let mut problems = Problems::default();
        let who = (queue.tenant.clone(), queue.user.clone());
        let mut config = GatewayConfig::new(queue, database_url);
        let allowed = "an IP address and a port, such as 127.0.0.1:8700 or [::1]:8700";
        let listen = self.parse("listen", flags.listen.as_ref(), allowed, |text| text.parse::<SocketAddr>().ok());
        config.listen = problems.keep_or(listen, config.listen);
        let hosts = self.text("gateway_hosts", flags.gateway_hosts.as_ref()).unwrap_or_default();
        config.hosts = hosts.split(',').map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()).collect();
        for (name, flag, within, value) in [
            ("gateway_rate", &flags.gateway_rate, GatewayConfig::RATE, &mut config.rate),
            ("gateway_streams", &flags.gateway_streams, GatewayConfig::STREAMS, &mut config.streams),
            ("gateway_connections", &flags.gateway_connections, GatewayConfig::CONNECTIONS, &mut config.connections),
        ] {
            *value = problems.keep_or(self.number(name, flag.as_ref(), &within), *value);
        }
        let open = self.parse("without_token", flags.without_token.as_ref(), "true or false", |text| text.parse().ok());
        config.without_token = problems.keep_or(open, false).then_some(who);
        problems.into_result().map(|()| config)
    }

    /// Whether a setting is set at all.
    pub(crate) fn is_set(&self, name: &str, flag: Option<&String>) -> bool {
        self.text(name, flag).is_some()
    }
}
