-- Now, in microseconds since 1970. now() is the start of the transaction, so it is of no use here.
-- Exact types: otherwise an operator of another schema could fit better.

(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
