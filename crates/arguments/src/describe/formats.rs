//! Describes string formats.

use redial_proto::Language;

use crate::language::pick;

/// Describes the formats of JSON Schema draft 2020-12; any other format by its name.
pub(super) fn describe(format: &str, language: Language) -> String {
    let (english, chinese) = match format {
        "date" => ("YYYY-MM-DD", "YYYY-MM-DD"),
        "time" => ("HH:MM:SS with an offset, e.g. 08:30:00Z", "带时区的 HH:MM:SS，例如 08:30:00Z"),
        "date-time" => (
            "a date and time with an offset, e.g. 2026-05-01T08:30:00Z",
            "带时区的日期和时间，例如 2026-05-01T08:30:00Z",
        ),
        "duration" => ("an ISO 8601 duration, e.g. PT1H30M", "ISO 8601 时长，例如 PT1H30M"),
        "email" | "idn-email" => ("an e-mail address", "电子邮件地址"),
        "hostname" | "idn-hostname" => ("a host name", "主机名"),
        "ipv4" => ("an IPv4 address", "IPv4 地址"),
        "ipv6" => ("an IPv6 address", "IPv6 地址"),
        "uri" | "iri" => {
            ("a URI with its scheme, e.g. https://example.com/a", "带协议的 URI，例如 https://example.com/a")
        }
        "uri-reference" | "iri-reference" => ("a URI or a relative reference", "URI 或相对引用"),
        "uuid" => {
            ("a UUID, e.g. 123e4567-e89b-12d3-a456-426614174000", "UUID，例如 123e4567-e89b-12d3-a456-426614174000")
        }
        "json-pointer" => ("a JSON pointer, e.g. /a/0", "JSON 指针，例如 /a/0"),
        "regex" => ("a regular expression", "正则表达式"),
        other => return pick(language, format!("the format {other}"), format!("{other} 格式")),
    };
    pick(language, english, chinese)
}
