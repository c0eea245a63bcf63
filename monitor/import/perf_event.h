#pragma once

#include <string>
#include <string_view>

namespace vcpulse::importing {

// An event as perf stat names it, in vcpulse's words.
struct PerfEvent {
  // "cycles" of cycles:G, since guests are all that vcpulse counts. An event that counts the host
  // too, or one privilege level alone, keeps its modifiers, so that no verdict takes it for the
  // guest's: "instructions:u", and "cycles:H" of cycles without a modifier.
  std::string name;
  bool counts_host = false;
  bool by_nature = false;  // a software event or tracepoint: these count the host in any case
};

// Of the text behind "event" in perf's JSON. perf counts the host alone where no modifier speaks of
// host or guest, since 6.13 the guests too. An event with a name of its own ("name=" in its terms)
// shows no modifier: it is kept as it is.
PerfEvent ReadPerfEvent(std::string_view written);

}  // namespace vcpulse::importing
