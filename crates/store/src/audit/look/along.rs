//! The index that a step of a search follows: of those that lead to calls that may match, the one on which as many calls reach
//! furthest back. So a rare tool, a rare error class and a small tenant each make a search short, whatever it is combined with.

use redial_proto::{CallState, Tenant};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::audit::{
    Search,
    history::{since_id, until_id},
};

/// Calls by which indexes are compared: a tenth of a step, and only their entries are read.
const COMPARED: i64 = 200;

/// Where a search goes along: one of these is set, or none for the primary key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Along<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) task: Option<Uuid>,
    pub(super) conversation: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    pub(super) ended_as: Option<&'a str>,
    pub(super) tenant: Option<&'a str>,
    pub(super) tool: Option<&'a str>,
}

/// The last of the compared calls of each index; `None`: it has fewer.
struct Reach {
    conversation: Option<Uuid>,
    class: Option<Uuid>,
    ended_as: Option<Uuid>,
    tenant: Option<Uuid>,
    tool: Option<Uuid>,
}

/// Where a reach is found.
type Reached = fn(&Reach) -> Option<Uuid>;

impl<'a> Along<'a> {
    pub(super) async fn of(
        search: &'a Search,
        tenant: &'a Tenant,
        db: &mut PgConnection,
    ) -> Result<Along<'a>, sqlx::Error> {
        let filter = &search.filter;
        if let Some(key) = &filter.key {
            return Ok(Self { key: Some(key), ..Self::default() });
        }
        if let Some(task) = filter.task {
            return Ok(Self { task: Some(task.0), ..Self::default() });
        }
        let all = Self::candidates(search, tenant);
        if all.split().count() < 2 {
            return Ok(all);
        }
        let reach = all.reach(search, db).await?;
        // What ends soonest comes first: `None` is less than any id.
        let best = all.split().min_by_key(|(_, last)| last(&reach)).map(|(along, _)| along);
        Ok(best.unwrap_or_default())
    }

    /// Returns every index that could be followed. Calls of tenant `default` have none of their own: they are nearly
    /// all, as a rule.
    fn candidates(search: &'a Search, tenant: &'a Tenant) -> Self {
        let filter = &search.filter;
        let ended_as = filter.state.filter(|state| state.is_terminal() && *state != CallState::Succeeded);
        Self {
            conversation: filter.conversation.as_deref(),
            class: filter.class.map(redial_proto::ErrorClass::as_str),
            ended_as: ended_as.map(CallState::as_str),
            tenant: Some(tenant.as_str()).filter(|_| *tenant != Tenant::default()),
            tool: filter.tool.as_deref(),
            ..Self::default()
        }
    }

    /// Splits it into each of them alone, with where its reach is found.
    fn split(self) -> impl Iterator<Item = (Self, Reached)> {
        let none = Self::default();
        let each: [(Option<Self>, Reached); 5] = [
            (self.conversation.map(|text| Self { conversation: Some(text), ..none }), |reach| reach.conversation),
            (self.class.map(|text| Self { class: Some(text), ..none }), |reach| reach.class),
            (self.ended_as.map(|text| Self { ended_as: Some(text), ..none }), |reach| reach.ended_as),
            (self.tenant.map(|text| Self { tenant: Some(text), ..none }), |reach| reach.tenant),
            (self.tool.map(|text| Self { tool: Some(text), ..none }), |reach| reach.tool),
        ];
        each.into_iter().filter_map(|(along, last)| Some((along?, last)))
    }

    async fn reach(self, search: &Search, db: &mut PgConnection) -> Result<Reach, sqlx::Error> {
        let filter = &search.filter;
        let reach = sqlx::query_file_as!(
            Reach,
            "sql/reach.sql",
            self.conversation,
            self.class,
            self.ended_as,
            self.tenant,
            self.tool,
            filter.before.map(|before| before.0),
            since_id(filter.since),
            until_id(filter.until),
            COMPARED - 1,
        );
        reach.fetch_one(db).await
    }
}
