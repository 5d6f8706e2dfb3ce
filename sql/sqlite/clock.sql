-- Now, in microseconds since 1970: whole milliseconds that have passed.

CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
