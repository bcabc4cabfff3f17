//! Builds a tool from an entry of a manifest.

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use redial_files::{FileError, Location};
use redial_proto::{
    RetryPolicy, ToolSpec, duration,
    tool::{check_name, parse_retry_time, parse_timeout},
};
use redial_redaction::{Secrets, secrets_of_variable};
use reqwest::{
    Method,
    header::{
        AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
        UPGRADE,
    },
};
use secrecy::SecretString;
use serde_json::Value;
use toml::Spanned;

use super::{
    Loader,
    exit_codes::failure_rules,
    file::{Command, Entry, Http, Retry},
};
use crate::{
    command::{CommandArgument, CommandTool, PASSED_ON, SEARCHED},
    http::{Body, Declared, HttpTool, unknown_reference},
    template::{JsonTemplate, Scope, Template, UrlTemplate},
    tool::{Tool, check_reserved},
};

/// Largest accepted limit.
const MAX_CONCURRENCY: u32 = 100_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

impl Loader<'_> {
    pub(super) fn tool(&mut self, mut entry: Entry, location: &Location<'_>) -> Result<Tool, FileError> {
        let mut spec = self.spec(&mut entry, location)?;
        spec.name.clone_from(entry.name.get_ref());
        if let Some(limit) = entry.concurrency.as_ref().filter(|limit| !(1..=MAX_CONCURRENCY).contains(limit.get_ref()))
        {
            let message = format!("{} is not allowed; allowed: 1 to {MAX_CONCURRENCY}", limit.get_ref());
            return Err(location.field_error(limit, "concurrency", message));
        }
        let is_command = entry.command.is_some();
        let mut tool = match (entry.http, entry.command) {
            (Some(http), None) => {
                let (handler, secrets) = self.http(http.get_ref(), &spec, location)?;
                Tool::from_handler(spec, Arc::new(handler)).with_secrets(&secrets)
            }
            (None, Some(command)) => {
                let (handler, secrets) = self.command(command.get_ref(), &spec, location)?;
                let warning = warning(&handler, command.get_ref(), location);
                let mut tool = Tool::from_handler(spec, Arc::new(handler)).with_secrets(&secrets);
                tool.warning = warning;
                tool
            }
            (Some(_), Some(command)) => {
                return Err(location.field_error(
                    &command,
                    "command",
                    "[tool.http] is present as well; exactly one of them is allowed",
                ));
            }
            (None, None) => {
                return Err(location.whole_error("", "[tool.http] or [tool.command] is needed; neither is present"));
            }
        };
        // Last, so that everything else is checked also for a tool with a wrong name.
        check_name("tool name", &tool.spec.name)
            .and_then(|()| check_reserved(&tool.spec))
            .map_err(|message| location.name_error("", message))?;
        if let Some(limit) = entry.concurrency {
            tool = tool.concurrency(limit.into_inner());
        }
        if is_command {
            tool = tool.starts_programs();
        }
        if let Some(pool) = entry.pool {
            tool.spec.pool = pool.into_inner();
        }
        Ok(tool)
    }

    /// Builds the spec without its name, which is checked last.
    fn spec(&self, entry: &mut Entry, location: &Location<'_>) -> Result<ToolSpec, FileError> {
        let mut spec = ToolSpec::named("tool");
        spec.description = std::mem::take(&mut entry.description);
        spec.effect = entry.effect;
        spec.parameters = self.parameters(entry, location)?.unwrap_or(spec.parameters);
        if let Some(pool) = &entry.pool {
            spec.pool.clone_from(pool.get_ref());
        }
        if let Some(timeout) = &entry.timeout {
            spec.timeout_ms = parse_timeout(timeout.get_ref())
                .map_err(|message| location.field_error(timeout, "timeout", message))?;
        }
        spec.retry = retry(&entry.retry, location)?;
        spec.retry_budget = entry.retry_budget;
        spec.polling = entry.polling;
        spec.sequential = entry.sequential;
        spec.repairs = entry.repairs.unwrap_or(spec.repairs);
        spec.check().and_then(|()| check_reserved(&spec)).map_err(|message| location.path_error(message))?;
        Ok(spec)
    }

    fn parameters(&self, entry: &mut Entry, location: &Location<'_>) -> Result<Option<Value>, FileError> {
        let (inline, file) = (entry.parameters.take(), entry.parameters_file.take());
        match (inline, file) {
            (Some(_), Some(file)) => Err(location.field_error(
                &file,
                "parameters_file",
                "`parameters` is present as well; only one of them is allowed",
            )),
            (Some(inline), None) => Ok(Some(inline.into_inner())),
            (None, Some(file)) => {
                let path = self.folder.join(file.get_ref());
                let wrong =
                    |why: String| location.field_error(&file, "parameters_file", format!("{}: {why}", path.display()));
                let text = fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
                serde_json::from_str(&text)
                    .map(Some)
                    .map_err(|error| wrong(format!("is not JSON: {}", redial_files::json_mistake(&text, &error))))
            }
            (None, None) => Ok(None),
        }
    }

    fn http(
        &mut self,
        http: &Http,
        spec: &ToolSpec,
        location: &Location<'_>,
    ) -> Result<(HttpTool, Secrets), FileError> {
        let scope = Scope { parameters: &spec.parameters, secrets: None };
        let method = METHODS.into_iter().find(|method| method.as_str() == http.method.get_ref()).ok_or_else(|| {
            let message = format!("{:?} is not allowed; allowed: GET, POST, PUT, PATCH, DELETE", http.method.get_ref());
            location.field_error(&http.method, "http.method", message)
        })?;
        let slashes = names(&http.allow_slash, "http.allow_slash", &scope, location)?;
        let url = UrlTemplate::parse(http.url.get_ref(), &scope, &slashes)
            .map_err(|message| location.field_error(&http.url, "http.url", message))?;
        let headers = http.headers.iter().map(|(name, value)| self.header(name, value, spec, location));
        let headers: Vec<(HeaderName, Template)> = headers.collect::<Result<_, FileError>>()?;
        let has_secret = headers.iter().any(is_secret);
        if has_secret && url.is_readable_on_the_way() && !http.insecure_http {
            let message = "sends a secret unencrypted; allowed: https, a host that is this machine (localhost, 127.0.0.1, ::1), \
                           or http.insecure_http = true if everyone on the way may read it";
            return Err(location.field_error(&http.url, "http.url", message));
        }
        let body = body(http.body.as_ref(), &method, &scope, location)?;
        let connect_timeout = match &http.connect_timeout {
            Some(text) => duration::parse_positive(text.get_ref())
                .map_err(|message| location.field_error(text, "http.connect_timeout", message))?,
            None => CONNECT_TIMEOUT,
        };
        let clients = self.clients(connect_timeout).map_err(|message| location.whole_error("http", message))?;
        let route = clients.route(url.address(), has_secret);
        let secrets = Secrets::new(headers.iter().flat_map(|(_, value)| value.secrets()));
        let (effect, error_text_to_model) = (spec.effect, http.error_text_to_model);
        Ok((HttpTool { route, method, url, headers, body, effect, error_text_to_model }, secrets))
    }

    fn header(
        &self,
        name: &Spanned<String>,
        value: &Spanned<String>,
        spec: &ToolSpec,
        location: &Location<'_>,
    ) -> Result<(HeaderName, Template), FileError> {
        let field = format!("http.headers.{}", name.get_ref());
        let parsed: HeaderName = name.get_ref().parse().map_err(|_| {
            location.field_error(
                name,
                &field,
                "is not a header name; allowed: letters, digits and a few symbols such as \"-\"",
            )
        })?;
        if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, UPGRADE].contains(&parsed) {
            return Err(location.field_error(name, &field, "is set by the HTTP client and cannot be declared"));
        }
        let scope = Scope { parameters: &spec.parameters, secrets: Some(self.variable) };
        let template = Template::parse_required(value.get_ref(), &scope)
            .map_err(|message| location.field_error(value, &field, message))?;
        Ok((parsed, template))
    }

    fn command(
        &self,
        command: &Command,
        spec: &ToolSpec,
        location: &Location<'_>,
    ) -> Result<(CommandTool, Secrets), FileError> {
        let scope = Scope { parameters: &spec.parameters, secrets: None };
        let [program, arguments @ ..] = command.argv.get_ref().as_slice() else {
            return Err(location.field_error(&command.argv, "command.argv", "is empty; the program's name is needed"));
        };
        if program.get_ref().is_empty() || program.get_ref().contains("{{") {
            let message = "the program must be a fixed name or path; variables are allowed in its arguments";
            return Err(location.field_error(program, "command.argv[0]", message));
        }
        let arguments = arguments.iter().enumerate().map(|(index, argument)| {
            let field = format!("command.argv[{}]", index + 1);
            let template = Template::parse_required(argument.get_ref(), &scope);
            template.map_err(|message| location.field_error(argument, &field, message))
        });
        let arguments: Vec<Template> = arguments.collect::<Result<_, FileError>>()?;
        let dashes = names(&command.allow_leading_dash, "command.allow_leading_dash", &scope, location)?;
        let arguments = CommandArgument::list(arguments, &dashes);
        let folder = self.folder.join(command.folder.as_ref().map_or(".", |folder| folder.get_ref().as_str()));
        if !folder.is_dir() {
            let message = format!("{} is not a folder", folder.display());
            return Err(command.folder.as_ref().map_or_else(
                || location.whole_error("command.folder", message.clone()),
                |field| location.field_error(field, "command.folder", message.clone()),
            ));
        }
        let environment = command.env.iter().map(|(name, value)| self.variable_of(name, value, spec, location));
        let environment: Vec<(String, Template)> = environment.collect::<Result<_, FileError>>()?;
        let mut inherited = self.inherited(&command.inherit, location)?;
        let found: Vec<SecretString> = inherited
            .iter()
            .flat_map(|(name, value)| secrets_of_variable(name, value))
            .map(SecretString::from)
            .collect();
        let declared = environment.iter().flat_map(|(_, value)| value.secrets());
        let secrets = Secrets::new(declared.chain(&found));
        if let Some(account) = self.account
            && !command.inherit.iter().any(|name| name.get_ref() == "HOME")
        {
            // The worker's own home is closed to other users, and many programs fail if they cannot read there.
            inherited.insert("HOME".to_owned(), account.home.clone());
        }
        let failures = failure_rules(command, location)?;
        let program = program.get_ref().clone();
        let account = self.account.cloned();
        Ok((CommandTool { program, arguments, folder, inherited, environment, failures, account }, secrets))
    }

    fn inherited(
        &self,
        names: &[Spanned<String>],
        location: &Location<'_>,
    ) -> Result<BTreeMap<String, String>, FileError> {
        let mut inherited = BTreeMap::from([("PATH".to_owned(), SEARCHED.to_owned())]);
        for name in names {
            check_variable(name, "command.inherit", location)?;
            inherited.extend((self.variable)(name.get_ref()).map(|value| (name.get_ref().clone(), value)));
        }
        for name in PASSED_ON {
            inherited.extend((self.variable)(name).map(|value| (name.to_owned(), value)));
        }
        Ok(inherited)
    }

    fn variable_of(
        &self,
        name: &Spanned<String>,
        value: &Spanned<String>,
        spec: &ToolSpec,
        location: &Location<'_>,
    ) -> Result<(String, Template), FileError> {
        let field = format!("command.env.{}", name.get_ref());
        check_variable(name, &field, location)?;
        let scope = Scope { parameters: &spec.parameters, secrets: Some(self.variable) };
        let template = Template::parse_required(value.get_ref(), &scope)
            .map_err(|message| location.field_error(value, &field, message))?;
        Ok((name.get_ref().clone(), template))
    }
}

/// Reads names of arguments, each of which is a property of the schema.
fn names(
    names: &[Spanned<String>],
    field: &str,
    scope: &Scope<'_>,
    location: &Location<'_>,
) -> Result<Vec<String>, FileError> {
    let check = |name: &Spanned<String>| match scope.variable(&format!("arguments.{}", name.get_ref())) {
        Ok(_) => Ok(name.get_ref().clone()),
        Err(message) => Err(location.field_error(name, field, message)),
    };
    names.iter().map(check).collect()
}

/// Says what would fail now although nothing is wrong in the manifest.
fn warning(tool: &CommandTool, command: &Command, location: &Location<'_>) -> Option<String> {
    let missing = tool.missing_program().and_then(|missing| {
        let missing = format!("{missing}; until it is there, calls of this tool fail");
        let first = command.argv.get_ref().first()?;
        Some(location.field_error(first, "command.argv[0]", missing).to_string())
    });
    missing.or_else(|| {
        let account = tool.account.as_ref().filter(|account| !account.may_enter(&tool.folder))?;
        let message = format!(
            "user {}, as whom its program runs, may not enter {}; a program that uses files there fails",
            account.name,
            tool.folder.display()
        );
        Some(location.whole_error("command.folder", message).to_string())
    })
}

/// True if a header is meant for the service only: it has a secret, or the name of one.
fn is_secret((name, value): &(HeaderName, Template)) -> bool {
    [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name)
        || name.as_str().ends_with("api-key")
        || value.secrets().next().is_some()
}

fn check_variable(name: &Spanned<String>, field: &str, location: &Location<'_>) -> Result<(), FileError> {
    let text = name.get_ref();
    if text.starts_with("REDIAL_") {
        return Err(location.field_error(
            name,
            field,
            format!("{text:?}: names that start with REDIAL_ are set by Redial"),
        ));
    }
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message = format!("{text:?} is not a variable name; allowed: ASCII letters, digits and \"_\"");
        return Err(location.field_error(name, field, message));
    }
    Ok(())
}

fn body(
    body: Option<&Spanned<Value>>,
    method: &Method,
    scope: &Scope<'_>,
    location: &Location<'_>,
) -> Result<Body, FileError> {
    let takes_body = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    let Some(body) = body else {
        return if takes_body {
            declared(scope).map_err(|message| location.whole_error("http.body", message))
        } else {
            Ok(Body::None)
        };
    };
    let wrong = |message: String| location.field_error(body, "http.body", message);
    match body.get_ref() {
        Value::String(text) if text == "none" => Ok(Body::None),
        _ if *method == Method::GET => Err(wrong("a GET has no body; put arguments into the URL".to_owned())),
        Value::String(text) if text == "arguments" => declared(scope).map_err(wrong),
        Value::String(text) if text == "all_arguments" => Ok(Body::AllArguments),
        Value::Object(_) => JsonTemplate::parse(body.get_ref(), scope).map(Body::Json).map_err(wrong),
        other => Err(wrong(format!(
            "{other} is not allowed; allowed: \"arguments\", \"all_arguments\", \"none\", or a table"
        ))),
    }
}

fn declared(scope: &Scope<'_>) -> Result<Body, String> {
    match unknown_reference(scope.parameters) {
        None => Ok(Body::Declared(Declared::of_schema(scope.parameters.clone()))),
        Some(reference) => Err(format!(
            "what the schema declares is not known, because its reference {reference:?} does not start with \"#\" or leads \
             to nothing; write the body as a table, or \"all_arguments\" to send undeclared properties as well"
        )),
    }
}

fn retry(retry: &Retry, location: &Location<'_>) -> Result<RetryPolicy, FileError> {
    let default = RetryPolicy::default();
    let ms = |value: &Option<Spanned<String>>, field: &str, default: u64| match value {
        Some(text) => parse_retry_time(text.get_ref()).map_err(|message| location.field_error(text, field, message)),
        None => Ok(default),
    };
    Ok(RetryPolicy {
        initial_ms: ms(&retry.initial, "retry.initial", default.initial_ms)?,
        factor: retry.factor.unwrap_or(default.factor),
        cap_ms: ms(&retry.cap, "retry.cap", default.cap_ms)?,
        max_attempts: retry.max_attempts.unwrap_or(default.max_attempts),
        deadline_ms: ms(&retry.deadline, "retry.deadline", default.deadline_ms)?,
    })
}
