//! What cannot be carried out is said in OpenAI's form.

use super::fixture::{Fixture, book_tool, says};

#[tokio::test]
async fn every_bad_request_names_the_parameter_and_what_is_allowed() {
    let Some(fixture) = Fixture::open(vec![book_tool()], [says("Hello.")]).await else { return };
    fixture.run("errors.py").await;
    fixture.close().await;
}
