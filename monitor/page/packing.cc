#include "monitor/page/packing.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "boost/json.hpp"
#include "kvm/base/json.h"
#include "monitor/reading/labels.h"

namespace vcpulse::page {
namespace {

namespace json = boost::json;
using metric::Metric;

static_assert(std::endian::native == std::endian::little, "columns are little-endian");

constexpr double kWhole = 65535;

// A share of a bin. What happened at all is never shown as nothing.
uint16_t Share(double ns, int64_t width_ns) {
  if (!(ns > 0)) return 0;
  const double share = std::round(ns / static_cast<double>(width_ns) * kWhole);
  return static_cast<uint16_t>(std::clamp(share, 1.0, kWhole));
}

class Columns {
 public:
  explicit Columns(std::string& out) : out_(out) {}

  template <typename T, typename Of>
  void Add(size_t bins, Of of) {
    const size_t begin = out_.size();
    out_.resize(begin + (bins * sizeof(T) + 3) / 4 * 4);
    for (size_t i = 0; i < bins; ++i) {
      const T value = of(i);
      std::memcpy(out_.data() + begin + i * sizeof(T), &value, sizeof(T));
    }
  }

 private:
  std::string& out_;
};

void AddRow(Columns& columns, const VcpuBins& row, int64_t width_ns) {
  const size_t bins = row.bins.size();
  const auto add_share = [&](auto of) {
    columns.Add<uint16_t>(bins, [&](size_t i) { return Share(of(row.bins[i]), width_ns); });
  };
  add_share([](const metric::Totals& bin) { return bin.UnjudgedNs(); });
  for (const Metric band :
       {Metric::kHalted, Metric::kSpinning, Metric::kProductive, Metric::kUnknown}) {
    add_share([band](const metric::Totals& bin) { return bin.Of(band).part; });
  }
  for (const Metric share : {Metric::kStarved, Metric::kResidency}) {
    add_share([share](const metric::Totals& bin) { return bin.Of(share).part; });
    add_share([share](const metric::Totals& bin) { return bin.Of(share).whole; });
  }
  for (const Metric number : row.numbers) {
    const auto ratio = [&](size_t i) { return row.bins[i].Of(number); };
    columns.Add<float>(bins, [&](size_t i) { return static_cast<float>(ratio(i).whole); });
    columns.Add<float>(bins, [&](size_t i) { return static_cast<float>(ratio(i).part); });
  }
  for (const EventBins& event : row.events) {
    columns.Add<float>(bins, [&](size_t i) { return static_cast<float>(event.counts[i].count); });
    columns.Add<uint16_t>(bins,
                          [&](size_t i) { return Share(event.counts[i].known_ns, width_ns); });
  }
}

// Instants of a damaged file may be anything.
double After(int64_t start_mono_ns, int64_t instant_ns) {
  return static_cast<double>(instant_ns) - static_cast<double>(start_mono_ns);
}

json::value BinsHead(const std::optional<Binner>& bins, int64_t start_mono_ns) {
  if (!bins) return nullptr;
  json::array rows;
  for (const auto& [vcpu, row] : bins->rows()) {
    json::array numbers;
    for (const Metric number : row.numbers) {
      numbers.push_back(Utf8Text(metric::InfoOf(number).key));
    }
    json::array events;
    for (const EventBins& event : row.events) {
      events.push_back(json::object{{"name", event.name}, {"estimated", event.estimated}});
    }
    rows.push_back(json::object{{"vm", vcpu.first},
                                {"vcpu", vcpu.second},
                                {"first", row.first},
                                {"bins", row.bins.size()},
                                {"numbers", std::move(numbers)},
                                {"events", std::move(events)}});
  }
  return json::object{{"origin_ns", After(start_mono_ns, bins->origin_ns())},
                      {"width_ns", bins->width_ns()},
                      {"smallest_width_ns", bins->smallest_width_ns()},
                      {"rows", std::move(rows)}};
}

json::array MetricsHead() {
  json::array out;
  for (const metric::Info& info : metric::Table()) {
    if (info.IsShare()) continue;
    out.push_back(json::object{
        {"key", Utf8Text(info.key)}, {"label", Utf8Text(info.label)}, {"decimals", info.decimals}});
  }
  return out;
}

json::array GapsHead(const GapSpans& gaps, int64_t start_mono_ns) {
  json::array out;
  for (const GapSpan& gap : gaps.spans()) {
    const std::string_view reason = reading::GapReasonName(gap.reason);
    out.push_back(json::object{{"vm", gap.vm},
                               {"from_ns", After(start_mono_ns, gap.from_ns)},
                               {"to_ns", After(start_mono_ns, gap.to_ns)},
                               {"reason", json::string_view(reason.data(), reason.size())},
                               {"vcpu", OrNull(gap.vcpu)},
                               {"errno", OrNull(reading::ErrnoName(gap.error))},
                               {"ticks", gap.ticks}});
  }
  return out;
}

}  // namespace

std::string Pack(const Collector& collected, int64_t start_mono_ns, const std::string& report_json,
                 bool served) {
  const std::optional<Binner>& bins = collected.bins();
  std::string head = ToJsonLine(json::object{
      {"bins", BinsHead(bins, start_mono_ns)},
      {"metrics", MetricsHead()},
      {"gaps", GapsHead(collected.gaps(), start_mono_ns)},
      {"gaps_omitted", collected.gaps().omitted()},
      {"served", served},
  });
  head.erase(head.find_last_of('}'));
  head += ", \"report\": " + (report_json.empty() ? "null" : report_json) + "}";
  head.resize((head.size() + 3) / 4 * 4, ' ');

  std::string packed;
  const auto length = static_cast<uint32_t>(head.size());
  packed.resize(sizeof(length));
  std::memcpy(packed.data(), &length, sizeof(length));
  packed += head;
  Columns columns(packed);
  if (bins) {
    for (const auto& [vcpu, row] : bins->rows()) AddRow(columns, row, bins->width_ns());
  }
  return packed;
}

std::string Deflate(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string out(length, '\0');
  // Cannot fail: the bound is that of the worst case.
  compress2(reinterpret_cast<Bytef*>(out.data()), &length,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_DEFAULT_COMPRESSION);
  out.resize(length);
  return out;
}

}  // namespace vcpulse::page
