-- The highest token of a name, and when it was granted.

/* rowlock:last */
last {name}
