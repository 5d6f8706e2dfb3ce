-- Remove the grant of an attempt. Answers how many rows are gone.

/* rowlock:withdraw */
withdraw {name} {owner} {attempt}
