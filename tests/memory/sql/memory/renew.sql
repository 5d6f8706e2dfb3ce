-- Make the lease last {ttl} from now on; 0: as long as before.

/* rowlock:renew */
renew {name} {slot} {owner} {token} {ttl}
