# Counts the lines of Rust by folder and kind: `git ls-files '*.rs' | awk -f tools/size.awk`, by `./dev size`.
#
# Tests are files below a folder `tests`, files named `tests.rs`, and modules under `#[cfg(test)]`, inline or in a file.
# Everything else is source, with its blank lines and comments.

function folder_of(path,   parts, n) {
    n = split(path, parts, "/")
    return (parts[1] ~ /^(crates|services|tools|examples|clients)$/ && n > 2) ? parts[1] "/" parts[2] : parts[1]
}

# The path without ".rs" of a module that `path` declares.
function module_of(path, name,   base) {
    base = path
    if (base ~ /\/(lib|main|mod)\.rs$/) sub(/\/[a-z]+\.rs$/, "", base); else sub(/\.rs$/, "", base)
    return base "/" name
}

function is_test(path,   module, stem) {
    if (path ~ /(^|\/)tests\// || path ~ /(^|\/)tests\.rs$/) return 1
    stem = path; sub(/\.rs$/, "", stem)
    for (module in test_modules) if (stem == module || index(stem "/", module "/") == 1) return 1
    return 0
}

{ files[++count] = $0 }

END {
    for (i = 1; i <= count; i++) {
        path = files[i]; lines[path] = 0; pending = 0; closing = ""
        while ((getline line < path) > 0) {
            lines[path]++
            if (closing != "") { inline[path]++; if (line == closing) closing = ""; continue }
            if (line ~ /^ *#\[cfg\(test\)\]$/) { pending = 1; continue }
            if (!pending || line ~ /^ *#\[/) continue
            if (line ~ /^ *(pub(\([a-z]+\))? )?mod [a-z0-9_]+/) {
                name = line; sub(/^.*mod /, "", name); sub(/[^a-z0-9_].*$/, "", name)
                if (line ~ /;$/) test_modules[module_of(path, name)] = 1
                else { inline[path] += pending + 1; closing = line; sub(/[^ ].*$/, "}", closing) }
            }
            pending = 0
        }
        close(path)
    }
    for (i = 1; i <= count; i++) {
        path = files[i]; folder = folder_of(path)
        if (!(folder in seen)) { seen[folder] = 1; order[++folders] = folder }
        tested = is_test(path) ? lines[path] : inline[path] + 0
        tests[folder] += tested; source[folder] += lines[path] - tested
    }
    for (i = 1; i <= folders; i++) print order[i], source[order[i]], tests[order[i]]
}
