//! `/console/conversations`: conversations with their messages and tasks; and erasing one.

use axum::{
    Router,
    extract::{Form, Path},
    http::StatusCode,
    response::Response,
    routing::get,
};
use redial_api::{ConversationItem, ConversationList, Erased, MessageList, ProblemDocument, TaskList};
use redial_proto::{StoredMessage, TaskView};
use serde::Deserialize;

use crate::{
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visit, Visiting},
    show,
};

const PATH: &str = "/console/conversations";

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route(PATH, page::of(list))
        .route("/console/conversations/{name}", get(one))
        .route("/console/conversations/{name}/erase", get(confirm).post(erase))
}

#[derive(askama::Template)]
#[template(path = "conversations.html")]
struct ListPage {
    shell: Shell,
    conversations: Vec<ConversationItem>,
    next: Option<String>,
}

async fn list(visit: Visiting) -> Result<ListPage, Failure> {
    let filter = Filter::of(&visit.here);
    let list: ConversationList = visit.api.get(&format!("/v1/conversations{}", filter.request(&[]))).await?;
    let next = filter.next(PATH, &list.next_page_token);
    let shell = visit.frame("Conversations");
    let shell = if filter.get("page_token").is_empty() { shell.live("/v1/events").again(10) } else { shell };
    Ok(ListPage { shell, conversations: list.conversations, next })
}

#[derive(askama::Template)]
#[template(path = "one_conversation.html")]
struct OnePage {
    shell: Shell,
    name: String,
    messages: Vec<StoredMessage>,
    tasks: Vec<TaskView>,
    next: Option<String>,
}

async fn one(visit: Visit, Path(name): Path<String>) -> Response {
    visit.answer(one_page(&visit, name).await)
}

async fn one_page(visit: &Visit, name: String) -> Result<OnePage, Failure> {
    let filter = Filter::of(&visit.here);
    let url = show::url(&name);
    let list: MessageList = visit.api.get(&format!("/v1/conversations/{url}/messages{}", filter.request(&[]))).await?;
    let tasks: TaskList = visit.api.get(&format!("/v1/tasks?conversation={url}&page_size=20")).await?;
    let next = filter.next(&format!("{PATH}/{url}"), &list.next_page_token);
    let shell = visit.frame(show::line(&name, 60)).live("/v1/events").again(10);
    Ok(OnePage { shell, name, messages: list.messages, tasks: tasks.tasks, next })
}

#[derive(askama::Template)]
#[template(path = "erase.html")]
struct ErasePage {
    shell: Shell,
    name: String,
    tasks: String,
    erasure: uuid::Uuid,
    wrong: Option<String>,
    /// It has begun; whether open work is stopped.
    goes_on: Option<bool>,
}

async fn confirm(visit: Visit, Path(name): Path<String>) -> Response {
    visit.answer(erase_page(&visit, name, uuid::Uuid::new_v4(), None).await)
}

async fn erase_page(
    visit: &Visit,
    name: String,
    erasure: uuid::Uuid,
    wrong: Option<String>,
) -> Result<ErasePage, Failure> {
    let url = show::url(&name);
    let tasks: TaskList = visit.api.get(&format!("/v1/tasks?conversation={url}&page_size=100")).await?;
    let more = if tasks.next_page_token.is_empty() { "" } else { "+" };
    let tasks = format!("{}{more}", show::things(tasks.tasks.len(), "task"));
    Ok(ErasePage { shell: visit.frame("Erase"), name, tasks, erasure, wrong, goes_on: None })
}

#[derive(Deserialize)]
struct Erase {
    erasure: uuid::Uuid,
    #[serde(default)]
    confirmed: String,
    cancel: Option<String>,
}

async fn erase(visit: Visit, Path(name): Path<String>, Form(form): Form<Erase>) -> Response {
    if form.confirmed != name && form.confirmed != show::plain(&name) {
        let wrong = "Type the name of the conversation as it stands there.".to_owned();
        let mut response = visit.answer(erase_page(&visit, name, form.erasure, Some(wrong)).await);
        if response.status() == StatusCode::OK {
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        }
        return response;
    }
    let cancel = if form.cancel.is_some() { "&cancel=true" } else { "" };
    let path = format!("/v1/conversations/{}?erasure={}{cancel}", show::url(&name), form.erasure);
    match visit.api.delete::<Erased>(&path).await {
        Ok(Erased { reply, .. }) if reply.done => visit.done(Ok(format!("{PATH}?done=erased"))),
        // The same erasure goes on: another one would also erase what came in between.
        Ok(_) => {
            let page = erase_page(&visit, name, form.erasure, None).await;
            visit.answer(page.map(|page| ErasePage { goes_on: Some(form.cancel.is_some()), ..page }))
        }
        Err(Failure::Problem(problem)) if StatusCode::CONFLICT == problem.status => {
            let ProblemDocument { detail, .. } = *problem;
            let mut response = visit.answer(erase_page(&visit, name, form.erasure, Some(detail)).await);
            *response.status_mut() = StatusCode::CONFLICT;
            response
        }
        Err(failure) => visit.done(Err(failure)),
    }
}
