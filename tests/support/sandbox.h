/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sandbox.h -- a process that the kernel refuses something, as in a host that locks itself up. */
#ifndef TESTS_SUPPORT_SANDBOX_H
#define TESTS_SUPPORT_SANDBOX_H

/* From here on no thread of this process gets anything but EPERM from membarrier(2). */
void sandbox_without_barriers(void);

#endif
