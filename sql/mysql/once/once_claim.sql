-- Claims a key: makes its row, or takes it over.
--
-- {key}  {fingerprint}  {claim}
-- {ttl} how long the work may take, in microseconds
-- {token} of the claimer's lock, 0: none
-- no answer: once_look reads what became of the claim
--
-- The key is taken over if it is not completed, and one of these holds:
-- - its time is over, and its fingerprint is the same
-- - it was claimed under a smaller token, and its fingerprint is the same
-- - it was given back (claim 0), and its fingerprint is another
-- In all other cases the row stays as it is.
--
-- Atomic: one upsert of one row by its key. The same claim may be sent again.

/* rowlock:once_claim */
INSERT INTO rowlock_once (name, fingerprint, claim, expires, token, done, changed)
VALUES ({key}, {fingerprint}, {claim}, {clock} + {ttl}, {token}, 0, {clock})
    ON DUPLICATE KEY UPDATE
       claim = IF(NOT done AND IF(fingerprint = VALUES(fingerprint),
                    expires <= VALUES(changed) OR (token > 0 AND token < VALUES(token)), claim = 0),
                    VALUES(claim), claim),
       fingerprint = IF(claim = VALUES(claim), VALUES(fingerprint), fingerprint),
       token = IF(claim = VALUES(claim), VALUES(token), token),
       expires = IF(claim = VALUES(claim), VALUES(expires), expires),
       changed = IF(claim = VALUES(claim), VALUES(changed), changed)
