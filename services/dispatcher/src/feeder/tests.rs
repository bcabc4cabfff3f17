use super::*;

fn with_consumer(name: &str) -> Vec<WorkingConsumer> {
    let consumer =
        LiveConsumer { name: name.to_owned(), pool: "default".to_owned(), tools: ["tool".to_owned()].into(), slots: 1 };
    vec![WorkingConsumer { consumer, is_live: true }]
}

#[test]
fn a_consumer_is_gone_until_its_calls_are_in_the_backlog_or_it_lives_again() {
    let feeder = Feeder::default();
    assert!(feeder.set_consumers(with_consumer("one"), false).is_empty());
    assert_eq!(feeder.set_consumers(with_consumer("two"), false), ["one"]);
    assert_eq!(feeder.set_consumers(with_consumer("two"), false), ["one"], "it could not be done before");
    feeder.requeued("one");
    assert!(feeder.set_consumers(with_consumer("two"), false).is_empty());
    assert_eq!(feeder.set_consumers(Vec::new(), false), ["two"]);
    assert!(feeder.set_consumers(with_consumer("two"), false).is_empty(), "it lives again");
}

#[test]
fn a_call_that_comes_back_while_others_are_published_is_not_passed_over() {
    let feeder = Feeder::default();
    feeder.set_consumers(with_consumer("one"), false);
    let since = || {
        let positions = feeder.positions();
        positions.into_iter().find(|one| one.backlog == Backlog::Job).unwrap().since
    };
    let order =
        Order { consumer: "one".into(), pool: "default".into(), tool: "tool".into(), backlog: Backlog::Job, most: 1 };
    let later = Time::UNIX_EPOCH + TimeDelta::hours(1);
    assert_eq!(since(), Time::UNIX_EPOCH);
    feeder.fed(&order, 1, Some(later));
    assert_eq!(since(), later);
    feeder.wake("tool", Backlog::Job, true);
    feeder.fed(&order, 1, Some(later));
    assert_eq!(since(), Time::UNIX_EPOCH, "it may be before all others");
    feeder.recheck();
    feeder.fed(&order, 1, Some(later));
    assert_eq!(since(), Time::UNIX_EPOCH);
}
