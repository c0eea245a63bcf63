// draw_timeline OUT: the timeline that the tests of the page know every tick of (page_test.py has
// the same letters). `draw_timeline OUT hostile`: one of a hostile harness. `long`: one that
// is drawn in wider bins. `draw_timeline OUT scene`: the one of the README's picture, made up from
// beginning to end. `degraded`: of nine VMs without counters. `web`: a VM with the name and the
// phases that the documents' commands use.

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tests/unit/fixtures/drawn_recording.h"

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
  drawn.OnHostCpus(1, 1, {1, 0});
  drawn.Draw(Vms{{1, {"[load]SSSSSHHHHH", "HHHHHUUUUU"}}, {2, {"PPPPPPPPPP"}}});
  drawn.OnHostCpus(1, 1, {1, 5});
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

// So many ticks that a pixel stands for some: pairs of ticks with the same band, from an odd tick
// on, so that two pairs are one bin only where levels of detail were folded at the wrong place.
void DrawLong(DrawnRecording& drawn) {
  drawn.Begin(1, {});
  drawn.Draw("H");
  drawn.Begin(2, {});
  std::string pairs = "P";
  while (pairs.size() < 1999) pairs += pairs.size() % 4 == 1 ? "SS" : "PP";
  drawn.Draw(
      std::map<uint32_t, std::vector<std::string>>{{1, {std::string(1999, 'H')}}, {2, {pairs}}});
}

// What a vCPU of the scene does, in letters: `usual` of a hundred ticks are `letter`, the others
// `other`.
struct Habit {
  char letter;
  int usual;
  char other;
};

class Scene {
 public:
  explicit Scene(DrawnRecording& drawn) : drawn_(drawn) {}

  void Play(const std::string& phase, size_t ticks,
            const std::map<uint32_t, std::vector<Habit>>& vms) {
    if (!phase.empty()) drawn_.Mark(phase, drawn_.now_ns());
    std::map<uint32_t, std::vector<std::string>> letters;
    for (const auto& [vm, habits] : vms) {
      for (const Habit& habit : habits) {
        std::string& row = letters[vm].emplace_back();
        for (size_t t = 0; t < ticks; ++t) {
          row += Draw(habit.usual) ? habit.letter : habit.other;
        }
      }
    }
    drawn_.Draw(letters);
  }

 private:
  // xorshift64: the same everywhere.
  bool Draw(int percent) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<int>(random_ % 100) < percent;
  }

  DrawnRecording& drawn_;
  uint64_t random_ = 42;
};

void DrawScene(DrawnRecording& drawn) {
  drawn.waited_percent = 3;
  drawn.Name(1, "build-farm");
  drawn.Name(2, "database");
  drawn.Name(3, "cache");
  drawn.Begin(1, {.vcpus = {0, 1, 2, 3, 4, 5}});
  drawn.Begin(2, {.vcpus = {0, 1, 2, 3}});
  drawn.Begin(3, {.vcpus = {0, 1}});
  const Habit idle{'H', 97, '1'};
  const Habit works{'2', 93, 'H'};
  const Habit waits{'S', 90, '1'};
  const Habit squeezed{'p', 60, 's'};
  const Habit mixed{'3', 45, 'U'};
  Scene scene(drawn);
  scene.Play("boot", 35,
             {{1, {works, idle, idle, idle, idle, idle}},
              {2, {works, idle, idle, idle}},
              {3, {mixed, idle}}});
  scene.Play("warm-up", 45,
             {{1, {works, works, works, {'2', 60, 'H'}, {'2', 40, 'H'}, idle}},
              {2, {works, {'3', 70, 'H'}, {'3', 50, 'H'}, idle}},
              {3, {mixed, mixed}}});
  scene.Play("locked", 50,
             {{1, {works, waits, waits, waits, waits, waits}},
              {2, {squeezed, squeezed, {'2', 50, 'H'}, idle}},
              {3, {mixed, works}}});
  drawn.Gap(0, 131, 133, v1::Gap::REASON_TICK_MISSED);
  drawn.Pass(3 * kDrawnTick_ns);
  drawn.LifeCycle(3, v1::LifeCycle::KIND_VM_ENDED);
  scene.Play("", 20,
             {{1, {works, waits, waits, waits, waits, {'S', 50, '2'}}},
              {2, {squeezed, squeezed, works, idle}}});
  scene.Play("fixed", 60,
             {{1, {works, works, works, works, works, {'3', 85, 'H'}}},
              {2, {works, works, {'2', 55, 'H'}, idle}}});
  drawn.LifeCycle(2, v1::LifeCycle::KIND_VM_PAUSED);
  scene.Play(
      "idle", 40,
      {{1, {{'H', 80, '2'}, idle, idle, idle, idle, idle}},
       {2, {{'U', 100, 'U'}, {'U', 100, 'U'}, {'U', 100, 'U'}, {'U', 100, 'U'}}}});  // as a paused
                                                                                     // VM is
}

// Two chunks of it, so that it can be cut.
void DrawWeb(DrawnRecording& drawn) {
  drawn.Name(1, "web");
  drawn.Begin(1, {.vcpus = {0, 1, 2, 3}});
  Scene scene(drawn);
  const Habit works{'2', 100, '2'};
  scene.Play("boot", 20, {{1, {works, {'H', 90, '2'}, {'H', 90, '2'}, {'H', 90, '2'}}}});
  drawn.Flush();
  scene.Play("body", 120, {{1, {works, works, works, {'3', 50, 'P'}}}});
  scene.Play("shutdown", 20, {{1, {works, {'H', 90, '2'}, {'H', 90, '2'}, {'H', 90, '2'}}}});
}

// Nine VMs of a host without a PMU: whether a vCPU ran is known, not what it did.
void DrawDegraded(DrawnRecording& drawn) {
  drawn.waited_percent = 4;
  std::map<uint32_t, std::vector<Habit>> vms;
  for (uint32_t vm = 1; vm <= 9; ++vm) {
    const auto vcpus = static_cast<int>(vm % 4 + 1);
    DrawnRecording::Epoch epoch{.vcpus = {}, .degraded = true};
    for (int v = 0; v < vcpus; ++v) {
      epoch.vcpus.push_back(static_cast<uint32_t>(v));
      vms[vm].push_back({'H', 100 - static_cast<int>(vm) * 8 / (v + 1), v == 1 ? 'u' : 'N'});
    }
    drawn.Begin(vm, epoch);
  }
  Scene scene(drawn);
  scene.Play("boot", 40, vms);
  drawn.Gap(0, 41, 43, v1::Gap::REASON_TICK_MISSED);
  drawn.Pass(3 * kDrawnTick_ns);
  scene.Play("work", 80, vms);
}

}  // namespace
}  // namespace vcpulse::check

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: draw_timeline OUT [degraded|hostile|long|scene|web]\n", stderr);
    return 2;
  }
  vcpulse::check::DrawnRecording drawn;
  const std::string_view which = argc > 2 ? argv[2] : "";
  if (which == "degraded") {
    vcpulse::check::DrawDegraded(drawn);
  } else if (which == "hostile") {
    vcpulse::check::DrawHostile(drawn);
  } else if (which == "long") {
    vcpulse::check::DrawLong(drawn);
  } else if (which == "scene") {
    vcpulse::check::DrawScene(drawn);
  } else if (which == "web") {
    vcpulse::check::DrawWeb(drawn);
  } else {
    vcpulse::check::DrawKnown(drawn);
  }
  std::filesystem::copy_file(drawn.Finish(), argv[1],
                             std::filesystem::copy_options::overwrite_existing);
}
