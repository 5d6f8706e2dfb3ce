/* SPDX-License-Identifier: MIT
 *
 * Where a period begins.
 *
 *   - A whole number of days: the days of the zone are counted, and each begins at --at. So a day
 *     has 23 to 25 hours where the clocks change. With a day of the week, --at begins a week.
 *   - A length that divides a day: it is counted from --at of the zone's day, every day anew.
 *   - Any other length is counted in UTC from 1970-01-01.
 *
 * The C library knows the zones. Only localtime_r() is used, since the answers of mktime() to a
 * time that does not exist depend on earlier calls.
 */
#include "cli/run/run.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#define SHORTEST_MS 1000

/* ---------------------------------------------------------------- settings */

/* TZ as it was. NULL: it was not set. */
static char *original_zone;
/* TZ is ours. */
static bool has_zone;
/* --at, from the beginning of the day or week. */
static int64_t at_ms;

/* Also rounds down below 0. */
static int64_t floor_to(int64_t value, int64_t unit)
{
    int64_t rest = value % unit;
    return value - (rest < 0 ? rest + unit : rest);
}

/* The C library takes an unknown zone for UTC without a word. So the zone's file is looked at.
 * Opening a FIFO would wait. */
static bool is_zone(const char *path)
{
    char magic[4] = "";
    struct stat about;
    bool is_file = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    FILE *file = is_file ? fopen(path, "re") : NULL;
    bool is = file && fread(magic, sizeof magic, 1, file) == 1 && memcmp(magic, "TZif", 4) == 0;
    if (file)
        fclose(file);
    return is;
}

/* UTC needs no database. The zones below right/ count leap seconds, and the clocks do not. */
static void set_zone(const struct cli *cli, const char *name)
{
    const char *folder = getenv("TZDIR");
    const char *before = getenv("TZ");
    if (strcmp(name, "UTC") == 0)
        return;
    if (strncmp(name, "right/", 6) == 0)
        usage_error(cli, "--timezone: '%s' counts leap seconds; give '%s'", name, name + 6);
    if (!folder || !*folder)
        folder = "/usr/share/zoneinfo";
    char *zone = new_text(":%s/%s", folder, name);
    has_zone = *name != '/' && !strchr(name, '.') && is_zone(zone + 1);
    if (!has_zone) {
        free(zone);
        usage_error(cli,
                    "--timezone: '%s' is not in this host's time zone database (%s); give a "
                    "name such as Europe/Berlin or UTC",
                    name, folder);
    }
    original_zone = before ? new_text("%s", before) : NULL;
    must_have(setenv("TZ", zone, 1) == 0 ? zone : NULL);
    free(zone);
    tzset();
}

void period_restore_zone(void)
{
    if (has_zone)
        job_set("TZ", original_zone);
    original_zone = NULL;
    has_zone = false;
}

static bool parse_time(const char *text, int64_t *out)
{
    static const char digits[] = "0123456789";
    if (strspn(text, digits) != 2 || text[2] != ':' || strspn(text + 3, digits) != 2 || text[5])
        return false;
    int hours = (text[0] - '0') * 10 + text[1] - '0';
    int minutes = (text[3] - '0') * 10 + text[4] - '0';
    *out = hours * INT64_C(3600000) + minutes * INT64_C(60000);
    return hours < 24 && minutes < 60;
}

/* Days after the Thursday on which 1970 began. -1: the text names no day. */
static int64_t weekday_of(const char *text)
{
    static const char names[] = "thufrisatsunmontuewed";
    for (size_t i = 0; i < 7; i++)
        if (strncasecmp(text, names + 3 * i, 3) == 0 && text[3] == ' ')
            return (int64_t)i;
    return -1;
}

/* "02:00", or "mon 02:00" for a period of weeks */
static void at_setting(struct cli *cli)
{
    int64_t day = weekday_of(asked.at);
    if (!parse_time(asked.at + (day < 0 ? 0 : 4), &at_ms))
        usage_error(cli, "--at: '%s' is not a time of day such as 02:00, or 'mon 02:00' for weeks",
                    asked.at);
    if (day >= 0 && asked.every_ms % (7 * DAY_MS) != 0)
        usage_error(cli, "--at '%s': the period must be a whole number of weeks, such as 7d",
                    asked.at);
    at_ms += day < 0 ? 0 : day * DAY_MS;
}

/* Is it counted in days, or in parts of a day? */
static bool fits_days(int64_t every_ms)
{
    return every_ms % DAY_MS == 0 || DAY_MS % every_ms == 0;
}

void period_settings(struct cli *cli)
{
    if (!asked.every_ms && (asked.at || asked.timezone))
        usage_error(cli, "%s needs --every", asked.at ? "--at" : "--timezone");
    if (!asked.every_ms)
        return;
    if (asked.once)
        usage_error(cli, "--every and --once exclude each other: --every makes the key");
    if (asked.every_ms < SHORTEST_MS || asked.every_ms > LEAP_YEAR_MS)
        usage_error(cli, "--every: the period must be from 1s to 366d");
    if (asked.at)
        at_setting(cli);
    if ((asked.at || asked.timezone) && !fits_days(asked.every_ms))
        usage_error(cli, "--at and --timezone: the period must be a whole number of days, "
                         "or divide a day");
    if (asked.timezone)
        set_zone(cli, asked.timezone);
}

/* ---------------------------------------------------------------- the start of a period */

/* What the zone's clocks show, minus UTC. */
static int64_t offset_ms(int64_t utc_ms)
{
    struct tm parts;
    time_t seconds = (time_t)(floor_to(utc_ms, 1000) / 1000);
    if (!has_zone || !localtime_r(&seconds, &parts))
        return 0;
    return (int64_t)parts.tm_gmtoff * 1000;
}

/* When do the zone's clocks show this time? It is given as if it were UTC.
 *   - They show it twice: the first time.
 *   - They skip it: as long after the change as it is behind the time at which they changed. */
static int64_t utc_of(int64_t local_ms)
{
    int64_t before = local_ms - offset_ms(local_ms - DAY_MS);
    int64_t after = local_ms - offset_ms(before);
    bool is_before = before + offset_ms(before) == local_ms;
    return !is_before && after + offset_ms(after) == local_ms ? after : before;
}

/* The latest start of so many days that is not after now. */
static int64_t day_start(int64_t now_ms, int64_t days)
{
    int64_t unit = days * DAY_MS;
    int64_t local_ms = floor_to(now_ms + offset_ms(now_ms) - at_ms, unit) + unit;
    while (utc_of(local_ms + at_ms) > now_ms)
        local_ms -= unit;
    return utc_of(local_ms + at_ms);
}

static int64_t start_ms(int64_t now_ms)
{
    if (!fits_days(asked.every_ms))
        return floor_to(now_ms, asked.every_ms);
    if (asked.every_ms >= DAY_MS)
        return day_start(now_ms, asked.every_ms / DAY_MS);
    int64_t day_ms = day_start(now_ms, 1);
    return day_ms + floor_to(now_ms - day_ms, asked.every_ms);
}

const char *period_key(int64_t now_ms)
{
    static struct text key;
    int64_t ms = start_ms(now_ms);
    key = time_text(ms * 1000);
    /* To the second, or to the millisecond. */
    memcpy(key.text + (ms % 1000 ? 23 : 19), "Z", 2);
    return key.text;
}
