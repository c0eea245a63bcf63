/* vcpulse.h as C99 sees it, against the library as it is installed: what needs no guest. The timeline
 * is the golden one of tests/data. */
#include <stdio.h>
#include <string.h>

#include "vcpulse.h"

static int failures = 0;

#define EXPECT(condition)                                              \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);  \
      ++failures;                                                      \
    }                                                                  \
  } while (0)

struct Seen {
  int ticks;
  int markers;
  int wrong_sizes;
  int stop_after;
};

static int Take(const vcpulse_record* record, void* user) {
  struct Seen* seen = user;
  if (record->size != sizeof(vcpulse_record)) ++seen->wrong_sizes;
  if (record->kind == VCPULSE_KIND_TICK) ++seen->ticks;
  if (record->kind == VCPULSE_KIND_MARKER) {
    ++seen->markers;
    EXPECT(record->text != NULL && strcmp(record->text, "body") == 0);
  }
  return --seen->stop_after == 0;
}

static void Errors(void) {
  vcpulse_error* error = NULL;
  EXPECT(vcpulse_timeline_open(NULL, &error) == NULL);
  EXPECT(vcpulse_error_code(error) == VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT(strcmp(vcpulse_error_message(error), "path is NULL") == 0);
  vcpulse_error_free(error);
  EXPECT(vcpulse_timeline_open("/no/such/file", &error) == NULL);
  EXPECT(vcpulse_error_code(error) == VCPULSE_STATUS_NOT_FOUND);
  vcpulse_error_free(error);
  EXPECT(vcpulse_timeline_open("/no/such/file", NULL) == NULL);
  EXPECT(vcpulse_error_code(NULL) == VCPULSE_STATUS_OK);
  EXPECT(strcmp(vcpulse_error_message(NULL), "") == 0);
}

static void Timeline(const char* path) {
  const vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  vcpulse_bounds bounds = VCPULSE_BOUNDS_INIT;
  vcpulse_outcome outcome = VCPULSE_OUTCOME_PASS;
  vcpulse_error* error = NULL;
  struct Seen all = {0, 0, 0, 0};
  struct Seen one = {0, 0, 0, 1};
  char* text = NULL;
  vcpulse_timeline* timeline = vcpulse_timeline_open(path, &error);
  EXPECT(timeline != NULL && error == NULL);
  if (timeline == NULL) return;
  EXPECT(strcmp(vcpulse_timeline_host(timeline), "golden") == 0);
  EXPECT(strcmp(vcpulse_timeline_path(timeline), path) == 0);
  EXPECT(vcpulse_timeline_vm_count(timeline) == 2);
  EXPECT(vcpulse_timeline_vm_pid(timeline, 1) == 4002);
  EXPECT(vcpulse_timeline_vcpu_index(timeline, 0, 3) == 9);
  EXPECT(strcmp(vcpulse_timeline_phase(timeline, 0), "body") == 0);
  EXPECT(vcpulse_timeline_for_each_record(timeline, Take, &all, &error) == VCPULSE_STATUS_OK);
  EXPECT(all.ticks > 10 && all.markers > 0 && all.wrong_sizes == 0);
  EXPECT(vcpulse_timeline_for_each_record(timeline, Take, &one, &error) == VCPULSE_STATUS_OK);
  EXPECT(one.ticks + one.markers <= 1);
  EXPECT(vcpulse_timeline_query(timeline, "4001", 0, "halted", NULL, &bounds, &error) ==
         VCPULSE_STATUS_OK);
  EXPECT(bounds.low > 0 && bounds.low <= bounds.high && bounds.ticks > 0);
  EXPECT(vcpulse_timeline_check(timeline, "vm=4001 vcpu=0: halted >= 0%", NULL, &limits, &outcome, &text,
                       &error) == VCPULSE_STATUS_OK);
  EXPECT(outcome != VCPULSE_OUTCOME_PASS && text != NULL); /* too few ticks */
  vcpulse_text_free(text);
  vcpulse_timeline_free(timeline);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  EXPECT(strncmp(vcpulse_version(), "0.", 2) == 0);
  Errors();
  Timeline(argv[1]);
  return failures == 0 ? 0 : 1;
}
