-- Claim a key: made anew, or taken over if nobody completed it and its time is over, or it was made
-- under a smaller token. What is done, in progress, or claimed for something else stays as it is.
--
-- {key}  {fingerprint}  {claim}  {ttl} microseconds that it may take  {token} of the claimer's
-- lock, 0: none once_look says what came of it
--
-- Atomic: one upsert of one row by its key. With the same claim it says the same when it is sent
-- again.

/* rowlock:once_claim */
INSERT INTO rowlock_once (name, fingerprint, claim, expires, token, done, changed)
VALUES ({key}, {fingerprint}, {claim}, {clock} + {ttl}, {token}, 0, {clock})
    ON DUPLICATE KEY UPDATE
       claim = IF(NOT done AND fingerprint = VALUES(fingerprint)
                    AND (expires <= VALUES(changed) OR (token > 0 AND token < VALUES(token))),
                    VALUES(claim), claim),
       token = IF(claim = VALUES(claim), VALUES(token), token),
       expires = IF(claim = VALUES(claim), VALUES(expires), expires),
       changed = IF(claim = VALUES(claim), VALUES(changed), changed)
