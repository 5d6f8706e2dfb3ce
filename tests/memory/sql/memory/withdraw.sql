-- Remove the grant of an request. Answers how many rows are gone.

/* rowlock:withdraw */
withdraw {name} {owner} {request}
