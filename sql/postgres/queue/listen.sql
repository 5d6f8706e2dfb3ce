-- Makes this session hear the wake-ups of many requests, also of those that other sessions send.
--
-- {wakeup} the channel to listen to, '': none
-- columns: the channel
--
-- A notification's text is the number of the request.

/* rowlock:listen */
SELECT rowlock_listen({wakeup}::text)
