/* SPDX-License-Identifier: MIT
 * It is in base/ now. */
#include "base/url.h"
