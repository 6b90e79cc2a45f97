// Model invariants: on in every build. A simulator that goes on after one breaks is worse than one that stops.
#ifndef FTL_BASE_CHECK_H
#define FTL_BASE_CHECK_H

// Prints "file:line: <formatted text>" to standard error and aborts.
_Noreturn void ftl_check_failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define FTL_CHECK(condition, ...) ((condition) ? (void)0 : ftl_check_failed(__FILE__, __LINE__, __VA_ARGS__))

#endif
