//! Starts the Postgres that all test processes of a run share: `REDIAL_TEST_POSTGRES` must be the line that this prints. It ends
//! with its standard input.

#[tokio::main]
async fn main() {
    redial_testkit::serve_postgres().await;
}
