/* SPDX-License-Identifier: MIT
 * What may be a name, and who we are. */
#ifndef RLK_IDENT_H
#define RLK_IDENT_H

#include "base/base.h"

bool rlk_is_utf8(const char *text, size_t length); /* without zero bytes */
int rlk_check_text(rowlock_error *error, const char *what, const char *text, bool may_be_empty);
int rlk_random_owner(char out[RLK_TEXT_MAX + 1]);
int rlk_random_seed(uint64_t *out);
void rlk_describe_host(char out[RLK_TEXT_MAX + 1]);
void rlk_describe_program(char out[RLK_TEXT_MAX + 1], const char *program); /* NULL: this one */

#endif
