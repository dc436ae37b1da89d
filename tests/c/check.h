// What the C tests share: checks that count, and a text of every failure. Include it once a
// program.
#ifndef VKFORMER_TESTS_C_CHECK_H
#define VKFORMER_TESTS_C_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vkformer/vkformer.h"

static int checks = 0;
static int failures = 0;

static void check_that(int holds, const char* what, int line) {
  ++checks;
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: not so: %s\n", line, what);
}

// The call succeeded, or the program ends: what follows needs its result.
static void require_ok(vkf_status status, const vkf_error* error, int line) {
  ++checks;
  if (status == VKF_OK && vkf_error_status(error) == VKF_OK) return;
  fprintf(stderr, "line %d: %s: %s\n", line, vkf_status_name(status), vkf_error_message(error));
  exit(1);
}

// The call failed with this status, and its message names `part`.
static void check_fails(vkf_status status, vkf_status wanted, const vkf_error* error,
                        const char* part, int line) {
  ++checks;
  if (status == wanted && vkf_error_status(error) == wanted &&
      strstr(vkf_error_message(error), part) != NULL) {
    return;
  }
  ++failures;
  fprintf(stderr, "line %d: %s [%s], and not %s with '%s'\n", line, vkf_status_name(status),
          vkf_error_message(error), vkf_status_name(wanted), part);
}

#define CHECK(condition) check_that((condition) != 0, #condition, __LINE__)
#define OK(call) require_ok((call), error, __LINE__)
#define FAILS(call, status, part) check_fails((call), (status), error, (part), __LINE__)

static int summary(const char* name) {
  printf("%s: %d checks, %d failures\n", name, checks, failures);
  return failures == 0 ? 0 : 1;
}

#endif  // VKFORMER_TESTS_C_CHECK_H
