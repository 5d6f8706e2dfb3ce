-- Take a ticket, or keep the one of this request.

/* rowlock:enqueue */
enqueue {name} {permits} {owner} {request} {lease} {host} {pid} {program} {note}
