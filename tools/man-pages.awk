# Fills in the parts of a page of the manual that come from the public headers, and prints it as mdoc.
#
# usage: awk -v version=VERSION -v date=DATE -f tools/man-pages.awk HEADER... PAGE
# In the page these lines stand for:
#   .\" SYNOPSIS          the prototypes of the functions named in NAME, in that order
#   .\" FUNCTIONS         what their comments say
#   .\" TYPE name...      the members of these structs and enums
#   .\" ABOUT header      the comment at the top of include/rowlock/header

# --- Reading headers

function header_of(file) { sub(/.*include\//, "", file); return file }

function end_comment() {
    if (!about[header]) about[header] = comment
    else if (comment !~ /^---- /) doc = doc (doc ? "\n\n" : "") comment
    in_comment = 0
}

# Takes a line of a comment without its frame.
function add_comment(line) {
    last = sub(/ *\*\/[ \t]*$/, "", line)
    comment = comment (comment == "" ? "" : "\n") line
    if (last) end_comment()
}

function begin_comment(line) {
    in_comment = 1
    comment = ""
    sub(/^ *\/\* ?/, "", line)
    add_comment(line)
}

function note_function(text,   name, type) {
    gsub(/ROWLOCK_MUST_CHECK |ROWLOCK_API |static inline /, "", text)
    gsub(/[ \t\n]+/, " ", text)
    sub(/;.*/, "", text)
    match(text, /rowlock_[a-z0-9_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    type = substr(text, 1, RSTART - 1)
    sub(/ $/, "", type)
    type_of[name] = type
    arguments_of[name] = substr(text, RSTART + RLENGTH)
    sub(/\)$/, "", arguments_of[name])
    home[name] = header
    if (doc) { leader = name; doc_of[name] = doc; doc = "" }
    leader_of[name] = leader
    members_of[leader] = members_of[leader] " " name
}

function read_header(line) {
    if (in_comment) { sub(/^ *\* ?/, "", line); if (line == "/") { line = "*/" } add_comment(line); return }
    if (line ~ /^ *\/\*/) { begin_comment(line); return }
    if (in_type) { read_member(line); return }
    if (prototype != "" || line ~ /^ROWLOCK_MUST_CHECK |^ROWLOCK_API |^static inline /) {
        prototype = prototype " " line
        if (line ~ /;$/ || prototype ~ /^ static inline .*\)$/) { note_function(substr(prototype, 2)); prototype = "" }
        return
    }
    if (line ~ /^typedef (struct|enum) [a-z_]+ \{/) {
        split(line, word, " ")
        in_type = word[3]
        home[in_type] = header
        doc_of[in_type] = doc
        doc = ""
        return
    }
    if (line ~ /^typedef struct [a-z_]+ [a-z_]+;/) { split(line, word, " "); doc_of[word[3]] = doc; home[word[3]] = header; doc = "" }
    if (line == "") doc = ""
}

function read_member(line,   text) {
    if (line ~ /^}/) { in_type = ""; doc = ""; return }
    if (line ~ /^ *$/) return
    declaration = declaration line
    if (line !~ /[;,]$/ && line !~ /^ *ROWLOCK_[A-Z_]+ = -?[0-9]+$/) return
    # A function with several arguments ends with a semicolon.
    if (declaration ~ /\(/ && line !~ /;$/) return
    text = declaration
    declaration = ""
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    sub(/[;,]$/, "", text)
    if (text !~ /^size_t size$| reserved$| spare/) {
        count_of[in_type]++
        member[in_type, count_of[in_type]] = text
        member_doc[in_type, count_of[in_type]] = doc
    }
    doc = ""
}

# --- Writing mdoc

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/…/, "...", text)
    gsub(/’/, "'", text)
    gsub(/“|”/, "\"", text)
    return text
}

function quoted(text) {
    text = escaped(text)
    gsub(/"/, "\"\"", text)
    return "\"" text "\""
}

function put_line(line) {
    if (line ~ /^[.']/) line = "\\&" line
    print line
}

# Functions in bold.
function put_prose(line,   done) {
    while (match(line, /[a-zA-Z_]+\(\)/)) {
        done = done substr(line, 1, RSTART - 1) "\\fB" substr(line, RSTART, RLENGTH - 2) "\\fR\\&()"
        line = substr(line, RSTART + RLENGTH)
    }
    put_line(done line)
}

function width(line,   n) { n = gsub(/\(\)/, "()", line); return length(line) + 9 * n }

# One sentence a line, and no line longer than 80 bytes.
function put_text(text,   at, line) {
    text = escaped(text)
    gsub(/ +$/, "", text)
    while (text != "") {
        line = text
        if (match(text, /[.?!][)"]? /)) line = substr(text, 1, RSTART + RLENGTH - 2)
        text = substr(text, length(line) + 2)
        while (width(line) > 80) {
            for (at = 80; at > 1 && (substr(line, at, 1) != " " || width(substr(line, 1, at - 1)) > 80); at--) ;
            if (at <= 1) break
            put_prose(substr(line, 1, at - 1))
            line = substr(line, at + 1)
        }
        put_prose(line)
    }
}

function flush_text() {
    if (pending != "") {
        if (paragraph && !fresh) print ".Pp"
        put_text(pending)
        paragraph = fresh = 0
    }
    pending = ""
}

function close_lists(indent) {
    flush_text()
    while (depth > 0 && list_indent[depth] >= indent) { print ".El"; depth-- }
}

function item(kind, indent, tag) {
    flush_text()
    while (depth > 0 && (list_indent[depth] > indent || (list_indent[depth] == indent && list_kind[depth] != kind))) {
        print ".El"
        depth--
    }
    if (depth == 0 || list_indent[depth] < indent) {
        depth++
        list_indent[depth] = indent
        list_kind[depth] = kind
        if (depth == 1 && !fresh) print ".Pp"
        if (kind == "tag") print ".Bl -tag -width " (tag ~ /^ROWLOCK_/ ? "ROWLOCK_ETIMEOUT" : indent == 0 ? "Ds" : "xxxxxxxxxxx") " -compact"
        else print ".Bl -" kind " -compact"
    }
    print kind == "tag" ? ".It Sy " quoted(tag) : ".It"
    paragraph = 0
    fresh = 0
}

# Do the lines of this indent begin items of a list?
function at_tag(indent) { return depth > 0 && list_indent[depth] == indent && list_kind[depth] == "tag" }

function indent_of(line) { match(line, /^ */); return RLENGTH }

function heading(text) {
    text = substr(text, 1, 1) tolower(substr(text, 2))
    sub(/\?$/, "", text)
    gsub(/ i /, " I ", text)
    return text
}

# A label or a result stands before what is said about it, on the same line or above it.
function is_label(line, next_line) {
    return line ~ /^ROWLOCK_[A-Z_, ]+(,|, …)?$/ || (line ~ /^[A-Z][A-Za-z() ]+$/ && length(line) < 30 && indent_of(next_line) > 0)
}

# render TEXT: whole says whether it is the comment of a header, which has headings and examples.
function render(text, whole,   n, i, line, indent, rows, body, was_empty, code, rest) {
    n = split(text, rows, "\n")
    depth = 0
    pending = ""
    paragraph = 0
    was_empty = 0
    fresh = 1
    for (i = 1; i <= n; i++) {
        line = rows[i]
        indent = indent_of(line)
        body = substr(line, indent + 1)
        if (code && (indent >= 4 || body == "")) {
            if (body != "" || (i < n && indent_of(rows[i + 1]) >= 4)) put_line(escaped(substr(line, 5)))
            continue
        }
        if (code) { print ".Ed"; code = fresh = 0; paragraph = 1 }
        if (body == "") { flush_text(); was_empty = 1; continue }
        if (whole && body ~ /^[A-Z][A-Z][A-Z ]+( tx)?\??$/ && indent == 0) {
            close_lists(0)
            print ".Ss " heading(body)
            was_empty = paragraph = 0
            fresh = 1
            continue
        }
        if (whole && was_empty && indent >= 4 && body !~ /^-/) {
            close_lists(0)
            print ".Bd -literal -offset indent"
            put_line(escaped(substr(line, 5)))
            code = 1
            was_empty = 0
            continue
        }
        if (body ~ /^- /) { item("bullet", indent); pending = substr(body, 3) }
        else if (body ~ /^[0-9]\. /) { item("enum", indent); pending = substr(body, 4) }
        else if (is_label(body, rows[i + 1])) item("tag", indent, body)
        else if (match(body, /  +/) || (whole && at_tag(indent) && match(body, /^[A-Z][a-z]+ [a-z]+ /)) || (at_tag(indent) && match(body, /^ROWLOCK_[A-Z]+ /))) {
            rest = substr(body, RSTART + RLENGTH)
            item("tag", indent, substr(body, 1, RSTART > 1 ? RSTART - 1 : RLENGTH - 1))
            pending = rest
        }
        else {
            if (depth > 0 && list_indent[depth] >= indent) { close_lists(indent); paragraph = 1 }
            if (was_empty) { flush_text(); paragraph = 1 }
            pending = pending (pending == "" ? "" : " ") body
        }
        was_empty = 0
    }
    if (code) print ".Ed"
    close_lists(0)
}

# The arguments of a callback are separated like those of the function, so that lines can be broken there.
function put_arguments(text,   n, i, part) {
    n = split(text, part, /, */)
    for (i = 1; i <= n; i++) print ".Fa " (part[i] ~ /\)$/ ? "\"" part[i] "\\&\"" : quoted(part[i]))
}

function put_synopsis(   i, name, included) {
    for (i = 1; i <= named; i++) {
        name = names[i]
        if (!(name in type_of)) continue
        if (home[name] != included) { print ".In " home[name]; included = home[name] }
        print ".Ft " quoted(type_of[name])
        print ".Fo " name
        put_arguments(arguments_of[name])
        print ".Fc"
    }
}

function put_functions(   i, name, done, n, group, k, title) {
    for (i = 1; i <= named; i++) {
        if (!(names[i] in type_of)) continue
        name = leader_of[names[i]]
        if (done[name]++) continue
        n = split(members_of[name], group, " ")
        title = ""
        for (k = 1; k <= n; k++) title = title (k > 1 ? " , " : "") group[k] "()"
        print ".Ss " title
        render(doc_of[name], 0)
    }
}

function put_type(name,   i) {
    print ".Ss " name
    render(doc_of[name], 0)
    if (!count_of[name]) return
    print ".Bl -tag -width Ds"
    for (i = 1; i <= count_of[name]; i++) {
        print ".It Vt " quoted(member[name, i])
        render(member_doc[name, i], 0)
    }
    print ".El"
}

FNR == 1 {
    is_page = FILENAME ~ /\.[1-9]$/
    header = header_of(FILENAME)
    in_comment = in_type = 0
    prototype = declaration = doc = ""
}
!is_page { read_header($0); next }

/^\.Sh/ { in_name = $2 == "NAME" }
in_name && $1 == ".Nm" { names[++named] = $2 }
/^\.Dd / { print ".Dd " date; next }
/^\.Os$/ { print ".Os rowlock " version "\n.nh"; next }
/^\.\\" SYNOPSIS$/ { put_synopsis(); next }
/^\.\\" FUNCTIONS$/ { put_functions(); next }
/^\.\\" TYPE / { for (i = 3; i <= NF; i++) put_type($i); next }
/^\.\\" ABOUT / {
    text = about["rowlock/" $3]
    sub(/^SPDX[^\n]*\n\n?/, "", text)
    sub(/^rowlock: [^\n]*\n([^\n]+\n)*/, "", text)
    render(text, 1)
    next
}
{ print }
