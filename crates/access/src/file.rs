//! Reads `access.toml`. All mistakes are found at once, each with its line and column.

mod entries;

use std::collections::BTreeMap;

use redial_files::{
    Entries, LIMIT, Rules, TomlMistake, entries_beside, field_at, fill_missing, is_misspelt, position_of, read_entry,
    toml_mistake,
};
use redial_proto::{Tenant, User, WorkerIdentity, check_token};
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use self::entries::{PASSWORD, POOLS, ROLES, RawService, Required, policy, user, worker};
use crate::{Access, Password, ServiceLogin, TenantEntry, UserEntry, WorkerEntry, names, warnings::Passwords};

const DISPATCHER: &str = "dispatcher";
const GATEWAY: &str = "gateway";

/// A table of the file.
struct Entry<'t> {
    /// As a mistake names it: `user "acme.alice"`.
    owner: String,
    /// Where it is named.
    begin: usize,
    table: Spanned<DeTable<'t>>,
}

#[derive(Default)]
struct Reader {
    mistakes: Vec<TomlMistake>,
    passwords: Passwords,
}

pub(crate) fn read(file: &str, text: &str) -> Result<Access, Vec<String>> {
    let Entries { tables, others, mistakes } = entries_beside(text, "tenants", &[DISPATCHER, GATEWAY, "workers"]);
    let is_readable = mistakes.is_empty() || !tables.is_empty() || !others.is_empty();
    let mut reader = Reader { mistakes, passwords: Passwords::default() };
    let (mut dispatcher, mut gateway, mut workers) = (None, None, BTreeMap::new());
    for (name, value) in others {
        match name {
            DISPATCHER => dispatcher = Some(reader.service(DISPATCHER, value)),
            GATEWAY => gateway = reader.gateway(value),
            _ => workers = reader.workers(value),
        }
    }
    if dispatcher.is_none() && is_readable {
        reader.add(
            None,
            format!("the table [dispatcher] is missing; allowed: [dispatcher] with password = {}", PASSWORD.allowed),
        );
    }
    let tenants = reader.tenants(tables);
    let same = dispatcher.iter().flatten().zip(&gateway).find(|(one, (_, other))| one.user == other.user);
    if let Some((_, (at, other))) = same {
        reader
            .add(Some(*at), format!("gateway: user is {:?}, like the dispatchers'; allowed: another name", other.user));
    }
    if let (true, Some(Some(dispatcher))) = (reader.mistakes.is_empty(), dispatcher) {
        let warnings = reader.passwords.warnings(file, text);
        return Ok(Access { dispatcher, gateway: gateway.map(|(_, login)| login), tenants, workers, warnings });
    }
    reader.mistakes.sort_by_key(|mistake| mistake.at);
    let line = |mistake: TomlMistake| {
        let position = mistake.at.map(|at| format!(":{}", position_of(text, at))).unwrap_or_default();
        format!("{file}{position}: {}", mistake.message)
    };
    Err(reader.mistakes.into_iter().take(LIMIT).map(line).collect())
}

impl Reader {
    fn add(&mut self, at: Option<usize>, message: String) {
        if self.mistakes.len() < LIMIT {
            self.mistakes.push(TomlMistake { at, message });
        }
    }

    /// Reads the login of the gateways; returns where it is, too.
    fn gateway(&mut self, value: Spanned<DeValue<'_>>) -> Option<(usize, ServiceLogin)> {
        let begin = value.span().start;
        self.service(GATEWAY, value).map(|login| (begin, login))
    }

    fn service(&mut self, name: &'static str, value: Spanned<DeValue<'_>>) -> Option<ServiceLogin> {
        let begin = value.span().start;
        let table = self.table(name, begin, value)?;
        let entry = Entry { owner: name.to_owned(), begin, table };
        let at = field_at(entry.table.get_ref(), "password").unwrap_or(begin);
        let read = self.entry(entry, &[PASSWORD], |entry: RawService| {
            let user = entry.user.unwrap_or_else(|| name.to_owned());
            check_token("user", &user)?;
            Ok(ServiceLogin { user, password: Password::parse(&entry.password)? })
        })?;
        self.passwords.add(name.to_owned(), at, &read.password);
        Some(read)
    }

    fn tenants(
        &mut self,
        tables: Vec<(Option<Spanned<String>>, Spanned<DeTable<'_>>)>,
    ) -> BTreeMap<Tenant, TenantEntry> {
        let mut found = BTreeMap::new();
        for (name, mut table) in tables {
            let Some(name) = name else {
                self.add(Some(table.span().start), "[[tenants]] has no name; allowed: [tenants.NAME]".to_owned());
                continue;
            };
            let (begin, name) = (name.span().start, name.into_inner());
            let tenant = self.name(names::tenant(&name), begin);
            let users = table.get_mut().remove("users").map(|users| self.users(&name, users)).unwrap_or_default();
            let entry = Entry { owner: format!("tenant {name:?}"), begin, table };
            let policy = self.entry(entry, &[], policy).unwrap_or_default();
            if let Some(tenant) = tenant {
                found.insert(tenant, TenantEntry { policy, users });
            }
        }
        found
    }

    fn users(&mut self, tenant: &str, value: Spanned<DeValue<'_>>) -> BTreeMap<User, UserEntry> {
        let mut found = BTreeMap::new();
        for (name, begin, table) in self.named_tables(&format!("tenants.{tenant}.users"), value) {
            let parsed = self.name(name.parse(), begin);
            let owner = format!("user {:?}", format!("{tenant}.{name}"));
            let at = field_at(table.get_ref(), "password").unwrap_or(begin);
            let entry = Entry { owner: owner.clone(), begin, table };
            if let (Some(user), Some(name)) = (self.entry(entry, &[ROLES, PASSWORD], user), parsed) {
                self.passwords.add(owner, at, &user.password);
                found.insert(name, user);
            }
        }
        found
    }

    fn workers(&mut self, value: Spanned<DeValue<'_>>) -> BTreeMap<WorkerIdentity, WorkerEntry> {
        let mut found = BTreeMap::new();
        for (name, begin, table) in self.named_tables("workers", value) {
            let identity = self.name(name.parse(), begin);
            let owner = format!("worker {name:?}");
            let at = field_at(table.get_ref(), "password").unwrap_or(begin);
            let entry = Entry { owner: owner.clone(), begin, table };
            if let (Some(worker), Some(identity)) = (self.entry(entry, &[POOLS, PASSWORD], worker), identity) {
                self.passwords.add(owner, at, &worker.password);
                found.insert(identity, worker);
            }
        }
        found
    }

    fn name<T>(&mut self, read: Result<T, String>, at: usize) -> Option<T> {
        read.map_err(|message| self.add(Some(at), message)).ok()
    }

    /// Returns the tables of `[name.a]` and `[name.b]`, with their names and where these are.
    fn named_tables<'t>(
        &mut self,
        name: &str,
        value: Spanned<DeValue<'t>>,
    ) -> Vec<(String, usize, Spanned<DeTable<'t>>)> {
        let begin = value.span().start;
        let Some(tables) = self.table(name, begin, value) else { return Vec::new() };
        let mut found = Vec::new();
        for (key, value) in tables.into_inner() {
            let begin = key.span().start;
            if let Some(table) = self.table(&format!("{name}.{}", key.get_ref()), begin, value) {
                found.push((key.into_inner().into_owned(), begin, table));
            }
        }
        found
    }

    fn table<'t>(&mut self, name: &str, at: usize, value: Spanned<DeValue<'t>>) -> Option<Spanned<DeTable<'t>>> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Spanned::new(span, table)),
            other => {
                self.add(Some(at), format!("{name} is a {}; a table is needed", other.type_str()));
                None
            }
        }
    }

    /// Reads a table, or keeps everything that is wrong with it. A message of `check` begins with the path of its field.
    fn entry<T: DeserializeOwned, R>(
        &mut self,
        entry: Entry<'_>,
        required: &[Required],
        check: impl Fn(T) -> Result<R, String>,
    ) -> Option<R> {
        let Entry { owner, begin, mut table } = entry;
        let stand_ins: Vec<_> = required.iter().map(|one| (one.field, one.stand_in)).collect();
        let missing = fill_missing(table.get_mut(), &stand_ins);
        let rules = Rules { needed: &[], stand_ins: &stand_ins };
        let one = |table: Spanned<DeTable<'_>>| {
            let fields = table.clone();
            let read = T::deserialize(toml::de::Deserializer::from(table)).map_err(|error| toml_mistake(&error));
            let at = |path: &str| field_at(fields.get_ref(), path);
            read.and_then(|read| {
                check(read).map_err(|message| {
                    let path = message.split([' ', ':']).next().unwrap_or_default();
                    TomlMistake { at: at(path), message }
                })
            })
            .map_err(|mistake| TomlMistake { at: mistake.at.or(Some(begin)), ..mistake })
        };
        let (read, mut wrong) = match read_entry(table, &rules, |mistake: &TomlMistake| mistake.at, one) {
            Ok(read) => (Some(read), Vec::new()),
            Err(wrong) => (None, wrong),
        };
        for field in &missing {
            if is_misspelt(field, wrong.iter().map(|mistake| mistake.message.as_str())) {
                continue;
            }
            let allowed = required.iter().find(|one| one.field == *field).map_or("", |one| one.allowed);
            wrong.push(TomlMistake {
                at: Some(begin),
                message: format!("the field {field:?} is missing; allowed: {allowed}"),
            });
        }
        let is_right = wrong.is_empty();
        for mistake in wrong {
            self.add(mistake.at, format!("{owner}: {}", mistake.message));
        }
        read.filter(|_| is_right)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use redial_proto::UserRole;

    use super::*;
    use crate::TenantPolicy;

    const EXAMPLE: &str = include_str!("example.toml");

    #[test]
    fn a_whole_file() {
        let access = read("access.toml", EXAMPLE).unwrap();
        let roles = BTreeSet::from([UserRole::Submit, UserRole::Read]);
        assert_eq!(access.roles_of(&named("acme"), &named("alice")), Some(&roles));
        assert_eq!(access.roles_of(&named("globex"), &named("alice")), None);
        let policy = access.tenant(&named("acme")).unwrap();
        assert!(policy.allows_tool("get_rate") && !policy.allows_tool("delete") && policy.budgets.turns == Some(20));
        assert_eq!(access.tenant(&named("globex")), Some(&TenantPolicy::default()));
        assert_eq!(access.tenant(&named("other")), None);
        assert_eq!(access.warnings, Vec::<String>::new());
    }

    fn named<T: std::str::FromStr<Err = String>>(name: &str) -> T {
        name.parse().unwrap()
    }

    fn wrong(text: &str) -> String {
        read("access.toml", text).unwrap_err().join("\n")
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        insta::assert_snapshot!(wrong(include_str!("file/mistakes.toml")));
    }

    #[test]
    fn the_pools_of_a_worker_fit_into_its_subjects() {
        let file = |letters: usize| {
            let pools: Vec<String> = (0..16).map(|n| format!("\"{n:02}{}\"", "é".repeat(letters))).collect();
            format!(
                "[dispatcher]\npassword = \"$A\"\n[workers.tools]\npools = [{}]\npassword = \"$B\"\n",
                pools.join(",")
            )
        };
        assert!(read("access.toml", &file(60)).is_ok());
        let told =
            "access.toml:4:9: worker \"tools\": pools: the names of the pools take 2031 bytes together; allowed: 2000";
        assert_eq!(wrong(&file(62)), told);
    }

    #[test]
    fn what_is_no_table_or_no_toml_is_said() {
        let texts = [
            "",
            "dispatcher = 3\nworkers = 4",
            "[[tenants]]\n[dispatcher]\npassword=\"$A\"",
            "[dispatcher\n",
            "[tenants]\nacme = 1\n[dispatcher]\n",
            "gateway = 3\n[dispatcher]\npassword=\"$A\"",
            "[dispatcher]\npassword=\"$A\"\nuser = \"gateway\"\n[gateway]\npassword = \"$B\"",
        ];
        insta::assert_snapshot!(texts.map(wrong).join("\n\n"));
        let many: Vec<String> = (0..1000).map(|n| format!("[workers.w{n}]\n")).collect();
        assert_eq!(read("access.toml", &many.concat()).unwrap_err().len(), LIMIT);
    }

    #[test]
    fn passwords_that_are_written_down_or_used_twice_are_warned_of() {
        let text = r#"
[dispatcher]
password = "a plain one"
[tenants.acme.users]
alice = { roles = ["read"], password = "$A" }
bob = { roles = ["read"], password = "$A" }
[workers.tools]
pools = ["default"]
password = "a plain one"
"#;
        insta::assert_snapshot!(read("access.toml", text).unwrap().warnings.join("\n"));
    }
}
