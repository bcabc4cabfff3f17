//! "Did you mean": names ranked by similarity.

/// Texts longer than this (bytes) are not compared: the comparison is quadratic, and names are short.
const MAX_LENGTH: usize = 100;
/// At most this many candidates are compared.
const MAX_CANDIDATES: usize = 1000;
/// Below this similarity (0 to 1) a name is not a likely correction.
const THRESHOLD: f64 = 0.6;

/// Returns at most `n` of the candidates that `name` may have meant, closest first; ties keep their given order. Case
/// and separators count little: `Get-Weather` means `get_weather`.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, n: usize) -> Vec<&'a str> {
    let folded = fold(name);
    if folded.is_empty() || name.len() > MAX_LENGTH {
        return Vec::new();
    }
    let mut ranked: Vec<(f64, &str)> = candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .map(|candidate| (similarity(name, &folded, candidate), candidate))
        .filter(|(score, _)| *score >= THRESHOLD)
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranked.into_iter().take(n).map(|(_, candidate)| candidate).collect()
}

/// Compares two texts, from 0 to 1; 1 only for identical ones.
fn similarity(name: &str, folded: &str, candidate: &str) -> f64 {
    let other = fold(candidate);
    let distance = strsim::normalized_damerau_levenshtein(folded, &other);
    // A name that contains the whole other one is close even if it is much longer: `weather`, `get_weather`.
    let contained = folded.chars().count() >= 3 && (other.contains(folded) || folded.contains(&other));
    let score = if contained && !other.is_empty() { distance.max(0.7) } else { distance };
    let exact = strsim::normalized_damerau_levenshtein(name, candidate);
    score * 0.99 + exact * 0.01
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 5] = ["get_weather", "get_whether", "book_flight", "订机票", "cancel_booking"];

    #[test]
    fn closest_first() {
        assert_eq!(closest("get_wether", TOOLS, 3), ["get_weather", "get_whether"]);
        assert_eq!(closest("get_whethr", TOOLS, 3), ["get_whether", "get_weather"]);
        assert_eq!(closest("Get-Weather", TOOLS, 1), ["get_weather"]);
        assert_eq!(closest("weather", TOOLS, 1), ["get_weather"]);
        assert_eq!(closest("订票", TOOLS, 3), ["订机票"]);
        assert_eq!(closest("bookFlight", TOOLS, 3), ["book_flight"]);
    }

    #[test]
    fn distant_names_are_not_suggested() {
        assert!(closest("send_email", TOOLS, 3).is_empty());
        assert!(closest("", TOOLS, 3).is_empty());
        assert!(closest(&"get_weather".repeat(1000), TOOLS, 3).is_empty());
    }
}
