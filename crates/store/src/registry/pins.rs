//! Which worker identities may serve a tool, and what waits for an operator.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use parking_lot::Mutex;
use redial_proto::{Registration, ToolSpec, WorkerIdentity, tolerant};
use redial_records::{Judgement, ToolOnRecord};
use sqlx::PgConnection;

use crate::{StoreError, connect::Store};

/// Tools that an identity may have: a registration that brings more is refused.
const MAX_TOOLS_OF_IDENTITY: i64 = 10_000;
/// Bytes of the specifications of these tools, as text; a registration that brings more is refused.
const MAX_BYTES_OF_IDENTITY: i64 = 16 << 20;
/// Changes of an identity that may wait for an operator; a registration that brings more is refused.
const MAX_PENDING_OF_IDENTITY: i64 = 1_000;
/// Pending changes of all identities that are kept; the oldest go.
const MAX_PENDING: i64 = 10_000;
/// Identities that are named to somebody who did not say which one is meant.
const MAX_CHOICES: i64 = 20;

/// What became of the tools of a registration.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Tools that are new, or that are registered differently now.
    pub(super) changed_tools: Vec<String>,
    /// All tools that the worker serves.
    pub(super) served: BTreeSet<String>,
    /// All tools that the worker waits for.
    pub(super) all_waiting: BTreeSet<String>,
    /// Tools of this message that wait, with the reasons.
    pub(super) waiting: BTreeMap<String, Vec<String>>,
    /// Tools of this message that were accepted without an operator, with the reasons against it.
    pub(super) unasked: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedTool {
    /// The identity that may serve the tool now.
    pub identity: WorkerIdentity,
    /// Why it waited, in words.
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    UnknownTool,
    Nothing,
    /// Another change than the one that is meant waits for this identity.
    Changed(WorkerIdentity),
    /// These identities wait, at most 20 of them; one has to be named.
    Several(Vec<String>),
}

impl Store {
    /// Writes those tools of a registration that are accepted, and keeps the others as pending changes.
    pub(super) async fn judge_tools(
        &self,
        registration: &Registration,
        judge: &(impl Fn(&ToolOnRecord, &ToolSpec) -> Judgement + Sync),
    ) -> Result<Judged, StoreError> {
        let mut specs = BTreeMap::new();
        for tool in &registration.tools {
            let text = serde_json::to_string(tool).map_err(|error| StoreError::BadData(error.to_string()))?;
            specs.insert(tool.name.as_str(), (tool, text));
        }
        let identity = registration.worker.identity();
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            // One registration of an identity after the other, so that what it may have is counted with all of it.
            sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended('tools ' || $1, 0))", identity.as_str())
                .execute(&mut *transaction)
                .await?;
            let registering = Registering { registration, specs: &specs };
            let judged = registering.judge(&mut transaction, judge).await?;
            if let Some(refused) = registering.check_numbers(&mut transaction, &judged).await? {
                return Ok(Err(refused));
            }
            transaction.commit().await?;
            Ok(Ok(judged))
        })
        .await?
    }

    /// Lets an identity serve a tool, as it registered it: the change with this fingerprint. Without an identity there must be one
    /// that waits.
    pub async fn accept_tool(
        &self,
        tool: &str,
        identity: Option<&WorkerIdentity>,
        fingerprint: &str,
    ) -> Result<Result<AcceptedTool, NotAccepted>, StoreError> {
        let identity = identity.map(WorkerIdentity::as_str);
        // What was accepted by a commit whose reply was lost does not wait any more when this is tried again.
        let accepted = Mutex::new(None);
        let accepted = || accepted.lock();
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            // A registration of the tool ends before this or begins after it.
            let locked = sqlx::query_scalar!("SELECT name FROM tools WHERE name = $1 FOR UPDATE", tool);
            if locked.fetch_optional(&mut *transaction).await?.is_none() {
                return Ok(Err(NotAccepted::UnknownTool));
            }
            let waiting = sqlx::query_file!("sql/pending_tools.sql", tool, identity, MAX_CHOICES);
            let waiting = waiting.fetch_all(&mut *transaction).await?;
            let chosen = match waiting.as_slice() {
                [] => return Ok(accepted().take().ok_or(NotAccepted::Nothing)),
                [one] if one.fingerprint == fingerprint => &one.identity,
                [other] => return Ok(Err(NotAccepted::Changed(WorkerIdentity::of_name(&other.identity)))),
                _ => return Ok(Err(NotAccepted::Several(waiting.into_iter().map(|one| one.identity).collect()))),
            };
            let reasons = sqlx::query_file_scalar!("sql/accept_tool.sql", tool, chosen);
            let Some(reasons) = reasons.fetch_optional(&mut *transaction).await? else {
                // Too many others came meanwhile.
                return Ok(Err(NotAccepted::Nothing));
            };
            let now = AcceptedTool { identity: WorkerIdentity::of_name(chosen), reasons };
            *accepted() = Some(now.clone());
            transaction.commit().await?;
            Ok(Ok(now))
        })
        .await
    }

    /// Returns the worker identities that may serve each tool.
    pub async fn tool_identities(&self) -> Result<HashMap<String, HashSet<String>>, StoreError> {
        let rows =
            on_connection!(self, |db| sqlx::query!("SELECT tool, identity FROM tool_identities").fetch_all(db).await)?;
        let mut identities = HashMap::<String, HashSet<String>>::new();
        for row in rows {
            identities.entry(row.tool).or_default().insert(row.identity);
        }
        Ok(identities)
    }
}

/// A registration, with its tools by name: as data and as text.
struct Registering<'a> {
    registration: &'a Registration,
    specs: &'a BTreeMap<&'a str, (&'a ToolSpec, String)>,
}

impl Registering<'_> {
    async fn judge(
        &self,
        db: &mut PgConnection,
        judge: &(impl Fn(&ToolOnRecord, &ToolSpec) -> Judgement + Sync),
    ) -> Result<Judged, sqlx::Error> {
        let mut judged = Judged::default();
        let names: Vec<&str> = self.specs.keys().copied().collect();
        judged.changed_tools = self.insert(db, &names).await?;
        judged.served.extend(judged.changed_tools.iter().cloned());
        let known: Vec<&str> = names.iter().copied().filter(|name| !judged.served.contains(*name)).collect();
        for (name, on_record) in self.on_record(db, &known).await? {
            let Some((spec, _)) = self.specs.get(name.as_str()) else { continue };
            match judge(&on_record, spec) {
                Judgement::Accepted { unasked } => {
                    if !unasked.is_empty() {
                        judged.unasked.insert(name.clone(), unasked);
                    }
                    judged.served.insert(name);
                }
                Judgement::Waits { reasons } => drop(judged.waiting.insert(name, reasons)),
            }
        }
        if !judged.waiting.is_empty() {
            // Before the first write to the table, or two registrations would each wait for the other's. One at a time, because each
            // may delete the oldest.
            sqlx::query!("LOCK TABLE pending_tools IN SHARE ROW EXCLUSIVE MODE").execute(&mut *db).await?;
        }
        let accepted: Vec<&str> = known.into_iter().filter(|name| judged.served.contains(*name)).collect();
        judged.changed_tools.extend(self.accept(db, &accepted).await?);
        self.keep_waiting(db, &judged.waiting).await?;
        judged.all_waiting.extend(judged.waiting.keys().cloned());
        for (name, waits) in self.others(db).await? {
            if waits {
                judged.all_waiting.insert(name)
            } else {
                judged.served.insert(name)
            };
        }
        Ok(judged)
    }

    /// Returns an error if the identity has too many tools with those that were just written.
    async fn check_numbers(&self, db: &mut PgConnection, judged: &Judged) -> Result<Option<StoreError>, sqlx::Error> {
        let identity = self.identity();
        if !judged.changed_tools.is_empty() {
            let tools = sqlx::query_scalar!(
                r#"SELECT count(*) AS "count!" FROM tool_identities WHERE identity = $1"#,
                identity.as_str()
            );
            if tools.fetch_one(&mut *db).await? > MAX_TOOLS_OF_IDENTITY {
                return Ok(Some(StoreError::TooManyTools(MAX_TOOLS_OF_IDENTITY)));
            }
            let bytes = sqlx::query_scalar!(
                r#"SELECT COALESCE(sum(octet_length(t.spec::text)), 0)::bigint AS "bytes!"
                   FROM tool_identities i JOIN tools t ON t.name = i.tool WHERE i.identity = $1"#,
                identity.as_str()
            );
            if bytes.fetch_one(&mut *db).await? > MAX_BYTES_OF_IDENTITY {
                return Ok(Some(StoreError::TooLargeTools(MAX_BYTES_OF_IDENTITY)));
            }
        }
        if !judged.waiting.is_empty() {
            let waiting = sqlx::query_scalar!(
                r#"SELECT count(*) AS "count!" FROM pending_tools WHERE identity = $1"#,
                identity.as_str()
            );
            if waiting.fetch_one(&mut *db).await? > MAX_PENDING_OF_IDENTITY {
                return Ok(Some(StoreError::TooManyPending(MAX_PENDING_OF_IDENTITY)));
            }
        }
        Ok(None)
    }

    fn identity(&self) -> WorkerIdentity {
        self.registration.worker.identity()
    }

    fn texts<'s>(&'s self, names: &[&str]) -> Vec<&'s str> {
        names.iter().filter_map(|name| self.specs.get(*name)).map(|(_, text)| text.as_str()).collect()
    }

    /// Inserts the tools that are new; returns their names.
    async fn insert(&self, db: &mut PgConnection, names: &[&str]) -> Result<Vec<String>, sqlx::Error> {
        let (texts, worker, identity) = (self.texts(names), self.registration.worker.as_str(), self.identity());
        sqlx::query_file_scalar!(
            "sql/insert_tools.sql",
            names as &[&str],
            &texts as &[&str],
            worker,
            identity.as_str(),
        )
        .fetch_all(db)
        .await
    }

    /// Returns the tools on record, whose rows are locked.
    async fn on_record(
        &self,
        db: &mut PgConnection,
        names: &[&str],
    ) -> Result<Vec<(String, ToolOnRecord)>, sqlx::Error> {
        // Before they are read, because a statement reads other rows as they were when it began to wait.
        sqlx::query_scalar!("SELECT name FROM tools WHERE name = ANY ($1) ORDER BY name FOR UPDATE", names as &[&str])
            .fetch_all(&mut *db)
            .await?;
        let identity = self.identity();
        let rows =
            sqlx::query_file!("sql/tools_to_judge.sql", names as &[&str], identity.as_str()).fetch_all(db).await?;
        let tool = |spec: &str| tolerant::from_str::<ToolSpec>(spec).ok();
        let on_record = rows.into_iter().map(|row| {
            let identities = row.identities.iter().map(|name| WorkerIdentity::of_name(name)).collect();
            let accepted = row.accepted.as_deref().and_then(tool);
            (row.name, ToolOnRecord { spec: tool(&row.spec), accepted, identities })
        });
        Ok(on_record.collect())
    }

    /// Writes tools that the identity may serve; returns those that changed.
    async fn accept(&self, db: &mut PgConnection, names: &[&str]) -> Result<Vec<String>, sqlx::Error> {
        let (texts, worker, identity) = (self.texts(names), self.registration.worker.as_str(), self.identity());
        let identity = identity.as_str();
        let changed =
            sqlx::query_file_scalar!("sql/register_tools.sql", names as &[&str], &texts as &[&str], worker, identity,)
                .fetch_all(&mut *db)
                .await?;
        sqlx::query_file!("sql/delete_settled_tools.sql", names as &[&str], identity, worker).execute(db).await?;
        Ok(changed)
    }

    async fn keep_waiting(
        &self,
        db: &mut PgConnection,
        waiting: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), sqlx::Error> {
        if waiting.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = waiting.keys().map(String::as_str).collect();
        let (texts, worker, identity) = (self.texts(&names), self.registration.worker.as_str(), self.identity());
        // Lists of text always have JSON.
        let reasons: Vec<String> =
            waiting.values().map(|reasons| serde_json::to_string(reasons).unwrap_or_default()).collect();
        sqlx::query_file!(
            "sql/insert_pending_tools.sql",
            &names as &[&str],
            identity.as_str(),
            worker,
            &texts as &[&str],
            &reasons,
        )
        .execute(&mut *db)
        .await?;
        sqlx::query_file!("sql/delete_old_pending_tools.sql", MAX_PENDING).execute(db).await?;
        Ok(())
    }

    /// Returns the tools whose specifications are in other messages, each with whether it waits. Those that are not
    /// known yet are left out.
    async fn others(&self, db: &mut PgConnection) -> Result<Vec<(String, bool)>, sqlx::Error> {
        let names: Vec<&str> = self.registration.other_tools.keys().map(String::as_str).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let (worker, identity) = (self.registration.worker.as_str(), self.identity());
        let rows = sqlx::query_file!("sql/served_tools.sql", &names as &[&str], identity.as_str(), worker);
        Ok(rows.fetch_all(db).await?.into_iter().map(|row| (row.tool, row.waits)).collect())
    }
}
