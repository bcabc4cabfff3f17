//! Texts that a model, a tool or a user may write.

/// An element that no page has: wherever a text becomes markup, it is there.
pub(crate) const ELEMENT: &str = "x-corpus";

/// A name, and the text.
pub(crate) fn texts() -> Vec<(&'static str, String)> {
    let element = format!("<{ELEMENT} onclick=x>");
    vec![
        ("script", format!("<script>window.hacked = 1</script>{element}")),
        ("handler", format!("<img src=x onerror=\"window.hacked = 1\">{element}")),
        (
            "end of a field",
            format!("</textarea></pre></title></svg></script>{element}<script>window.hacked = 1</script>"),
        ),
        ("end of an attribute", format!("\"' autofocus onfocus=\"window.hacked = 1\">{element}")),
        ("template", "{{7*7}} ${7*7} {% if true %}".to_owned()),
        ("link", "javascript:window.hacked=1".to_owned()),
        ("terminal", "\u{1b}[31mred\u{1b}[0m \u{7}\u{8}\u{9b}31m".to_owned()),
        ("turned around", "safe \u{202e}gnp.exe\u{202c} \u{2066}x\u{2069}".to_owned()),
        ("invisible", "a\u{200b}b\u{feff}c\u{2028}d".to_owned()),
        ("languages", "请订明天的机票 مرحبا بالعالم שלום 👩\u{200d}👩\u{200d}👧\u{200d}👦 🏳️\u{200d}🌈".to_owned()),
        ("long word", "x".repeat(5_000)),
        ("many lines", "line\n".repeat(3_000)),
    ]
}

/// JSON of ten thousand members.
pub(crate) fn many_keys() -> String {
    let members: Vec<String> = (0..10_000).map(|n| format!("\"<{ELEMENT}>{n}\":1")).collect();
    format!("{{{}}}", members.join(","))
}

/// Deeply nested JSON.
pub(crate) fn deep() -> String {
    format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60))
}

/// A long text, as long as arguments may be.
pub(crate) fn long() -> String {
    serde_json::json!(vec![format!("<{ELEMENT}>").repeat(20); 1_000]).to_string()
}
