//! A result goes back as a tool message. The scripted model has a second nature: told the same by a user message, it
//! would call the tool again, for ever.

use anyhow::ensure;
use redial_proto::Role;

use crate::stage::Stage;

/// What the script's rule of the endless loop thinks aloud.
pub(crate) const ENDLESS_LOOP: &str = "the endless loop";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let task = stage.task("database", "Which tables are in the database?").await?;
    if !stage.is_scripted() {
        return Ok(task.told());
    }
    let messages: Vec<_> = task.messages.iter().map(|stored| &stored.message).collect();
    let looped = messages.iter().any(|message| message.thought.as_deref().is_some_and(|it| it.contains(ENDLESS_LOOP)));
    ensure!(!looped, "the script's endless loop was reached");
    task.expect(2, 1, 0)?;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    let wanted = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant];
    ensure!(roles == wanted, "the roles are {roles:?}");
    let results = task.results("list_tables")?;
    let tables = serde_json::json!(["_sqlx_migrations", "users"]);
    ensure!(results.len() == 1 && results[0]["tables"] == tables, "the results are {results:?}");
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    Ok(format!("{}: one call, and the loop ended: {:?}", roles.join(" → "), task.answer()))
}
