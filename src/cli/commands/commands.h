/* SPDX-License-Identifier: MIT
 *
 * The commands and their options, for the table in main.c. Each returns the exit status, after a
 * message about what went wrong.
 */
#ifndef ROWLOCK_CLI_COMMANDS_H
#define ROWLOCK_CLI_COMMANDS_H

#include "cli/cli.h"

/* Of --interval. */
#define DEFAULT_INTERVAL_MS 1000

extern const int run_options[];
extern const int acquire_options[];
extern const int renew_options[];
extern const int grant_options[];
extern const int wait_options[];
extern const int list_options[];
extern const int watch_options[];
extern const int lead_options[];
extern const int leader_options[];
extern const int once_options[];
extern const int json_options[];
extern const int quorum_join_options[];
extern const int metrics_options[];
extern const int sweep_options[];
extern const int install_options[];
extern const int upgrade_options[];
extern const int break_options[];
extern const int raise_options[];

/* cmd_run.c */
int cmd_run(struct cli *cli);
/* cmd_lead.c, cmd_leader.c */
int cmd_lead(struct cli *cli);
int cmd_leader(struct cli *cli);
/* cmd_lock.c */
int cmd_acquire(struct cli *cli);
int cmd_renew(struct cli *cli);
int cmd_release(struct cli *cli);
int cmd_verify(struct cli *cli);
/* cmd_list.c */
int cmd_list(struct cli *cli);
int cmd_show(struct cli *cli);
/* cmd_wait.c, cmd_watch.c, cmd_once.c */
int cmd_wait(struct cli *cli);
int cmd_watch(struct cli *cli);
int cmd_once(struct cli *cli);
/* cmd_metrics.c */
int cmd_metrics(struct cli *cli);
/* cmd_upgrade.c */
int cmd_upgrade(struct cli *cli);
/* members.c */
/* Carries out the command for each of several databases. */
int run_for_members(struct cli *cli);
int cmd_quorum_join(struct cli *cli);
/* cmd_admin.c */
int cmd_install(struct cli *cli);
int cmd_check(struct cli *cli);
int cmd_sweep(struct cli *cli);
int cmd_break(struct cli *cli);
int cmd_raise_tokens(struct cli *cli);

#endif
