// draw_timeline OUT: the timeline that the tests of the page know every tick of (page_test.py has
// the same letters), and one of a hostile harness: draw_timeline OUT hostile.

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tests/unit/drawn_recording.h"

namespace vcpulse::check {
namespace {

void DrawKnown(DrawnRecording& drawn) {
  drawn.waited_percent = 5;
  drawn.Name(1, "web");
  drawn.Name(2, "db");
  drawn.Begin(1, {.vcpus = {0, 1}, .unopened = {2}});
  drawn.Begin(2, {.vcpus = {0}});
  using Vms = std::map<uint32_t, std::vector<std::string>>;
  drawn.Draw(Vms{{1, {"[boot]HHHHHPPPPP", "PPPPPSSSSS"}}, {2, {"UUUUUsssss"}}});
  drawn.Draw(Vms{{1, {"[load]SSSSSHHHHH", "HHHHHUUUUU"}}, {2, {"PPPPPPPPPP"}}});
  drawn.LifeCycle(2, v1::LifeCycle::KIND_VM_PAUSED);
  drawn.Draw(Vms{{1, {"PPPPPPPPPP", "SPSPSPSPSP"}}, {2, {"HHHHHHHHHH"}}});
  drawn.LifeCycle(2, v1::LifeCycle::KIND_VM_RESUMED);
  // Four ticks that nobody took, then VM 2 ends.
  drawn.Gap(0, 31, 34, v1::Gap::REASON_TICK_MISSED);
  drawn.Pass(4 * kDrawnTick_ns);
  drawn.Begin(1, {.vcpus = {0, 1}, .unopened = {2}});
  drawn.LifeCycle(2, v1::LifeCycle::KIND_VM_ENDED);
  drawn.Draw(Vms{{1, {"PPPPPP", "HHHHHH"}}});
}

void DrawHostile(DrawnRecording& drawn) {
  const std::string name =
      "</script><img src=x onerror=console.error(1)><script>console.error(2)</script>";
  drawn.Name(1, name);
  drawn.Begin(1, {.vcpus = {0}, .unopened = {1}});
  drawn.Mark(name, drawn.now_ns());
  drawn.Draw("PPSSHH");
}

}  // namespace
}  // namespace vcpulse::check

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: draw_timeline OUT [hostile]\n", stderr);
    return 2;
  }
  vcpulse::check::DrawnRecording drawn;
  if (argc > 2 && std::string_view(argv[2]) == "hostile") {
    vcpulse::check::DrawHostile(drawn);
  } else {
    vcpulse::check::DrawKnown(drawn);
  }
  std::filesystem::copy_file(drawn.Finish(), argv[1],
                             std::filesystem::copy_options::overwrite_existing);
}
