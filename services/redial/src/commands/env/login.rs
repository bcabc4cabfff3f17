//! Who connects, and with which password.

use std::path::Path;

use redial_access::{Access, Account, Password};
use redial_files::did_you_mean;
use redial_proto::{ApiError, Code, Tenant, User, WorkerIdentity};

use crate::cli::EnvArgs;

/// The variable with a password that the access file has only as a hash.
const PASSWORD: &str = "REDIAL_NATS_PASSWORD";

#[derive(Clone, Copy)]
pub(super) enum Who<'a> {
    /// `acme.alice`
    User(&'a str),
    Worker(&'a str),
    Dispatcher,
    Gateway,
}

/// What a process needs beside the server's address.
pub(super) struct Login {
    user: String,
    password: String,
    inbox_prefix: String,
    /// Variables of the kind of process: tenant and user, or a worker's name and pools.
    own: Vec<(&'static str, String)>,
    /// Where a `redial dev` listens.
    server: Option<String>,
}

impl Login {
    pub(super) fn asked(args: &EnvArgs) -> Option<Who<'_>> {
        let user = args.user.as_deref().map(Who::User);
        let worker = args.worker.as_deref().map(Who::Worker);
        user.or(worker).or(args.dispatcher.then_some(Who::Dispatcher)).or(args.gateway.then_some(Who::Gateway))
    }

    /// Makes the login of a running `redial dev`: its user, who may do everything.
    ///
    /// Clients over HTTP read `REDIAL_URL`; another `redial dev` may have the usual address.
    pub(super) fn of_dev(url: &str, http_url: Option<&str>) -> Result<Self, ApiError> {
        let parts = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let Some(((user, password), server)) = parts.and_then(|(login, server)| Some((login.split_once(':')?, server)))
        else {
            return Err(ApiError::new(
                Code::InvalidConfiguration,
                "the address of `redial dev` has no user and password",
            ));
        };
        Ok(Self {
            user: user.to_owned(),
            password: password.to_owned(),
            inbox_prefix: "_INBOX".to_owned(),
            own: tenant_and_user("default", "local")
                .into_iter()
                .chain(http_url.map(|url| ("REDIAL_URL", url.to_owned())))
                .collect(),
            server: Some(server.to_owned()),
        })
    }

    pub(super) fn of_access(
        access: &Access,
        file: &Path,
        who: Who<'_>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ApiError> {
        let (user, own) = match who {
            Who::Dispatcher => (access.dispatcher.user.clone(), Vec::new()),
            Who::Gateway => {
                let gateway = access.gateway.as_ref().ok_or_else(|| unknown(access, file, who))?;
                (gateway.user.clone(), Vec::new())
            }
            Who::User(name) => {
                let (tenant, user) = user_named(access, name).ok_or_else(|| unknown(access, file, who))?;
                (name.to_owned(), tenant_and_user(tenant, user))
            }
            Who::Worker(name) => {
                let identity = name.parse::<WorkerIdentity>().ok();
                let worker = identity.and_then(|identity| access.workers.get(&identity));
                let worker = worker.ok_or_else(|| unknown(access, file, who))?;
                let pools: Vec<&str> = worker.pools.iter().map(String::as_str).collect();
                let own = vec![("REDIAL_WORKER_NAME", name.to_owned()), ("REDIAL_WORKER_POOLS", pools.join(","))];
                (format!("worker.{name}"), own)
            }
        };
        let account = access.accounts().into_iter().find(|account| account.user == user);
        let Account { password, inbox_prefix, .. } = account.ok_or_else(|| unknown(access, file, who))?;
        let password = known(&password, &user, variable)?;
        Ok(Self { user, password, inbox_prefix, own, server: None })
    }

    pub(super) fn variables(self, server: &str) -> Vec<(&'static str, String)> {
        let server = self.server.as_deref().unwrap_or(server);
        let (scheme, host) = server.split_once("://").unwrap_or(("nats", server));
        let mut found = vec![
            ("REDIAL_NATS_URL", format!("{scheme}://{}:{}@{host}", encoded(&self.user), encoded(&self.password))),
            ("REDIAL_NATS_INBOX_PREFIX", self.inbox_prefix),
        ];
        found.extend(self.own);
        found.extend([
            ("NATS_URL", format!("{scheme}://{host}")),
            ("NATS_USER", self.user),
            ("NATS_PASSWORD", self.password),
        ]);
        found
    }
}

/// Finds a user of the file, from `tenant.user`.
fn user_named<'n>(access: &Access, name: &'n str) -> Option<(&'n str, &'n str)> {
    let (tenant, user) = name.split_once('.')?;
    let users = &access.tenants.get(&tenant.parse::<Tenant>().ok()?)?.users;
    users.contains_key(&user.parse::<User>().ok()?).then_some((tenant, user))
}

fn tenant_and_user(tenant: &str, user: &str) -> Vec<(&'static str, String)> {
    vec![("REDIAL_TENANT", tenant.to_owned()), ("REDIAL_USER", user.to_owned())]
}

/// Returns the password, if it is known here.
fn known(password: &Password, user: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, ApiError> {
    let (name, found) = match password {
        Password::Plain(password) => return Ok(password.clone()),
        Password::Variable(name) => (name.as_str(), variable(name)),
        Password::Hash(_) => (PASSWORD, variable(PASSWORD)),
    };
    let Some(found) = found else {
        let message = format!(
            "the password of {user} is not known here: set {name} to it in the environment, and run this again"
        );
        return Err(ApiError::new(Code::WrongState, message));
    };
    // As nats-server wants it: there a password must be in double quotes.
    let found = found.strip_prefix('"').and_then(|found| found.strip_suffix('"')).unwrap_or(&found);
    if found.chars().any(char::is_control) {
        let message = format!("{name} has a line break or another control character, which a password must not have");
        return Err(ApiError::new(Code::WrongState, message));
    }
    Ok(found.to_owned())
}

fn unknown(access: &Access, file: &Path, who: Who<'_>) -> ApiError {
    let users =
        access.tenants.iter().flat_map(|(tenant, of)| of.users.keys().map(move |user| format!("{tenant}.{user}")));
    let (what, name, names): (_, _, Vec<String>) = match who {
        Who::User(name) => ("user", name, users.collect()),
        Who::Worker(name) => ("worker", name, access.workers.keys().map(ToString::to_string).collect()),
        Who::Dispatcher => ("user", "dispatcher", Vec::new()),
        Who::Gateway => {
            let message = format!(
                "{}: the table [gateway] is missing; allowed: [gateway] with password = \"$NAME\", the name of an environment variable",
                file.display()
            );
            return ApiError::new(Code::InvalidConfiguration, message);
        }
    };
    let close = did_you_mean(name, names.iter().map(String::as_str));
    let close = close.map(|close| format!("; did you mean {close:?}?")).unwrap_or_default();
    let name = redial_proto::limits::shorten(name, 128);
    let shown: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
    let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    let message = format!("{}: no {what} {name:?} is named{close} (named: {shown})", file.display());
    ApiError::new(Code::InvalidConfiguration, message)
}

/// Encodes everything that RFC 3986 reserves in percent encoding.
fn encoded(text: &str) -> String {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|byte| if fits(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[dispatcher]
password = "$D"
[tenants.acme.users.alice]
roles = ["read"]
password = "$A"
[tenants.acme.users.carl]
roles = ["read"]
password = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
[workers.tools]
pools = ["slow", "default"]
password = "it's $HOME #1"
"#;

    fn shown(who: Who<'_>) -> String {
        let access = Access::read("access.toml", FILE).unwrap();
        let variable = |name: &str| match name {
            "A" => Some("\"12e4\"".to_owned()),
            "D" => Some("two\nlines".to_owned()),
            _ => None,
        };
        match Login::of_access(&access, Path::new("access.toml"), who, &variable) {
            Ok(login) => super::super::exports(&login.variables("tls://nats.example.com:4222")),
            Err(error) => format!("{error}\n"),
        }
    }

    #[test]
    fn what_is_printed() {
        let asked = [
            Who::User("acme.alice"),
            Who::Worker("tools"),
            Who::User("acme.carl"),
            Who::Dispatcher,
            Who::User("acme.alise"),
            Who::User("alice"),
            Who::Worker("models"),
            Who::Gateway,
        ];
        insta::assert_snapshot!(asked.map(shown).join("\n"));
    }

    #[test]
    fn a_dev_has_one_user() {
        let login = Login::of_dev("nats://redial:s3cret@127.0.0.1:5000", Some("http://127.0.0.1:8700")).unwrap();
        insta::assert_snapshot!(super::super::exports(&login.variables("unused")));
        assert!(Login::of_dev("nats://127.0.0.1", None).is_err());
    }
}
