-- Give the ticket back. Answers how many are gone.

/* rowlock:leave */
leave {name} {request}
