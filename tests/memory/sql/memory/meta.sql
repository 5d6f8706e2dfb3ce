-- Version, identity and token floor.

/* rowlock:meta */
meta
