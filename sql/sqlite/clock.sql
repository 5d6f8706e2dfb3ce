-- Now, in microseconds since 1970: whole milliseconds that have passed.
--
-- SQLite counts the milliseconds of the Julian day. A day number is a floating point number with 31
-- bits after the point, which is 0.00004 s, so rounding finds the millisecond again. One call that
-- answers a number costs a fifth of strftime() for seconds and again for their fraction.

CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000
