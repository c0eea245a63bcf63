#include "monitor/page/bins.h"

#include <algorithm>
#include <variant>

namespace vcpulse::page {
namespace {

// Whatever a damaged file says: sums of instants and widths stay far from overflow.
constexpr int64_t kFarthest_ns = int64_t{100} * 366 * 86'400 * 1'000'000'000;

bool IsNear(int64_t instant_ns, int64_t origin_ns) {
  int64_t distance = 0;
  return !__builtin_sub_overflow(instant_ns, origin_ns, &distance) && distance > -kFarthest_ns &&
         distance < kFarthest_ns;
}

void Add(EventBins::Count& sum, const EventBins::Count& other) {
  sum.count += other.count;
  sum.known_ns += other.known_ns;
}

// Bins n and n + 1 become one where n is even.
template <typename T, typename AddTo>
void FoldPairs(std::vector<T>& bins, bool starts_odd, AddTo add) {
  const size_t shift = starts_odd ? 1 : 0;
  const size_t folded = (bins.size() + shift + 1) / 2;
  for (size_t i = shift == 1 ? 1 : 0; i < bins.size(); ++i) {
    const size_t target = (i + shift) / 2;
    if ((i + shift) % 2 == 0) {
      bins[target] = bins[i];
    } else {
      add(bins[target], bins[i]);
    }
  }
  bins.resize(folded);
  bins.shrink_to_fit();
}

// Keeps the order: a bin that no vCPU has had yet goes before or behind.
template <typename T>
void Extend(std::vector<T>& bins, size_t before, size_t behind) {
  bins.insert(bins.begin(), before, T());
  bins.resize(bins.size() + behind);
}

// Farther than any recording: the numbers of a damaged file.
constexpr int64_t kFarthestTicks = 10'000'000'000;
constexpr uint64_t kLongestRecorded_ns = 3'600'000'000'000;  // of `record`

bool SameKind(const GapSpan& a, const GapSpan& b) {
  return a.vm == b.vm && a.reason == b.reason && a.vcpu == b.vcpu && a.error == b.error;
}

}  // namespace

Binner::Binner(const Options& options)
    : options_(options), width_ns_(std::clamp<int64_t>(options.width_ns, 1, kFarthest_ns)) {
  options_.width_ns = width_ns_;
}

void Binner::Add(const metric::Interval& interval) {
  const int64_t length_ns = interval.delta.interval_ns;
  int64_t begin_ns = interval.BeginNs();
  int64_t end_ns = interval.EndNs();
  if (!IsNear(begin_ns, options_.origin_ns) || !IsNear(end_ns, options_.origin_ns)) {
    ++unusable_;
    return;
  }
  if (options_.from_ns) begin_ns = std::max(begin_ns, *options_.from_ns);
  if (options_.to_ns) end_ns = std::min(end_ns, *options_.to_ns);
  if (begin_ns >= end_ns) return;
  begin_ns -= options_.origin_ns;
  end_ns -= options_.origin_ns;

  const Column& column = ColumnOf(interval);
  VcpuBins& row = *column.row;
  metric::Totals whole;
  whole.Add(interval);
  Meet(row, whole);
  Reach(row, begin_ns, end_ns);
  for (int64_t at_ns = begin_ns; at_ns < end_ns;) {
    const int64_t bin = BinAt(at_ns);
    const int64_t until_ns = std::min(end_ns, (bin + 1) * width_ns_);
    const int64_t ns = until_ns - at_ns;
    const auto place = static_cast<size_t>(bin - row.first);
    const double share = static_cast<double>(ns) / static_cast<double>(length_ns);
    row.bins[place].Add(whole, share);
    for (const Column::Event& which : column.events) {
      const auto counted = interval.CountOf(which.place);
      if (!counted.count) continue;
      EventBins& event = row.events[which.bins];
      const bool scaled = counted.share && *counted.share > 0 && *counted.share < 1;
      event.estimated = event.estimated || scaled;
      page::Add(event.counts[place], {.count = static_cast<double>(*counted.count) * share /
                                               (scaled ? *counted.share : 1),
                                      .known_ns = static_cast<double>(ns)});
    }
    at_ns = until_ns;
  }
}

Binner::Column& Binner::ColumnOf(const metric::Interval& interval) {
  const EpochKey key(interval.Vm(), interval.epoch.set.epoch());
  if (latest_.second == nullptr || latest_.first != key) latest_ = {key, &columns_[key]};
  std::vector<Column>& columns = *latest_.second;
  if (columns.size() <= interval.column) columns.resize(interval.column + 1);
  Column& column = columns[interval.column];
  if (column.row != nullptr) return column;
  column.row = &rows_[{interval.Vm(), interval.Vcpu().index()}];
  VcpuBins& row = *column.row;
  for (const metric::EventPlace& place : interval.epoch.events) {
    if (!place.counted) continue;
    const auto same = std::ranges::find(row.events, place.name, &EventBins::name);
    column.events.push_back({place, static_cast<size_t>(same - row.events.begin())});
    if (same != row.events.end()) continue;
    row.events.push_back(
        {.name = place.name, .counts = std::vector<EventBins::Count>(row.bins.size())});
    bytes_ += row.bins.size() * (PackedBytesPerBin(0, 1) - PackedBytesPerBin(0, 0));
  }
  return column;
}

void Binner::Meet(VcpuBins& row, const metric::Totals& whole) {
  for (const metric::Info& info : metric::Table()) {
    if (info.IsShare() || !(whole.Of(info.metric).whole > 0)) continue;
    if (std::ranges::find(row.numbers, info.metric) != row.numbers.end()) continue;
    row.numbers.push_back(info.metric);
    bytes_ += row.bins.size() * (PackedBytesPerBin(1, 0) - PackedBytesPerBin(0, 0));
  }
}

void Binner::Reach(VcpuBins& row, int64_t from_ns, int64_t to_ns) {
  const auto missing = [&] {
    const int64_t first = BinAt(from_ns);
    const int64_t last = BinAt(to_ns - 1);
    const auto end = row.first + static_cast<int64_t>(row.bins.size());
    if (row.bins.empty()) return std::pair(size_t{0}, static_cast<size_t>(last - first + 1));
    return std::pair(static_cast<size_t>(std::max<int64_t>(0, row.first - first)),
                     static_cast<size_t>(std::max<int64_t>(0, last + 1 - end)));
  };
  auto [before, behind] = missing();
  if (before + behind == 0) return;
  const size_t bytes_per_bin = PackedBytesPerBin(row.numbers.size(), row.events.size());
  while (bytes_ + (before + behind) * bytes_per_bin > options_.most_bytes &&
         width_ns_ < kFarthest_ns) {
    Fold();
    std::tie(before, behind) = missing();
  }
  if (row.bins.empty()) row.first = BinAt(from_ns);
  row.first -= static_cast<int64_t>(before);
  Extend(row.bins, before, behind);
  for (EventBins& event : row.events) Extend(event.counts, before, behind);
  bytes_ += (before + behind) * bytes_per_bin;
}

void Binner::Fold() {
  width_ns_ *= 2;
  bytes_ = 0;
  for (auto& [vcpu, row] : rows_) {
    const bool starts_odd = (row.first & 1) != 0;
    row.first >>= 1;  // towards minus infinity
    FoldPairs(row.bins, starts_odd,
              [](metric::Totals& sum, const metric::Totals& other) { sum.Add(other); });
    for (EventBins& event : row.events) FoldPairs(event.counts, starts_odd, page::Add);
    bytes_ += row.bins.size() * PackedBytesPerBin(row.numbers.size(), row.events.size());
  }
}

int64_t Binner::BinAt(int64_t after_origin_ns) const {
  const int64_t cut = after_origin_ns / width_ns_;
  return after_origin_ns < 0 && cut * width_ns_ != after_origin_ns ? cut - 1 : cut;
}

void GapSpans::Add(const timeline::Entry& entry) {
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    const bool known = session->interval_ns() <= kLongestRecorded_ns;
    interval_ns_ = known ? static_cast<int64_t>(session->interval_ns()) : 0;
    return;
  }
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    anchor_ = Anchor{tick->sample.tick, tick->sample.deadline_ns};
    return;
  }
  const auto* gap = std::get_if<v1::Gap>(&entry.record);
  if (gap == nullptr) return;
  const GapSpan span = SpanOf(*gap);
  if (const auto found = latest_.find(span.vm); found != latest_.end()) {
    GapSpan& before = spans_[found->second];
    if (SameKind(before, span) && gap->first_tick() == before.last_tick + 1) {
      before.to_ns = span.to_ns;
      before.last_tick = span.last_tick;
      before.ticks += span.ticks;
      return;
    }
  }
  if (spans_.size() >= kMost) {
    ++omitted_;
    return;
  }
  latest_[span.vm] = spans_.size();
  spans_.push_back(span);
}

GapSpan GapSpans::SpanOf(const v1::Gap& gap) const {
  const uint64_t ticks =
      gap.last_tick() >= gap.first_tick() ? gap.last_tick() - gap.first_tick() + 1 : 1;
  GapSpan span{.vm = gap.vm(),
               .from_ns = gap.mono_ns(),
               .to_ns = gap.mono_ns(),
               .reason = gap.reason(),
               .error = gap.error(),
               .ticks = ticks,
               .last_tick = gap.last_tick()};
  if (gap.has_vcpu_index()) span.vcpu = gap.vcpu_index();
  if (!anchor_ || interval_ns_ == 0) return span;
  // Differences of unsigned numbers, so they wrap to what they are.
  const auto first = static_cast<int64_t>(gap.first_tick() - anchor_->tick);
  if (first < -kFarthestTicks || first > kFarthestTicks) return span;
  if (ticks > static_cast<uint64_t>(kFarthestTicks)) return span;
  int64_t from_ns = 0;
  int64_t length_ns = 0;
  int64_t to_ns = 0;
  if (__builtin_mul_overflow(first - 1, interval_ns_, &from_ns) ||
      __builtin_add_overflow(from_ns, anchor_->deadline_ns, &from_ns) ||
      __builtin_mul_overflow(static_cast<int64_t>(ticks), interval_ns_, &length_ns) ||
      __builtin_add_overflow(from_ns, length_ns, &to_ns)) {
    return span;
  }
  span.from_ns = from_ns;
  span.to_ns = to_ns;
  return span;
}

}  // namespace vcpulse::page
