# Turns the files sql/<dialect>/<folder>/<step>.sql into C tables of statements, one for each
# dialect.
#
# usage: awk -f tools/embed-sql.awk sql/mysql/*/*.sql sql/postgres/*/*.sql … > statements.inc
#
# The files of one dialect must be adjacent arguments with different names. The output is
#     static const struct rlk_statement rlk_<dialect>_statements[] = { { "<step>", "<text>" }, … };
# Blank lines and lines with only a `--` comment are left out. The two comments that begin a block
# of upgrade.sql stay.

function close_step()
{
    if (step == "")
        return
    if (lines == 0)
        fail(step_file " holds no statement")
    print " },"
    step = ""
}

function close_dialect()
{
    close_step()
    if (dialect != "")
        print "};"
}

function fail(message)
{
    failed = 1
    print "embed-sql: " message > "/dev/stderr"
    exit 1
}

# Escapes a text for a C string literal. Two question marks could begin a trigraph in standard C.
function quoted(text)
{
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    gsub(/\t/, "\\t", text)
    gsub(/\?/, "\\?", text)
    return "\"" text "\\n\""
}

function open_file(    parts, count)
{
    close_step()
    count = split(FILENAME, parts, "/")
    if (count < 3 || parts[1] != "sql")
        fail(FILENAME " is not in a folder of sql/")
    if (parts[2] != dialect) {
        close_dialect()
        dialect = parts[2]
        if (dialect in seen)
            fail("the files of " dialect " do not follow each other")
        seen[dialect] = 1
        printf "%sstatic const struct rlk_statement rlk_%s_statements[] = {\n", gap, dialect
        gap = "\n"
    }
    step = parts[count]
    sub(/\.sql$/, "", step)
    if ((dialect, step) in seen)
        fail("two files of " dialect " have the name " step)
    seen[dialect, step] = 1
    step_file = FILENAME
    lines = 0
    printf "    { \"%s\",", step
}

FNR == 1 { open_file() }

{ sub(/[ \t\r]+$/, "") }

/^[ \t]*$/ || (/^[ \t]*--/ && !/^-- (what|unless): /) { next }

{
    printf "\n      %s", quoted($0)
    lines++
}

END {
    if (!failed)
        close_dialect()
}
