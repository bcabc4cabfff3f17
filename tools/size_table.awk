# Prints what tools/size.awk counted beside the budgets of tools/size.budget, which comes first: as a table, or as JSON.

BEGIN {
    row = "%-22s %9s %9s %9s\n"
    if (format == "table") printf row, "folder", "source", "tests", "budget"
}

FNR == NR { sub(/#.*/, ""); if (NF == 2) budget[$1] = $2; next }

{
    source += $2; tests += $3
    if ($1 ~ /^(proto|crates|services)/) { shipped += $2; shipped_tests += $3 }
    if ($1 ~ /^(tools|examples)/) { tools += $2; tools_tests += $3 }
    if (format == "table") printf row, $1, $2, $3, ($1 in budget) ? budget[$1] : ""
    else {
        limit = ($1 in budget) ? budget[$1] : "null"
        rows = rows (rows == "" ? "" : ",") sprintf("\n  {\"folder\":\"%s\",\"source\":%d,\"tests\":%d,\"budget\":%s}", $1, $2, $3, limit)
    }
}

END {
    if (format == "table") {
        printf "\n" row, "shipped", shipped, shipped_tests, ""
        printf row, "tools and demo", tools, tools_tests, ""
        printf row, "all", source, tests, ""
        printf "\ndocuments: %d words\n", words
    } else {
        printf "{\"folders\":[%s\n ],\n \"shipped\":%d,\"tools\":%d,\"source\":%d,\"tests\":%d,\"words\":%d}\n", rows, shipped, tools, source, tests, words
    }
}
