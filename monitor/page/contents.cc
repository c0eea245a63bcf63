#include "monitor/page/contents.h"

#include <algorithm>

#include "monitor/report/report.h"

namespace vcpulse::page {
namespace {

constexpr int64_t kUnknownInterval_ns = 4'000'000;  // bins of 1 ms
constexpr int64_t kBinsPerTick = 4;

}  // namespace

void Collector::Take(const timeline::Entry& entry) {
  if (const auto* session = std::get_if<v1::Session>(&entry.record); session && interval_ns_ == 0) {
    interval_ns_ = static_cast<int64_t>(session->interval_ns());
  }
  if (const auto instant = timeline::InstantOf(entry);
      instant && entry.sequence != 0 && !first_ns_) {
    first_ns_ = instant;
  }
  gaps_.Add(entry);
}

void Collector::Add(const metric::Interval& interval) {
  if (!bins_) {
    bins_.emplace(Binner::Options{
        .origin_ns = options_.origin_ns.value_or(first_ns_.value_or(interval.BeginNs())),
        .width_ns = options_.width_ns.value_or(SmallestWidth()),
        .most_bytes = options_.most_bytes,
        .from_ns = options_.from_ns,
        .to_ns = options_.to_ns});
  }
  bins_->Add(interval);
}

int64_t Collector::SmallestWidth() const {
  const int64_t interval_ns = interval_ns_ > 0 ? interval_ns_ : kUnknownInterval_ns;
  return std::max<int64_t>(1, interval_ns / kBinsPerTick);
}

absl::StatusOr<std::unique_ptr<Contents>> Contents::Read(const timeline::Input& input,
                                                         const reading::Part& part,
                                                         size_t most_bytes) {
  std::unique_ptr<Contents> contents(new Contents(most_bytes));
  Collector& collector = contents->collector_;
  auto report = report::ReadPart(
      input, part, contents->summary_,
      [&collector](const timeline::Entry& entry) {
        collector.Take(entry);
        return absl::OkStatus();
      },
      [&collector](const metric::Interval& interval) {
        collector.Add(interval);
        return absl::OkStatus();
      });
  if (!report.ok()) return report.status();
  contents->report_.emplace(*std::move(report));
  return contents;
}

}  // namespace vcpulse::page
