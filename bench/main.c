/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* main.c -- all the questions, in the order of the table. */
#include "bench/bench.h"

int main(int argc, char **argv)
{
	ask_floors();
	ask_steps();
	ask_store();
	ask_asks();
	ask_lease_floors();
	ask_choices();
	ask_leases();
	ask_lease_turns();
	ask_guards();
	ask_holds();
	ask_tenants();
	ask_bytes();
	ask_growth();
#ifdef GALE_REDIS
	ask_redis();
	ask_links();
	ask_calls();
	ask_strict();
#endif
#ifdef GALE_TLS
	ask_tls();
#endif
#ifdef GALE_POSTGRES
	ask_postgres();
#endif
#if defined(GALE_REDIS) && defined(GALE_POSTGRES)
	ask_misses();
	ask_beats();
	ask_fleets();
	ask_overload();
#endif
	return bench_main(argc, argv);
}
