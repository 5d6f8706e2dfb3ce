/* SPDX-License-Identifier: MIT
 *
 * One request or answer that gets lost, and words for what is there before and after. The
 * operations that lose something are in lost_lock.c, lost_admin.c, lost_tx.c, lost_keeper.c and
 * lost_rows.c, the walk through them in served_lost.c. */
#pragma once

#include "faultproxy.h"
#include "quick.h"
#include "raw.h"

enum loss_way {
    REQUEST_CUT, /* before the server saw it */
    ANSWER_CUT, /* after the server has carried it out */
    REQUEST_LATE, /* past the deadline; what we do about it comes before it arrives */
    REQUEST_LATE_POOLED, /* the same, but its session cannot be ended by then */
    REQUEST_LATE_DONE, /* past the deadline; what we do about it comes after it was carried out */
    ANSWER_LATE, /* past the deadline */
    REQUEST_SWALLOWED,
    ANSWER_SWALLOWED,
    LOSS_WAYS
};

enum loss_mode {
    RECONNECTING,
    NOT_RECONNECTING, /* the next call does */
    CONNECTING, /* the connection is gone already, so that login and looking at the tables come first */
    LOSS_MODES
};

/* One case, and the surroundings of the worker that it happens in: tables and a proxy of its own. */
struct loss {
    const struct raw *raw;
    const char *url; /* straight to the server */
    char prefix[20]; /* of our tables */
    char *ours; /* straight, to our tables */
    char *through, *via; /* through the proxy: plain, and to our tables */
    void *session; /* straight */
    rowlock_db *others; /* straight, to our tables: of all others that want something */
    struct faultproxy *proxy;
    int number; /* of the worker */
    int serial;
    char dropped[8000]; /* SQL: names of cases that were begun anew */
    int explained; /* rows that stand although none holds them, each for a reason that was checked */
    int may_follow; /* rows of requests that cannot be ended, and had not arrived when we looked */

    const char *what;
    enum loss_way way;
    enum loss_mode mode;
    int nth; /* request from when it is armed; 0: nothing is lost */
    int requests; /* that were made while it was armed */
    bool fired; /* something was lost */
    bool unreached; /* a call could not reach the server, and no fault was wanted for it */
    int patience; /* time limits are that many times as long; 0: once */
    int64_t armed_ms;
    char text[120]; /* all of that, for people */
    char name[60]; /* of a lock that was never used before */
};

/* An operation loses what the case says, and checks. */
struct operation {
    const char *what;
    void (*lose)(struct loss *l);
    enum {
        RECONNECTS = 1, /* also in the modes that reconnect */
        CONNECTS = 2, /* also with a connection that is gone, in all ways and not only by cuts */
        POOLS = 4, /* also where the old session cannot be ended */
        MANY = 8, /* requests: waiting for each of them is done in one mode only */
        VARIES = 16, /* how many requests it makes depends on the time */
        ALIKE = 32, /* are its requests */
        ONCE = 64, /* not a matter of requests: in one way and mode */
        CUTS = 128 /* only cuts and late answers, on a connection that stands */
    } is;
    int most; /* requests that differ; 0: all do */
};
/* Each ends with .lose NULL. */
extern const struct operation lost_lock_operations[], lost_admin_operations[], lost_tx_operations[],
    lost_keeper_operations[];
const struct operation *lost_row_operations(void);

/* A worker's surroundings. False if the URL has no host and port. */
bool loss_set_up(struct loss *l, const struct raw *raw, const char *url, int number);
void loss_check_rest(struct loss *l); /* nothing is in its tables but what was explained */
void loss_clean(struct loss *l); /* removes what a case has left that is begun anew */
void loss_tear_down(struct loss *l);
void loss_drop_tables(const struct loss *l); /* with its prefix */

/* Two leases that are never over before the case is. */
enum { TTL_MS = 120000, LONG_TTL_MS = 600000, OPENING_MS = 60000, GENEROUS_MS = 30000 };

/* The time limit of a statement and of connecting. */
int64_t loss_deadline_ms(const struct loss *l);

rowlock_db_options loss_options(const struct loss *l);
/* Opening has failed: a busy machine may miss so short a deadline. Options with a longer one, until end_ms. */
rowlock_db_options loss_longer(struct loss *l, int64_t end_ms, const char *why);
rowlock_db *loss_open_at(struct loss *l, const char *url, const char *prefix);
rowlock_db *loss_open(struct loss *l); /* through the proxy */
rowlock_lock *loss_hold(struct loss *l, rowlock_db *db); /* the case's lock, for LONG_TTL_MS */

/* Its result is that of the call, during which the loss is armed. */
#define LOSING(l, call) (loss_arm(l), loss_ended(l, call))
int loss_ended(struct loss *l, int said);
void loss_arm(struct loss *l);
void loss_disarm(struct loss *l);

/* Until what is late has arrived and was carried out. */
void loss_pass(const struct loss *l);
/* What was still under way may have been carried out by now, as on a slow machine. */
bool loss_may_have_passed(const struct loss *l);
/* The same, if what we do about it comes after that. */
void loss_pass_before(const struct loss *l);
bool loss_is_late(const struct loss *l); /* a request is under way for long */
bool loss_is_cut(enum loss_way way); /* which is noticed without a deadline */

/* One check each. The text of the case comes first. */
#define loss_ok(l, passed, ...) tap_ok(passed, "%s: %s", (l)->text, textf(__VA_ARGS__))
#define loss_is(l, got, want, ...) tap_is_int(got, want, "%s: %s", (l)->text, textf(__VA_ARGS__))
/* The result of a call on db, which must be this one. */
bool loss_result(struct loss *l, const rowlock_db *db, int got, int want, const char *what);
/* What the call said while it was armed: want if nothing was lost or it could reconnect, ECONN or
 * EUNCERTAIN if not. Also that it did not take too long. */
bool loss_said(struct loss *l, const rowlock_db *db, int said, int want);
/* A plain read is never uncertain. */
void loss_read_said(struct loss *l, const rowlock_db *db, int said);

/* raw_run() and raw_int() in the worker's session. */
#define loss_run(l, ...) raw_run((l)->raw, (l)->session, __VA_ARGS__)
#define loss_int(l, ...) raw_int((l)->raw, (l)->session, __VA_ARGS__)

/* What the tables say of the case's name. */
long long loss_rows(const struct loss *l);
long long loss_floor(const struct loss *l);
long long loss_token(const struct loss *l); /* of its counter; 0: it has none */
/* The newest token that a fence of the case's name has seen. */
long long loss_seen(const struct loss *l);
long long loss_next_token(const struct loss *l);
long long loss_column(const struct loss *l, const char *column);
/* The lease as the database sees it, in milliseconds, not rounded up. */
long long loss_left_ms(const struct loss *l);

/* What is counted upon is not more than the table has. */
void loss_not_overstated(const struct loss *l, const rowlock_lock *lock);
/* One grant is in the table: this one. */
void loss_granted(const struct loss *l, const rowlock_lock *lock, long long token);
/* Another client gets the lock, with a higher token than this, and gives it back. */
void loss_rival_gets(struct loss *l, long long above);
/* No row; but where a request arrives late all the same, one that is listed as owner's and expires. */
void loss_gone_or_explained(struct loss *l, const char *owner);
