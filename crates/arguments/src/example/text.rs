//! Strings by their format and length.

/// Longest string that is made, in characters.
const MAX_LENGTH: usize = 200;

/// Returns a string of a known format.
pub(super) fn sample(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2026-05-01",
        "time" => "08:30:00Z",
        "date-time" => "2026-05-01T08:30:00Z",
        "duration" => "PT1H30M",
        "email" | "idn-email" => "name@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "uri-template" => "https://example.com/a",
        "uri-reference" | "iri-reference" => "/a",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "json-pointer" => "/a/0",
        "relative-json-pointer" => "0",
        "regex" => "^a$",
        _ => return None,
    })
}

/// Makes a word of so many characters; variants differ. `None` if it would be too long.
pub(super) fn word(least: usize, most: usize, variant: usize) -> Option<String> {
    if least > MAX_LENGTH {
        return None;
    }
    let mut word = if variant == 0 { "text".to_owned() } else { format!("{variant}text") };
    word.truncate(most.max(least));
    let missing = least.saturating_sub(word.len());
    word.extend("text".chars().cycle().take(missing));
    Some(word)
}
