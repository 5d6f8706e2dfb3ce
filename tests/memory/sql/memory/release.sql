-- Give the lock back. Answers how many rows are gone.

/* rowlock:release */
release {name} {slot} {owner} {token}
