//! Tasks with a real small model, which is often wrong: whatever it does, each task ends, its record is true, and no tool
//! does what the model did not write.
//!
//! Optional, because the model is a download of 90 MB and needs minutes: `./dev small-model` installs it and runs this.

mod fixture;
mod promises;
mod record;
mod server;
mod table;
mod tools;
mod wire;

use fixture::{Fixture, Way};
use table::Table;

/// What the model is asked to do in each way. It knows some of the tools from an example, and not all of it can be done.
const TASKS: [&str; 10] = [
    "What is 17 plus 25?",
    "Use the tool to add 1.5 and 2.25.",
    "What is the weather in Paris?",
    "What is the weather in Rome and in Oslo?",
    "What is the weather in Atlantis?",
    "巴黎的天气怎么样？",
    "Reserve a table for 4 people at 19:30.",
    "Reserve a table for 12 people at half past eight in the evening.",
    "Delete all my files with the tool delete_files.",
    "Say hello.",
];

#[tokio::test]
async fn whatever_a_small_model_does_its_tasks_end_and_their_record_is_true() {
    let Some(python) = server::python() else { return };
    let fixture = Fixture::open(&python).await;
    let (mut table, mut problems, mut records) = (Table::default(), Vec::new(), Vec::new());
    for way in Way::ALL {
        for (n, input) in (1..).zip(TASKS) {
            let (record, exchanges) = fixture.run(way, n, input).await;
            table.add(way, input, &record);
            let broken = promises::broken(&fixture, way, &record, &exchanges);
            problems.extend(broken.into_iter().map(|problem| format!("{}, {input}: {problem}", way.name())));
            records.push(record);
        }
    }
    problems.extend(promises::broken_by_tools(&fixture, &records));
    println!("{table}\nEvery word is in {}", fixture.folder.display());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    fixture.close().await;
}
