-- At most {limit} grants after {after} and {slot}; {name} NULL: of all names.

/* rowlock:list */
list {name} {after} {slot} {limit}
