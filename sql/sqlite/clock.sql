-- Now, in microseconds since 1970: whole milliseconds that have passed.
--
-- SQLite counts milliseconds of the Julian day. A day number is a float with 31 bits after the
-- point, which is 0.00004 s. So rounding finds the millisecond again. One call that returns a
-- number costs a fifth of two calls of strftime(), for seconds and their fraction.

CAST((julianday('now') - 2440587.5) * 86400000 + 0.5 AS INTEGER) * 1000
