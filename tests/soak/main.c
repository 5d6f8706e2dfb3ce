/* SPDX-License-Identifier: MIT
 *
 * usage: soak JSON-FILE
 *   SOAK_SECONDS   how long, in all (600): each database whose URL is in the environment gets its part
 *
 * Exits with 1 if a client failed, something was left behind, or something did not stay bounded.
 * SIGINT ends it. What was measured till then is judged and written. */
#include "soak.h"

enum { SAMPLES = 100 };

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    interrupted = 1;
}

/* The threads of clients inherit the blocked signals. */
static void heed_interrupts(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(how, &set, NULL);
}

static void pause_until(double end_s)
{
    while (!interrupted && !work_failure() && clock_s() < end_s)
        sleep_s(0.05);
}

static bool soak(const struct site *site, double seconds)
{
    double interval = seconds / SAMPLES < 0.5 ? 0.5 : seconds / SAMPLES;
    struct series *series = series_open(site);
    double began = clock_s();
    heed_interrupts(SIG_BLOCK);
    work_start(site);
    heed_interrupts(SIG_UNBLOCK);
    for (int i = 1; !interrupted && !work_failure() && i * interval <= seconds; i++) {
        pause_until(began + i * interval);
        series_sample(series);
    }
    work_stop();
    bool bounded = series_judge(series);
    series_close(series);
    if (work_failure())
        report_line("    FAILED: %s\n", work_failure());
    return bounded && !work_failure();
}

static bool soak_hand(const struct hand *hand, double seconds)
{
    struct site site;
    if (interrupted || !site_open(&site, hand))
        return true;
    struct session *session = hand_open(&site.theirs, "observer");
    report_database(hand->raw->name, hand_text(session, "describe"));
    /* The bare loop's table has the database's own settings. */
    hand_do(session, "plain");
    hand_close(session);
    bool good = soak(&site, seconds);
    hand_drop_places(hand, site.url);
    return good;
}

int main(int argc, char **argv)
{
    const char *text = getenv("SOAK_SECONDS");
    double seconds = text && text[0] ? strtod(text, NULL) : 600;
    struct sigaction action = {.sa_handler = interrupt};
    int count = 0;
    bool good = true;
    if (argc != 2 || seconds <= 0)
        die("usage: soak JSON-FILE, with SOAK_SECONDS above 0");
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    allow_many_files();
    for (int i = 0; hands[i]; i++)
        count += getenv(hands[i]->raw->url_env) && getenv(hands[i]->raw->url_env)[0];
    for (int i = 0; hands[i] && count > 0; i++)
        good = soak_hand(hands[i], seconds / count) && good;
    report_save(argv[1]);
    return good ? 0 : 1;
}
