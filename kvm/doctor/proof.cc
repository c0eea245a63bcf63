#include "kvm/doctor/proof.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/doctor/guest_counts.h"
#include "kvm/host.h"
#include "kvm/microguest/machine.h"

namespace vcpulse::kvm::doctor {
namespace {

using microguest::FindProgram;
using microguest::Machine;
using microguest::Program;
using microguest::Programs;
using microguest::Truth;
using microguest::Turns;
using State = Finding::State;

constexpr size_t kVcpus = 2;
constexpr absl::Duration kPatience = absl::Seconds(10);  // for one run
constexpr absl::Duration kRun = absl::Milliseconds(30);  // about so long
// To see how fast this guest is. vCPUs that wait for each other may have one CPU together, and then
// a turn takes a time slice of each.
constexpr uint64_t kFirstTurns = 2000;
constexpr uint64_t kFirstTurnsTogether = 20;
constexpr uint64_t kMostTurns = 20'000'000;
// What interrupts and exits may add, as some PMUs count those once more.
constexpr uint64_t kSlack = 100;
constexpr uint64_t kSlackPart = 100'000;
constexpr double kLeastHz = 1e8;
constexpr double kMostHz = 1e10;

constexpr char kDoNotTrust[] =
    "do not trust this event here: name other ones with -e, and report it with this output";
constexpr char kNotWhole[] =
    "others took the counters for a part of the time: end what else uses the PMU (perf, another "
    "vcpulse, the NMI watchdog)";

std::string WithThousands(uint64_t value) {
  const std::string digits = absl::StrCat(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// What a claim comes to, vCPU by vCPU and event by event.
struct Judgement {
  bool holds = true;
  bool whole = true;
  std::vector<std::string> texts;
  absl::Status status;  // it could not be tried

  void Compare(const std::string& whose, const std::string& event, uint64_t expected,
               uint64_t counted) {
    std::string text = absl::StrCat(whose, WithThousands(expected), " ", event, ", counted ");
    if (counted == expected) {
      absl::StrAppend(&text, "exactly");
    } else if (counted == 0) {
      holds = false;
      absl::StrAppend(&text, "0: it stays 0 for guests");
    } else {
      const bool more = counted > expected;
      const uint64_t error = more ? counted - expected : expected - counted;
      holds = holds && error <= std::max(kSlack, expected / kSlackPart);
      absl::StrAppend(&text, WithThousands(counted), " (", more ? "+" : "-", WithThousands(error),
                      ")");
    }
    texts.push_back(std::move(text));
  }
};

// A machine of two vCPUs and their counters, where this host has any; each claim is a member.
class Prover {
 public:
  Prover(PerfEvents& perf, const ProofOptions& options, Machine& machine)
      : perf_(perf), options_(options), machine_(machine) {}

  std::vector<Finding> All() {
    OpenCounters();
    if (counts_ && !ProveHostWork()) {
      Add("programs", State::kUnknown, "ran programs in a guest",
          "not tried: what the host does would count in each");
      return std::move(findings_);
    }
    for (const Program& program : Programs()) {
      if (program.truth != Truth::kHalted) ProveProgram(program);
    }
    ProveHalt();
    if (!counts_) return std::move(findings_);
    ProveClocks();
    if (!counts_->Counts("instructions")) return std::move(findings_);
    ProveTwoReaders();
    ProvePreemption();
    ProveMigration();
    return std::move(findings_);
  }

 private:
  void Add(std::string_view id, State state, std::string tried, std::string answered,
           std::string fix = "") {
    findings_.push_back({.id = std::string(id),
                         .state = state,
                         .tried = std::move(tried),
                         .answered = std::move(answered),
                         .fix = std::move(fix)});
  }

  // `what` begins the answer.
  void Add(std::string_view id, const std::string& tried, const std::string& what,
           const Judgement& judgement) {
    if (!judgement.status.ok()) {
      return Add(id, State::kUnknown, tried, std::string(judgement.status.message()));
    }
    if (!judgement.whole) return Add(id, State::kUnknown, tried, kNotWhole);
    const std::string answered = what + absl::StrJoin(judgement.texts, "; ");
    if (judgement.holds) return Add(id, State::kOk, tried, answered);
    Add(id, State::kFail, tried, answered, kDoNotTrust);
  }

  void OpenCounters() {
    const std::string tried = "opened the counters of a guest's vCPUs";
    auto opened = GuestCounts::Open(perf_, options_.root, options_.pause, machine_);
    if (!opened.ok()) {
      return Add("counters", State::kUnknown, tried,
                 absl::StrCat("nothing to prove: ", opened.status().message()));
    }
    counts_ = *std::move(opened);
    Add("counters", State::kOk, tried,
        absl::StrCat("guest only: ", absl::StrJoin(counts_->Events(), ", ")));
  }

  // A run of the program, for so many turns on each of its first `vcpus`. Errors: of a vCPU.
  absl::StatusOr<std::vector<Turns>> Run(const Program& program, uint64_t turns, size_t vcpus) {
    auto* const shared = machine_.memory().At<uint64_t>(microguest::kShared);
    shared[0] = shared[1] = 0;
    for (size_t i = 0; i < vcpus; ++i) machine_.Start(i, program, turns);
    return Collect(vcpus);
  }

  absl::StatusOr<std::vector<Turns>> Collect(size_t vcpus) {
    std::vector<Turns> did;
    absl::Status status;
    for (size_t i = 0; i < vcpus; ++i) {
      auto one = machine_.Wait(i, kPatience);
      if (one.ok()) did.push_back(*one);
      status.Update(one.status());
    }
    if (!status.ok()) return status;
    return did;
  }

  // As many turns as take about kRun here.
  absl::StatusOr<uint64_t> TurnsFor(const Program& program, size_t vcpus) {
    const uint64_t first = program.vcpus > 1 ? kFirstTurnsTogether : kFirstTurns;
    const int64_t begin_ns = MonotonicNow_ns();
    const auto did = Run(program, first, vcpus);
    if (!did.ok()) return did.status();
    const int64_t took_ns = std::max<int64_t>(1000, MonotonicNow_ns() - begin_ns);
    const double turns =
        static_cast<double>(first) * absl::ToDoubleNanoseconds(kRun) / static_cast<double>(took_ns);
    return std::clamp(static_cast<uint64_t>(turns), first, kMostTurns);
  }

  void ProveProgram(const Program& program) {
    if (program.name == "chase") machine_.memory().ChainData(microguest::kDataBytes);
    const std::string tried = absl::StrCat("ran ", std::string(program.what), " in a guest",
                                           program.vcpus > 1 ? " of 2 vCPUs" : "");
    const auto turns = TurnsFor(program, program.vcpus);
    if (!turns.ok()) return Add(program.name, tried, "", {.status = turns.status()});
    for (size_t i = 0; i < program.vcpus && counts_; ++i) static_cast<void>(counts_->Begin(i));
    const auto did = Run(program, *turns, program.vcpus);
    if (!did.ok()) return Add(program.name, tried, "", {.status = did.status()});
    const std::string what =
        absl::StrCat(std::string(program.what), ", ", WithThousands(*turns), " turns");
    for (const Turns& one : *did) {
      if (one.turns == *turns) continue;
      return Add(program.name, State::kFail, tried,
                 absl::StrCat(what, ": the guest made ", WithThousands(one.turns)),
                 "this KVM does not run guests faithfully: please report it");
    }
    if (!counts_) return Add(program.name, State::kNote, tried, what + " as it had to");
    Add(program.name, tried, what + ": ", Judge(*counts_, program, *did));
  }

  Judgement Judge(GuestCounts& counts, const Program& program, const std::vector<Turns>& did) {
    Judgement judgement;
    for (size_t i = 0; i < did.size(); ++i) {
      const auto counted = counts.Since(i);
      if (!counted.ok()) return {.status = counted.status()};
      judgement.whole = judgement.whole && counted->Whole();
      for (const auto& [event, expected] : Expected(program, did[i])) {
        const auto count = counted->Of(event);
        if (count) judgement.Compare(OfVcpu(did.size(), i), event, expected, *count);
      }
    }
    return judgement;
  }

  static std::string OfVcpu(size_t vcpus, size_t vcpu) {
    return vcpus > 1 ? absl::StrCat("vCPU ", vcpu, ": ") : "";
  }

  std::vector<std::pair<std::string, uint64_t>> Expected(const Program& program,
                                                         const Turns& did) const {
    std::vector<std::pair<std::string, uint64_t>> expected = {
        {"instructions", program.Instructions(did)}, {"branches", program.Branches(did)}};
    if (options_.pause && program.name == "pause") {
      expected.emplace_back(options_.pause->name, did.turns);
    }
    return expected;
  }

  // What the host does on a vCPU's thread must not count.
  bool ProveHostWork() {
    const std::string tried = "kept a vCPU's thread busy outside the guest";
    static_cast<void>(counts_->Begin(0));
    machine_.StartOnHost(0, [] { BurnCpu(absl::Milliseconds(20)); });
    const auto waited = machine_.Wait(0, kPatience);
    if (!waited.ok()) {
      Add("host-work", tried, "", {.status = waited.status()});
    } else {
      AddNothing("host-work", tried, "20 ms of work of vcpulse's own, outside the guest,",
                 "record on a host whose hypervisor, if it has one, honours guest-only counting "
                 "(exclude_host): here bands would show the host's work as the guest's");
    }
    return findings_.back().state != State::kFail;
  }

  // Nor what a halted guest does not do.
  void ProveHalt() {
    const std::string tried = "halted a guest for 50 ms";
    machine_.Start(0, *FindProgram("halt"), 1);
    absl::SleepFor(absl::Milliseconds(20));
    if (counts_) static_cast<void>(counts_->Begin(0));
    absl::SleepFor(absl::Milliseconds(50));
    if (counts_) {
      AddNothing("halt", tried, "a guest that was halted for 50 ms",
                 "do not trust HALTED here, and report it with this output");
    }
    machine_.Stop(0);
    const auto waited = machine_.Wait(0, kPatience);
    if (!waited.ok()) return Add("halt", tried, "", {.status = waited.status()});
    if (!counts_) Add("halt", State::kNote, tried, "a guest halted as it had to");
  }

  void AddNothing(std::string_view id, const std::string& tried, const std::string& what,
                  const std::string& fix) {
    const auto counts = counts_->Since(0);
    if (!counts.ok()) return Add(id, tried, "", {.status = counts.status()});
    std::vector<std::string> counted;
    for (const auto& [event, count] : counts->of) {
      if (count > kSlack) counted.push_back(absl::StrCat(WithThousands(count), " ", event));
    }
    if (counted.empty()) return Add(id, State::kOk, tried, what + " counted nothing");
    Add(id, State::kFail, tried, absl::StrCat(what, " counted ", absl::StrJoin(counted, ", ")),
        fix);
  }

  // Cycles and reference cycles must come at rates that a clock can have.
  void ProveClocks() {
    const Program& program = *FindProgram("loop");
    const std::string tried = "took the rates of the clocks while a guest ran";
    const auto turns = TurnsFor(program, 1);
    if (!turns.ok()) return Add("clocks", tried, "", {.status = turns.status()});
    static_cast<void>(counts_->Begin(0));
    const auto did = Run(program, *turns, 1);
    const auto counted = counts_->Since(0);
    if (!did.ok()) return Add("clocks", tried, "", {.status = did.status()});
    if (!counted.ok()) return Add("clocks", tried, "", {.status = counted.status()});
    Judgement judgement{.whole = counted->Whole()};
    // Not of the time that passed: on a busy host the thread waits for its CPU.
    const auto running_ns = static_cast<double>(counted->running_ns);
    if (running_ns == 0) return Add("clocks", State::kUnknown, tried, "the counters were never on");
    for (const std::string event : {"cycles", "ref-cycles"}) {
      const auto count = counted->Of(event);
      if (count) CompareRate(event, static_cast<double>(*count) / running_ns * 1e9, judgement);
    }
    Add("clocks", tried, "", judgement);
  }

  static void CompareRate(const std::string& event, double hz, Judgement& judgement) {
    std::string text = absl::StrFormat("%s at %.2f GHz", event, hz / 1e9);
    if (hz < kLeastHz || hz > kMostHz) absl::StrAppend(&text, ", which no CPU has");
    judgement.holds = judgement.holds && hz >= kLeastHz && hz <= kMostHz;
    const auto tsc_hz = event == "ref-cycles" ? MeasureTscHz(absl::Milliseconds(20)) : std::nullopt;
    if (tsc_hz) {
      absl::StrAppendFormat(&text, " of the TSC's %.2f", *tsc_hz / 1e9);
      // Not all of the thread's time is the guest's.
      judgement.holds = judgement.holds && hz >= 0.5 * *tsc_hz && hz <= 1.05 * *tsc_hz;
    }
    judgement.texts.push_back(std::move(text));
  }

  // The loop on so many vCPUs while `meanwhile` disturbs them. `what` begins the answer.
  template <typename Meanwhile>
  void ProveLoop(std::string_view id, const std::string& tried, const std::string& what,
                 GuestCounts& counts, size_t vcpus, const Meanwhile& meanwhile) {
    const Program& program = *FindProgram("loop");
    const auto turns = TurnsFor(program, vcpus);
    if (!turns.ok()) return Add(id, tried, "", {.status = turns.status()});
    for (size_t i = 0; i < vcpus; ++i) static_cast<void>(counts.Begin(i));
    for (size_t i = 0; i < vcpus; ++i) machine_.Start(i, program, *turns);
    meanwhile();
    const auto did = Collect(vcpus);
    if (!did.ok()) return Add(id, tried, "", {.status = did.status()});
    Add(id, tried, what, Judge(counts, program, *did));
  }

  // Another one that counts the same vCPU, such as a second vcpulse or perf.
  void ProveTwoReaders() {
    const std::string tried = "counted a vCPU twice at a time";
    auto second = GuestCounts::Open(perf_, options_.root, options_.pause, machine_);
    if (!second.ok()) return Add("two-readers", tried, "", {.status = second.status()});
    ProveLoop("two-readers", tried, "two readers of one vCPU: ", *second, 1, [] {});
    Finding& found = findings_.back();
    if (found.answered != kNotWhole) return;
    found.state = State::kNote;
    found.answered = "both do not fit this PMU: they take turns, and their counts are estimates";
  }

  // Two vCPUs that take turns on one CPU.
  void ProvePreemption() {
    const std::vector<int> cpus = OwnCpus();
    for (size_t i = 0; i < kVcpus; ++i) Pin(machine_.Tid(i), {cpus.data(), 1});
    ProveLoop("preemption", "ran two vCPUs on one CPU", "two vCPUs in turn on one CPU: ", *counts_,
              kVcpus, [] {});
    for (size_t i = 0; i < kVcpus; ++i) Pin(machine_.Tid(i), cpus);
  }

  void ProveMigration() {
    const std::string tried = "moved a vCPU from CPU to CPU while it ran";
    const std::vector<int> cpus = OwnCpus();
    if (cpus.size() < 2) {
      return Add("migration", State::kNote, tried, "not tried: there is one CPU to run on");
    }
    const pid_t tid = machine_.Tid(0);
    ProveLoop("migration", tried, "a vCPU moved from CPU to CPU: ", *counts_, 1, [&] {
      for (size_t i = 0; i < 20; ++i) {
        Pin(tid, {&cpus[i % cpus.size()], 1});
        absl::SleepFor(absl::Milliseconds(1));
      }
    });
    Pin(tid, cpus);
  }

  // At least one.
  static std::vector<int> OwnCpus() {
    cpu_set_t set;
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
  }

  static void Pin(pid_t tid, std::span<const int> cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    sched_setaffinity(tid, sizeof(set), &set);  // else it stays, and the claim holds all the same
  }

  PerfEvents& perf_;
  const ProofOptions& options_;
  Machine& machine_;
  std::optional<GuestCounts> counts_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> Prove(PerfEvents& perf, const ProofOptions& options) {
  auto machine = Machine::Create(kVcpus);
  if (!machine.ok()) {
    return {{.id = "guest",
             .state = State::kUnknown,
             .tried = "made a guest of a few instructions",
             .answered = std::string(machine.status().message())}};
  }
  return Prover(perf, options, **machine).All();
}

std::string_view ToString(Proven proven) {
  switch (proven) {
    case Proven::kYes:
      return "yes";
    case Proven::kNo:
      return "no";
    case Proven::kNotTold:
      return "not-told";
  }
  return "";
}

Proven IsProven(std::span<const Finding> findings) {
  if (std::ranges::count(findings, State::kFail, &Finding::state) > 0) return Proven::kNo;
  const bool told = std::ranges::count(findings, State::kUnknown, &Finding::state) == 0;
  return told && !findings.empty() ? Proven::kYes : Proven::kNotTold;
}

}  // namespace vcpulse::kvm::doctor
