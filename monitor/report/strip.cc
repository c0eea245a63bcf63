#include "monitor/report/strip.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "monitor/metric/interval.h"

namespace vcpulse::report {
namespace {

// What lies further from the first sample is of a damaged file; sums of two never overflow.
constexpr int64_t kFurthest_ns = int64_t{1} << 60;

// How long after the start, which may be any count of ns.
int64_t AfterStart(int64_t instant_ns, int64_t start_ns) {
  int64_t after_ns = 0;
  if (__builtin_sub_overflow(instant_ns, start_ns, &after_ns)) {
    after_ns = instant_ns > start_ns ? kFurthest_ns : -kFurthest_ns;
  }
  return std::clamp(after_ns, -kFurthest_ns, kFurthest_ns);
}

}  // namespace

void StripSlot::operator+=(const StripSlot& other) {
  for (size_t i = 0; i < band_ns.size(); ++i) band_ns[i] += other.band_ns[i];
  starved_ns += other.starved_ns;
}

float StripSlot::SampledNs() const { return std::accumulate(band_ns.begin(), band_ns.end(), 0.0F); }

void Strip::WidenTo(unsigned level) {
  for (; level_ < level; ++level_) {
    const size_t joined_slots = (slots_.size() + 1) / 2;
    for (size_t i = 0; i < joined_slots; ++i) {
      StripSlot joined = At(2 * i);
      joined += At(2 * i + 1);
      slots_[i] = joined;
    }
    slots_.resize(joined_slots);
  }
}

void Strip::Add(int64_t begin_ns, int64_t end_ns, int64_t slot_ns, const core::Verdict& verdict) {
  const auto last = std::min(static_cast<size_t>((end_ns - 1) / slot_ns), kSlots - 1);
  if (slots_.size() <= last) slots_.resize(last + 1);
  for (auto i = static_cast<size_t>(begin_ns / slot_ns); i <= last; ++i) {
    const int64_t slot_begin = static_cast<int64_t>(i) * slot_ns;
    const auto part =
        static_cast<float>(std::min(end_ns, slot_begin + slot_ns) - std::max(begin_ns, slot_begin));
    slots_[i].band_ns[static_cast<size_t>(verdict.band)] += part;
    if (verdict.starved) slots_[i].starved_ns += part;
  }
}

void Strips::Add(const timeline::Entry& entry) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    AddTick(*tick);
  } else if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    const bool known = session->interval_ns() > 0 &&
                       session->interval_ns() <= static_cast<uint64_t>(kFurthest_ns >> 10);
    if (known && !start_ns_) slot_ns_ = static_cast<int64_t>(session->interval_ns());
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    const auto [found, is_new] = columns_.try_emplace({set->vm(), set->epoch()});
    if (!is_new) return;
    for (const v1::Vcpu& vcpu : set->vcpus()) {
      found->second.push_back(&strips_[set->vm()][vcpu.index()]);
    }
  }
}

Strips::Columns* Strips::Find(uint32_t vm, uint32_t epoch) {
  const std::pair key(vm, epoch);
  if (last_ != nullptr && last_key_ == key) return last_;
  const auto found = columns_.find(key);
  if (found == columns_.end()) return nullptr;
  last_key_ = key;
  last_ = &found->second;
  return last_;
}

void Strips::AddTick(const timeline::TickEntry& tick) {
  Columns* const columns = Find(tick.vm, tick.epoch);
  const std::vector<core::VcpuSample>& now = tick.sample.vcpus;
  if (columns == nullptr || columns->size() != now.size() || now.empty()) return;
  const bool has_previous = tick.previous != nullptr && tick.previous->vcpus.size() == now.size();
  if (!start_ns_) {
    start_ns_ = metric::MiddleOf((has_previous ? tick.previous->vcpus : now).front());
  }
  if (!has_previous) return;
  for (size_t i = 0; i < now.size(); ++i) {
    const int64_t begin_ns =
        std::max<int64_t>(0, AfterStart(metric::MiddleOf(tick.previous->vcpus[i]), *start_ns_));
    const int64_t end_ns = AfterStart(metric::MiddleOf(now[i]), *start_ns_);
    if (end_ns <= begin_ns) continue;
    // A tick that ends a little late needs no slot of its own.
    while (end_ns - slot_ns() / 2 > slot_ns() * static_cast<int64_t>(Strip::kSlots)) ++level_;
    end_ns_ = std::max(end_ns_, end_ns);
    const core::Verdict verdict =
        metric::WithinKnown(i < tick.verdicts.size() ? tick.verdicts[i] : core::Verdict());
    (*columns)[i]->WidenTo(level_);
    (*columns)[i]->Add(begin_ns, end_ns, slot_ns(), verdict);
  }
}

void Strips::Finish() {
  for (auto& [vm, strips] : strips_) {
    for (auto& [vcpu, strip] : strips) strip.WidenTo(level_);
  }
}

const std::map<uint32_t, Strip>* Strips::Find(uint32_t vm) const {
  const auto found = strips_.find(vm);
  return found == strips_.end() || found->second.empty() ? nullptr : &found->second;
}

size_t Strips::UsedSlots() const {
  const int64_t used = (end_ns_ + slot_ns() / 2) / slot_ns();
  return std::min(static_cast<size_t>(std::max<int64_t>(used, end_ns_ > 0 ? 1 : 0)), Strip::kSlots);
}

}  // namespace vcpulse::report
