/* A test harness in C: records the guest of the VMM with this PID, which should be idle, while the
 * test goes through two phases, then asks. `harness PID`; exit code 0 for a pass, 1 for a fail or
 * an inconclusive check, 2 for an error, 4 where this host has not the counters that the check
 * needs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vcpulse.h>

static void Notice(const char* line, void* user) {
  (void)user;
  fprintf(stderr, "vcpulse: %s\n", line);
}

/* Says what went wrong; frees the error. */
static int Fail(const char* what, vcpulse_error* error) {
  fprintf(stderr, "%s: %s\n", what, vcpulse_error_message(error));
  vcpulse_error_free(error);
  return 2;
}

/* Stands for the work of the test. */
static void RunPhase(void) {
  const struct timespec a_while = {2, 0};
  nanosleep(&a_while, NULL);
}

static vcpulse_recording* Attach(long pid, vcpulse_error** error) {
  vcpulse_recording* recording = NULL;
  vcpulse_options* options = vcpulse_options_new();
  if (vcpulse_options_set_pid(options, pid, error) == VCPULSE_STATUS_OK &&
      vcpulse_options_on_notice(options, Notice, NULL, error) == VCPULSE_STATUS_OK) {
    recording = vcpulse_recording_attach(options, error);
  }
  vcpulse_options_free(options);
  return recording;
}

static int PrintShares(const vcpulse_timeline* timeline, const char* phase) {
  size_t i;
  for (i = 0; i < vcpulse_timeline_vcpu_count(timeline, 0); ++i) {
    const uint32_t vcpu = vcpulse_timeline_vcpu_index(timeline, 0, i);
    vcpulse_error* error = NULL;
    vcpulse_bounds halted = VCPULSE_BOUNDS_INIT;
    vcpulse_bounds starved = VCPULSE_BOUNDS_INIT;
    if (vcpulse_timeline_query(timeline, NULL, vcpu, "halted", phase, &halted, &error) ||
        vcpulse_timeline_query(timeline, NULL, vcpu, "starved", phase, &starved, &error)) {
      return Fail("cannot ask", error);
    }
    printf("%s: vCPU %u halted %.0f to %.0f %%, starved %.0f to %.0f %%\n", phase, (unsigned)vcpu,
           halted.low * 100, halted.high * 100, starved.low * 100, starved.high * 100);
  }
  return 0;
}

static int Check(const vcpulse_timeline* timeline, const char* expression) {
  vcpulse_error* error = NULL;
  vcpulse_outcome outcome;
  char* text = NULL;
  if (vcpulse_timeline_check(timeline, expression, "settled", NULL, &outcome, &text, &error)) {
    return Fail("cannot check", error);
  }
  printf("%s\n%s", expression, text);
  vcpulse_text_free(text);
  return outcome == VCPULSE_OUTCOME_PASS ? 0 : outcome == VCPULSE_OUTCOME_SKIP ? 4 : 1;
}

int main(int argc, char** argv) {
  vcpulse_error* error = NULL;
  vcpulse_recording* recording;
  vcpulse_timeline* timeline;
  const char* const phases[] = {"warm-up", "settled"};
  int code;
  int i;
  if (argc != 2) {
    fprintf(stderr, "usage: %s PID\n", argv[0]);
    return 2;
  }
  recording = Attach(strtol(argv[1], NULL, 10), &error);
  if (recording == NULL) return Fail("cannot attach", error);
  for (i = 0; i < 2; ++i) {
    if (vcpulse_recording_mark(recording, phases[i], &error) != VCPULSE_STATUS_OK) {
      vcpulse_recording_free(recording);
      return Fail("cannot mark", error);
    }
    RunPhase();
  }
  timeline = vcpulse_recording_stop(recording, &error);
  if (timeline == NULL) return Fail("cannot stop", error);

  code = PrintShares(timeline, phases[0]);
  if (code == 0) code = PrintShares(timeline, phases[1]);
  if (code == 0) code = Check(timeline, "vcpu=*: halted >= 50%");
  vcpulse_timeline_free(timeline);
  return code;
}
