/* SPDX-License-Identifier: MIT
 * It is in seam/ now. */
#include "seam/backend.h"
