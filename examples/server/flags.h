/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* flags.h -- the values of flags.  A wrong one ends the program with a sentence, and 2. */
#ifndef EXAMPLES_SERVER_FLAGS_H
#define EXAMPLES_SERVER_FLAGS_H

#include <netinet/in.h>
#include <stdint.h>

#define THREADS_MOST 256

void flags_name(const char *program); /* before all others */
const char *flags_program(void);
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t flag_number(const char *flag, const char *text, uint64_t least, uint64_t most);
/* N/s, N/m, N/h or N/d: units, and the window that they are of. */
uint64_t flag_rate(const char *flag, const char *text, uint64_t least,
                   uint64_t *ret_window_us);
void flag_address(const char *text, struct sockaddr_in *address);
uint32_t processors(void); /* that this process may use */

#endif
