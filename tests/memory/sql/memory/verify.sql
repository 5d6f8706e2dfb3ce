-- When the lease ends, and now.

/* rowlock:verify */
verify {name} {slot} {owner} {token}
