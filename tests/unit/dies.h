/* For tests of checks: run a function in a child process and see it abort. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Did run() end in abort()?  What it wrote to stderr is in text, cut to its size. */
bool dies(void (*run)(void), char *text, size_t text_bytes);
