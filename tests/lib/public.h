/* SPDX-License-Identifier: MIT
 *
 * All public headers. */
#ifndef TESTS_PUBLIC_H
#define TESTS_PUBLIC_H

#include <rowlock/admin.h>
#include <rowlock/async.h>
#include <rowlock/once.h>
#include <rowlock/pool.h>
#include <rowlock/tx.h>
#include <rowlock/walk.h>

#endif
