//! The router, from what the endpoints declare.

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};

use crate::{
    gateway::Shared,
    layers::{self, Required},
    routes,
};

pub(crate) fn router(gateway: &Shared) -> Router {
    let mut router = Router::<Shared>::new();
    for endpoint in routes::all() {
        let mut handler = endpoint.handler;
        if !endpoint.roles.is_empty() {
            let required = Required { gateway: gateway.clone(), roles: endpoint.roles };
            handler = handler.layer(from_fn_with_state(required, layers::require));
        }
        router = router.route(endpoint.path, handler);
    }
    let api = with_layers(router.fallback(layers::not_found).with_state(gateway.clone()), gateway);
    // The console asks the API like any other client, and what reaches it goes through the same layers.
    let console = redial_console::router(api.clone()).layer(from_fn_with_state(gateway.clone(), layers::page));
    let console = with_layers(console, gateway);
    api.merge(console)
}

fn with_layers(router: Router, gateway: &Shared) -> Router {
    router.layer(from_fn(layers::catch_panic)).layer(from_fn_with_state(gateway.clone(), layers::finish))
}
