/* SPDX-License-Identifier: MIT
 * Which texts may be names, and who this client is. */
#ifndef RLK_IDENT_H
#define RLK_IDENT_H

#include "base/base.h"

/* False also if the text contains a zero byte. */
bool rlk_is_utf8(const char *text, size_t length);
int rlk_check_text(rowlock_error *error, const char *what, const char *text, bool may_be_empty);
void rlk_describe_host(char out[RLK_TEXT_MAX + 1]);
/* program NULL: the running program. */
void rlk_describe_program(char out[RLK_TEXT_MAX + 1], const char *program);

#endif
