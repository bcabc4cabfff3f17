use redial_store::WorkingConsumer;

use super::*;

fn with_consumer(name: &str) -> Vec<WorkingConsumer> {
    let consumer = LiveConsumer {
        name: name.to_owned(),
        pool: "default".to_owned(),
        tools: ["tool".to_owned()].into(),
        slots: 1,
        workers: 1,
    };
    vec![WorkingConsumer { consumer, is_live: true }]
}

fn part(tenant: &str) -> BacklogPart {
    BacklogPart { tool: "tool".to_owned(), tenant: tenant.to_owned(), backlog: Backlog::Job }
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
    let part = part("acme");
    let since = || feeder.positions().into_iter().find(|one| one.part == part).map(|one| one.since);
    let order = Order { consumer: "one".into(), pool: "default".into(), part: part.clone(), most: 1 };
    feeder.found(vec![part.clone()]);
    let later = Time::UNIX_EPOCH + TimeDelta::hours(1);
    assert_eq!(since(), Some(Time::UNIX_EPOCH));
    feeder.fed(&order, 1, Some(later));
    assert_eq!(since(), Some(later));
    feeder.wake(part.clone(), true);
    feeder.fed(&order, 1, Some(later));
    assert_eq!(since(), Some(Time::UNIX_EPOCH), "it may be before all others");
    assert!(!feeder.is_unsearched());
    feeder.recheck();
    feeder.wake(part.clone(), false);
    feeder.fed(&order, 1, Some(later));
    assert_eq!((since(), feeder.is_unsearched()), (Some(Time::UNIX_EPOCH), true));
}

#[test]
fn a_part_in_which_nothing_waits_is_forgotten() {
    let feeder = Feeder::default();
    feeder.set_consumers(with_consumer("one"), false);
    feeder.found(vec![part("acme"), part("umbrella")]);
    let order = Order { consumer: "one".into(), pool: "default".into(), part: part("acme"), most: 1 };
    feeder.positions();
    feeder.fed(&order, 1, Some(Time::UNIX_EPOCH + TimeDelta::hours(1)));
    let look = |meanwhile: &dyn Fn()| {
        let asked = feeder.positions();
        let waiting: Vec<_> = asked.iter().filter(|one| one.part == part("umbrella")).cloned().collect();
        meanwhile();
        feeder.looked(asked, &waiting);
        feeder.positions().len()
    };
    assert_eq!(look(&|| ()), 2, "calls may be before its position");
    assert_eq!(look(&|| feeder.go_back()), 2);
    feeder.go_back();
    assert_eq!(look(&|| feeder.wake(part("acme"), true)), 2);
    assert_eq!(look(&|| ()), 1);
    feeder.set_consumers(Vec::new(), false);
    feeder.go_back();
    feeder.set_consumers(with_consumer("one"), false);
    assert_eq!(feeder.positions(), [], "nobody served it");
}

#[test]
fn tenants_are_looked_for_between_those_that_are_known() {
    let feeder = Feeder::default();
    feeder.set_consumers(with_consumer("one"), false);
    let gaps = || {
        let of_jobs = feeder.gaps().into_iter().filter(|gap| gap.backlog == Backlog::Job);
        of_jobs.map(|gap| (gap.after, gap.before.unwrap_or("the end".to_owned()))).collect::<Vec<_>>()
    };
    let gap = |after: &str, before: &str| (after.to_owned(), before.to_owned());
    assert_eq!(gaps(), [gap("", "the end")]);
    feeder.found(vec![part("umbrella")]);
    feeder.wake(part("acme"), false);
    assert_eq!(gaps(), [gap("", "acme"), gap("acme", "umbrella"), gap("umbrella", "the end")]);
    feeder.set_consumers(Vec::new(), false);
    feeder.go_back();
    feeder.set_consumers(with_consumer("one"), false);
    assert_eq!(gaps(), [gap("", "the end")]);
}
