-- Grant the lock, or say what is in the way.

/* rowlock:acquire */
acquire {name} {permits} {owner} {request} {ttl} {host} {pid} {program} {note} {ticket} {unfair}
