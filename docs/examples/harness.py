#!/usr/bin/env python3
"""A test harness in Python, over libvcpulse.so by ctypes and nothing else.

harness.py PID records the guest of the VMM with this PID, which should be idle, while two phases go
by, then asks. Exit code 0 for a pass, 1 for a fail or an inconclusive check, 2 for an error, 4 where
this host has not the counters that the check needs. VCPULSE_LIBRARY names the library where it is
not installed.
"""

import ctypes
import os
import sys
import time



class Bounds(ctypes.Structure):  # vcpulse_bounds
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("ticks", ctypes.c_uint64),
        ("judged_ns", ctypes.c_int64),
        ("unknown_ns", ctypes.c_int64),
    ]


class Record(ctypes.Structure):  # vcpulse_record: as many fields as are of use here
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("band", ctypes.c_int32),
        ("mono_ns", ctypes.c_int64),
        ("vm", ctypes.c_char_p),
        ("vm_pid", ctypes.c_uint32),
        ("vcpu", ctypes.c_uint32),
    ]


RECORD_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Record), ctypes.c_void_p)

library = ctypes.CDLL(os.environ.get("VCPULSE_LIBRARY", "libvcpulse.so.0"))
# ctypes takes every result for an int, and cuts pointers in half.
for name in ("vcpulse_options_new", "vcpulse_recording_attach", "vcpulse_recording_stop"):
    getattr(library, name).restype = ctypes.c_void_p
for name in ("vcpulse_error_message", "vcpulse_outcome_name",
             "vcpulse_timeline_no_counters_reason"):
    getattr(library, name).restype = ctypes.c_char_p
library.vcpulse_timeline_vcpu_count.restype = ctypes.c_size_t


class VcpulseError(Exception):
    pass


def call(function, *arguments):
    """Calls what takes `vcpulse_error** error` last; raises what it says."""
    error = ctypes.c_void_p()
    result = function(*arguments, ctypes.byref(error))
    if error:
        message = library.vcpulse_error_message(error).decode()
        library.vcpulse_error_free(error)
        raise VcpulseError(message)
    return result


def attach(pid):
    options = ctypes.c_void_p(library.vcpulse_options_new())
    try:
        call(library.vcpulse_options_set_pid, options, ctypes.c_int64(pid))
        return ctypes.c_void_p(call(library.vcpulse_recording_attach, options))
    finally:
        library.vcpulse_options_free(options)


def query(timeline, vcpu, quantity, phase):
    bounds = Bounds(size=ctypes.sizeof(Bounds))
    call(library.vcpulse_timeline_query, timeline, None, vcpu, quantity.encode(), phase.encode(),
         ctypes.byref(bounds))
    return bounds


def check(timeline, expression, phase):
    outcome = ctypes.c_int()
    text = ctypes.c_void_p()
    call(library.vcpulse_timeline_check, timeline, expression.encode(), phase.encode(), None,
         ctypes.byref(outcome), ctypes.byref(text))
    lines = ctypes.string_at(text).decode()
    library.vcpulse_text_free(text)
    return library.vcpulse_outcome_name(outcome).decode(), lines


def count_records(timeline):
    kinds = {}

    @RECORD_CALLBACK
    def take(record, _user):
        kinds[record.contents.kind] = kinds.get(record.contents.kind, 0) + 1
        return 0

    call(library.vcpulse_timeline_for_each_record, timeline, take, None)
    return kinds


def main():
    if len(sys.argv) != 2:
        print("usage: harness.py PID", file=sys.stderr)
        return 2
    recording = attach(int(sys.argv[1]))
    try:
        for phase in ("warm-up", "settled"):
            call(library.vcpulse_recording_mark, recording, phase.encode())
            time.sleep(2)  # stands for the work of the test
    except BaseException:
        library.vcpulse_recording_free(recording)  # it must not outlive the process's own end
        raise
    timeline = ctypes.c_void_p(call(library.vcpulse_recording_stop, recording))
    try:
        for phase in ("warm-up", "settled"):
            for i in range(library.vcpulse_timeline_vcpu_count(timeline, ctypes.c_size_t(0))):
                vcpu = library.vcpulse_timeline_vcpu_index(timeline, ctypes.c_size_t(0),
                                                           ctypes.c_size_t(i))
                halted = query(timeline, vcpu, "halted", phase)
                print(f"{phase}: vCPU {vcpu} halted {halted.low:.0%} to {halted.high:.0%}")
        kinds = count_records(timeline)
        print(f"{kinds.get(1, 0)} ticks of vCPUs, {kinds.get(2, 0)} markers")
        outcome, lines = check(timeline, "vcpu=*: halted >= 50%", "settled")
        print(f"vcpu=*: halted >= 50%: {outcome}\n{lines}", end="")
    finally:
        library.vcpulse_timeline_free(timeline)
    return {"PASS": 0, "SKIP": 4}.get(outcome, 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except VcpulseError as error:
        print(f"harness.py: {error}", file=sys.stderr)
        sys.exit(2)
