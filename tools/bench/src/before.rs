//! An older program, measured beside the one that was built here: with a NATS of its own, because its streams may be set
//! otherwise, and on the same Postgres in a database that it migrated.

use std::path::Path;

use anyhow::Context as _;
use redial_queue::Queue;
use redial_servers::Supervised;

use crate::{
    database::Database,
    fleet::{Environment, Fleet},
    load::{Load, WORKER},
    servers::Servers,
};

const NAME: &str = "redial_before";

pub(crate) struct Before {
    environment: Environment,
    nats: Supervised,
    queue: Queue,
    pub(crate) database: Database,
}

impl Before {
    pub(crate) async fn prepare(servers: &Servers, program: &Path) -> anyhow::Result<Self> {
        let redial = std::fs::canonicalize(program).with_context(|| format!("--against {}", program.display()))?;
        let (nats, queue) = servers.another_nats("nats-before").await?;
        let (nats_url, database_url) = (nats.url().to_owned(), servers.create(NAME).await?);
        let environment = Environment { folder: servers.folder.clone(), nats_url, database_url, redial };
        environment.migrate().await?;
        let database = Database::connect(&environment.database_url).await?;
        Ok(Self { environment, nats, queue, database })
    }

    /// Starts one dispatcher and one worker.
    pub(crate) async fn fleet(&self) -> anyhow::Result<Fleet> {
        let mut fleet = Fleet::start(self.environment.clone(), 1).await?;
        fleet.add_workers(1, &WORKER).await?;
        Ok(fleet)
    }

    pub(crate) fn load(&self) -> Load<'_> {
        Load::new(&self.queue, &self.database)
    }

    pub(crate) async fn close(self) {
        let Self { nats, queue, database, .. } = self;
        database.close().await;
        // Or it would try to reconnect, and say so.
        drop(queue);
        nats.stop().await;
    }
}
