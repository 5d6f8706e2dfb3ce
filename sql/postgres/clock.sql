-- Now, in microseconds since 1970. Not now(), which is the start of the transaction. Exact types:
-- an operator of another schema's must not fit better.

(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
