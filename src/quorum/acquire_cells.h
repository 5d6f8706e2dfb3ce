/* SPDX-License-Identifier: MIT
 * The parameters of ACQUIRE, and the cells of its answer. */
#ifndef RLK_ACQUIRE_CELLS_H
#define RLK_ACQUIRE_CELLS_H

enum { NAME, PERMITS, OWNER, REQUEST, TTL, TICKET = 9, VALUES = 12 };
enum { TOKEN, OURS, SETTLING, BEHIND, NOW, ROW, ROW_OWNER = ROW + 3, ROW_TOKEN };

#endif
