//! `/v1/tools`.

mod check;
mod pointers;

use redial_api::{Checked, PointerList, ToolPage};
use redial_proto::{Code, ListTools, ToolList, ToolView, UserRole, limits::shorten, subjects::Verb};

use crate::{
    endpoint::Endpoint,
    extract::{Name, Query},
    gateway::Api,
    page::{LongPageQuery, Page},
    problem::{JsonResult, Problem},
};

const TAG: &str = "tools";
const READ: &[UserRole] = &[UserRole::Read];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/tools", list)
            .about(TAG, "list_tools", "The tools that the tenant may call, by name")
            .roles(READ)
            .query::<LongPageQuery>()
            .answer::<ToolPage>(200, "Tools."),
        Endpoint::get("/v1/tools/{tool}", get)
            .about(TAG, "get_tool", "A tool")
            .roles(READ)
            .answer::<ToolView>(200, "The tool."),
        Endpoint::get("/v1/tools/{tool}/pointers", pointers::pointers)
            .about(
                TAG,
                "list_tool_pointers",
                "The places in the arguments of a tool that are corrected and repaired most",
            )
            .roles(READ)
            .query::<pointers::PointersQuery>()
            .answer::<PointerList>(200, "Places, those of the most calls first."),
        Endpoint::post("/v1/tools/{tool}/check", check::check)
            .about(TAG, "check_arguments", "Check arguments as a submission would, and change nothing")
            .roles(check::ROLES)
            .body::<check::CheckBody>()
            .answer::<Checked>(200, "Whether they fit, with the repairs or the broken rules."),
    ]
}

async fn list(Api { gateway, who }: Api, Query(query): Query<LongPageQuery>) -> JsonResult<ToolPage> {
    let page = Page::<String>::of(&gateway, &who, "tools", &query).await?;
    let request = ListTools { after: page.after.clone(), limit: Some(page.size), ..ListTools::default() };
    let list: ToolList = gateway.ask_twice(&who, Verb::ToolList, &request).await?;
    Ok(axum::Json(ToolPage { next_page_token: page.next(list.next.as_ref()), tools: list.tools }))
}

async fn get(Api { gateway, who }: Api, Name(tool): Name) -> JsonResult<ToolView> {
    let request = ListTools { tool: Some(tool.clone()), ..ListTools::default() };
    let list: ToolList = gateway.ask_twice(&who, Verb::ToolList, &request).await?;
    let missing = || Problem::new(Code::NotFound, format!("the tenant has no tool {:?}", shorten(&tool, 100)));
    list.tools.into_iter().next().map(axum::Json).ok_or_else(missing)
}
