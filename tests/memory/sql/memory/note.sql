-- Set the note of a grant.

/* rowlock:note */
note {name} {slot} {owner} {token} {note}
