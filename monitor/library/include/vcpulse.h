/* vcpulse from a program of yours: record what each vCPU of a KVM guest really does while your
 * test runs, mark its phases, stop, and ask.
 *
 *   options -> vcpulse_recording_attach -> recording (vcpulse_recording_mark ...) ->
 * vcpulse_recording_stop -> timeline: queries
 *
 * C99 and C++. This is the only ABI of libvcpulse.so; vcpulse.hpp wraps it for C++ in a header.
 *
 * Units: times are nanoseconds, `*_ns` alone is a duration, `mono_ns` an instant of
 * CLOCK_MONOTONIC. Shares are 0..1, IPC is instructions per cycle. Of what may not have been
 * measured something says whether it was (vcpulse_has): it is never a zero that means nothing.
 * Texts are UTF-8 and end with NUL; one that a handle gives belongs to it and lives as long.
 *
 * Handles: each is freed by the function that its maker names. Every function takes NULL: the free
 * functions do nothing, the others fail with VCPULSE_STATUS_INVALID_ARGUMENT or give NULL or 0.
 *
 * Errors: what can fail takes `vcpulse_error** error` last. It may be NULL; else it is set to NULL
 * on success and to a new error on failure, which the caller frees. Messages are one line for
 * people and say what to do; where one names an option of the vcpulse command, like --wait, the
 * setter of that name is meant.
 *
 * Threads: options are for one thread at a time. A recording takes mark, pause and resume from any
 * thread, stop or free from one, as its last call. A timeline serves any number of threads at once
 * until it is freed. A recording runs on two threads of the library, which take no signals.
 *
 * Manners: the library keeps no global state, installs no signal handler, changes no limit of the
 * process, writes nothing to standard output or error, and never exits. A recording must be stopped
 * or freed before the process exits, and a child after fork must not use one of its parent's.
 *
 * Versions: symbols carry the version they came with (VCPULSE_0.1). Structs begin with their size:
 * fields are added at the end, so one that lies beyond `size` is not there.
 */
#ifndef VCPULSE_H_
#define VCPULSE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(VCPULSE_BUILDING_LIBRARY)
#define VCPULSE_API __attribute__((visibility("default")))
#else
#define VCPULSE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vcpulse_error vcpulse_error;
typedef struct vcpulse_options vcpulse_options;
typedef struct vcpulse_recording vcpulse_recording;
typedef struct vcpulse_timeline vcpulse_timeline;

/* Status of a call. Later versions may add values. */
typedef enum vcpulse_status {
  VCPULSE_STATUS_OK = 0,
  VCPULSE_STATUS_INVALID_ARGUMENT = 1, /* a value that makes no sense, a file that is no timeline */
  VCPULSE_STATUS_NOT_FOUND = 2,        /* no such VM, vCPU, phase, file */
  VCPULSE_STATUS_NOT_PERMITTED = 3,    /* the message says what would permit it */
  VCPULSE_STATUS_NOT_POSSIBLE = 4,     /* this host, guest or timeline does not have it */
  VCPULSE_STATUS_UNAVAILABLE = 5,  /* not now: a VM that is still starting, a QMP socket in use */
  VCPULSE_STATUS_NO_RESOURCES = 6, /* descriptors, space on the disk */
  VCPULSE_STATUS_IO = 7,           /* reading or writing failed */
  VCPULSE_STATUS_UNSUPPORTED = 8,  /* a timeline of a later release */
  VCPULSE_STATUS_ENDED = 9,        /* the recording has ended by itself, as its VM has */
  VCPULSE_STATUS_INTERNAL = 10 /* a mistake in vcpulse, no memory, or an exception of a callback */
} vcpulse_status;

/* What a value is called: "ok", "not-found". Static; NULL for a value that this release does not
 * know. The same below for bands, kinds and outcomes. */
VCPULSE_API const char* vcpulse_status_name(int status);

/* The version of the library, "0.1.0". Static. */
VCPULSE_API const char* vcpulse_version(void);

/* VCPULSE_STATUS_OK for NULL. */
VCPULSE_API vcpulse_status vcpulse_error_code(const vcpulse_error* error);
/* "" for NULL. */
VCPULSE_API const char* vcpulse_error_message(const vcpulse_error* error);
VCPULSE_API void vcpulse_error_free(vcpulse_error* error);

typedef enum vcpulse_band {
  VCPULSE_BAND_NONE = 0, /* no verdict yet: the window of the first ticks is not full */
  VCPULSE_BAND_HALTED = 1,
  VCPULSE_BAND_SPINNING = 2,
  VCPULSE_BAND_PRODUCTIVE = 3,
  VCPULSE_BAND_UNKNOWN = 4 /* the rule says why */
} vcpulse_band;

/* "none", "halted", ... */
VCPULSE_API const char* vcpulse_band_name(int band);

typedef enum vcpulse_kind {
  VCPULSE_KIND_TICK = 1,      /* what one vCPU did since its read before */
  VCPULSE_KIND_MARKER = 2,    /* a phase begins */
  VCPULSE_KIND_GAP = 3,       /* samples that are missing */
  VCPULSE_KIND_LIFE_CYCLE = 4 /* a VM was found, ended, paused, ... */
} vcpulse_kind;

/* "tick", "marker", "gap", "life-cycle". */
VCPULSE_API const char* vcpulse_kind_name(int kind);

/* Which values of a tick were measured: bits of vcpulse_record.has. A value whose bit is not set is
 * 0 and means nothing. */
typedef enum vcpulse_has {
  VCPULSE_HAS_STARVED = 1,
  VCPULSE_HAS_CONFIDENCE = 2,
  VCPULSE_HAS_RESIDENCY = 4,
  VCPULSE_HAS_IPC = 8,
  VCPULSE_HAS_RUN = 16,
  VCPULSE_HAS_RUN_DELAY = 32
} vcpulse_has;

/* One record. It and all it points to live during the callback only. Fields of other kinds are 0 or
 * NULL. */
typedef struct vcpulse_record {
  size_t size;        /* of the struct as the library knows it */
  int32_t kind;       /* vcpulse_kind; pass over the ones you do not know */
  int32_t band;       /* tick: vcpulse_band */
  int64_t mono_ns;    /* tick: the middle of the read of this vCPU */
  const char* vm;     /* name of the VM; NULL for markers and for gaps of every VM */
  uint32_t vm_pid;    /* of its VMM; 0 where vm is NULL */
  uint32_t vcpu;      /* tick: index */
  uint64_t tick;      /* tick: number in the recording; gap: the first that is missing */
  uint64_t last_tick; /* gap: the last that is missing */
  const char* text;   /* marker: name; gap: "read-failed", ...; life cycle: "vm-found", ... */
  const char* detail; /* life cycle: more, for people; NULL where there is no more */

  /* Of a tick. */
  int64_t interval_ns;            /* since the read before; all below is of this interval */
  const char* rule;               /* that gave the band, "blocked", "ipc-low", ...; NULL: none */
  uint32_t has;                   /* bits of vcpulse_has: which of the next six were measured */
  int32_t starved;                /* 1: waited for a CPU for more than 10 % of the window, or 0 */
  uint32_t confidence_pct;        /* of the band */
  double residency;               /* share of the interval in guest code */
  double ipc;                     /* of this interval alone */
  uint64_t run_ns;                /* the thread ran, as schedstat books it */
  uint64_t run_delay_ns;          /* it was runnable and waited, likewise */
  size_t event_count;             /* entries of the three arrays below */
  const char* const* event_names; /* perf's names */
  const uint64_t* event_counts;
  /* Share of the thread's time on the CPU in which the event was counted: below 1, the count is of
   * that part of the time only. 0 where it was not counted. */
  const double* event_shares;
} vcpulse_record;

/* Takes one record; anything but 0 stops the calls. Must not throw and must not unwind. */
typedef int (*vcpulse_record_callback)(const vcpulse_record* record, void* user);
/* Takes one line for people, without a line end, which lives during the call only. */
typedef void (*vcpulse_notice_callback)(const char* line, void* user);

/* Options for every KVM guest of this host, a tick each 100 ms, the events of `full`, a temporary
 * file. NULL only without memory. Freed by vcpulse_options_free; a recording needs them no more
 * once vcpulse_recording_attach has returned. */
VCPULSE_API vcpulse_options* vcpulse_options_new(void);
VCPULSE_API void vcpulse_options_free(vcpulse_options* options);

/* The same options once more, for another thread; NULL for NULL, and without memory. */
VCPULSE_API vcpulse_options* vcpulse_options_copy(const vcpulse_options* options);

/* Which VM: one of the four, the last one that was set. By its name or UUID; by the PID of its VMM;
 * by its QMP socket (unix:PATH or tcp:HOST:PORT); by the TIDs of its vCPU threads. */
VCPULSE_API vcpulse_status vcpulse_options_set_vm(vcpulse_options* options, const char* name,
                                                  vcpulse_error** error);
VCPULSE_API vcpulse_status vcpulse_options_set_pid(vcpulse_options* options, int64_t pid,
                                                   vcpulse_error** error);
VCPULSE_API vcpulse_status vcpulse_options_set_qmp(vcpulse_options* options, const char* address,
                                                   vcpulse_error** error);
VCPULSE_API vcpulse_status vcpulse_options_set_tids(vcpulse_options* options, const int64_t* tids,
                                                    size_t count, vcpulse_error** error);
/* How long vcpulse_recording_attach waits for the VM to appear; 0 by default. */
VCPULSE_API vcpulse_status vcpulse_options_set_wait(vcpulse_options* options, int64_t wait_ns,
                                                    vcpulse_error** error);
/* How long a recording waits for a VM given by name to start again after it has ended; 0 by
 * default.
 */
VCPULSE_API vcpulse_status vcpulse_options_set_rewait(vcpulse_options* options, int64_t rewait_ns,
                                                      vcpulse_error** error);
/* Time between ticks: 1 ms to 1 h. */
VCPULSE_API vcpulse_status vcpulse_options_set_interval(vcpulse_options* options,
                                                        int64_t interval_ns, vcpulse_error** error);
/* A regular file to write; an older one is kept as PATH.old. A relative path is of the folder that
 * is the current one at this call. Without it the recording is a
 * temporary file that goes with the timeline. */
VCPULSE_API vcpulse_status vcpulse_options_set_output(vcpulse_options* options, const char* path,
                                                      vcpulse_error** error);
/* The largest set to try: "full", "core", "branches", "min", "cycles" or "degraded". */
VCPULSE_API vcpulse_status vcpulse_options_set_event_set(vcpulse_options* options, const char* name,
                                                         vcpulse_error** error);
/* "auto" (the default), "evidence" or "ipc-bands". */
VCPULSE_API vcpulse_status vcpulse_options_set_classifier(vcpulse_options* options,
                                                          const char* name, vcpulse_error** error);
/* How counters are read: "bpf", "read", or "auto" (the default), which is bpf where this process
 * may load programs into the kernel: they stay until the recording's end. */
VCPULSE_API vcpulse_status vcpulse_options_set_reader(vcpulse_options* options, const char* name,
                                                      vcpulse_error** error);
/* The numbers to judge by: a built-in profile's name or a file. The one of this CPU by default. */
VCPULSE_API vcpulse_status vcpulse_options_set_profile(vcpulse_options* options,
                                                       const char* name_or_file,
                                                       vcpulse_error** error);
/* Not 0: vcpulse_recording_attach fails rather than record without hardware counters. */
VCPULSE_API vcpulse_status vcpulse_options_set_require_counters(vcpulse_options* options,
                                                                int required,
                                                                vcpulse_error** error);
/* Not 0: the sampling thread runs under SCHED_FIFO at the lowest priority: less jitter, but it
 * perturbs. */
VCPULSE_API vcpulse_status vcpulse_options_set_realtime(vcpulse_options* options, int realtime,
                                                        vcpulse_error** error);
/* Calls while recording, on a thread of the library: they delay the writing, not the ticks, as long
 * as they return within a second. They must not call mark, pause, resume, stop or free of their
 * recording (VCPULSE_STATUS_NOT_POSSIBLE). NULL: none. After a record callback gave another value
 * than 0 it is not called again; the recording goes on. */
VCPULSE_API vcpulse_status vcpulse_options_on_notice(vcpulse_options* options,
                                                     vcpulse_notice_callback callback, void* user,
                                                     vcpulse_error** error);
VCPULSE_API vcpulse_status vcpulse_options_on_record(vcpulse_options* options,
                                                     vcpulse_record_callback callback, void* user,
                                                     vcpulse_error** error);

/* Begins to record and returns once the first tick was taken. NULL where that failed: no such VM
 * (NOT_FOUND), a guest without KVM or counters that are required and not to be had (NOT_POSSIBLE),
 * counters that are refused (NOT_PERMITTED), an output that cannot be written, ... To be given to
 * vcpulse_recording_stop or vcpulse_recording_free. */
VCPULSE_API vcpulse_recording* vcpulse_recording_attach(const vcpulse_options* options,
                                                        vcpulse_error** error);

/* A phase of this name begins at the instant of the call and ends with the next mark; a name that
 * comes again is another span of the same phase. The name is 1 to 256 bytes of UTF-8 without
 * control characters. Returns once the recording has taken it. ENDED where it has ended. */
VCPULSE_API vcpulse_status vcpulse_recording_mark(vcpulse_recording* recording, const char* name,
                                                  vcpulse_error** error);

/* Closes all counters: nothing is sampled until vcpulse_recording_resume, and that time is no gap.
 * NOT_POSSIBLE where it is paused already, or not paused; ENDED where it has ended. Another error
 * of resume: it goes on, but counters of a VM could not be opened again so far. */
VCPULSE_API vcpulse_status vcpulse_recording_pause(vcpulse_recording* recording,
                                                   vcpulse_error** error);
VCPULSE_API vcpulse_status vcpulse_recording_resume(vcpulse_recording* recording,
                                                    vcpulse_error** error);

/* Ends the recording cleanly and opens what was recorded, also where it had ended by itself. Frees
 * the recording in any case but for a call from a callback. NULL where the recording could not be
 * written or cannot be read. The timeline is freed by vcpulse_timeline_free. */
VCPULSE_API vcpulse_timeline* vcpulse_recording_stop(vcpulse_recording* recording,
                                                     vcpulse_error** error);

/* Ends the recording cleanly without opening it. An output that was named stays. Does nothing in a
 * callback. */
VCPULSE_API void vcpulse_recording_free(vcpulse_recording* recording);

/* Opens a timeline file (.vpt) of one recording, also one that is still being written: what it
 * holds by then. It is read once here and again by each query, so it must stay. */
VCPULSE_API vcpulse_timeline* vcpulse_timeline_open(const char* path, vcpulse_error** error);
/* Also removes the temporary file of a recording without an output. */
VCPULSE_API void vcpulse_timeline_free(vcpulse_timeline* timeline);

VCPULSE_API const char* vcpulse_timeline_path(const vcpulse_timeline* timeline);
VCPULSE_API const char* vcpulse_timeline_host(const vcpulse_timeline* timeline);
/* From the first record to the last. */
VCPULSE_API int64_t vcpulse_timeline_duration_ns(const vcpulse_timeline* timeline);
/* Why no hardware counter was read: then bands are HALTED or UNKNOWN, and only shares of those,
 * starved and gaps can be told. NULL where counters were read. */
VCPULSE_API const char* vcpulse_timeline_no_counters_reason(const vcpulse_timeline* timeline);
/* What of the file is damaged or lost, one line; NULL where it is whole. */
VCPULSE_API const char* vcpulse_timeline_damage(const vcpulse_timeline* timeline);

/* The VMs, 0 to count - 1 in the order they came. A VM that was started again is another one. NULL
 * or 0 beyond. */
VCPULSE_API size_t vcpulse_timeline_vm_count(const vcpulse_timeline* timeline);
VCPULSE_API const char* vcpulse_timeline_vm_name(const vcpulse_timeline* timeline, size_t vm);
VCPULSE_API uint32_t vcpulse_timeline_vm_pid(const vcpulse_timeline* timeline, size_t vm);
/* Its vCPUs by rising index, those that could not be opened included. */
VCPULSE_API size_t vcpulse_timeline_vcpu_count(const vcpulse_timeline* timeline, size_t vm);
VCPULSE_API uint32_t vcpulse_timeline_vcpu_index(const vcpulse_timeline* timeline, size_t vm,
                                                 size_t vcpu);
/* The names of the phases in the order of their first marker. NULL beyond. */
VCPULSE_API size_t vcpulse_timeline_phase_count(const vcpulse_timeline* timeline);
VCPULSE_API const char* vcpulse_timeline_phase(const vcpulse_timeline* timeline, size_t phase);

/* Calls for each record, oldest first, on this thread, until the callback gives another value than
 * 0 (which is no error). A vCPU's first sample has nothing to be subtracted from and gives no tick.
 */
VCPULSE_API vcpulse_status vcpulse_timeline_for_each_record(const vcpulse_timeline* timeline,
                                                            vcpulse_record_callback callback,
                                                            void* user, vcpulse_error** error);

/* Where some of the time is UNKNOWN or missing, the truth lies between low (none of that time
 * counts) and high (all of it does). The caller sets size (VCPULSE_BOUNDS_INIT). */
typedef struct vcpulse_bounds {
  size_t size;
  double low;
  double high;    /* infinite where there is no end, as of a percentile that unknown time decides */
  uint64_t ticks; /* that were measured in the time asked for: few of them prove little */
  int64_t judged_ns;  /* time asked for */
  int64_t unknown_ns; /* thereof not known to count or not */
} vcpulse_bounds;
#define VCPULSE_BOUNDS_INIT {sizeof(vcpulse_bounds), 0, 0, 0, 0, 0}

/* What a quantity of one vCPU was: a metric of docs/metrics.md that can be asked for. Of a share,
 * its key ("productive", "starved", "residency"); of a number, a percentile over the ticks that are
 * not HALTED, weighted by their time ("ipc.p50"); "longest(spinning)", the longest uninterrupted
 * time in a band or starved, ns; "gaps", of the whole VM (vcpu means nothing then): the share of
 * the time in which samples are missing. `vm` is a name, UUID, PID or number; NULL is the only one
 * (INVALID_ARGUMENT where there are several). `phase` is all spans of that name; NULL is the whole
 * recording. INVALID_ARGUMENT for a quantity that is none. NOT_FOUND where VM, vCPU or phase never
 * came; NOT_POSSIBLE where it needs counters and none was read, or nothing tells. Time that
 * ipc-bands judged may be SPINNING, PRODUCTIVE or UNKNOWN: "spinning by ipc-bands" takes its
 * verdicts as they are. */
VCPULSE_API vcpulse_status vcpulse_timeline_query(const vcpulse_timeline* timeline, const char* vm,
                                                  uint32_t vcpu, const char* quantity,
                                                  const char* phase, vcpulse_bounds* bounds,
                                                  vcpulse_error** error);

/* Of several: FAIL, else INCONCLUSIVE, else SKIP, else PASS. */
typedef enum vcpulse_outcome {
  VCPULSE_OUTCOME_SKIP = 0, /* needs counters, and none was read: never a pass */
  VCPULSE_OUTCOME_PASS = 1,
  VCPULSE_OUTCOME_INCONCLUSIVE = 2, /* what is UNKNOWN or missing could tip it, or too few ticks */
  VCPULSE_OUTCOME_FAIL = 3
} vcpulse_outcome;

/* "SKIP", "PASS", "INCONCLUSIVE", "FAIL". */
VCPULSE_API const char* vcpulse_outcome_name(int outcome);

/* What a check demands of what it judges by. The caller sets size (VCPULSE_LIMITS_INIT). */
typedef struct vcpulse_limits {
  size_t size;
  int64_t skip_first_ns;   /* of each span of the phase, or of the recording: not judged */
  uint64_t min_ticks;      /* fewer measured ticks of a vCPU: INCONCLUSIVE */
  double min_measured;     /* a smaller share of the time measured: INCONCLUSIVE */
  int32_t trust_ipc_bands; /* not 0: verdicts of ipc-bands decide, as with "by ipc-bands" */
  int32_t allow_skip;      /* not 0: a PASS beside a SKIP is a PASS, not a SKIP */
} vcpulse_limits;
#define VCPULSE_LIMITS_INIT {sizeof(vcpulse_limits), 0, 10, 0.1, 0, 0}

/* Judges one expectation of `vcpulse check`, as "vcpu=*: productive >= 80%" (docs/harness.md; not
 * relative to a baseline), over a phase (NULL: the whole recording; a phase= in the expression
 * takes precedence), with those limits (NULL: VCPULSE_LIMITS_INIT). `text`, where it is not NULL,
 * becomes what was found, lines for people, freed by vcpulse_text_free; a FAIL says observed,
 * wanted and when it was worst. A phase that is not there, and a selector that nothing fits, are
 * INCONCLUSIVE. INVALID_ARGUMENT for a mistake in the expression, with its column. */
VCPULSE_API vcpulse_status vcpulse_timeline_check(const vcpulse_timeline* timeline,
                                                  const char* expression, const char* phase,
                                                  const vcpulse_limits* limits,
                                                  vcpulse_outcome* outcome, char** text,
                                                  vcpulse_error** error);
VCPULSE_API void vcpulse_text_free(char* text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* VCPULSE_H_ */
