//! What never reaches a model, and what must.

use proptest::prelude::*;
use redial_engine::feedback::scrub::{Known, scrub};

fn clean(text: &str) -> String {
    scrub(text, &Known::nothing())
}

const TRACES: [(&str, &str); 9] = [
    (
        "Python",
        "Traceback (most recent call last):\n  File \"/app/tools/weather.py\", line 12, in run\n    \
         return fetch(city)\n           ^^^^^^^^^^^\n  File \"/app/http.py\", line 3, in fetch\n    \
         raise ValueError(m)\n\
         ValueError: Input queries must be all capitals",
    ),
    (
        "Python, chained",
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 'city'\n\n\
         During handling of the above exception, another exception occurred:\n\n\
         Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    h()\nRuntimeError: no such city",
    ),
    (
        "Python, in JSON",
        "the service answered 422: Traceback (most recent call last):\\n  File \\\"/srv/x.py\\\", line 1, in f\\n    \
         g()\\nValueError: bad date",
    ),
    (
        "Java",
        "Exception in thread \"main\" java.lang.IllegalStateException: seat taken\n\
         \tat com.acme.Seats.take(Seats.java:42)\n\tat com.acme.Main.main(Main.java:7)\n\
         Caused by: java.sql.SQLException: duplicate key\n\t... 12 more",
    ),
    (
        "Node",
        "/app/index.js:10\n    throw new Error('sold out');\n          ^\n\nError: sold out\n\
         \u{20}   at book (/app/index.js:10:11)\n\
         \u{20}   at async /app/server.js:4:3\n    at node:internal/main/run_main_module:23:47\n\nNode.js v20.1.0",
    ),
    (
        "Rust",
        "thread 'main' (4711) panicked at src/main.rs:4:5:\nno seat left\nstack backtrace:\n   0: rust_begin_unwind\n\
         \u{20}            at /rustc/abc/library/std/src/panicking.rs:665:5\n   1: demo::main\n\
         \u{20}            at ./src/main.rs:4:5\n\
         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
    ),
    ("Rust, before 2023", "thread 'main' panicked at 'no seat left', src/main.rs:4:5"),
    (
        "Go",
        "panic: no seat left\n\ngoroutine 1 [running]:\nmain.book(0x1)\n\t/go/src/app/main.go:8 +0x1d\nmain.main()\n\
         \t/go/src/app/main.go:4 +0x20\n\nexit status 2",
    ),
    (
        "PHP",
        "PHP Fatal error: no seat left in /var/www/book.php:12\nStack trace:\n\
         #0 /var/www/index.php(4): book()\n#1 {main}",
    ),
];

#[test]
fn a_stack_trace_becomes_its_message() {
    let lines = TRACES.map(|(name, trace)| format!("{name}\n{}", clean(trace)));
    insta::assert_snapshot!(lines.join("\n\n"));
}

const MACHINES: [&str; 14] = [
    "connect ECONNREFUSED 10.0.3.7:5432",
    "dial tcp: lookup db-7.prod on 10.0.0.2:53: no such host",
    "getaddrinfo ENOTFOUND billing",
    "Could not resolve host: pay.acme.com",
    "GET https://api.internal.acme.com:8443/v1/cities/9?page=2 failed",
    "see http://localhost:8080/debug and http://[::1]:9000/x",
    "could not connect to server at db-7, port 5432 (fe80::1ff:fe23:4567:890a)",
    "host=db1 port=5432 user=app password=hunter2 dbname=x",
    "redis:6379 is down, nats://user:pw@nats-1:4222 too",
    "mongodb+srv://app:s3cret@cluster0.ab1cd.mongodb.net/x?retryWrites=true",
    "worker-3.jobs.svc.cluster.local is full, queue.lan too",
    "disk full: /var/lib/postgresql/data/base, C:\\Program Files\\App\\conf.ini and \\\\files\\share\\x",
    "see /app/settings.toml, ./src/main.rs:12:3, ~/.ssh/id_rsa; File \"tool.py\", line 3",
    "无法连接到10.0.0.7:80，文件/home/user/x.txt不存在",
];

#[test]
fn machines_and_disks_have_no_names() {
    let lines = MACHINES.map(|text| format!("{text}\n    {}", clean(text)));
    insta::assert_snapshot!(lines.join("\n"));
}

const SECRETS: [&str; 14] = [
    "Authorization: Bearer abc.def.ghi was refused",
    "headers {\"Authorization\": \"Basic dXNlcjpwYXNz\", 'X-Api-Key': 'k-123'}",
    "Incorrect API key provided: sk-proj-abcdEFGH1234ijkl. Find yours",
    "password=hunter2&next=/home, api_key: k123, client_secret = 'a b', token=\"t\"",
    "cookie: session=abc; theme=dark",
    "AKIAIOSFODNN7EXAMPLE ghp_abcdefghijklmnop1234 xoxb-1234-abcd eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nend",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ",
    "Server=tcp:db1;Database=x;User Id=sa;Password=P@ssw0rd;Encrypt=true",
    "postgres://app:s3cret@db-7/x",
    "{\\\"password\\\":\\\"hunter2\\\",\\\"user\\\":\\\"li\\\"}",
    "the token is aB3dE5fG7hJ9",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "密码：hunter2，令牌=abc123。",
];

#[test]
fn secrets_are_removed() {
    let lines = SECRETS.map(|text| format!("{text}\n    {}", clean(text).replace('\n', "⏎")));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_a_model_has_to_know_stays() {
    for text in [
        "Input queries must be all capitals",
        "no seat left on CA1234 at 12:30 on 2026-05-01; 3/4 are business class",
        "/date: \"明天\" was sent; allowed: YYYY-MM-DD (did you mean 2026-05-01?)",
        "the arguments are not valid JSON at line 1 column 8, in /place/lat: a value is needed before ','",
        "order 123e4567-e89b-12d3-a456-426614174000 is closed",
        "password: must have at least 8 characters, token: expired",
        "Basic economy is sold out; bearer authentication needed",
        "user.address.city is missing; see section 4.2.1 of the terms",
        "an e-mail to li@example.com; a URI with its scheme, e.g. https://example.com/a",
        "the table `_sqlx_migrations` and std::io::Error, java.lang.String, 1:30:00",
        "余票不足：北京到上海 5 月 1 日仅剩 2 张",
        "密码：不能为空",
        "call read_result with {\"call_id\":\"c12_1\",\"offset\":8192}",
        "ratio 16:9, score 3:21, room 4:30, verse 12:42",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn what_is_clean_stays_as_it_is() {
    let texts = TRACES.map(|(_, trace)| trace).into_iter().chain(MACHINES).chain(SECRETS);
    for text in texts {
        let once = clean(text);
        assert_eq!(clean(&once), once);
    }
}

#[test]
fn what_the_model_sent_stays_but_only_that() {
    let known = Known::new(r#"{"host":"db-7:5432","key":"a\"b","n":"4567"}"#, &[]);
    assert_eq!(scrub("db-7:5432 refused db-8:5432", &known), "db-7:5432 refused [host]");
    assert_eq!(scrub("password=456 or password=45678", &known), "password=[removed] or password=[removed]");
    assert_eq!(scrub("password=4567", &known), "password=4567");
}

#[test]
fn no_half_of_a_secret_is_left_where_a_long_text_is_cut() {
    for length in 16_370..16_400 {
        let text = format!("{} password=canary-canary-canary", "x ".repeat(length / 2));
        assert!(!clean(&text).contains("canary"));
    }
    assert_eq!(clean(&"x".repeat(100_000)), "");
}

/// Pieces of real messages, and noise.
fn piece() -> impl Strategy<Value = String> {
    let known = TRACES.map(|(_, trace)| trace.to_owned()).to_vec();
    let words = [
        "password=",
        "Bearer ",
        "hunter2",
        "10.0.0.1",
        ":5432",
        "https://",
        "db-7.internal",
        "/home/x/y",
        " ",
        "\n",
        "at ",
        "\tat a.b(C.java:1)",
        "sk-abcdefghijk1",
        "token: ",
        "::1",
        "[",
        "]",
        "\"",
        "'",
        "host=",
        "C:\\x\\y",
        "好",
        "，",
        "[host]",
        "[removed]",
        "[path]",
        ".",
        "-",
        "@",
        "=",
        "eyJabcdef.eyJabcdef.x",
        "^^^",
        "goroutine 1 [running]:",
    ];
    prop_oneof![
        1 => prop::sample::select(known),
        6 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        2 => "\\PC{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics_or_grows_over_its_limit(pieces in prop::collection::vec(piece(), 0..20)) {
        let text = pieces.concat();
        let once = clean(&text);
        prop_assert!(once.len() <= 4096);
    }

    #[test]
    fn named_secrets_are_found_anywhere(before in "\\PC{0,20}", after in "\\PC{0,20}", name in prop::sample::select(
        vec!["password", "db_password", "API_KEY", "client-secret", "accessToken"])
    ) {
        let text = format!("{before} {name}=canary5ecret {after}");
        prop_assert!(!clean(&text).contains("canary5ecret"), "{}", clean(&text));
    }

    #[test]
    fn addresses_are_found_anywhere(before in "\\PC{0,20}", after in "\\PC{0,20}", ip in any::<[u8; 4]>()) {
        let address = ip.map(|part| part.to_string()).join(".");
        let text = format!("{before} {address} {after}");
        prop_assert!(!clean(&text).contains(&format!(" {address} ")), "{}", clean(&text));
    }
}
