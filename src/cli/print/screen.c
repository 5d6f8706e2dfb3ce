/* SPDX-License-Identifier: MIT
 *
 * Draws `watch` with ncurses. Between two looks at the database, leases count down by this host's
 * clock. A text from the database can only fill its columns.
 */
#include "cli/print/print.h"

#if RLK_WITH_CURSES

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termcap.h>
#include <unistd.h>
#include <wchar.h>

enum {
    REDRAW_MS = 250,
    /* No more are drawn. */
    MOST_COLUMNS = 500,
    /* A look that is later than this is reported as missing. */
    LATE_MS = 2000,
    /* At the end, how long to wait for a look that has begun. */
    END_MS = 300
};

struct screen {
    SCREEN *terminal;
    /* The latest that succeeded. */
    struct view *view;
    /* The error of the latest, if it failed. */
    char error[1024];
    /* The order on the screen, of view->snapshot.count entries. */
    const struct entry **rows;
    /* The first row on the screen. */
    size_t top;
    /* It can show other characters than ASCII. */
    bool wide;
    int status;
};

/* ---------------------------------------------------------------- the thread that looks */

static pthread_t thread;

/* A pipe for its views, and one whose end says that it must end. It may outlive the command. */
static int news[2], stop[2];

/* While a view is left in the pipe there is no other look: a terminal may stand still for long. */
static void *look_repeatedly(void *context)
{
    struct pollfd unread = {.fd = news[0], .events = POLLIN};
    int64_t looks = 1;
    while (looks != general.looks_most && pause_until(now_ms() + general.interval_ms, stop[0])) {
        if (poll(&unread, 1, 0) > 0)
            continue;
        struct view *view = looker_look(context);
        if (write(news[1], &view, sizeof(void *)) < 0)
            view_free(view);
        looks++;
    }
    close(news[1]);
    return NULL;
}

/* With the thread a screen answers its keys while the database hangs. False, after a message: it
 * could not be started. */
static bool start_looking(struct cli *cli)
{
    int failed = pipe2(news, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(stop, O_CLOEXEC) != 0
                     ? errno
                     : pthread_create(&thread, NULL, look_repeatedly, cli);
    if (failed)
        complain("start a thread: %s", strerror(failed));
    return !failed;
}

/* The next view, or NULL if there is none yet. *ended: there will be no others. */
static struct view *fetch_view(bool *ended)
{
    struct view *view = NULL;
    *ended = read(news[0], &view, sizeof(void *)) == 0;
    return view;
}

/* cli->abandon: the thread still waits for the database. */
static void stop_looking(struct cli *cli)
{
    struct pollfd unread = {.fd = news[0], .events = POLLIN};
    bool ended = false;
    close(stop[1]);
    while (!ended && poll(&unread, 1, END_MS) > 0)
        view_free(fetch_view(&ended));
    if (ended)
        pthread_join(thread, NULL);
    else
        cli->abandon = true;
}

/* ---------------------------------------------------------------- texts */

/* Without width, and terminals differ: joiners, variation selectors, marks of direction, tags. */
static bool is_unsteady(wchar_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* Returns the bytes of the character at text. If it cannot be shown, *out gets a question mark. */
static size_t next_character(const struct screen *s, const char *text, wchar_t *out, int *width)
{
    mbstate_t state = {0};
    size_t bytes = mbrtowc(out, text, MB_CUR_MAX, &state);
    bool broken = bytes == (size_t)-1 || bytes == (size_t)-2 || bytes == 0;
    bool shown = !broken && (*out < 0x80 || (s->wide && wcwidth(*out) >= 0 && !is_unsteady(*out)));
    *width = shown ? wcwidth(*out) : 1;
    *width = *width > 0 ? *width : 0;
    if (shown)
        return bytes;
    *out = L'?';
    bytes = 1;
    while (((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

static int columns_on_screen(const struct screen *s, const char *text)
{
    int columns = 0, width;
    for (wchar_t c; *text; columns += width)
        text += next_character(s, text, &c, &width);
    return columns;
}

/* Draws text in exactly this number of columns. '~' replaces what has no room. A cell holds a few
 * marks above its letter; ncurses drops the others. */
static void put(const struct screen *s, int y, int x, int columns, const char *text)
{
    bool whole = columns_on_screen(s, text) <= columns;
    int room = whole ? columns : columns - 1;
    move(y, x);
    while (*text && columns > 0) {
        wchar_t c;
        int width;
        size_t bytes = next_character(s, text, &c, &width);
        if (width > room)
            break;
        if (c == L'?')
            addch('?');
        else
            addnstr(text, (int)bytes);
        room -= width;
        text += bytes;
    }
    if (!whole && columns > 0)
        addch('~');
}

/* ---------------------------------------------------------------- columns */

enum { COLUMN_COUNT = 7 };

static const struct {
    const char *heading;
    enum cell cell;
    /* 0: its share of what the others leave. */
    int width;
    /* It is shown on screens with at least this number of columns. */
    int from;
} columns[COLUMN_COUNT] = {
    {"NAME", CELL_NAME, 0, 0},  {"STATE", CELL_STATE, 7, 24}, {"KIND", CELL_KIND, 10, 70},
    {"WHO", CELL_WHO, 0, 40},   {"FOR", CELL_SINCE, 7, 56},   {"LEASE", CELL_LEFT, 7, 16},
    {"NOTE", CELL_NOTE, 0, 90},
};

/* One column is left blank after each. Columns without a fixed width share the rest evenly. */
static void share_columns(int all, int widths[COLUMN_COUNT])
{
    int rest = all, sharing = 0;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        bool shown = all >= columns[i].from;
        widths[i] = shown ? columns[i].width : -1;
        rest -= shown ? columns[i].width + 1 : 0;
        sharing += widths[i] == 0;
    }
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (widths[i] != 0)
            continue;
        widths[i] = rest > 0 ? rest / sharing : 0;
        rest -= widths[i];
        sharing--;
    }
}

/* ---------------------------------------------------------------- drawing */

static size_t lines_for_rows(void)
{
    return LINES > 3 ? (size_t)LINES - 3 : 0;
}

/* entry NULL: the headings. */
static void draw_row(const struct screen *s, int y, const struct entry *entry,
                     const int widths[COLUMN_COUNT], int64_t passed_ms)
{
    attr_t look = !entry ? A_REVERSE : entry->waits ? A_NORMAL : A_BOLD;
    attron(look);
    if (!entry)
        mvhline(y, 0, ' ' | A_REVERSE, COLS);
    for (int i = 0, x = 0; i < COLUMN_COUNT; i++) {
        if (widths[i] < 0)
            continue;
        char *text =
            entry ? cell_of(entry, columns[i].cell, passed_ms) : new_text("%s", columns[i].heading);
        put(s, y, x, widths[i], text);
        free(text);
        x += widths[i] + 1;
    }
    attroff(look);
}

/* The last line: what is wrong, or else the keys. */
static void draw_status(const struct screen *s, int64_t passed_ms)
{
    bool bad = s->error[0] || passed_ms > general.interval_ms + LATE_MS;
    size_t below = s->view->snapshot.count - s->top;
    below -= below < lines_for_rows() ? below : lines_for_rows();
    char *text = bad ? new_text("as of %s ago; %s", duration_text(passed_ms).text,
                                s->error[0] ? s->error : "the database does not answer")
                     : new_text("q quit, arrows scroll; every %s; %zu above, %zu below",
                                duration_text(general.interval_ms).text, s->top, below);
    char *safe = printable(text);
    attr_t look = bad ? A_REVERSE : A_DIM;
    attron(look);
    put(s, LINES - 1, 0, (int)at_most(COLS, MOST_COLUMNS), safe);
    attroff(look);
    free(safe);
    free(text);
}

static void draw(struct screen *s)
{
    int widths[COLUMN_COUNT], all = (int)at_most(COLS, MOST_COLUMNS);
    size_t room = lines_for_rows(), count = s->view->snapshot.count;
    int64_t passed_ms = now_ms() - s->view->snapshot.taken_ms;
    if (s->top + room > count)
        s->top = count > room ? count - room : 0;
    share_columns(all, widths);
    erase();
    char *summary = view_summary("rowlock: ", s->view);
    put(s, 0, 0, all, summary);
    free(summary);
    if (LINES > 2)
        draw_row(s, 1, NULL, widths, 0);
    for (size_t i = 0; i < room && s->top + i < count; i++)
        draw_row(s, (int)i + 2, s->rows[s->top + i], widths, passed_ms);
    if (LINES > 1)
        draw_status(s, passed_ms);
    refresh();
}

/* ---------------------------------------------------------------- news */

/* For each name first its holders, then its queue. Both lists are in the order of names. */
static void arrange(struct screen *s)
{
    const struct snapshot *snapshot = &s->view->snapshot;
    size_t g = 0, w = snapshot->grants;
    free(s->rows);
    s->rows = must_have(calloc(snapshot->count + 1, sizeof(struct entry *)));
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct entry *grant = &snapshot->entries[g], *waiter = &snapshot->entries[w];
        bool holder = w == snapshot->count ||
                      (g < snapshot->grants && strcmp(grant->grant.name, waiter->waiter.name) <= 0);
        s->rows[i] = holder ? grant : waiter;
        g += holder;
        w += !holder;
    }
}

static void take_view(struct screen *s, struct view *view)
{
    s->error[0] = '\0';
    s->status = EXIT_FINE;
    if (view->result != ROWLOCK_OK) {
        snprintf(s->error, sizeof s->error, "%s: %s", view->error.action, view->error.text);
        s->status = status_of_error(view->result, &view->error);
        view_free(view);
        return;
    }
    view_free(s->view);
    s->view = view;
    arrange(s);
}

static bool take_news(struct screen *s)
{
    bool ended;
    struct view *view = fetch_view(&ended);
    if (view)
        take_view(s, view);
    return !ended;
}

/* ---------------------------------------------------------------- keys and signals */

/* False: a key ends the screen. */
static bool take_keys(struct screen *s)
{
    for (int key; (key = getch()) != ERR;) {
        bool page = key == KEY_NPAGE || key == ' ' || key == KEY_PPAGE;
        bool end = key == KEY_HOME || key == KEY_END;
        bool down = key == KEY_DOWN || key == KEY_NPAGE || key == ' ' || key == KEY_END;
        size_t rows = end ? s->view->snapshot.count : page ? lines_for_rows() : 1;
        if (key == 'q' || key == 'Q') {
            s->status = EXIT_FINE;
            return false;
        }
        /* Ctrl-L: another program has written over the screen. */
        if (key == 'L' - '@')
            clearok(curscr, TRUE);
        /* draw() corrects it at the end. */
        else if (down)
            s->top += rows;
        else if (page || end || key == KEY_UP)
            s->top -= rows < s->top ? rows : s->top;
    }
    return true;
}

/* Terminals change their contents in different ways when they are resized. So all is drawn anew. */
static void resize(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
}

/* False: a signal ends the screen. After Ctrl-Z all kept signals are looked at again. */
static bool take_signals(struct screen *s)
{
    for (int signal; (signal = signals_next(0)) != 0;) {
        if (signal_ends(signal)) {
            s->status = die_later(signal);
            return false;
        }
        if (signal == SIGTSTP) {
            endwin();
            kill(getpid(), SIGSTOP);
        }
        if (signal == SIGTSTP || signal == SIGWINCH)
            resize();
    }
    return true;
}

static void show(struct screen *s)
{
    struct pollfd files[] = {
        {.fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = signals_fd(), .events = POLLIN},
        {.fd = news[0], .events = POLLIN},
    };
    do {
        draw(s);
        poll(files, sizeof files / sizeof files[0], REDRAW_MS);
        /* The terminal is gone. */
        if (files[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            break;
    } while (take_signals(s) && take_keys(s) && take_news(s));
    if (files[1].fd >= 0)
        close(files[1].fd);
}

/* ---------------------------------------------------------------- the whole */

/* Signals are still as they were: without a screen they may end us. */
static bool open_screen(struct screen *s)
{
    setlocale(LC_CTYPE, "");
    s->wide = RLK_WITH_CURSES > 1 && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    /* Ask first: newterm() leaves something behind if it fails. */
    const char *type = getenv("TERM");
    bool known = type && tgetent(NULL, type) == 1;
    s->terminal = known ? newterm(NULL, stdout, stdin) : NULL;
    if (!s->terminal)
        return false;
    set_term(s->terminal);
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return true;
}

bool screen_watch(struct cli *cli, struct view *first, int *status)
{
    struct screen s = {.terminal = NULL};
    if (!open_screen(&s)) {
        complain("watch: the terminal in TERM is not known here; printing text instead");
        return false;
    }
    take_view(&s, first);
    signals_cancel(cli->db);
    int signal = signals_keep();
    if (!signal && start_looking(cli)) {
        show(&s);
        stop_looking(cli);
    } else {
        s.status = signal ? die_later(signal) : EXIT_INTERNAL;
    }
    endwin();
    delscreen(s.terminal);
    free(s.rows);
    view_free(s.view);
    *status = s.status;
    return true;
}

#endif
