-- Now, in microseconds since 1970. No session time zone enters.

TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
