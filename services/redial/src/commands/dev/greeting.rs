//! What `redial dev` prints once it is ready.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{cli::DevArgs, dev_folder::DEV_FOLDER, output};

pub(super) struct Greeting {
    pub(super) json: bool,
    pub(super) began: Instant,
    pub(super) nats_url: String,
    pub(super) database_url: String,
    pub(super) http_url: Option<String>,
    pub(super) needs_token: bool,
    /// The usual address of HTTP, if another program has it.
    pub(super) taken: Option<SocketAddr>,
    pub(super) folder: PathBuf,
    pub(super) log: PathBuf,
    pub(super) files: Option<String>,
    pub(super) next: Next,
}

/// What runs here, and so what a user may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Call,
    StartWorker,
    StartRoles,
}

impl Next {
    pub(super) fn of(args: &DevArgs) -> Self {
        match (args.only_servers, args.no_worker) {
            (true, _) => Self::StartRoles,
            (false, true) => Self::StartWorker,
            (false, false) => Self::Call,
        }
    }
}

impl Greeting {
    pub(super) fn print(self) {
        let ready_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.json {
            let ready = serde_json::json!({
                "ready_ms": ready_ms, "nats_url": self.nats_url, "database_url": self.database_url,
                "http_url": self.http_url, "log": self.log,
            });
            return output::announce(ready.to_string());
        }
        output::announce(self.text(ready_ms));
    }

    fn text(&self, ready_ms: u64) -> String {
        let mut lines = vec![
            format!("redial dev is ready after {ready_ms} ms"),
            format!("  NATS      {}", self.nats_url),
            format!("  Postgres  {}", self.database_url),
            format!("  log       {} (here only warnings, and each only once a minute)", self.log.display()),
        ];
        lines.extend(self.http_url.iter().map(|url| format!("  console   {url}/console")));
        let token = if self.needs_token { "with a token" } else { "no token needed here" };
        lines.extend(self.http_url.iter().map(|url| format!("  HTTP      {url} ({token}; {url}/docs)")));
        lines.extend(self.taken.iter().map(|taken| {
            format!("            another program has {taken}: `eval \"$(redial env)\"` sets REDIAL_URL for clients")
        }));
        lines.extend(self.files.iter().map(|files| format!("  declared  {files}")));
        lines.extend(next_steps(self.next, &self.folder, &self.nats_url, &self.database_url));
        lines.push("Ctrl-C stops everything; a second one does not wait for running calls.".to_owned());
        lines.join("\n")
    }
}

/// Says how to go on. Commands find the `redial dev` of their folder; one with another `--folder` must be named.
fn next_steps(next: Next, folder: &Path, nats_url: &str, database_url: &str) -> Vec<String> {
    let is_found = folder == Path::new(DEV_FOLDER);
    let mut lines = vec![if is_found {
        "In another terminal, in this folder:".to_owned()
    } else {
        "In another terminal:".to_owned()
    }];
    if !is_found {
        lines.push(format!("  export REDIAL_NATS_URL='{nats_url}' REDIAL_DATABASE_URL='{database_url}'"));
    }
    let commands: &[&str] = match next {
        Next::Call => &["redial call echo '{\"hello\": \"world\"}' --wait"],
        Next::StartWorker => &["redial worker        # calls wait until one runs"],
        Next::StartRoles => &["redial dispatcher    # and in a third terminal:", "redial worker"],
    };
    lines.extend(commands.iter().map(|command| format!("  {command}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_fits_what_runs() {
        let text = |next, folder: &str, files: Option<&str>| {
            let greeting = Greeting {
                json: false,
                began: Instant::now(),
                nats_url: "nats://redial:x@127.0.0.1:4222".to_owned(),
                database_url: "postgres://redial:x@127.0.0.1:5432/redial".to_owned(),
                http_url: files.map(|_| "http://127.0.0.1:8700".to_owned()),
                needs_token: false,
                taken: (next == Next::StartWorker).then(|| "127.0.0.1:8700".parse().unwrap()),
                folder: folder.into(),
                log: Path::new(folder).join("redial.log"),
                files: files.map(str::to_owned),
                next,
            };
            greeting.text(1234)
        };
        let texts = [
            text(Next::Call, ".redial", Some("3 tools, 1 model, 1 agent")),
            text(Next::Call, "/tmp/other", None),
            text(Next::StartWorker, ".redial", None),
            text(Next::StartRoles, ".redial", None),
        ];
        insta::assert_snapshot!(texts.join("\n\n"));
    }
}
