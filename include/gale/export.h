/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* export.h -- marks what the shared library shows; everything else is hidden. */
#ifndef GALE_EXPORT_H
#define GALE_EXPORT_H

#if defined(__GNUC__)
#define GALE_API __attribute__((visibility("default")))
#else
#define GALE_API
#endif

#endif
