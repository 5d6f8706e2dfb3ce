# Turns the output of `gcov --no-output` into one line for each source file: percent, lines, name.

/^File '/ {
    name = substr($0, 7, length($0) - 7)
}

/^Lines executed:/ && name != "" {
    split($2, executed, "[:%]")
    if (name !~ /^\// && $4 > best[name]) {
        percent[name] = executed[2]
        best[name] = $4
    }
    name = ""
}

END {
    for (name in percent)
        printf "%6.1f %% of %5d lines  %s\n", percent[name], best[name], name
}
