-- Now, in microseconds since 1970. It does not depend on the session's time zone.

TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
