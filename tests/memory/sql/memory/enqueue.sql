-- Take a ticket, or keep the one of this attempt.

/* rowlock:enqueue */
enqueue {name} {permits} {owner} {attempt} {lease} {host} {pid} {program} {note}
