//! Gateways in this process.

use std::time::Duration;

use redial_gateway::GatewayConfig;
use redial_proto::{ApiToken, Tenant, TokenCreate, TokenCreateReply, TokenExpiry, User, UserRole, subjects::Verb};
use redial_queue::Queue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Stack, nats};

/// A running gateway. It stops when this is dropped.
pub struct TestGateway {
    /// `http://127.0.0.1:<port>`
    pub url: String,
    shutdown: CancellationToken,
}

impl Stack {
    /// Starts a gateway that asks for no token: who asks is the stack's usual user.
    pub async fn serve_http(&self) -> TestGateway {
        self.serve_http_with(|config| config.without_token = Some((Tenant::default(), User::default()))).await
    }

    /// Starts a gateway with other settings; it wants tokens unless they say otherwise.
    pub async fn serve_http_with(&self, change: impl FnOnce(&mut GatewayConfig)) -> TestGateway {
        let queue = nats(&self.servers, "gateway");
        let mut config = GatewayConfig::new(queue, self.servers.database_url());
        config.listen.set_port(0);
        config.access.clone_from(&self.dispatcher.access);
        change(&mut config);
        let (shutdown, (started, ready)) = (CancellationToken::new(), oneshot::channel());
        let token = shutdown.clone();
        tokio::spawn(async move {
            redial_gateway::run(config, token, |address| started.send(address).unwrap()).await.unwrap();
        });
        let address = ready.await.expect("the gateway starts");
        TestGateway { url: format!("http://{address}"), shutdown }
    }
}

/// Creates a token of the tenant and user of a connection.
pub async fn token(queue: &Queue, roles: &[UserRole]) -> ApiToken {
    let token = ApiToken::of_random(&std::array::from_fn(|_| rand::random()));
    let create = new_token(&token, roles);
    let _: TokenCreateReply = queue.ask(Verb::TokenCreate, &create, Duration::from_secs(25)).await.unwrap();
    token
}

/// Makes the request for a token of whoever asks for it.
pub fn new_token(token: &ApiToken, roles: &[UserRole]) -> TokenCreate {
    let (id, sha256, roles) = (token.id.clone(), token.hash(), roles.to_vec());
    TokenCreate { id, sha256, tenant: None, user: None, roles, label: None, expiry: TokenExpiry::default() }
}

impl TestGateway {
    pub fn stop(&self) {
        self.shutdown.cancel();
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
