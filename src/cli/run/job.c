/* SPDX-License-Identifier: MIT
 *
 * Starts the command, signals its process group, hands the terminal over. It knows no locks.
 */
#include "cli/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* ---------------------------------------------------------------- files */

static int *inherited;
static size_t inherited_count;
static int highest_file;

static bool was_inherited(int fd)
{
    for (size_t i = 0; i < inherited_count; i++)
        if (inherited[i] == fd)
            return true;
    return false;
}

/* Calls each for every open file from 3 on. */
static void for_open_files(void (*each)(int fd))
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    if (!folder) {
        long most = sysconf(_SC_OPEN_MAX);
        for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
            if (fcntl(fd, F_GETFD) != -1)
                each(fd);
        return;
    }
    while ((entry = readdir(folder))) {
        int64_t fd;
        if (parse_number(entry->d_name, 3, INT32_MAX, &fd) && fd != dirfd(folder))
            each((int)fd);
    }
    closedir(folder);
}

static void note_file(int fd)
{
    inherited = must_have(realloc(inherited, (inherited_count + 1) * sizeof *inherited));
    inherited[inherited_count++] = fd;
}

static void note_highest(int fd)
{
    if (fd > highest_file)
        highest_file = fd;
}

/* In the child, because a keeper's thread may just have opened a file. So it must not read a
 * folder: that takes memory. The thread had no time to open more than a few. */
static void close_others_on_exec(int extra)
{
    for (int fd = STDERR_FILENO + 1; fd < highest_file + 64; fd++)
        if (!was_inherited(fd))
            fcntl(fd, F_SETFD, fd == extra ? 0 : FD_CLOEXEC);
}

void job_note_inherited_files(void)
{
    for_open_files(note_file);
}

/* ---------------------------------------------------------------- the environment */

/* Ours stays as it is: threads of client libraries read it when they connect, and setenv() frees
 * what they read. */
static char **environment;

static void copy_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    environment = must_have(calloc(count + 1, sizeof *environment));
    for (size_t i = 0; i < count; i++)
        environment[i] = must_have(strdup(environ[i]));
}

/* We may have got a variable more than once. */
void job_set(const char *variable, char *value)
{
    size_t length = strlen(variable), count = 0;
    if (!environment)
        copy_environment();
    for (size_t i = 0; environment[i]; i++)
        if (strncmp(environment[i], variable, length) == 0 && environment[i][length] == '=')
            free(environment[i]);
        else
            environment[count++] = environment[i];
    environment = must_have(realloc(environment, (count + 2) * sizeof *environment));
    environment[count] = value ? new_text("%s=%s", variable, value) : NULL;
    environment[count + 1] = NULL;
    free(value);
}

/* ---------------------------------------------------------------- the terminal */

static bool in_foreground(const struct job *job, pid_t group)
{
    return job->terminal >= 0 && tcgetpgrp(job->terminal) == group;
}

void job_give_terminal(struct job *job)
{
    if (in_foreground(job, getpgrp()) && tcsetpgrp(job->terminal, job->pid) == 0)
        job->has_terminal = true;
}

void job_take_terminal(struct job *job)
{
    if (in_foreground(job, job->pid))
        tcsetpgrp(job->terminal, getpgrp());
    job->has_terminal = false;
}

/* ---------------------------------------------------------------- the process */

/* In the child. Both sides set the group and the terminal, because either may come first. */
static void become_job(struct job *job, char **argv, int extra, pid_t parent, int report)
{
    bool foreground = in_foreground(job, getpgrp());
    job->pid = getpid();
    setpgid(0, 0);
    if (foreground)
        tcsetpgrp(job->terminal, job->pid);
#ifdef __linux__
    /* If we are killed, the lease is not renewed, so the job must not go on. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(EXIT_LOST);
    close_others_on_exec(extra);
    signals_restore();
    environ = environment;
    execvp(argv[0], argv);
    int reason = errno;
    if (write(report, &reason, sizeof reason) < 0)
        _exit(EXIT_INTERNAL);
    _exit(reason == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

/* The pipe closes by itself when the command is executed. Else it has the reason. */
static int exec_failure(struct job *job, int report)
{
    int reason = 0;
    ssize_t got;
    do {
        got = read(report, &reason, sizeof reason);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof reason)
        return 0;
    waitpid(job->pid, NULL, 0);
    job_take_terminal(job);
    return reason;
}

int job_start(struct job *job, char **argv, int extra)
{
    int report[2];
    pid_t parent = getpid();
    *job = (struct job){.terminal = -1};
#ifdef __linux__
    /* We collect orphans of the job. Else a dead one may look alive to job_group_lives(). */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    job->terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    for_open_files(note_highest);
    job->pid = fork();
    if (job->pid == 0)
        become_job(job, argv, extra, parent, report[1]);
    int reason = errno;
    close(report[1]);
    if (job->pid > 0) {
        /* It fails if the child has executed already. Then the child has done it itself. */
        bool foreground = in_foreground(job, getpgrp()) || in_foreground(job, job->pid);
        setpgid(job->pid, job->pid);
        if (foreground)
            job->has_terminal = tcsetpgrp(job->terminal, job->pid) == 0;
        reason = exec_failure(job, report[0]);
    }
    close(report[0]);
    return reason;
}

/* As process number 1 we get the orphans of others too, and as a subreaper those of the job. */
void job_look(struct job *job)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
        if (pid == job->pid && !job->ended) {
            job->stopped = WIFSTOPPED(status);
            if (job->stopped)
                job->stop_signal = WSTOPSIG(status);
            job->ended = WIFEXITED(status) || WIFSIGNALED(status);
            job->wait_status = status;
        }
}

bool job_wants_terminal(const struct job *job)
{
    bool for_terminal = job->stop_signal == SIGTTIN || job->stop_signal == SIGTTOU;
    return job->stopped && !job->ended && for_terminal && in_foreground(job, getpgrp());
}

void job_signal(const struct job *job, int signal)
{
    kill(-job->pid, signal);
    if (signal_ends(signal))
        kill(-job->pid, SIGCONT);
}

bool job_group_lives(const struct job *job)
{
    return kill(-job->pid, 0) == 0 || errno == EPERM;
}

int job_exit_status(const struct job *job)
{
    int status = job->wait_status;
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
