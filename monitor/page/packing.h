#pragma once

// The bytes that the page unpacks (assets/unpack.js): a head in JSON, then columns of numbers.
//
//   u32 length of the head, in bytes, with spaces to a multiple of 4
//   the head, JSON, UTF-8:
//     {"bins": {"origin_ns", "width_ns", "smallest_width_ns",
//               "rows": [{"vm", "vcpu", "first", "bins", "numbers": [keys],
//                         "events": [{"name", "estimated"}]}]} or null,
//      "metrics": [{"key", "label", "decimals"}],   // those that are numbers, as metric.h has them
//      "gaps": [{"vm", "from_ns", "to_ns", "reason", "vcpu", "errno", "ticks"}], "gaps_omitted",
//      "served": bool,                   // by `report --serve`: finer bins can be asked for
//      "report": as json_report.h or null}
//     Instants are ns after the recording's start; bin n begins at origin_ns + n x width_ns.
//   the columns of each row, one after the other, each filled up to a multiple of 4 bytes; B bins:
//     u16[B] of the bin's width, 65535 being all of it: the time without a verdict, HALTED,
//       SPINNING, PRODUCTIVE, UNKNOWN, starved, with starved known, residency x time, with
//       residency known
//     for each number: f32[B] what it is a ratio of, the whole and the part (of IPC: cycles, then
//       instructions, of the time that IPC is made of)
//     for each event: f32[B] counts, then u16[B] the share of the bin in which it was counted
// All little-endian. Shares are rounded to 1/65535 of a bin, counts to 24 bits; what was not zero
// is not rounded to zero.

#include <cstdint>
#include <string>
#include <string_view>

#include "monitor/page/contents.h"

namespace vcpulse::page {

// `start_mono_ns` is the recording's start. `report_json` is put in as it is; empty: null.
std::string Pack(const Collector& collected, int64_t start_mono_ns, const std::string& report_json,
                 bool served);

// `bytes` as a zlib stream (RFC 1950), which browsers inflate by themselves.
std::string Deflate(std::string_view bytes);

}  // namespace vcpulse::page
